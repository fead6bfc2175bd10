package sse

import (
	"bytes"
	"iter"
	"tollgate/internal/wire/rawjson"
)

// Event is one server-sent event. Its slices are valid until the reader's next call.
type Event struct {
	// Raw is the whole event with its final blank line.
	Raw []byte
	// Data is the data lines, joined by line feeds. It is nil if there are none (a comment, an
	// empty line).
	Data []byte
	Name string

	Offset int // of Data in Raw, or -1 if Data was joined
}

// Each yields the events of a text with line feeds only, each ended by a blank line.
func Each(text []byte) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		var r Reader
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

// AppendLines appends an event with a data line for each line of data.
func AppendLines(dst []byte, name string, data []byte) []byte {
	if name != "" {
		dst = rawjson.Put(dst, "event: ", name, "\n")
	}
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		dst = rawjson.Put(dst, "data: ", line, "\n")
	}
	return append(dst, '\n')
}

// Done ends a chat-completions stream.
const Done = "data: [DONE]\n\n"

// MessageStop ends a stream of the messages form.
const MessageStop = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"

// KeepAlive is a comment that keeps a stream's connection open.
const KeepAlive = ": keep-alive\n\n"
