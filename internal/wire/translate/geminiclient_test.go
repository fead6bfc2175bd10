package translate

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/gemini"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// geminiRequest opens a request of the Gemini form with further members.
func geminiRequest(t testing.TB, more string, m gemini.Method) *gemini.Request {
	t.Helper()
	r, err := gemini.Open([]byte(`{"contents":[{"role":"user","parts":[{"text":"hi"}]}]`+more+`}`), m)
	if err == nil {
		err = r.Check()
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// otherLines are the forms of lines that a client of the Gemini form needs a translation for.
var otherLines = []wire.Form{wire.FormChat, wire.FormMessages, wire.FormResponses}

const showThoughts = `,"generationConfig":{"thinkingConfig":{"includeThoughts":true}}`

// objectsOf returns the objects of a stream of events.
func objectsOf(stream string) []string {
	var objects []string
	for event := range strings.SplitSeq(strings.TrimSpace(stream), "\n\n") {
		objects = append(objects, strings.TrimPrefix(strings.TrimSpace(event), "data: "))
	}
	return objects
}

// TestGeminiAnswers checks answers of every line: texts, calls with whole arguments, thoughts only for
// clients that ask for them, and the end with the usage.
func TestGeminiAnswers(t *testing.T) {
	t.Parallel()
	output := modelOutput{thought: "Hm.", text: "It \"is\"\n", tool: "look", arguments: []string{`{"a":1}`, `{}`}, signature: "c2ln"}
	for _, line := range otherLines {
		for _, show := range []bool{false, true} {
			more := ""
			if show {
				more = showThoughts
			}
			whole, stream := answers(t, New(geminiRequest(t, more, gemini.Method{Model: "swift-1", Stream: true}), line,
				pairtest.Identity()), line, output)
			objects := objectsOf(stream)
			parts := partsOfObjects(t, append([]string{whole}, objects...))
			for name, got := range map[string]string{"whole": strings.Join(parts[0], " "), "stream": strings.Join(joined(parts[1:]), " ")} {
				want := []string{`"It \"is\"\n"`, `"id":"t0","name":"look","args":{"a":1}`, `"id":"t1","name":"look","args":{}`}
				if show {
					want = append([]string{`{"text":"Hm.","thought":true}`}, want...)
				}
				for _, text := range want {
					if !strings.Contains(got, text) {
						t.Errorf("%s on %s, thoughts %v: %s; want %s", name, line, show, got, text)
					}
				}
				if !show && strings.Contains(got, "thought\"") {
					t.Errorf("%s on %s: thoughts in %s", name, line, got)
				}
			}
			const end = `"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":4,"totalTokenCount":7},` +
				`"modelVersion":"swift-1","responseId":"7"}`
			if last := objects[len(objects)-1]; !strings.HasSuffix(last, `"finishReason":"STOP","index":0}],`+end) ||
				!strings.HasSuffix(whole, end) {
				t.Errorf("the end on %s: %s; whole: %s", line, last, whole)
			}
		}
	}
}

func joined(parts [][]string) (all []string) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// partsOfObjects returns the parts of each object.
func partsOfObjects(t *testing.T, objects []string) (all [][]string) {
	t.Helper()
	for _, text := range objects {
		var o struct {
			Candidates []struct {
				Content struct{ Parts []json.RawMessage }
			}
		}
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		var parts []string
		for _, c := range o.Candidates {
			for _, p := range c.Content.Parts {
				parts = append(parts, string(p))
			}
		}
		all = append(all, parts)
	}
	return all
}

// TestGeminiState checks that the reasoning before a call returns to the line of the same account, also
// in the other alphabet of base64, and to no other line.
func TestGeminiState(t *testing.T) {
	t.Parallel()
	id := pairtest.Identity()
	id.Origin = "account 1"
	output := modelOutput{thought: "I must look??~~~", tool: "look", arguments: []string{`{}`}, signature: "c2lnbmF0dXJl"}
	for line, want := range map[wire.Form]string{wire.FormChat: `"reasoning_content":"I must look??~~~"`,
		wire.FormResponses: `"encrypted_content":"c2lnbmF0dXJl"`} {
		whole, stream := answers(t, New(geminiRequest(t, "", gemini.Method{Model: "m"}), line, id), line, output)
		for _, objects := range [][]string{{whole}, objectsOf(stream)} {
			call := ""
			for _, part := range joined(partsOfObjects(t, objects)) {
				if strings.Contains(part, "functionCall") {
					call = part
				}
			}
			signature := rawjson.Unquote(rawjson.Field([]byte(call), "thoughtSignature"))
			raw, err := base64.StdEncoding.DecodeString(signature)
			if err != nil {
				t.Fatalf("%s: %v in %s", line, err, call)
			}
			again := strings.Replace(call, signature, base64.URLEncoding.EncodeToString(raw), 1)
			history := `{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[` + again + `]},` +
				`{"role":"user","parts":[{"functionResponse":{"id":"t0","name":"look","response":{"result":"rain"}}}]}]}`
			sentTo := func(line wire.Form, id wire.Identity) string {
				r, err := gemini.Open([]byte(history), gemini.Method{Model: "m"})
				if err == nil {
					err = r.Check()
				}
				if err != nil {
					t.Fatal(err)
				}
				body, err := New(r, line, id).Body(wire.Translation{Edits: wire.Edits{Model: "gemini-3-pro"}, Reasoning: true})
				if err != nil {
					t.Fatal(err)
				}
				return string(body.Bytes())
			}
			if got := sentTo(line, id); !strings.Contains(got, want) {
				t.Errorf("back on %s: %s; want %s", line, got, want)
			}
			other := id
			other.Origin = "account 2"
			if got := sentTo(wire.FormResponses, other); strings.Contains(got, "c2lnbmF0dXJl") {
				t.Errorf("of %s on another account: %s", line, got)
			}
			if got := sentTo(wire.FormGemini, id); !strings.Contains(got, `"thoughtSignature":"skip_thought_signature_validator"`) ||
				strings.Contains(got, signature) {
				t.Errorf("of %s on a Gemini line: %s", line, got)
			}
		}
	}
}

// TestGeminiArray checks that a stream without events is one JSON array, also if it fails.
func TestGeminiArray(t *testing.T) {
	t.Parallel()
	for _, line := range lineForms {
		pair := New(geminiRequest(t, "", gemini.Method{Model: "m", Stream: true, Array: true}), line, pairtest.Identity())
		_, stream := answers(t, pair, line, modelOutput{text: "Yes."})
		var objects []json.RawMessage
		if err := json.Unmarshal([]byte(stream), &objects); err != nil || len(objects) == 0 {
			t.Errorf("%s: %v in %s", line, err, stream)
		}
	}
}

// FuzzGeminiAnswers checks that whatever a line sends, a stream is events of JSON objects, or one array.
func FuzzGeminiAnswers(f *testing.F) {
	output := modelOutput{thought: "Hm.", text: "Yes.", tool: "look", arguments: []string{`{"a":1}`, `{}`}, signature: "c2ln"}
	for _, line := range lineForms {
		f.Add([]byte(output.stream(line)), false)
		f.Add([]byte(output.stream(line)), true)
	}
	f.Fuzz(func(t *testing.T, stream []byte, array bool) {
		for _, line := range lineForms {
			pair := New(geminiRequest(t, showThoughts, gemini.Method{Model: "m", Stream: true, Array: array}), line, pairtest.Identity())
			meter, writer := pair.Events()
			out := pairtest.Flow(stream, writer, meter, wire.Usage{Prompt: 3, Completion: 4})
			if !array {
				out = writer.Fail(out, fault.New(fault.UpstreamConnectionError, "Broken."))
			} else if !bytes.HasSuffix(out, []byte("]\n")) || !rawjson.IsValid(out) {
				if out = writer.Fail(out, fault.New(fault.UpstreamConnectionError, "Broken.")); !rawjson.IsValid(out) {
					t.Fatalf("%s: no array: %q", line, out)
				}
				continue
			}
			for _, object := range objectsOf(string(out)) {
				if object = strings.TrimSpace(strings.TrimPrefix(object, "data: ")); object != "" && !rawjson.IsValid([]byte(object)) {
					t.Fatalf("%s: %q", line, object)
				}
			}
		}
	})
}
