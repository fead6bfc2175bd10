package elevenlabs_test

import (
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"tollgate/internal/gatewaytest/fakevoice"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/elevenlabs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Kinds(t, conformance.KindsProvider{
		Provider: elevenlabs.Provider,
		Paths:    map[string]string{"speech": "/text-to-speech/alloy/stream", "transcription": "/speech-to-text"},
		Bodies:   map[string]string{"speech": `{"text":"ping","model_id":"m"}`},
	})
}

// options are those of every line here.
var options = map[string]any{"voices": map[string]any{"alloy": "rachel"}}

// TestSpeech tests requests for speech and their answers.
func TestSpeech(t *testing.T) {
	t.Parallel()
	fake := fakevoice.NewElevenLabs(t, conformance.Secret)
	line := conformance.OpenLine(t, elevenlabs.Provider, fake.URL, options)
	for fields, want := range map[string]struct{ start, contentType, failure string }{
		`"input":"hi","voice":"alloy"`:                                     {fakevoice.Sound(), "audio/mpeg", ""},
		`"input":"hi","voice":"rachel","response_format":"opus"`:           {fakevoice.Sound(), "audio/opus", ""},
		`"input":"hi","voice":"alloy","response_format":"pcm"`:             {fakevoice.Sound(), "audio/pcm", ""},
		`"input":"hi","voice":"alloy","response_format":"wav"`:             {"RIFF\xff\xff\xff\xffWAVEfmt ", "audio/wav", ""},
		`"input":"hi","voice":"alloy","speed":1.2`:                         {fakevoice.Sound(), "audio/mpeg", ""},
		`"input":"hi","voice":"alloy","stream_format":"sse"`:               {`data: {"type":"speech.audio.delta",`, "text/event-stream", ""},
		`"input":"hi","voice":"alloy","response_format":"aac"`:             {"", "", `invalid_request at "response_format", other lines: true`},
		`"input":"hi","voice":"alloy","speed":2`:                           {"", "", `invalid_request at "speed", other lines: true`},
		`"input":"hi","voice":"alloy","instructions":"low"`:                {"", "", `invalid_request at "instructions", other lines: true`},
		`"input":"hi","voice":"../speech-to-text"`:                         {"", "", `invalid_request at "voice", other lines: true`},
		`"input":"hi","voice":"nobody"`:                                    {"", "", `invalid_request at "voice", other lines: true`},
		`"input":"[long]","voice":"alloy"`:                                 {"", "", `invalid_request at "", other lines: false`},
		`"input":"[busy]","voice":"alloy"`:                                 {"", "", "upstream_busy cool"},
		`"input":"[broke]","voice":"alloy"`:                                {"", "", "upstream_unavailable credential"},
		`"input":"[page]","voice":"alloy"`:                                 {"", "", "upstream_unavailable fail"},
		`"input":"[empty]","voice":"alloy"`:                                {"", "", "empty_completion half"},
		`"input":"[empty]","voice":"alloy","stream_format":"sse"`:          {"", "", "empty_completion half"},
		`"input":"[cut]","voice":"alloy"`:                                  {fakevoice.Sound()[:16_000], "audio/mpeg", "broken"},
		`"input":"[cut]","voice":"alloy","stream_format":"sse"`:            {"data: ", "text/event-stream", "broken"},
		`"input":"a \"quote\" ü","voice":"rachel","response_format":"mp3"`: {fakevoice.Sound(), "audio/mpeg", ""},
	} {
		body, contentType, failure := conformance.Answer(t, line, conformance.Speech(fields))
		if !strings.HasPrefix(body, want.start) || contentType != want.contentType || failure != want.failure {
			t.Errorf("%s: got %.60q of type %q, failure %q; want %.60q of type %q, failure %q", fields, body, contentType, failure,
				want.start, want.contentType, want.failure)
		}
		if isWhole := want.failure == "" && strings.Contains(fields, "sse"); isWhole &&
			!strings.HasSuffix(body, "data: {\"type\":\"speech.audio.done\"}\n\n") {
			t.Errorf("%s: the events end with %q, want speech.audio.done", fields, body[len(body)-60:])
		}
		if failure == "broken" && strings.Contains(body, "speech.audio.done") {
			t.Errorf("%s: the broken answer has a last event", fields)
		}
	}
	for _, r := range fake.Requests() {
		if strings.Contains(r.URI, "speech-to-text") || strings.Contains(r.Body, "aac") {
			t.Errorf("the vendor got %s %s, want no call", r.URI, r.Body)
		}
	}
}

// TestTranscription tests requests for transcriptions and their answers. The vendor reports no duration.
func TestTranscription(t *testing.T) {
	t.Parallel()
	fake := fakevoice.NewElevenLabs(t, conformance.Secret)
	line := conformance.OpenLine(t, elevenlabs.Provider, fake.URL, nil)
	for _, c := range []struct{ fields, file, want, failure string }{
		{"", "RIFF", `{"text":"` + fakevoice.Text + `"}`, ""},
		{`"language":"en","temperature":"0.5","response_format":"text"`, "RIFF", fakevoice.Text + "\n", ""},
		{`"response_format":"verbose_json","timestamp_granularities[]":["word"]`, "RIFF",
			`{"task":"transcribe","language":"eng","duration":4.5,"text":"` + fakevoice.Text +
				`","words":[{"word":"Hello","start":0.1,"end":0.5},`, ""},
		{`"response_format":"srt"`, "RIFF", "1\n00:00:00,100 --> 00:00:01,000\nHello world.\n\n2\n", ""},
		{`"response_format":"diarized_json"`, "RIFF", `{"task":"transcribe","duration":4.5,"text":"` + fakevoice.Text +
			`","segments":[{"type":"transcript.text.segment","id":"seg_0","start":0.1,"end":1,"text":"Hello world.","speaker":"speaker_0"},`, ""},
		{`"prompt":"Tolkien"`, "RIFF", "", `invalid_request at "prompt", other lines: true`},
		{`"include[]":["logprobs"]`, "RIFF", "", `invalid_request at "include[]", other lines: true`},
		{"", "[busy]", "", "upstream_busy cool"},
		{"", "[broke]", "", "upstream_unavailable credential"},
		{"", "[long]", "", `invalid_request at "", other lines: false`},
		{"", "[page]", "", "upstream_unavailable fail"},
		{"", "[empty]", "", "upstream_unavailable fail"},
		{"", "[cut]", "", "upstream_connection_error fail"},
	} {
		body, _, failure := conformance.Answer(t, line, conformance.Transcription(c.fields, c.file))
		if !strings.HasPrefix(body, c.want) || failure != c.failure {
			t.Errorf("%s of %s: got %s, failure %q; want %s, failure %q", c.fields, c.file, body, failure, c.want, c.failure)
		}
	}
	translation := conformance.Transcription("", "RIFF")
	translation.Path = "/audio/translations"
	if _, _, failure := conformance.Answer(t, line, translation); failure != `invalid_request at "model", other lines: true` {
		t.Errorf("a translation: got the failure %q, want one about the model", failure)
	}
	first := fmt.Sprint(fake.Requests()[1].Body)
	for _, field := range []string{"model_id\"\r\n\r\nm\r\n", "language_code\"\r\n\r\nen\r\n", "temperature\"\r\n\r\n0.5\r\n",
		"tag_audio_events\"\r\n\r\nfalse\r\n", "filename=a.wav"} {
		if !strings.Contains(strings.ReplaceAll(first, `filename="a.wav"`, "filename=a.wav"), field) {
			t.Errorf("the vendor got %q, want %q in it", first, field)
		}
	}
}

// TestOptions tests the option `voices`.
func TestOptions(t *testing.T) {
	t.Parallel()
	conformance.CheckInvalidOptions(t, elevenlabs.Info(), map[string]map[string]any{
		"voice: unknown option":  {"voice": "rachel"},
		"voices: must map":       {"voices": "rachel"},
		"voices: must map the n": {"voices": map[string]any{"alloy": int64(1)}},
	})
}
