package customtools

import (
	"bytes"
	"fmt"
	"strconv"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// Bounds of what is kept of a stream. What comes beyond goes out as it stands.
const (
	maxCalls = 1024
	maxInput = 8 << 20
)

// stream makes of the client's events, as another writer writes them, those in
// which functions that stand for custom tools are these. Not for concurrent use.
type stream struct {
	first wire.Writer
	names map[string]bool
	calls []*customInput
	kept  int // bytes of arguments

	written []byte
}

// customInput is a call whose input is not known yet.
type customInput struct {
	choice, index int64
	arguments     []byte // the inside of a JSON string
	told          bool   // its input went out
}

// Append implements Writer.
func (s *stream) Append(dst []byte, e sse.Event, f wire.Frame) []byte {
	s.written = s.first.Append(s.written[:0], e, f)
	return s.pass(dst)
}

// End implements Writer.
func (s *stream) End(dst []byte, u wire.Usage) []byte {
	s.written = s.first.End(s.written[:0], u)
	return s.pass(dst)
}

// Fail implements Writer.
func (s *stream) Fail(dst []byte, err *fault.Error) []byte { return s.first.Fail(dst, err) }

// pass appends what was written, changed.
func (s *stream) pass(dst []byte) []byte {
	if len(s.calls) == 0 && !bytes.Contains(s.written, []byte(`"tool_calls"`)) {
		return append(dst, s.written...)
	}
	events := sse.NewReader(bytes.NewReader(s.written), len(s.written)+1)
	for {
		e, err := events.Next()
		if err != nil {
			return dst // its end: all of it was read, within bounds, before it was written
		}
		dst = s.event(dst, e)
	}
}

// event appends an event: behind the input of custom tools whose choice it ends.
func (s *stream) event(dst []byte, e sse.Event) []byte {
	choices := rawjson.Field(e.Data, "choices")
	if choices == nil {
		return append(dst, e.Raw...)
	}
	var inputs []byte
	said, kept := false, false
	now := eachChanged(choices, func(choice []byte) []byte {
		number, _ := rawjson.Count(rawjson.Field(choice, "index"))
		was := choice
		choice = changed(choice, "delta", func(delta []byte) []byte { return s.delta(number, delta) })
		ended := rawjson.IsText(rawjson.Field(choice, "finish_reason"))
		if ended {
			inputs = append(inputs, s.inputsOf(number)...)
		}
		changed := !bytes.Equal(choice, was)
		said = said || changed
		kept = kept || ended || !changed || !isEmpty(rawjson.Field(choice, "delta"))
		return choice
	})
	if inputs != nil {
		inputs[0] = '['
		dst = appendEvent(dst, without(e.Data, "usage"), append(inputs, ']'))
	}
	switch {
	case !said:
		return append(dst, e.Raw...)
	case !kept && rawjson.Field(e.Data, "usage") == nil:
		return dst // it was about arguments alone
	}
	return appendEvent(dst, e.Data, now)
}

// appendEvent appends an event with other choices.
func appendEvent(dst, data, choices []byte) []byte {
	return sse.AppendLines(dst, "", changed(data, "choices", func([]byte) []byte { return choices }))
}

// delta returns what a choice's delta says without arguments of custom tools.
func (s *stream) delta(choice int64, delta []byte) []byte {
	calls := rawjson.Field(delta, "tool_calls")
	if calls == nil {
		return delta
	}
	var list []byte
	same := true
	for position, call := range rawjson.Elements(calls) {
		told := s.call(choice, int64(position), call)
		same = same && bytes.Equal(told, call)
		if told != nil {
			list = append(append(list, ','), told...)
		}
	}
	switch {
	case same:
		return delta
	case list == nil:
		return without(delta, "tool_calls")
	}
	list[0] = '['
	return changed(delta, "tool_calls", func([]byte) []byte { return append(list, ']') })
}

// call returns what goes out of a call, or of a piece of one, now; nil: nothing.
func (s *stream) call(choice, position int64, call []byte) []byte {
	index, numbered := rawjson.Count(rawjson.Field(call, "index"))
	if !numbered {
		index = position
	}
	function := rawjson.Field(call, "function")
	name := rawjson.Field(function, "name")
	known := s.find(choice, index)
	begins := known == nil
	switch {
	case begins && s.names[rawjson.Unquote(name)] && len(s.calls) < maxCalls:
		known = &customInput{choice: choice, index: index}
		s.calls = append(s.calls, known)
	case begins:
		return call
	}
	text := insideOf(rawjson.Field(function, "arguments"))
	s.kept += len(text)
	known.arguments = append(known.arguments, text...)
	text = nil
	if known.told || s.kept > maxInput {
		text, known.arguments, known.told = known.arguments, nil, true
	}
	switch {
	case begins:
		return fmt.Appendf(nil, `{"index":%d,"id":%s,"type":"custom","custom":{"name":%s,"input":"%s"}}`, index,
			rawjson.AppendOr(nil, rawjson.Field(call, "id"), `""`), name, text)
	case text == nil:
		return nil
	}
	return inputPiece(index, text)
}

// find returns the custom tool's call of a number; nil where it is another's.
func (s *stream) find(choice, index int64) *customInput {
	for _, c := range s.calls {
		if c.choice == choice && c.index == index {
			return c
		}
	}
	return nil
}

// inputPiece is a piece of a call's input, the inside of a JSON string.
func inputPiece(index int64, text []byte) []byte {
	return rawjson.Put(strconv.AppendInt([]byte(`{"index":`), index, 10), `,"custom":{"input":"`, text, `"}}`)
}

// inputsOf returns the choice that tells the inputs of a choice's calls, behind a
// comma; nil where there are none.
func (s *stream) inputsOf(choice int64) []byte {
	var list []byte
	for _, c := range s.calls {
		if c.choice == choice && !c.told {
			c.told = true
			list = append(append(list, ','), inputPiece(c.index, inputOf(c.arguments))...)
			c.arguments = nil
		}
	}
	if list == nil {
		return nil
	}
	list[0] = '['
	out := strconv.AppendInt([]byte(`,{"index":`), choice, 10)
	return rawjson.Put(out, `,"delta":{"tool_calls":`, append(list, ']'), `},"finish_reason":null}`)
}

// without returns an object without a member.
func without(object []byte, name string) []byte {
	var out []byte
	for key, value := range rawjson.Members(object) {
		if string(key) != name {
			out = rawjson.AppendMember(out, string(key), value)
		}
	}
	if out == nil {
		return []byte("{}")
	}
	out[0] = '{'
	return append(out, '}')
}

// isEmpty tells whether a delta says nothing.
func isEmpty(delta []byte) bool {
	for range rawjson.Members(delta) {
		return false
	}
	return true
}
