package chat

import (
	"errors"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

// TestTimeThatARequestTakes checks that a timeout is unproven if the request may need so much time
// by itself.
func TestTimeThatARequestTakes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stream   bool
		bound    wire.PromptBound
		unproven bool
	}{
		"a stream":                   {true, wire.PromptBound{TextBytes: longPrompt}, false},
		"a whole answer":             {false, wire.PromptBound{TextBytes: 10}, true},
		"a stream of a long prompt":  {true, wire.PromptBound{TextBytes: longPrompt + 1}, true},
		"a stream with an image":     {true, wire.PromptBound{Images: 1}, true},
		"a stream with files beside": {true, wire.PromptBound{Unbounded: true}, true},
	} {
		x := &chatRequest{params: &wire.Parameters{Stream: tt.stream, Bound: tt.bound}}
		for code, want := range map[fault.Code]bool{fault.UpstreamTimeout: tt.unproven, fault.UpstreamConnectionError: false} {
			f := upstream.Fail(code, errors.New("x"))
			if err := x.markUnproven(f); !errors.Is(err, error(f)) || f.Unproven != want {
				t.Errorf("%s, %s: unproven %t", name, code, f.Unproven)
			}
		}
	}
	if err := (&chatRequest{}).markUnproven(nil); err != nil {
		t.Error(err)
	}
}
