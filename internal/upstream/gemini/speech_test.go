package gemini_test

import (
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/fakevoice"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/gemini"
)

// TestSpeech tests requests for speech and their answers.
func TestSpeech(t *testing.T) {
	t.Parallel()
	fake := fakevoice.NewGemini(t, conformance.Secret)
	line := conformance.OpenLine(t, gemini.Provider, fake.URL, map[string]any{"voices": map[string]any{"alloy": "Kore"}})
	for fields, want := range map[string]struct{ start, end, failure string }{
		`"input":"hi","voice":"alloy","response_format":"pcm"`:                         {fakevoice.Sound(), "", ""},
		`"input":"hi","voice":"Kore","response_format":"wav","instructions":"Whisper"`: {"RIFF", fakevoice.Sound(), ""},
		`"input":"hi","voice":"Kore","response_format":"pcm","stream_format":"sse"`: {`data: {"type":"speech.audio.delta","audio":"MDEy`,
			"{\"type\":\"speech.audio.done\",\"usage\":{\"input_tokens\":9,\"output_tokens\":25,\"total_tokens\":34}}\n\n", ""},
		`"input":"hi","voice":"alloy"`:                                     {"", "", `invalid_request at "response_format", other lines: true`},
		`"input":"hi","voice":"alloy","response_format":"pcm","speed":1.5`: {"", "", `invalid_request at "speed", other lines: true`},
		`"input":"hi","voice":"nobody","response_format":"pcm"`:            {"", "", `400 at "", other lines: false`},
		`"input":"[long]","voice":"alloy","response_format":"pcm"`:         {"", "", `context_length_exceeded at "", other lines: false`},
		`"input":"[busy]","voice":"alloy","response_format":"pcm"`:         {"", "", "upstream_busy cool"},
		`"input":"[broke]","voice":"alloy","response_format":"pcm"`:        {"", "", "upstream_unavailable credential"},
		`"input":"[page]","voice":"alloy","response_format":"pcm"`:         {"", "", "upstream_unavailable fail"},
		`"input":"[empty]","voice":"alloy","response_format":"pcm"`:        {"", "", "empty_completion half"},
		`"input":"[blocked]","voice":"alloy","response_format":"pcm"`:      {"", "", "upstream_prompt_filter none"},
		`"input":"[safety]","voice":"alloy","response_format":"pcm"`:       {"", "", "content_filter none"},
		`"input":"[other]","voice":"alloy","response_format":"pcm"`:        {"", "", "upstream_error fail"},
		`"input":"[rate]","voice":"alloy","response_format":"pcm"`:         {"", "", "upstream_unavailable fail"},
		`"input":"[cut]","voice":"alloy","response_format":"pcm"`:          {fakevoice.Sound()[:16_000], "", "broken"},
		`"input":"[silent]","voice":"alloy","response_format":"pcm","stream_format":"sse"`: {"data: ",
			"{\"type\":\"speech.audio.done\",\"usage\":{\"input_tokens\":9}}\n\n", ""},
	} {
		body, _, failure := conformance.Answer(t, line, conformance.Speech(fields))
		if !strings.HasPrefix(body, want.start) || !strings.HasSuffix(body, want.end) || failure != want.failure {
			t.Errorf("%s: got %.60q, failure %q; want %.60q and at the end %.60q, failure %q", fields, body, failure, want.start, want.end,
				want.failure)
		}
	}
	styled := false
	for _, r := range fake.Requests() {
		styled = styled || strings.Contains(r.Body, `"text":"Whisper:\nhi"`)
		if r.URI != "/v1beta/models/m:streamGenerateContent?alt=sse" {
			t.Errorf("a call went to %s", r.URI)
		}
	}
	if !styled {
		t.Error("no call has the instructions before the text")
	}
}

// TestEmbeddings tests requests for embeddings and their answers.
func TestEmbeddings(t *testing.T) {
	t.Parallel()
	const model = `"model":"models/m"`
	for fields, c := range map[string]struct{ sent, reply, want, failure string }{
		`"input":"hi"`: {`{"requests":[{` + model + `,"content":{"parts":[{"text":"hi"}]}}]}`, `{"embeddings":[{"values":[0.5, 1e-3]}]}`,
			`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5, 1e-3]}]}`, ""},
		`"input":["a\n","b"],"dimensions":2,"user":"u"`: {`{"requests":[{` + model + `,"content":{"parts":[{"text":"a\n"}]},` +
			`"outputDimensionality":2},{` + model + `,"content":{"parts":[{"text":"b"}]},"outputDimensionality":2}]}`,
			`{"embeddings":[{"values":[1]},{"values":[2]}],"usageMetadata":{"promptTokenCount":7}}`,
			`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]},{"object":"embedding","index":1,"embedding":[2]}],` +
				`"usage":{"prompt_tokens":7,"total_tokens":7}}`, ""},
		`"input":["a"]`:   {"", `{"embeddings":[{"values":[1]},{"values":[2]}]}`, "", "upstream_unavailable fail"},
		`"input":["b"]`:   {"", `{"embeddings":[]}`, "", "upstream_unavailable fail"},
		`"input":["c"]`:   {"", `{"error":{"code":429,"message":"Quota exceeded.","status":"RESOURCE_EXHAUSTED"}}`, "", "upstream_busy cool"},
		`"input":[1,2]`:   {"", "", "", `invalid_request at "input", other lines: true`},
		`"input":[[1,2]]`: {"", "", "", `invalid_request at "input", other lines: true`},
	} {
		p := fakeprovider.New(t, fakeprovider.Reply{Body: c.reply})
		call := conformance.Speech(fields)
		call.Form, call.Path, call.AnyType = "embedding", "/embeddings", false
		body, _, failure := conformance.Answer(t, conformance.OpenLine(t, gemini.Provider, p.URL(), nil), call)
		if body != c.want || failure != c.failure {
			t.Errorf("%s: got %s, failure %q; want %s, failure %q", fields, body, failure, c.want, c.failure)
		}
		const path = "/v1/models/m:batchEmbedContents"
		if all := p.Requests(); c.sent != "" && (len(all) != 1 || string(all[0].Body) != c.sent || all[0].URI != path) {
			t.Errorf("%s: the provider got %+v, want %s at %s", fields, all, c.sent, path)
		}
	}
}
