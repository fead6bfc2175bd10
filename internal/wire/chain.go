package wire

import (
	"bytes"
	"iter"

	"tollgate/internal/fault"
)

// Writer writes a stream in a client's form from the events of a line's.
type Writer interface {
	// Append appends what the client gets of an event that the line's meter
	// read as f. The event's slices are only valid during the call.
	Append(dst []byte, e Event, f Frame) []byte
	// End appends what completes the stream, which was settled for u.
	End(dst []byte, u Usage) []byte
	// Fail appends what tells that the stream broke off. Nothing follows.
	Fail(dst []byte, err *fault.Error) []byte
}

// Chain writes a stream by way of chat completions, where no translator leads
// from the line's form to the client's. Not for concurrent use.
type Chain struct {
	first, second Writer
	meter         *ChatMeter // of what lies between the two
	between       []byte
}

// NewChain makes a writer of two: first writes chat completions, always with
// the usage frame, and second makes of them what the client gets.
func NewChain(first, second Writer) *Chain {
	return &Chain{first: first, second: second, meter: NewChatMeter(1)}
}

// Append implements Writer.
func (c *Chain) Append(dst []byte, e Event, f Frame) []byte {
	c.between = c.first.Append(c.between[:0], e, f)
	return c.pass(dst, f.Finished)
}

// End implements Writer.
func (c *Chain) End(dst []byte, u Usage) []byte {
	c.between = c.first.End(c.between[:0], u)
	return c.second.End(c.pass(dst, true), u)
}

// Fail implements Writer.
func (c *Chain) Fail(dst []byte, err *fault.Error) []byte { return c.second.Fail(dst, err) }

// pass hands what lies between to the second writer. finished tells that the
// line's stream has finished: from there on nothing goes out before the
// settlement, also what stands before the finish in between.
func (c *Chain) pass(dst []byte, finished bool) []byte {
	for e := range events(c.between) {
		f, err := c.meter.Read(e)
		if err != nil {
			continue // the first writer writes JSON
		}
		f.Finished = f.Finished || finished
		dst = c.second.Append(dst, e, f)
	}
	return dst
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
