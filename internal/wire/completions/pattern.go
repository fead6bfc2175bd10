package completions

import (
	"bytes"

	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// framePattern remembers how the last ordinary frame looked around its text. The
// frames of a stream mostly differ in nothing else, so that the next one needs
// no search: it begins with the same bytes, and what follows its text is the
// same or short.
type framePattern struct {
	head, tail []byte // before the text, with its opening quote, and after it
	reasoning  bool   // what kind of text it is
}

// learn looks at an ordinary frame with a delta in it. A frame whose text is
// not one string alone is forgotten.
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

// read reads a frame that looks like the last one; false when it does not. Where
// there are several choices, what follows the text may tell whose it is.
func (l *framePattern) read(data []byte, several bool, made *form.Output, token *bool) bool {
	if len(l.head) == 0 || !bytes.HasPrefix(data, l.head) {
		return false
	}
	quote := len(l.head) - 1
	end := rawjson.SkipText(data, quote)
	tail := data[end:]
	if !bytes.Equal(tail, l.tail) {
		// The delta has to end here, and nothing to read may follow.
		if len(tail) == 0 || tail[0] != '}' || !isOrdinary(tail) || bytes.Contains(tail, []byte(`"delta"`)) ||
			several && bytes.Contains(tail, []byte(`"index"`)) {
			return false
		}
	}
	if end-quote > 2 {
		*token = true
		made.Add(data[quote:end])
		if l.reasoning {
			made.Reasoning = true
		} else {
			made.Content = true
		}
	}
	return true
}
