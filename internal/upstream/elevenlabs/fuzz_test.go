package elevenlabs

import (
	"encoding/json"
	"io"
	"testing"

	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/transcript"
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/rawjson"
)

// FuzzTranscript checks that any answer is refused, or makes an answer in each format.
func FuzzTranscript(f *testing.F) {
	f.Add([]byte(`{"text":"a b","audio_duration_secs":3,"words":[{"text":"a","type":"word","start":0,"end":1},{"text":" ","type":"spacing"},` +
		`{"text":"","type":"word"},{"text":"b。","type":"word","start":-1e300,"end":1e300,"speaker_id":"s"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		read, err := readTranscript(raw)
		if err != nil {
			return
		}
		for _, format := range []string{"json", "verbose_json", "diarized_json", "srt", "vtt", "text"} {
			body := rawjson.Pieces{[]byte(`{"response_format":"` + format + `"}`)}
			r := transcript.Read(chatcall.Call{Body: body, File: &kind.Upload{}})
			answer := r.Answer(read)
			out, err := io.ReadAll(answer.Body)
			if err != nil || int64(len(out)) != answer.Length || answer.ContentType == "application/json" && !json.Valid(out) {
				t.Errorf("%s: got %s (%v), want a valid answer", format, out, err)
			}
		}
	})
}
