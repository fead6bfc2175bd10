// Package sse owns server-sent events: reading them from a stream within bounds,
// and the few that the forms write. It knows no form but for the events that
// close a stream.
//
// Invariants: the events do not depend on how the bytes arrive; a stream that
// ends inside an event is told from one that ends between two; no event is
// longer, and none nests deeper, than the bounds; reading an ordinary event
// allocates nothing.
package sse

import (
	"bytes"
	"errors"
	"io"

	"tollgate/internal/wire/rawjson"
)

var (
	// ErrTruncated says that a stream ended inside an event.
	ErrTruncated = errors.New("event stream ended inside an event")
	// ErrTooLarge says that an event is longer than the reader's limit.
	ErrTooLarge = errors.New("event is too large")
	// ErrNoRoom says that Reserve gave no room for an event.
	ErrNoRoom = errors.New("no room for an event")
)

// Reader reads server-sent events (line ends CR, LF or CRLF; byte order
// mark; comments). It does not allocate per event once its buffer has grown to
// the size of the events. The events do not depend on how the bytes arrive.
// Not for concurrent use.
type Reader struct {
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

// NewReader reads events of at most max bytes from src.
func NewReader(src io.Reader, max int) *Reader {
	return &Reader{src: src, max: max}
}

// Next returns the next event. At the end of the stream it returns io.EOF, or
// ErrTruncated when bytes of an unfinished event remain (a closing `[DONE]` or
// message_stop that lacks its blank line counts as finished); ErrEventTooLarge
// when an event passes the limit, ErrShape when its data is beyond CheckShape,
// ErrNoRoom; else the source's own error. Events that
// arrived before an error are returned first.
func (r *Reader) Next() (Event, error) {
	for !r.search() {
		if r.err != nil {
			return r.last()
		}
		if r.end-r.start >= r.max {
			return Event{}, ErrTooLarge
		}
		if !r.fill() {
			return Event{}, ErrNoRoom
		}
	}
	raw := r.buf[r.start:r.next]
	if len(raw) > r.max {
		return Event{}, ErrTooLarge
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

func (r *Reader) reserve(n int) bool { return r.Reserve == nil || r.Reserve(int64(n)) }

// Buffered tells whether another whole event has already arrived, so that
// Next returns it without waiting.
func (r *Reader) Buffered() bool { return r.search() }

// Ended tells whether Next has returned io.EOF: the stream ended, and not
// inside an event. A source's error that wraps io.EOF is no such end.
func (r *Reader) Ended() bool { return r.ended }

// fill reads once from the source; false when there is no room for more.
func (r *Reader) fill() bool {
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
func (r *Reader) last() (Event, error) {
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
		return r.parse([]byte(Done)), nil
	case e.Name == "message_stop" && rawjson.IsValid(e.Data):
		return r.parse([]byte(MessageStop)), nil
	}
	r.err = ErrTruncated
	return Event{}, ErrTruncated
}

// search looks for the blank line that ends the next event and leaves next
// behind it. It goes on where it stopped before.
func (r *Reader) search() bool {
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
func (r *Reader) skipMark() bool {
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
func (r *Reader) parse(raw []byte) Event {
	e := Event{Raw: raw, At: -1}
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
				e.Data, e.At = value, from
			case 2:
				r.joined = append(r.joined[:0], e.Data...)
				fallthrough
			default:
				r.joined = rawjson.Put(r.joined, "\n", value, "")
				e.Data, e.At = r.joined, -1
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
