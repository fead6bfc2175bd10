package wire

import (
	"bytes"
	"errors"
	"io"
	"iter"

	"tollgate/internal/wire/rawjson"
)

var (
	// ErrTruncated says that a stream ended inside an event.
	ErrTruncated = errors.New("event stream ended inside an event")
	// ErrEventTooLarge says that an event is longer than the reader's limit.
	ErrEventTooLarge = errors.New("event is too large")
	// ErrNoRoom says that Reserve gave no room for an event.
	ErrNoRoom = errors.New("no room for an event")
)

// Event is one server-sent event. Its slices are valid until the reader's next
// call.
type Event struct {
	// Raw is the event as it came, with the blank line that ends it.
	Raw []byte
	// Data holds the data lines, joined by line feeds; nil when the event has
	// none (a comment, an empty line).
	Data []byte
	// Name is the event's name, empty when it has none.
	Name string

	at int // where Data stands in Raw; -1 when it was joined
}

// EventReader reads server-sent events (line ends CR, LF or CRLF; byte order
// mark; comments). It does not allocate per event once its buffer has grown to
// the size of the events. The events do not depend on how the bytes arrive.
// Not for concurrent use.
type EventReader struct {
	// Reserve is asked for each number of bytes by which the reader grows beyond
	// what ordinary events need; false ends the stream with ErrNoRoom. nil: the
	// longest event alone bounds it.
	Reserve func(n int64) bool

	src io.Reader
	max int

	buf        []byte
	start, end int   // the bytes that were not handed out yet
	err        error // the source's last word
	clean      bool  // which is io.EOF itself: an error that wraps it is no end

	next  int  // start of the line that the search for the event's end is at
	at    int  // how far that line was searched
	whole bool // an event ends at next
	bare  bool // the line before ended in a CR without LF
	begun bool // the byte order mark has been looked for

	joined []byte
	name   string
	filled bool // the last read filled the buffer
	ended  bool // the stream ended between two events
}

const (
	// firstBuffer is the buffer that a reader begins with: several ordinary
	// events.
	firstBuffer = 4 << 10
	// burstBuffer is what the buffer grows to, while reads fill it, so that
	// many events are there at once.
	burstBuffer = 32 << 10
)

// NewEventReader reads events of at most max bytes from src.
func NewEventReader(src io.Reader, max int) *EventReader {
	return &EventReader{src: src, max: max}
}

// Next returns the next event. At the end of the stream it returns io.EOF, or
// ErrTruncated when bytes of an unfinished event remain (a closing `[DONE]` or
// message_stop that lacks its blank line counts as finished); ErrEventTooLarge
// when an event passes the limit, ErrShape when its data is beyond CheckShape,
// ErrNoRoom; else the source's own error. Events that
// arrived before an error are returned first.
func (r *EventReader) Next() (Event, error) {
	for !r.search() {
		if r.err != nil {
			return r.last()
		}
		if r.end-r.start >= r.max {
			return Event{}, ErrEventTooLarge
		}
		if !r.fill() {
			return Event{}, ErrNoRoom
		}
	}
	raw := r.buf[r.start:r.next]
	if len(raw) > r.max {
		return Event{}, ErrEventTooLarge
	}
	r.start, r.at, r.whole = r.next, r.next, false
	before := cap(r.joined)
	e := r.parse(raw)
	if grown := cap(r.joined); grown > before && grown > burstBuffer && !r.reserve(grown-before) {
		return Event{}, ErrNoRoom
	}
	if err := rawjson.CheckShape(e.Data); err != nil {
		return Event{}, err
	}
	return e, nil
}

func (r *EventReader) reserve(n int) bool { return r.Reserve == nil || r.Reserve(int64(n)) }

// Buffered tells whether another whole event has already arrived, so that
// Next returns it without waiting.
func (r *EventReader) Buffered() bool { return r.search() }

// Ended tells whether Next has returned io.EOF: the stream ended, and not
// inside an event. A source's error that wraps io.EOF is no such end.
func (r *EventReader) Ended() bool { return r.ended }

// fill reads once from the source; false when there is no room for more.
func (r *EventReader) fill() bool {
	if r.start > 0 && (r.start == r.end || r.end == len(r.buf)) {
		n := copy(r.buf, r.buf[r.start:r.end])
		r.next, r.at = r.next-r.start, r.at-r.start
		r.start, r.end = 0, n
	}
	if r.end == len(r.buf) || r.filled && len(r.buf) < burstBuffer {
		size := max(firstBuffer, min(2*len(r.buf), r.max+firstBuffer))
		if size > burstBuffer && !r.reserve(size-len(r.buf)) {
			return false
		}
		grown := make([]byte, size)
		copy(grown, r.buf[:r.end])
		r.buf = grown
	}
	n, err := r.src.Read(r.buf[r.end:])
	r.end += n
	r.filled = r.end == len(r.buf)
	r.err, r.clean = err, err == io.EOF
	return true
}

// last ends the stream.
func (r *EventReader) last() (Event, error) {
	rest := r.buf[r.start:r.end]
	switch {
	case !r.clean:
		return Event{}, r.err
	case len(bytes.Trim(rest, "\r\n")) == 0:
		r.ended = true
		return Event{}, io.EOF
	}
	r.start, r.next, r.at = r.end, r.end, r.end
	switch e := r.parse(bytes.TrimRight(rest, "\r\n")); {
	case string(e.Data) == "[DONE]":
		return r.parse([]byte(DoneEvent)), nil
	case e.Name == "message_stop" && rawjson.IsValid(e.Data):
		return r.parse([]byte(messageStop)), nil
	}
	r.err = ErrTruncated
	return Event{}, ErrTruncated
}

// search looks for the blank line that ends the next event and leaves next
// behind it. It goes on where it stopped before.
func (r *EventReader) search() bool {
	if r.whole {
		return true
	}
	if !r.begun && !r.skipMark() {
		return false
	}
	for r.at < r.end {
		i := lineEnd(r.buf[r.at:r.end])
		if i < 0 {
			r.at = r.end
			return false
		}
		r.at += i
		blank := r.at == r.next
		width, bare := 1, r.buf[r.at] == '\r'
		switch {
		case !bare, blank && r.bare && r.next > r.start:
			// A blank line after one that ended in a lone CR ends in one too:
			// waiting for an LF would hold the event back.
		case r.at+1 < r.end:
			if r.buf[r.at+1] == '\n' {
				width, bare = 2, false
			}
		case r.err == nil:
			return false // an LF may follow
		}
		r.next = r.at + width
		r.at, r.bare = r.next, bare
		if blank {
			r.whole = true
			return true
		}
	}
	return false
}

// lineEnd returns the index of the first CR or LF.
func lineEnd(b []byte) int {
	lf := bytes.IndexByte(b, '\n')
	if lf >= 0 {
		b = b[:lf]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return lf
}

// skipMark drops a byte order mark; false while it cannot tell.
func (r *EventReader) skipMark() bool {
	const mark = "\xef\xbb\xbf"
	have := r.buf[r.start:r.end]
	if len(have) < len(mark) && bytes.HasPrefix([]byte(mark), have) && r.err == nil {
		return false
	}
	if bytes.HasPrefix(have, []byte(mark)) {
		r.start += len(mark)
		r.next, r.at = r.start, r.start
	}
	r.begun = true
	return true
}

// parse reads the fields of an event.
func (r *EventReader) parse(raw []byte) Event {
	e := Event{Raw: raw, at: -1}
	lines, named := 0, false
	for at := 0; at < len(raw); {
		size := lineEnd(raw[at:])
		if size < 0 {
			size = len(raw) - at
		}
		line, from := raw[at:at+size], at
		at += size + 1
		if len(line) == 0 || line[0] == ':' { // also the LF of a CRLF
			continue
		}
		name, value := line, line[len(line):]
		if colon := bytes.IndexByte(line, ':'); colon >= 0 {
			name, value = line[:colon], line[colon+1:]
			if len(value) > 0 && value[0] == ' ' {
				value = value[1:]
			}
			from += len(line) - len(value)
		}
		switch string(name) {
		case "data":
			switch lines++; lines {
			case 1:
				e.Data, e.at = value, from
			case 2:
				r.joined = append(r.joined[:0], e.Data...)
				fallthrough
			default:
				r.joined = append(append(r.joined, '\n'), value...)
				e.Data, e.at = r.joined, -1
			}
		case "event":
			if named = true; string(value) != r.name {
				r.name = string(value)
			}
		}
	}
	if named {
		e.Name = r.name
	}
	return e
}

// events yields the events of a text that was written by a Writer: each ends
// with an empty line.
func events(text []byte) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		var r EventReader
		for len(text) > 0 {
			end := bytes.Index(text, []byte("\n\n"))
			if end < 0 {
				return
			}
			if !yield(r.parse(text[:end+2])) {
				return
			}
			text = text[end+2:]
		}
	}
}

// appendLines writes an event whose data stands on several lines.
func appendLines(dst []byte, name string, data []byte) []byte {
	if name != "" {
		dst = append(append(append(dst, "event: "...), name...), '\n')
	}
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		dst = append(append(append(dst, "data: "...), line...), '\n')
	}
	return append(dst, '\n')
}

// DoneEvent ends a chat-completions stream.
const DoneEvent = "data: [DONE]\n\n"

// messageStop ends a stream of the messages form.
const messageStop = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"

// keepAlive is a comment that keeps a stream's connection open.
const keepAlive = ": keep-alive\n\n"
