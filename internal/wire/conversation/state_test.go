package conversation

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"tollgate/internal/wire"
)

// TestStateInIDs checks that the id of a call returns the reasoning before the call, within the alphabet of
// the messages form.
func TestStateInIDs(t *testing.T) {
	t.Parallel()
	alphabet := regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	sealed := Part{Kind: Thinking, Signature: Signature{Data: []byte("tg1.01234567.gAA+/=")}}
	plain := Part{Kind: Thinking, Text: []byte(`I \"must\"\nlook.`)}
	long := Part{Kind: Thinking, Text: bytes.Repeat([]byte("ab "), MaxStateText/3)}
	for _, state := range [][]Part{{sealed}, {plain}, {plain, sealed, plain}, {long}} {
		id := SealID("call_1", state)
		own, got := OpenID(id)
		if !alphabet.MatchString(id) || own != "call_1" || len(got) != len(state) {
			t.Fatalf("id %s: got %s with %d parts, want call_1 with %d", id, own, len(got), len(state))
		}
		for i := range got {
			if !bytes.Equal(got[i].Text, state[i].Text) || !bytes.Equal(got[i].Signature.Data, state[i].Signature.Data) {
				t.Errorf("part %d: got %+v, want %+v", i, got[i], state[i])
			}
		}
	}
	if id := SealID("call_1", nil); id != "call_1" {
		t.Errorf("without state: got %s, want call_1", id)
	}
}

// pack returns an id with any content.
func pack(plain string) string {
	var packed bytes.Buffer
	w, _ := flate.NewWriter(&packed, flate.BestCompression)
	_, _ = w.Write([]byte(plain))
	_ = w.Close()
	return wire.SealedIDMark + base64.RawURLEncoding.EncodeToString(packed.Bytes())
}

// TestForeignIDs checks that an id that the gateway has not made stays as it is, and that a small id does
// not become a large state.
func TestForeignIDs(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"", "call_1", "tg1-", "tg1-!", "tg1-AAAA", pack("x\n\"quote"), pack("x\nunmarked"), pack("x\n=\x01")} {
		if own, state := OpenID(id); own != id || state != nil {
			t.Errorf("%q: got %q and %v, want the id itself", id, own, state)
		}
	}
	_, state := OpenID(pack("x\n=" + strings.Repeat("a", 64<<20)))
	for _, p := range state {
		if len(p.Text) > maxState {
			t.Errorf("got a text of %d bytes, want at most %d", len(p.Text), maxState)
		}
	}
}

// FuzzOpenID checks that the state of any id is well formed, and comes back from its own id.
func FuzzOpenID(f *testing.F) {
	f.Add("tg1-", "call_1\n=text")
	f.Add("x", "a\ntg1.01234567.data\n=b")
	f.Fuzz(func(t *testing.T, id, plain string) {
		for _, id := range []string{id, pack(plain)} {
			own, state := OpenID(id)
			for _, p := range state {
				if !isContents(p.Text) || !isContents(p.Signature.Data) {
					t.Fatalf("%q: %q is not the contents of a JSON string", id, p.Text)
				}
			}
			if state == nil {
				continue
			}
			if again, same := OpenID(SealID(own, state)); again != own || !reflect.DeepEqual(same, state) {
				t.Fatalf("%q: got %q, %v, want %q, %v", id, again, same, own, state)
			}
		}
	})
}
