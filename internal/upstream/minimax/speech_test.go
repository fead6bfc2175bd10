package minimax_test

import (
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakevoice"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/minimax"
)

func TestKinds(t *testing.T) {
	t.Parallel()
	conformance.Kinds(t, conformance.KindsProvider{
		Provider: minimax.Provider,
		Paths:    map[string]string{"speech": "/v1/t2a_v2"},
		Bodies: map[string]string{"speech": `{"model":"m","text":"ping","stream":true,"stream_options":{"exclude_aggregated_audio":true},` +
			`"voice_setting":{"voice_id":"alloy","speed":1},"audio_setting":{"format":"mp3","sample_rate":32000,"bitrate":128000,"channel":1}}`},
		Answers: map[string]string{"speech": `data: {"data":{"audio":"00ff","status":2},"base_resp":{"status_code":0}}` + "\n\n"},
	})
}

// TestSpeech tests requests for speech and their answers.
func TestSpeech(t *testing.T) {
	t.Parallel()
	fake := fakevoice.NewMiniMax(t, conformance.Secret)
	line := conformance.OpenLine(t, minimax.Provider, fake.URL, map[string]any{"voices": map[string]any{"alloy": "radio"}})
	for fields, want := range map[string]struct{ start, contentType, failure string }{
		`"input":"hi","voice":"alloy"`:                          {fakevoice.Sound(), "audio/mpeg", ""},
		`"input":"[again]","voice":"alloy"`:                     {fakevoice.Sound(), "audio/mpeg", ""},
		`"input":"hi","voice":"radio","response_format":"flac"`: {fakevoice.Sound(), "audio/flac", ""},
		`"input":"hi","voice":"radio","response_format":"wav"`:  {"RIFF", "audio/wav", ""},
		`"input":"hi","voice":"radio","speed":2`:                {fakevoice.Sound(), "audio/mpeg", ""},
		`"input":"hi","voice":"radio","stream_format":"sse"`:    {"data: ", "text/event-stream", ""},
		`"input":"hi","voice":"radio","speed":3`:                {"", "", `invalid_request at "speed", other lines: true`},
		`"input":"hi","voice":"radio","response_format":"opus"`: {"", "", `invalid_request at "response_format", other lines: true`},
		`"input":"hi","voice":"radio","instructions":"low"`:     {"", "", `invalid_request at "instructions", other lines: true`},
		`"input":"hi","voice":"nobody"`:                         {"", "", `2054 at "", other lines: false`},
		`"input":"[long]","voice":"alloy"`:                      {"", "", `2013 at "", other lines: false`},
		`"input":"[blocked]","voice":"alloy"`:                   {"", "", "upstream_prompt_filter none"},
		`"input":"[busy]","voice":"alloy"`:                      {"", "", "upstream_busy cool"},
		`"input":"[broke]","voice":"alloy"`:                     {"", "", "upstream_unavailable credential"},
		`"input":"[page]","voice":"alloy"`:                      {"", "", "upstream_unavailable fail"},
		`"input":"[empty]","voice":"alloy"`:                     {"", "", "empty_completion half"},
		`"input":"[cut]","voice":"alloy"`:                       {fakevoice.Sound()[:16_000], "audio/mpeg", "broken"},
		`"input":"[late]","voice":"alloy"`:                      {fakevoice.Sound()[:8_000], "audio/mpeg", "broken"},
	} {
		body, contentType, failure := conformance.Answer(t, line, conformance.Speech(fields))
		if !strings.HasPrefix(body, want.start) || contentType != want.contentType || failure != want.failure ||
			want.start == fakevoice.Sound() && body != fakevoice.Sound() {
			t.Errorf("%s: got %d bytes, %.60q of type %q, failure %q; want %.60q of type %q, failure %q", fields, len(body), body, contentType,
				failure, want.start, want.contentType, want.failure)
		}
	}
}
