package dashscope

import (
	"errors"
	"testing"

	"tollgate/internal/upstream"
)

// FuzzSpeech checks that any event is read, or is a failure.
func FuzzSpeech(f *testing.F) {
	f.Add([]byte(`{"output":{"audio":{"data":"UklGRmRhdGEAAAAA"},"finish_reason":"stop"},"usage":{"input_tokens":1}}`))
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
