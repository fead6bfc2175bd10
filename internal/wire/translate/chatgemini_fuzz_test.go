package translate

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/gemini"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/sse"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// FuzzGeminiStream checks the end of meter and writer, and the form of the client's stream,
// whatever a provider sends.
func FuzzGeminiStream(f *testing.F) {
	for _, seed := range []string{
		`{"candidates":[{"content":{"parts":[{"text":"a\u00e9\n"},{"text":"b","thought":true}]},` +
			`"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2}}`,
		`{"candidates":[{"content":{"parts":[{"functionCall":{"id":"x","name":"f","args":{"a": 1}}},` +
			`{"functionCall":{"id":"x","name":3,"args":"y"}}]},"index":1}]}` + "\n" + `{"candidates":[{"index":1,"finishReason":"OTHER"}]}`,
		`{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"AA"}}]},"index":127,"finishReason":"SAFETY"},` +
			`{"index":-1},{"index":999}]}`,
		`{"promptFeedback":{"blockReason":"SAFETY"}}`, `[{"error":{"code":503}}]`, `{"error":null,"candidates":[null,[],{"content":[]}]}`,
		`{"candidates":[{"content":{"parts":[{"text":"` + "\xff" + `"}]},"finishReason":"STOP","finishReason":null}]}`,
		`{"candidates":[{"logprobsResult":{"topCandidates":[{"candidates":[{"token":"a","logProbability":"NaN"}]}],` +
			`"chosenCandidates":[{"token":"a","logProbability":-1},7]},"finishReason":"STOP"}]}`,
		": comment\n{\"candidates\":{}}", `{"usageMetadata":{"promptTokenCount":1e99,"thoughtsTokenCount":-1,"candidatesTokenCount":1e99}}`,
	} {
		f.Add([]byte(seed), byte(1), true)
		f.Add([]byte(seed), byte(2), false)
	}
	f.Fuzz(func(t *testing.T, stream []byte, n byte, usage bool) {
		meter, writer := gemini.NewMeter(int64(n)), geminiWriter(usage)
		var out []byte
		broken := false
		for data := range bytes.SplitSeq(stream, []byte("\n")) {
			e := sse.Event{Raw: data, Data: data}
			if bytes.HasPrefix(data, []byte(":")) {
				e.Data = nil
			}
			frame, err := meter.Read(e)
			if err != nil || frame.Err != nil {
				broken = true
				break
			}
			before := len(out)
			out = writer.Append(out, e, frame)
			if frame.Token && len(out) == before {
				t.Fatalf("a token was lost: %s", data)
			}
		}
		u, _ := meter.Usage()
		if u.Prompt < 0 || u.Completion < 0 || u.Cached > u.Prompt || u.Reasoning > u.Completion || u.Prompt > 1<<40 || u.Completion > 1<<40 {
			t.Fatalf("usage %+v", u)
		}
		complete := !broken && meter.Complete()
		if complete {
			out = writer.End(out, u)
		} else {
			out = writer.Fail(out, fault.New(fault.UpstreamConnectionError, "Broken."))
		}
		if !utf8.Valid(out) {
			t.Fatalf("not UTF-8: %q", out)
		}
		checkChatStream(t, out, complete)
	})
}

// FuzzGeminiAnswer expects a chat completion or an error of every answer.
func FuzzGeminiAnswer(f *testing.F) {
	for _, seed := range []string{
		`{"candidates":[{"content":{"parts":[{"text":"a"},{"functionCall":{"name":"f","args":{"a":[1, 2]}}},` +
			`{"inlineData":{"mimeType":"image/x","data":"A"}}]}},{}]}`,
		`{"candidates":[{"content":{"parts":[{"text":"` + "\xff\xfe" + `\ud800"}]}}]}`, `[{"error":{}}]`, ` {"candidates":null} `,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := gemini.ReadAnswer(body)
		out, errOut := wholeOfGemini(body, wire.Usage{Prompt: 1, Completion: 1})
		if (err == nil) != (errOut == nil) {
			t.Fatalf("read %v, written %v", err, errOut)
		}
		if err != nil {
			return
		}
		again, err := completions.ReadAnswer(out)
		if err != nil || !json.Valid(out) || !utf8.Valid(out) {
			t.Fatalf("%v: %q", err, out)
		}
		if again.Summary().Err != nil || again.Summary().Content != a.Summary().Content || again.Summary().Reasoning != a.Summary().Reasoning {
			t.Fatalf("%+v became %+v: %s", *a.Summary(), *again.Summary(), out)
		}
	})
}

// FuzzAsGemini checks that a request accepted by the checks is rejected with a field, or becomes
// JSON in which the user comes first, no turn is empty and every call has a result.
func FuzzAsGemini(f *testing.F) {
	for _, messages := range []string{
		hi, calls + "," + forB + "," + hi, textTurn + "," + calls + "," + forA + "," + calls,
		`{"role":"system","content":[{"text":"a"},{"text":"b"}]}`,
		`{"role":"assistant","content":[{"type":"refusal","refusal":"r"}],"function_call":{"name":"f","arguments":{"a":1}}},` +
			`{"role":"function","name":"f","content":"{\"a\":1}"}`,
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image\/png;x=\u0041;base64,AA\u0042"}},` +
			`{"type":"file","file":{"file_data":"DATA:a/b;base64,Q"}}]}`,
	} {
		f.Add([]byte(`{"model":"m","messages":[`+messages+
			`],"tools":[{"type":"function","function":{"name":"f","parameters":{}}}],"tool_choice":{"type":"function","function":{"name":"f"}}}`),
			"gemini-3")
		f.Add([]byte(`{"model":"m","messages":[`+messages+
			`],"stop":["",null,"a"],"seed":1e3,"modalities":["image"],"image_config":{"image_size":null},`+
			`"response_format":{"type":"json_schema","json_schema":{"schema":{}}},`+
			`"reasoning_effort":"high","n":3,"max_tokens":99999999999999999999}`),
			"gemini-2.5-pro")
	}
	f.Fuzz(func(t *testing.T, body []byte, model string) {
		r, err := completions.Open(body)
		if err != nil || r.Check() != nil {
			return
		}
		in := wire.Translation{Edits: wire.Edits{Model: model, Limit: 7}, Reasoning: true}
		out, err := pairtest.Body(New(r, wire.FormGemini, wire.Identity{}), in)
		if err != nil {
			var e *fault.Error
			if !errors.As(err, &e) || e.Code != fault.InvalidRequest || e.Param == "" || e.Message() == "" {
				t.Fatalf("%v", err)
			}
			return
		}
		if !json.Valid(out) || !utf8.Valid(out) {
			t.Fatalf("%s became %s", body, out)
		}
		var sent struct {
			Contents []struct {
				Role  string
				Parts []map[string]json.RawMessage
			}
		}
		if err := json.Unmarshal(out, &sent); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		open := 0
		for i, turn := range sent.Contents {
			calls, results := 0, 0
			for _, part := range turn.Parts {
				if part["functionCall"] != nil {
					calls++
				}
				if part["functionResponse"] != nil {
					results++
				}
			}
			if len(turn.Parts) == 0 || results != open || i == 0 && turn.Role != "user" ||
				calls > 0 && (turn.Role != "model" || sent.Contents[i-1].Role != "user") {
				t.Fatalf("turn %d: %d results for %d calls: %s", i, results, open, out)
			}
			open = calls
		}
		if len(sent.Contents) == 0 || open != 0 {
			t.Fatalf("%d calls wait: %s", open, out)
		}
	})
}

// geminiEvents returns a stream of ordinary events.
func geminiEvents(n int) []byte {
	const event = `{"candidates": [{"content": {"parts": [{"text": " word"}],"role": "model"},` +
		`"index": 0}],"usageMetadata": {"promptTokenCount": 12,"totalTokenCount": 1013,"promptTokensDetails": [{"modality": "TEXT",` +
		`"tokenCount": 12}],"thoughtsTokenCount": 1001},"modelVersion": "gemini-3-pro","responseId": "aBcDeFgHiJkLmNoPqRsTuVw"}`
	return bytes.Repeat([]byte("data: "+event+"\r\n\r\n"), n)
}

func TestGeminiDoesNotAllocatePerEvent(t *testing.T) {
	e, err := sse.NewReader(bytes.NewReader(geminiEvents(1)), 1<<20).Next()
	if err != nil {
		t.Fatal(err)
	}
	meter, writer := gemini.NewMeter(1), geminiWriter(true)
	var out []byte
	play := func() {
		f, err := meter.Read(e)
		if err != nil {
			t.Fatal(err)
		}
		out = writer.Append(out[:0], e, f)
	}
	for range 20_000 { // the retained text is limited
		play()
	}
	if n := testing.AllocsPerRun(100, play); n != 0 {
		t.Errorf("%v allocations an event", n)
	}
}

func BenchmarkGeminiStreamOf64Events(b *testing.B) {
	stream := geminiEvents(64)
	var out []byte
	r := &completions.Request{Request: form.Request{Parameters: wire.Parameters{N: 1, IncludeUsage: true}}}
	pair := New(r, wire.FormGemini, someAnswer())
	pair.Events() // the request is decoded for the line
	b.ReportAllocs()
	for b.Loop() {
		events := sse.NewReader(bytes.NewReader(stream), 1<<20)
		meter, writer := pair.Events()
		out = out[:0]
		for {
			e, err := events.Next()
			if err != nil {
				break
			}
			f, err := meter.Read(e)
			if err != nil {
				b.Fatal(err)
			}
			out = writer.Append(out, e, f)
		}
		out = writer.End(out, wire.Usage{})
	}
}
