package kind

import (
	"errors"
	"io"

	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// maxEvent is the longest event of an answer, in bytes.
const maxEvent = 8 << 20

// EventReader reads an answer of events. It holds back the last event of the answer, and all after it,
// until the answer is complete.
type EventReader struct {
	events *sse.Reader
	last   string // the type of the last event
	most   int    // bytes to hold back
	held   []byte
	done   bool // the last event has come
}

// NewEventReader returns the reader of an answer. last is the type of the answer's last event, and most the
// limit on the bytes to hold back. For reserve, see StreamedPart.
func NewEventReader(answer io.Reader, last string, most int, reserve func(bytes int64) bool) *EventReader {
	r := &EventReader{events: sse.NewReader(answer, maxEvent), last: last, most: most}
	r.events.Reserve = reserve
	return r
}

// Next reads an event, as Stream.Next does. read returns what the client gets for the event: kind is its
// type, or empty for an event without JSON.
func (r *EventReader) Next(dst []byte, read func(kind string, e sse.Event) ([]byte, error)) ([]byte, error) {
	e, err := r.events.Next()
	switch {
	case r.events.Ended() && r.done:
		return append(dst, r.held...), io.EOF
	case r.events.Ended(), errors.Is(err, sse.ErrTruncated), errors.Is(err, sse.ErrTooLarge), errors.Is(err, rawjson.ErrShape):
		return dst, Incomplete("the events ended without %s, or are malformed", r.last)
	case errors.Is(err, sse.ErrNoRoom):
		return dst, ErrNoMemory
	case err != nil:
		return dst, err
	}
	kind := ""
	if len(e.Data) > 0 && e.Data[0] == '{' {
		kind = rawjson.Unquote(rawjson.Field(e.Data, "type"))
	}
	if kind == "error" {
		return dst, Incomplete("the line reported an error in an event: %.300s", e.Data)
	}
	out, err := read(kind, e)
	if err != nil {
		return dst, err
	}
	if r.done = r.done || kind == r.last; !r.done {
		return append(dst, out...), nil
	}
	if r.held = append(r.held, out...); len(r.held) > r.most {
		return dst, Incomplete("too much came after %s", r.last)
	}
	return dst, nil
}
