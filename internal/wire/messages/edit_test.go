package messages

import (
	"strings"
	"testing"

	"tollgate/internal/wire"
)

// TestThinkingWithoutASignature checks that Claude's models get no thinking of another line, and that
// all other bytes stay.
func TestThinkingWithoutASignature(t *testing.T) {
	t.Parallel()
	const (
		start    = `{"model":"swift-1","max_tokens":9,"messages":[ {"role":"user","content":"Yes?"}, {"role":"assistant","content":[`
		unsigned = `{"type":"thinking","thinking":"Hm.","signature":""}`
		without  = `{"type":"thinking","thinking":"Hm."}`
		signed   = `{"type":"thinking","thinking":"Hm.","signature":"c2lnbmVk"}`
		text     = `{"type":"text","text":"Yes."}`
		end      = `]}, {"role":"user","content":"Why?"}]}`
	)
	for _, c := range []struct{ model, blocks, want string }{
		{"claude-sonnet-4-5-20250929", unsigned + "," + text, text},
		{"claude-sonnet-4-5-20250929", without + "," + text, text},
		{"claude-sonnet-4-5-20250929", signed + " ," + text, signed + " ," + text},
		{"another-model", unsigned + "," + text, unsigned + "," + text},
	} {
		r, err := Open([]byte(start + c.blocks + end))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Check(); err != nil {
			t.Fatal(err)
		}
		got := string(r.Body(wire.Edits{Model: c.model}).Bytes())
		if !strings.Contains(got, `"content":[`+c.want+`]`) {
			t.Errorf("%s, %s: got %s, want the blocks %s", c.model, c.blocks, got, c.want)
		}
		if c.blocks == c.want && got != strings.Replace(start+c.blocks+end, "swift-1", c.model, 1) {
			t.Errorf("%s, %s: got %s, want the client's bytes", c.model, c.blocks, got)
		}
	}
}
