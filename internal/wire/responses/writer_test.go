package responses

import (
	"testing"

	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/internal/wiretest"
)

// newTestWriter returns a writer of a stream.
func newTestWriter(t *testing.T) *writer {
	t.Helper()
	r, err := Open([]byte(`{"input":"x","stream":true}`))
	if err == nil {
		err = r.Check()
	}
	if err != nil {
		t.Fatal(err)
	}
	return r.Writer(wire.Identity{Request: "req_01TEST", Model: "swift-1", Created: 1795262002}, wire.FormChat).(*writer)
}

// TestWriterIsBounded checks that an endless text is cut off as if by the token limit, in a
// well-formed stream.
func TestWriterIsBounded(t *testing.T) {
	t.Parallel()
	w := newTestWriter(t)
	w.room = 10
	var out []byte
	text := &conversation.Output{}
	for range 5 {
		out = w.Write(out, conversation.Event{Kind: conversation.Delta, Output: text, Text: []byte("four")})
	}
	seen := wiretest.MustCheckResponses(t, w.End(out, wire.Usage{}))
	if seen.Terminal != "response.incomplete" || seen.Items[0].Text != "fourfour" {
		t.Errorf("%s after %q", seen.Terminal, seen.Items[0].Text)
	}
	if more := w.Write(nil, conversation.Event{Kind: conversation.Idle}); more != nil {
		t.Errorf("after the end: %s", more)
	}
	if more := w.End(nil, wire.Usage{}); more != nil {
		t.Errorf("a second end: %s", more)
	}

	w, out = newTestWriter(t), nil
	for i := range 3 * maxOutputItems {
		part := &conversation.Output{Kind: [...]conversation.PartKind{conversation.Text, conversation.Thinking}[i%2]}
		out = w.Write(out, conversation.Event{Kind: conversation.Delta, Output: part, Text: []byte("a")})
	}
	if seen := wiretest.MustCheckResponses(t, w.End(out, wire.Usage{})); len(seen.Items) > maxOutputItems+1 {
		t.Errorf("%d items", len(seen.Items))
	}
}
