package line

import (
	"testing"

	"tollgate/internal/catalog"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire/kind/registry"
	"tollgate/internal/wire/rawjson"
)

// TestProbesOfSound checks that probes accept sound, and texts of a format other than JSON, and fail on errors.
func TestProbesOfSound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind, format, contentType, answer string
		fails                             bool
	}{
		{"speech", "", "audio/mpeg", "ID3 sound", false},
		{"speech", "wav", "application/octet-stream", "RIFF", false},
		{"speech", "", "application/json", `{"error":{"message":"out of service"}}`, true},
		{"speech", "", "text/html", "<html>busy</html>", true},
		{"transcription", "", "application/json", `{"text":""}`, false},
		{"transcription", "", "application/json", `{"error":"out of service"}`, true},
		{"transcription", "srt", "text/plain", "1\n00:00:00,000 --> 00:00:01,000\nping\n", false},
		{"transcription", "srt", "text/html", "<html>busy</html>", true},
	} {
		d := registry.Find(c.kind)
		m := &catalog.Model{Kind: catalog.Kind(c.kind)}
		if c.format != "" {
			m.Lists = map[string][]string{"formats": {c.format}}
		}
		body, file := d.Probe("m", m)
		f := kindFailure(d, m, chatcall.Call{Body: rawjson.Pieces{body}, File: file}, c.contentType, []byte(c.answer))
		if (f != nil) != c.fails {
			t.Errorf("%s of %s: got the failure %v, want one: %t", c.answer, c.kind, f, c.fails)
		}
	}
}
