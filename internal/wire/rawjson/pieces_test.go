package rawjson

import (
	"io"
	"strings"
	"testing"
)

// TestPieces checks that an edited body can be read several times and shares unchanged bytes.
func TestPieces(t *testing.T) {
	t.Parallel()
	for _, long := range []int{0, 10, 100_000} {
		body := []byte(`{"model":"mine","text":"` + strings.Repeat("x", long) + `"}`)
		doc, err := Open(body)
		if err != nil {
			t.Fatal(err)
		}
		edits := Edits{Doc: doc}
		edits.SetText("model", "theirs")
		edits.Set("store", []byte("false"))
		got := edits.Body()
		want := `{"model":"theirs","text":"` + strings.Repeat("x", long) + `","store":false}`
		for range 2 {
			sent, err := io.ReadAll(got.Reader())
			if err != nil || string(sent) != want || string(got.Bytes()) != want || got.Len() != len(want) {
				t.Errorf("%d: %d bytes, %d, %d, want %d: %v", long, len(sent), len(got.Bytes()), got.Len(), len(want), err)
			}
		}
		if shares := &got[2][0] == &body[len(`{"model":"mine"`)]; !shares {
			t.Errorf("%d: what was left is copied", long)
		}
	}
	if p := (Pieces)(nil); p.Len() != 0 || len(p.Bytes()) != 0 {
		t.Error("no pieces are no empty text")
	}
}
