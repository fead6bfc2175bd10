package responses

import (
	"bytes"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// Recorder passes a stream of the form on and keeps its answer. It is not safe for concurrent use.
type Recorder struct {
	wire.Writer
	reserve func(bytes int64) bool

	items []byte // the finished items, after commas
	last  []byte // the response of the terminal event
	lost  bool   // there was no memory for the answer
}

// NewRecorder returns a recorder in front of w, a writer for clients of the form. reserve takes memory from a
// budget. It returns false if the budget has too little.
func NewRecorder(w wire.Writer, reserve func(bytes int64) bool) *Recorder {
	return &Recorder{Writer: w, reserve: reserve}
}

// Append implements wire.Writer.
func (r *Recorder) Append(dst []byte, e sse.Event, f wire.Frame) []byte {
	from := len(dst)
	dst = r.Writer.Append(dst, e, f)
	r.read(dst[from:])
	return dst
}

// End implements wire.Writer.
func (r *Recorder) End(dst []byte, u wire.Usage) []byte {
	from := len(dst)
	dst = r.Writer.End(dst, u)
	r.read(dst[from:])
	return dst
}

// recorded are the types of the events with parts of the answer.
var recorded = [...][]byte{[]byte("response.output_item.done"), []byte("response.completed"), []byte("response.incomplete")}

// read keeps the parts of the answer in events written for the client. Nearly all events have none,
// and are not decoded.
func (r *Recorder) read(events []byte) {
	found := false
	for _, kind := range recorded {
		found = found || bytes.Contains(events, kind)
	}
	if !found || r.lost {
		return
	}
	for reader := sse.NewReader(bytes.NewReader(events), len(events)+1); ; {
		e, err := reader.Next()
		if err != nil || reader.Ended() {
			return
		}
		switch rawjson.Unquote(rawjson.Field(e.Data, "type")) {
		case "response.output_item.done":
			r.items = append(r.keep(r.items, rawjson.Field(e.Data, "item")), ',')
		case "response.completed", "response.incomplete":
			r.last = r.keep(nil, rawjson.Field(e.Data, "response"))
		}
	}
}

// keep appends a part of the answer to dst, if there is memory for it.
func (r *Recorder) keep(dst, part []byte) []byte {
	if r.lost = r.lost || !r.reserve(int64(len(part))); r.lost {
		return nil
	}
	return append(dst, part...)
}

// Answer returns the whole answer as the client has received it, or nil if the stream has no terminal event
// of a complete answer or there was no memory. If the terminal event has no items, as with some providers,
// the items come from the events before it.
func (r *Recorder) Answer() []byte {
	if r.lost || r.last == nil {
		return nil
	}
	object, output, ok := SplitAnswer(r.last)
	if !ok || len(output) > 0 || len(r.items) == 0 {
		return r.last
	}
	return JoinAnswer(object, r.items[:len(r.items)-1]).Bytes()
}
