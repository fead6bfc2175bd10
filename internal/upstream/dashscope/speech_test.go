package dashscope_test

import (
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakevoice"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/dashscope"
)

// TestSpeech tests requests for speech and their answers.
func TestSpeech(t *testing.T) {
	t.Parallel()
	fake := fakevoice.NewDashScope(t, conformance.Secret)
	line := conformance.OpenLine(t, dashscope.Provider, fake.URL, map[string]any{"voices": map[string]any{"alloy": "Cherry"}})
	const tokens = `{"type":"speech.audio.done","usage":{"input_tokens":9,"output_tokens":25,"total_tokens":34}}`
	for fields, want := range map[string]struct{ start, end, failure string }{
		`"input":"hi","voice":"alloy"`:       {fakevoice.Sound(), "", ""},
		`"input":"[header]","voice":"alloy"`: {fakevoice.Sound(), "", ""},
		`"input":"[header]","voice":"Cherry","response_format":"wav"`: {"RIFF\xff\xff\xff\xffWAVEfmt \x10",
			"data\xff\xff\xff\xff" + fakevoice.Sound(), ""},
		`"input":"[tokens]","voice":"Cherry","stream_format":"sse"`: {`data: {"type":"speech.audio.delta"`, tokens + "\n\n", ""},
		`"input":"hi","voice":"Cherry","stream_format":"sse"`: {`data: {"type":"speech.audio.delta"`,
			"data: {\"type\":\"speech.audio.done\"}\n\n", ""},
		`"input":"hi","voice":"alloy","response_format":"mp3"`: {"", "", `invalid_request at "response_format", other lines: true`},
		`"input":"hi","voice":"alloy","speed":1.5`:             {"", "", `invalid_request at "speed", other lines: true`},
		`"input":"hi","voice":"alloy","instructions":"x"`:      {"", "", `invalid_request at "instructions", other lines: true`},
		`"input":"hi","voice":"nobody"`:                        {"", "", `InvalidParameter at "", other lines: false`},
		`"input":"[long]","voice":"alloy"`:                     {"", "", `context_length_exceeded at "", other lines: false`},
		`"input":"[blocked]","voice":"alloy"`:                  {"", "", "upstream_prompt_filter none"},
		`"input":"[busy]","voice":"alloy"`:                     {"", "", "upstream_busy cool"},
		`"input":"[broke]","voice":"alloy"`:                    {"", "", "upstream_unavailable credential"},
		`"input":"[page]","voice":"alloy"`:                     {"", "", "upstream_unavailable fail"},
		`"input":"[empty]","voice":"alloy"`:                    {"", "", "empty_completion half"},
		`"input":"[cut]","voice":"alloy"`:                      {fakevoice.Sound()[:16_000], "", "broken"},
		`"input":"[late]","voice":"alloy"`:                     {fakevoice.Sound()[:8_000], "", "broken"},
	} {
		if !strings.Contains(fields, "response_format") {
			fields += `,"response_format":"pcm"`
		}
		body, _, failure := conformance.Answer(t, line, conformance.Speech(fields))
		if !strings.HasPrefix(body, want.start) || !strings.HasSuffix(body, want.end) || failure != want.failure {
			t.Errorf("%s: got %.60q, failure %q; want %.60q and at the end %.60q, failure %q", fields, body, failure, want.start, want.end,
				want.failure)
		}
	}
}
