package deepgram_test

import (
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"tollgate/internal/gatewaytest/fakevoice"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/deepgram"
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/kind/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	t.Parallel()
	d := registry.Find("transcription")
	_, file := d.Probe("m", kind.DefaultLimits{Kind: d})
	sound, err := io.ReadAll(io.NewSectionReader(file.Bytes, 0, file.Size))
	if err != nil {
		t.Fatal(err)
	}
	conformance.Kinds(t, conformance.KindsProvider{
		Provider: deepgram.Provider,
		Paths:    map[string]string{"transcription": "/listen"},
		Bodies:   map[string]string{"transcription": string(sound)},
		Answers: map[string]string{"transcription": `{"metadata":{"duration":0.1},"results":{"channels":[{"alternatives":[` +
			`{"transcript":"","words":[]}]}]}}`},
	})
}

// TestTranscription tests requests and their answers.
func TestTranscription(t *testing.T) {
	t.Parallel()
	fake := fakevoice.NewDeepgram(t, conformance.Secret)
	line := conformance.OpenLine(t, deepgram.Provider, fake.URL, nil)
	const usage = `"usage":{"type":"duration","seconds":6}`
	for _, c := range []struct{ fields, file, sent, want, failure string }{
		{"", "RIFF", "/v1/listen?detect_language=true&model=m&smart_format=true", `{"text":"` + fakevoice.Text + `",` + usage + `}`, ""},
		{`"language":"de","temperature":"0","response_format":"text"`, "RIFF", "/v1/listen?language=de&model=m&smart_format=true",
			fakevoice.Text + "\n", ""},
		{`"response_format":"verbose_json"`, "RIFF", "/v1/listen?detect_language=true&model=m&smart_format=true",
			`{"task":"transcribe","language":"en","duration":5.2,"text":"` + fakevoice.Text + `","segments":[{"id":0,"seek":0,"start":0.1,"end":1,` +
				`"text":" Hello world.","tokens":[],`, ""},
		{`"response_format":"verbose_json","timestamp_granularities":"word"`, "RIFF", "",
			`{"task":"transcribe","language":"en","duration":5.2,"text":"` + fakevoice.Text +
				`","words":[{"word":"Hello","start":0.1,"end":0.5},`, ""},
		{`"response_format":"vtt"`, "RIFF", "", "WEBVTT\n\n00:00:00.100 --> 00:00:01.000\nHello world.\n\n00:00:01.200 --> 00:00:02.100\n" +
			"How are you?\n\n00:00:04.000 --> 00:00:04.500\nFine\n\n", ""},
		{`"response_format":"diarized_json"`, "RIFF", "/v1/listen?detect_language=true&diarize=true&model=m&smart_format=true",
			`{"task":"transcribe","duration":5.2,"text":"` + fakevoice.Text + `","segments":[{"type":"transcript.text.segment","id":"seg_0",` +
				`"start":0.1,"end":1,"text":" Hello world.","speaker":"0"},`, ""},
		{"", "[silent]", "", `{"text":"` + fakevoice.Text + `"}`, ""},
		{"", "[absurd]", "", `{"text":"` + fakevoice.Text + `","usage":{"type":"duration","seconds":2147483647}}`, ""},
		{`"temperature":"0.5"`, "RIFF", "", "", `invalid_request at "temperature", other lines: true`},
		{`"prompt":"Tolkien"`, "RIFF", "", "", `invalid_request at "prompt", other lines: true`},
		{`"timestamp_granularities[]":["line"]`, "RIFF", "", "", `invalid_request at "timestamp_granularities[0]", other lines: true`},
		{`"chunking_strategy":"{\"type\":\"server_vad\"}"`, "RIFF", "", "", `invalid_request at "chunking_strategy", other lines: true`},
		{"", "[busy]", "", "", "upstream_busy cool"},
		{"", "[broke]", "", "", "upstream_unavailable credential"},
		{"", "[long]", "", "", `invalid_request at "", other lines: false`},
		{"", "[page]", "", "", "upstream_unavailable fail"},
		{"", "[empty]", "", "", "upstream_unavailable fail"},
		{"", "[cut]", "", "", "upstream_connection_error fail"},
	} {
		body, _, failure := conformance.Answer(t, line, conformance.Transcription(c.fields, c.file))
		if !strings.HasPrefix(body, c.want) || failure != c.failure {
			t.Errorf("%s of %s: got %s, failure %q; want %s, failure %q", c.fields, c.file, body, failure, c.want, c.failure)
		}
		if all := fake.Requests(); c.sent != "" && (all[len(all)-1].URI != c.sent || all[len(all)-1].Body != c.file) {
			t.Errorf("%s: the vendor got %+v, want %s", c.fields, all[len(all)-1], c.sent)
		}
	}
}

// TestFileTypes tests the types of uploads. The vendor would fetch an address from JSON, so no upload is JSON.
func TestFileTypes(t *testing.T) {
	t.Parallel()
	fake := fakevoice.NewDeepgram(t, conformance.Secret)
	line := conformance.OpenLine(t, deepgram.Provider, fake.URL, nil)
	for contentType, want := range map[string]string{"audio/mpeg": "audio/mpeg", "video/mp4": "video/mp4", "": "application/octet-stream",
		"application/json": "application/octet-stream", "text/plain": "application/octet-stream"} {
		c := conformance.Transcription("", `{"url":"https://elsewhere.example/a.wav"}`)
		c.File.ContentType = contentType
		if _, _, failure := conformance.Answer(t, line, c); failure != "" {
			t.Errorf("%s: got the failure %q, want an answer", contentType, failure)
		}
		if all := fake.Requests(); all[len(all)-1].Header.Get("Content-Type") != want {
			t.Errorf("a file of type %q was sent as %q, want %q", contentType, all[len(all)-1].Header.Get("Content-Type"), want)
		}
	}
}

// TestBudget tests the failure of an answer beyond the budget of memory. It does not count against the line.
func TestBudget(t *testing.T) {
	t.Parallel()
	line := conformance.OpenLine(t, deepgram.Provider, fakevoice.NewDeepgram(t, conformance.Secret).URL, nil)
	c := conformance.Transcription("", "RIFF")
	var taken int64
	c.Reserve = func(bytes int64) bool {
		taken += bytes
		return taken < 500
	}
	if body, _, failure := conformance.Answer(t, line, c); failure != "upstream_unavailable none" {
		t.Errorf("got %s, failure %q; want a failure without effect on the line", body, failure)
	}
}
