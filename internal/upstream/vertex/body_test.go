package vertex

import (
	"encoding/json"
	"reflect"
	"testing"

	"tollgate/internal/wire/rawjson"
)

// FuzzBodies tests that any converted body is still valid JSON and that it differs only where Vertex
// AI has another format.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{
		`{}`, ` {"model":"m","stream":true} `, `{"model":null,"anthropic_version":"x"}`, `{"contents":null,"functionCall":1}`,
		`{"contents":[{"parts":[{"functionCall":{"id":"a"}},{"functionCall":{"name":"f","id":"a","args":{"id":1}}}]},7,[]]}`,
		`{"contents":[{"parts":{"functionResponse":{"id":1}}},{"parts":[{"functionResponse":{"\u0069d":1}}]}],"tools":[]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := rawjson.Open(body); err != nil {
			return
		}
		claude, failure := claudeBody(rawjson.Pieces{body}, "")
		if failure != nil {
			t.Fatal(failure)
		}
		want, got := decode(t, body), decode(t, claude.Bytes())
		delete(want, "model")
		want["anthropic_version"] = claudeVersion
		if !reflect.DeepEqual(want, got) {
			t.Errorf("%s became %s", body, claude)
		}
		gemini, failure := geminiBody(rawjson.Pieces{body})
		if failure != nil {
			t.Fatal(failure)
		}
		want, got = decode(t, body), decode(t, gemini.Bytes())
		deleteIDs(want["contents"])
		if !reflect.DeepEqual(want, got) && string(gemini.Bytes()) != string(body) {
			t.Errorf("%s became %s", body, gemini)
		}
		request, failure := geminiCountBody(rawjson.Pieces{body})
		if failure != nil {
			t.Fatal(failure)
		}
		decode(t, request.Bytes())
	})
}

func decode(t *testing.T, body []byte) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal(body, &out); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return out
}

// deleteIDs deletes the IDs that geminiBody deletes, in decoded contents.
func deleteIDs(contents any) {
	turns, _ := contents.([]any)
	for _, turn := range turns {
		members, _ := turn.(map[string]any)
		parts, _ := members["parts"].([]any)
		for _, part := range parts {
			p, _ := part.(map[string]any)
			for _, name := range []string{"functionCall", "functionResponse"} {
				if call, ok := p[name].(map[string]any); ok {
					delete(call, "id")
				}
			}
		}
	}
}
