package completions

import (
	"bytes"

	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// framePattern recognizes frames that differ from the last ordinary frame only in their text. Most
// frames of a stream do, so they need no search: they start with the same bytes, and the rest after
// the text is the same or short.
type framePattern struct {
	head, tail []byte // before the text, including its opening quote, and after it
	reasoning  bool   // the text is reasoning
}

// learn sets the pattern to an ordinary frame with the given delta. If the delta is more than one
// string, the pattern is cleared.
func (l *framePattern) learn(data, delta []byte) {
	const longest = 1024
	l.head = l.head[:0]
	var text rawjson.Member
	for m := range rawjson.Spans(delta) {
		switch value := delta[m.From:m.To]; {
		case rawjson.NonNull(value) == nil || string(m.Name) == "role":
		case text.To == 0 && rawjson.IsText(value) && (string(m.Name) == "content" || form.IsThought(m.Name)):
			text = m
		default:
			return
		}
	}
	before := len(data) - len(delta) + text.From + 1
	after := data[len(data)-len(delta)+text.To:]
	if text.To == 0 || before > longest || len(after) > longest || bytes.Count(data, []byte(`"delta"`)) > 1 {
		return
	}
	l.head = append(l.head, data[:before]...)
	l.tail = append(l.tail[:0], after...)
	l.reasoning = string(text.Name) != "content"
}

// read reads a frame of the pattern. It returns false for any other frame. If there are several
// choices, the rest after the text may hold the index.
func (l *framePattern) read(data []byte, several bool, output *form.Output, token *bool) bool {
	if len(l.head) == 0 || !bytes.HasPrefix(data, l.head) {
		return false
	}
	quote := len(l.head) - 1
	end := rawjson.SkipText(data, quote)
	tail := data[end:]
	if !bytes.Equal(tail, l.tail) {
		// The delta must end here, with nothing to read after it.
		if len(tail) == 0 || tail[0] != '}' || !isOrdinary(tail) || bytes.Contains(tail, []byte(`"delta"`)) ||
			several && bytes.Contains(tail, []byte(`"index"`)) {
			return false
		}
	}
	if end-quote > 2 {
		*token = true
		output.Add(data[quote:end])
		if l.reasoning {
			output.Reasoning = true
		} else {
			output.Content = true
		}
	}
	return true
}
