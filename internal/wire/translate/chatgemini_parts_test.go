package translate

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/gemini"
	"tollgate/internal/wire/sse"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// TestGeminiTrapSignaturesComeBack checks that the signature of a call or an image reaches the client
// as in Google's own chat form, and that the client's next request returns it to Gemini.
func TestGeminiTrapSignaturesComeBack(t *testing.T) {
	t.Parallel()
	const (
		call   = `{"functionCall":{"name":"f","id":"a","args":{}},"thoughtSignature":"U0lH"}`
		second = `{"functionCall":{"name":"g","id":"b","args":{}}}`
		image  = `{"inlineData":{"mimeType":"image/png","data":"AAAA"},"thoughtSignature":"UElD"}`
		parts  = `{"text":"so","thoughtSignature":"VEVY"},` + image + `,` + call + `,` + second
		answer = `{"candidates":[{"content":{"parts":[` + parts + `]},"finishReason":"STOP"}]}`
	)
	out, err := wholeOfGemini([]byte(answer), wire.Usage{})
	if err != nil {
		t.Fatal(err)
	}
	var whole struct {
		Choices []struct{ Message json.RawMessage }
	}
	if err := json.Unmarshal(out, &whole); err != nil {
		t.Fatal(err)
	}
	body, err := toGemini(t, `{"model":"m","messages":[`+hi+`,`+string(whole.Choices[0].Message)+`]}`,
		wire.Translation{Edits: wire.Edits{Model: "gemini-3.8-flash"}})
	for _, want := range []string{`{"text":"so"},{"inlineData":{"mimeType":"image/png","data":"AAAA"},"thoughtSignature":"UElD"}`,
		`{"functionCall":{"id":"a","name":"f","args":{}},"thoughtSignature":"U0lH"},{"functionCall":{"id":"b","name":"g","args":{}}}`} {
		if err != nil || !strings.Contains(string(body), want) {
			t.Errorf("%v: no %s in %s\nof %s", err, want, body, out)
		}
	}
	e := sse.Event{Data: []byte(answer)}
	f, err := gemini.NewMeter(1).Read(e)
	if err != nil {
		t.Fatal(err)
	}
	streamed := string(geminiWriter(false).Append(nil, e, f))
	for _, want := range []string{`"extra_content":{"google":{"thought_signature":"U0lH"}}`,
		`"extra_content":{"google":{"thought_signature":"UElD"}}`} {
		if strings.Count(streamed, want) != 1 || strings.Count(string(out), want) != 1 {
			t.Errorf("%s must occur once in %s\nand once in %s", want, streamed, out)
		}
	}
}

// TestGeminiTrapImagesOfTheAssistant checks that the assistant's images return unchanged, with
// their signature or its replacement.
func TestGeminiTrapImagesOfTheAssistant(t *testing.T) {
	t.Parallel()
	const turn = `{"role":"assistant","content":"there","images":[` +
		`{"type":"image_url","index":0,"image_url":{"url":"data:image/png;base64,AAAA"}},` +
		`{"type":"image_url","image_url":{"url":"data:image/png;base64,BBBB"},"extra_content":{"google":{"thought_signature":"Qg=="}}}]}`
	for model, want := range map[string]string{
		"gemini-3-pro-image": `{"text":"there"},{"inlineData":{"mimeType":"image/png","data":"AAAA"},` +
			`"thoughtSignature":"skip_thought_signature_validator"},{"inlineData":{"mimeType":"image/png","data":"BBBB"},"thoughtSignature":"Qg=="}`,
		"gemini-2.5-flash-image": `{"text":"there"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}},` +
			`{"inlineData":{"mimeType":"image/png","data":"BBBB"},"thoughtSignature":"Qg=="}`,
	} {
		body, err := toGemini(t, `{"model":"m","messages":[`+hi+`,`+turn+`,`+hi+`]}`, wire.Translation{Edits: wire.Edits{Model: model}})
		if err != nil || !strings.Contains(string(body), `{"role":"model","parts":[`+want+`]}`) {
			t.Errorf("%s: %v: %s", model, err, body)
		}
	}
}

// TestGeminiTrapImagesByAddress tests image addresses for models that fetch images.
func TestGeminiTrapImagesByAddress(t *testing.T) {
	t.Parallel()
	for address, mime := range map[string]string{
		"https://example.com/a.png": "image/png", "https://example.com/a.JPG?x=.png": "image/jpeg", "http://example.com/pic": "image/jpeg",
		"https://example.com/a.webp#x": "image/webp", "https://example.com/a.heic": "image/heic", "https://example.com/a.mp4": "image/jpeg",
	} {
		_, body := sendGemini(t, `{"role":"user","content":[{"type":"image_url","image_url":{"url":"`+address+`","detail":"low"}}]}`, "")
		if want := `{"parts":[{"fileData":{"mimeType":"` + mime + `","fileUri":"` + address + `"}}]`; !strings.Contains(body, want[1:]) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	for _, address := range []string{
		"https://generativelanguage.googleapis.com/v1beta/files/abc", "https://generativelanguage.googleapis.com./v1beta/files/abc",
		"https://www.youtube.com/watch?v=x", "https://youtu.be/x", "https:///a.png", "",
	} {
		_, err := toGemini(t, `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":"`+address+`"}]}]}`,
			wire.Translation{Edits: wire.Edits{Model: "gemini-3.8-flash"}})
		var f *fault.Error
		if !errors.As(err, &f) || f.Param != "messages[0].content[0].image_url" {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestGeminiTrapImagesFetchedHere tests image addresses for models that fetch nothing, so that the
// gateway fetches the images.
func TestGeminiTrapImagesFetchedHere(t *testing.T) {
	t.Parallel()
	busy := fault.New(fault.ServiceUnavailable, "busy")
	var fetched [][]string
	in := wire.Translation{Edits: wire.Edits{Model: "gemini-2.5-flash"}, Images: func(addresses []string) (got []wire.FetchedImage) {
		fetched = append(fetched, addresses)
		for _, address := range addresses {
			switch address {
			case "https://example.com/a?b", "https://example.com/c":
				got = append(got, wire.FetchedImage{MIME: "image/webp", Data: []byte("bytes")})
			case "https://example.com/busy":
				got = append(got, wire.FetchedImage{Err: busy})
			default:
				got = append(got, wire.FetchedImage{Err: fault.New(fault.InvalidRequest, "It is gone.")})
			}
		}
		return got
	}}
	translate := func(address string) ([]byte, error) {
		return toGemini(t, `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":"`+address+`"}]}]}`, in)
	}
	if body, err := translate("https://example.com/a?b"); err != nil ||
		!strings.Contains(string(body), `"parts":[{"inlineData":{"mimeType":"image/webp","data":"Ynl0ZXM="}}]`) {
		t.Errorf("%v: %s", err, body)
	}
	var f *fault.Error
	const param = "messages[0].content[0].image_url"
	if _, err := translate("https://example.com/gone"); !errors.As(err, &f) || f.Param != param ||
		f.Message() != "`"+param+"` cannot be used: It is gone." {
		t.Errorf("%v", err)
	}
	if _, err := translate("https://example.com/busy"); !errors.Is(err, busy) {
		t.Errorf("%v", err)
	}
	fetched = nil
	body, err := translate(`https://example.com/c"},{"type":"image_url","image_url":"https://example.com/a?b"},` +
		`{"type":"image_url","image_url":"https://example.com/c`)
	if err != nil || strings.Count(string(body), `"inlineData":{"mimeType":"image/webp","data":"Ynl0ZXM="}`) != 3 {
		t.Errorf("%v: %s", err, body)
	}
	if want := [][]string{{"https://example.com/c", "https://example.com/a?b"}}; !reflect.DeepEqual(fetched, want) {
		t.Errorf("fetched %v, want %v", fetched, want)
	}
}

// TestGeminiTrapSound checks that audio is rejected in every kind of part, by the checks of the
// request or by the translation.
func TestGeminiTrapSound(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"audio/wav", "Audio/MPEG", "audio/ogg;codecs=opus", "application/ogg"} {
		for _, part := range []string{`{"type":"image_url","image_url":{"url":"data:` + kind + `;base64,AAAA"}}`,
			`{"type":"file","file":{"filename":"a.pdf","file_data":"data:` + kind + `;base64,AAAA"}}`} {
			r, err := completions.Open([]byte(`{"model":"m","messages":[{"role":"user","content":[` + part + `]}]}`))
			if err != nil {
				t.Fatal(err)
			}
			if err = r.Check(); err == nil {
				_, err = pairtest.Body(New(r, wire.FormGemini, wire.Identity{}), wire.Translation{})
			}
			var f *fault.Error
			if !errors.As(err, &f) || f.Code != fault.InvalidRequest || !strings.HasPrefix(f.Param, "messages[0].content[0].") ||
				!strings.Contains(f.Message(), "audio") {
				t.Errorf("%s: %v", part, err)
			}
		}
	}
}
