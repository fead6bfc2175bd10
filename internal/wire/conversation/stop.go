package conversation

import (
	"bytes"
	"strings"

	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// maxStopText bounds the stop sequences that the gateway looks for in an answer, in bytes of JSON. Real
// ones have a few bytes.
const maxStopText = 16 << 10

// TakeStops returns the stop sequences for the line as a list, or nil: the first limit ones that the line
// accepts. If accepts is nil, the line accepts all. The other sequences are LocalStops. Empty sequences have
// no effect, and lines reject them. It returns an error if the other sequences are too long.
func (r *Request) TakeStops(limit int, accepts func(stop []byte) bool) ([]byte, error) {
	var taken []byte
	size := 0
	r.LocalStops = nil
	for _, stop := range r.Stops {
		switch {
		case len(stop) <= 2:
		case limit > 0 && (accepts == nil || accepts(stop)):
			taken = rawjson.Put(taken, ",", stop, "")
			limit--
		default:
			r.LocalStops = append(r.LocalStops, stop)
			size += len(stop)
		}
	}
	if size > maxStopText {
		return nil, Unsupported(r.FieldName("stop"),
			"`{param}` is too long for this model: its sequences may have %d bytes in total. Send fewer or shorter ones.", maxStopText)
	}
	return List(taken), nil
}

// withLocalStops returns a sink that ends texts at the request's LocalStops and passes events on to next. It
// returns next itself if there are no LocalStops.
func (r *Request) withLocalStops(next sink) sink {
	if r == nil || len(r.LocalStops) == 0 {
		return next
	}
	return &stopSink{to: next, matcher: newStopMatcher(r.LocalStops), parts: map[*Output]*stopText{}, ended: map[int][]byte{}}
}

// stopSink ends each choice of an answer at the first stop sequence in one of its texts, as a vendor does.
// The sequence that ends first counts; of several that end at the same byte, the longest. Thinking,
// refusals and arguments of calls are not searched. Parts that start after the sequence are dropped;
// parts that started before it continue, except texts.
type stopSink struct {
	to      sink
	matcher stopMatcher
	parts   map[*Output]*stopText // the open parts of the client's answer
	ended   map[int][]byte        // the sequences that ended choices
}

// Write implements sink.
func (s *stopSink) Write(dst []byte, e Event) []byte {
	stop := s.ended[e.Choice]
	switch {
	case e.Kind == Finish && stop != nil && e.Finish != form.FinishFailed:
		e.Finish, e.Stop = form.FinishStop, stop
	case e.Kind == Start && stop == nil:
		s.parts[e.Output] = &stopText{}
	}
	if e.Output == nil {
		return s.to.Write(dst, e)
	}
	t := s.parts[e.Output]
	if e.Kind == End {
		delete(s.parts, e.Output)
	}
	switch {
	case t == nil: // the part started after the stop sequence
		return s.idle(dst)
	case e.Output.Kind == Text:
		return s.text(dst, t, e)
	}
	return s.to.Write(dst, e)
}

// idle writes an Idle event in place of another event.
func (s *stopSink) idle(dst []byte) []byte { return s.to.Write(dst, Event{Kind: Idle}) }

// text passes on an event of a text, without a stop sequence and the text after it. It holds back text that
// may begin a sequence.
func (s *stopSink) text(dst []byte, t *stopText, e Event) []byte {
	if e.Kind == Start {
		dst = s.to.Write(dst, Event{Kind: Start, Choice: e.Choice, Output: e.Output})
	}
	t.logprobs = appendLogprobLists(t.logprobs, e.Logprobs)
	var text []byte
	if s.ended[e.Choice] == nil {
		var stop []byte
		if text, stop = t.search(s.matcher, e.Text, e.Kind == End); stop != nil {
			s.ended[e.Choice] = stop
		}
	}
	stopped := s.ended[e.Choice] != nil
	logprobs := t.takeLogprobs(e.Kind == End && !stopped)
	switch {
	case len(text) > 0 || logprobs != nil:
		dst = s.to.Write(dst, Event{Kind: Delta, Choice: e.Choice, Output: e.Output, Text: text, Logprobs: logprobs})
	case e.Kind == Delta && stopped:
		dst = s.idle(dst)
	}
	if e.Kind == End {
		dst = s.to.Write(dst, e)
	}
	return dst
}

// stopText is the state of the search in one text.
type stopText struct {
	at       int32  // node of the matcher
	held     []byte // text not passed on: the contents of a JSON string
	size     int    // of the characters in held without escapes, in bytes
	half     int    // bytes at the end of held that are half of a character
	logprobs []byte // of tokens not passed on, without brackets
	ahead    int    // bytes of text passed on without logprobs; negative if logprobs are ahead
}

// search adds a piece to the text. It returns the text to pass on, up to a stop sequence or a possible
// beginning of one, and the sequence or nil. If end is set, it returns the rest of the text.
func (t *stopText) search(m stopMatcher, piece []byte, end bool) (text, stop []byte) {
	next := len(t.held) - t.half
	t.held = append(t.held, piece...)
	for stop == nil {
		n, plain := character(t.held[next:])
		if n == 0 {
			break
		}
		for _, b := range plain {
			t.at = m.step(t.at, b)
		}
		next += n
		t.size += len(plain)
		stop = m[m[t.at].match].stop
	}
	t.half = len(t.held) - next
	keep := m[t.at].length
	switch {
	case stop != nil:
		keep = m[m[t.at].match].length
	case end:
		keep = 0
	}
	from := 0
	for t.size > keep {
		n, plain := character(t.held[from:])
		t.size -= len(plain)
		t.ahead += len(plain)
		from += n
	}
	if end && stop == nil {
		from, t.half = len(t.held), 0
	}
	text, t.held = t.held[:from], t.held[from:]
	return text, stop
}

// character returns the length of the first character of the contents of a JSON string, and its text. A
// plain character may be split into its bytes. It returns 0 for half of a surrogate pair at the end.
func character(contents []byte) (n int, text []byte) {
	const escape = len(`\u0000`)
	switch {
	case len(contents) == 0:
		return 0, nil
	case contents[0] != '\\':
		return 1, contents[:1]
	case len(contents) == 1 || contents[1] != 'u':
		n = min(2, len(contents))
	case !isSurrogate(contents, "89abAB"):
		n = min(escape, len(contents))
	case len(contents) == escape:
		return 0, nil
	case isSurrogate(contents[escape:], "cdefCDEF"):
		n = 2 * escape
	default:
		n = escape
	}
	return n, rawjson.AppendUnquoted(nil, contents[:n])
}

// isSurrogate reports whether contents begin with the escape of a surrogate whose second digit is one of
// digits.
func isSurrogate(contents []byte, digits string) bool {
	return len(contents) >= 6 && contents[0] == '\\' && contents[1] == 'u' && contents[2]|0x20 == 'd' &&
		strings.IndexByte(digits, contents[3]) >= 0
}

// takeLogprobs returns the logprobs of the tokens that begin in the text passed on, or of all tokens, as a
// list, or nil.
func (t *stopText) takeLogprobs(all bool) []byte {
	if len(t.logprobs) == 0 {
		return nil
	}
	list, end := rawjson.Put(nil, "[", t.logprobs, "]"), 0
	for from, to := range rawjson.ElementSpans(list) {
		if t.ahead <= 0 && !all {
			break
		}
		t.ahead -= len(rawjson.Unquote(rawjson.Field(list[from:to], "token")))
		end = to
	}
	if end == 0 {
		return nil
	}
	t.logprobs = bytes.TrimLeft(list[end:len(list)-1], ", ")
	return append(list[:end:end], ']')
}
