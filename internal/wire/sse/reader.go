// Package sse owns server-sent events: a reader with limits, and the events that end a stream of
// the forms.
//
// Invariants: the events do not depend on the sizes of the reads; a stream ending inside an event
// is distinguished from one ending between two; events are limited in size and nesting; reading an
// ordinary event does not allocate.
package sse

import (
	"bytes"
	"errors"
	"io"

	"tollgate/internal/wire/rawjson"
)

var (
	// ErrTruncated reports that a stream ended inside an event.
	ErrTruncated = errors.New("event stream ended inside an event")
	// ErrTooLarge reports that an event exceeds the reader's limit.
	ErrTooLarge = errors.New("event is too large")
	// ErrNoRoom reports that Reserve returned false.
	ErrNoRoom = errors.New("no room for an event")
)

// Reader reads server-sent events (line ends CR, LF or CRLF; byte order mark; comments). It does
// not allocate per event once its buffer has the size of the events. If its source is a Waiter, it
// has no buffer while it waits between events. It is not safe for concurrent use.
type Reader struct {
	// Reserve, if not nil, is called with each growth in bytes beyond the buffer for ordinary
	// events. If it returns false, Next returns ErrNoRoom.
	Reserve func(n int64) bool

	src io.Reader
	max int

	buf        []byte
	start, end int   // unread bytes in buf
	err        error // error of the last read
	eof        bool  // err is io.EOF itself; an error wrapping io.EOF is a failure

	next        int  // start of the line being searched
	at          int  // where the search continues in that line
	found       bool // an event ends at next
	lastCR      bool // the line before ended in a CR without LF
	markChecked bool // the byte order mark was looked for

	joined []byte
	name   string
	full   bool // the last read filled the buffer
	ended  bool // the stream ended between two events
}

// Waiter is a source whose arrival of data can be awaited without a buffer.
type Waiter interface {
	// Wait returns when the source has data, has ended or has failed; Read says which.
	Wait()
}

const (
	// firstBuffer is the first size of the buffer: several ordinary events.
	firstBuffer = 4 << 10
	// burstBuffer is the size after a read has filled the first buffer, so that a burst of events arrives
	// at once.
	burstBuffer = 32 << 10
)

// NewReader returns a Reader for events of at most max bytes.
func NewReader(src io.Reader, max int) *Reader {
	return &Reader{src: src, max: max}
}

// Next returns the next event. At the end of the stream it returns io.EOF, or ErrTruncated if the
// last event is unfinished. A final `[DONE]` or message_stop counts as finished without its blank
// line. Next returns ErrTooLarge if an event exceeds the limit, rawjson.ErrShape if CheckShape
// rejects its data, ErrNoRoom, or the source's own error. Events received before an error are
// returned first.
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
	r.start, r.at, r.found = r.next, r.next, false
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

// Buffered reports whether Next can return another event without waiting.
func (r *Reader) Buffered() bool { return r.search() }

// Ended reports whether Next has returned io.EOF at a clean end of the stream. A source's error
// wrapping io.EOF is not a clean end.
func (r *Reader) Ended() bool { return r.ended }

// Close frees the buffer for other readers. The reader and its events must not be used afterwards. A
// reader without Close is left to the garbage collector.
func (r *Reader) Close() {
	freeBuffer(r.buf)
	r.buf = nil
}

// fill reads once from the source. It returns false if Reserve returned false.
func (r *Reader) fill() bool {
	if r.start > 0 && (r.start == r.end || r.end == len(r.buf)) {
		n := copy(r.buf, r.buf[r.start:r.end])
		r.next, r.at = r.next-r.start, r.at-r.start
		r.start, r.end = 0, n
	}
	if r.end == 0 {
		r.wait()
	}
	if r.end == len(r.buf) || r.full && len(r.buf) < burstBuffer {
		size := firstBuffer
		switch {
		case len(r.buf) >= burstBuffer:
			size = min(2*len(r.buf), r.max+firstBuffer)
		case r.full:
			size = burstBuffer
		}
		if size > burstBuffer && !r.reserve(size-len(r.buf)) {
			return false
		}
		grown := newBuffer(size)
		copy(grown, r.buf[:r.end])
		freeBuffer(r.buf)
		r.buf = grown
	}
	n, err := r.src.Read(r.buf[r.end:])
	r.end += n
	r.full = r.end == len(r.buf)
	r.err, r.eof = err, err == io.EOF
	return true
}

// wait waits for data, if the source is a Waiter. It frees the empty buffer for other readers meanwhile. With
// a buffer above burstBuffer it returns at once, because other readers cannot use such a buffer.
func (r *Reader) wait() {
	source, ok := r.src.(Waiter)
	if !ok || len(r.buf) > burstBuffer {
		return
	}
	freeBuffer(r.buf)
	r.buf = nil
	source.Wait()
}

// last returns the result of Next at the end of the source.
func (r *Reader) last() (Event, error) {
	rest := r.buf[r.start:r.end]
	switch {
	case !r.eof:
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

// search continues the search for the blank line at the end of the next event, and sets next to the
// byte after the blank line. It reports whether it found a blank line.
func (r *Reader) search() bool {
	if r.found {
		return true
	}
	if !r.markChecked && !r.skipMark() {
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
		width, cr := 1, r.buf[r.at] == '\r'
		switch {
		case !cr, blank && r.lastCR && r.next > r.start:
			// A blank line after a line ended by a lone CR ends in a lone CR too. Waiting for an LF
			// would delay the event.
		case r.at+1 < r.end:
			if r.buf[r.at+1] == '\n' {
				width, cr = 2, false
			}
		case r.err == nil:
			return false // an LF may follow
		}
		r.next = r.at + width
		r.at, r.lastCR = r.next, cr
		if blank {
			r.found = true
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

// skipMark skips a byte order mark. It returns false if it needs more bytes.
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
	r.markChecked = true
	return true
}

func (r *Reader) parse(raw []byte) Event {
	e := Event{Raw: raw, Offset: -1}
	lines, named := 0, false
	for at := 0; at < len(raw); {
		size := lineEnd(raw[at:])
		if size < 0 {
			size = len(raw) - at
		}
		line, from := raw[at:at+size], at
		at += size + 1
		if len(line) == 0 || line[0] == ':' { // an empty line, the LF of a CRLF, or a comment
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
				e.Data, e.Offset = value, from
			case 2:
				r.joined = append(r.joined[:0], e.Data...)
				fallthrough
			default:
				r.joined = rawjson.Put(r.joined, "\n", value, "")
				e.Data, e.Offset = r.joined, -1
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
