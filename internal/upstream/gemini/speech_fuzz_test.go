package gemini

import (
	"errors"
	"testing"

	"tollgate/internal/upstream"
)

// FuzzSpeech checks that any event is read, or is a failure.
func FuzzSpeech(f *testing.F) {
	f.Add([]byte(`{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"audio/L16;rate=24000","data":"AAAA"}}]},` +
		`"finishReason":"STOP"` +
		`}],"usageMetadata":{"promptTokenCount":1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		piece, err := readSpeech(data)
		var failure *upstream.Failure
		if err != nil && !errors.As(err, &failure) {
			t.Errorf("got the error %v, want a failure", err)
		}
		if len(piece.Sound) > len(data) {
			t.Errorf("%d bytes of sound from %d", len(piece.Sound), len(data))
		}
	})
}
