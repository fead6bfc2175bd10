package input_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"testing"

	"tollgate/internal/upstream/input"
	"tollgate/internal/upstream/jobcall"
)

func TestSeedsOfCalls(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		raw  string
		call int
		want string
	}{
		{"7", 0, "7"}, {"7", 3, "10"}, {"9", 1, "10"}, {"9", 2, "0"}, {"11", 1, "11"}, {"-1", 1, "-1"},
		{`"7"`, 1, `"7"`}, {"1.5", 1, "1.5"}, {"", 1, ""},
	} {
		if got := string(input.NextSeed(json.RawMessage(tt.raw), tt.call, 10)); got != tt.want {
			t.Errorf("seed %s of call %d: %s, want %s", tt.raw, tt.call, got, tt.want)
		}
	}
}

func TestLink(t *testing.T) {
	t.Parallel()
	r := jobcall.Reference{Type: "image/png", Size: 3,
		Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader([]byte("abc"))), nil }}
	if got, err := input.Link(t.Context(), r); err != nil || got != "data:image/png;base64,YWJj" {
		t.Errorf("%q, %v", got, err)
	}
	r.URL = "https://media.example/a.png"
	if got, err := input.Link(t.Context(), r); err != nil || got != r.URL {
		t.Errorf("%q, %v", got, err)
	}
}
