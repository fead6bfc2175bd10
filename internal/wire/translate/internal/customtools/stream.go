package customtools

import (
	"bytes"
	"fmt"
	"strconv"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// Bounds of the memory for a stream. Anything above is sent unchanged.
const (
	maxCalls = 1024
	maxInput = 8 << 20
)

// stream changes the calls of replacing functions in the events of another writer to calls of
// custom tools. It is not safe for concurrent use.
type stream struct {
	first     wire.Writer
	names     map[string]bool
	calls     []*customInput
	bytesKept int // of arguments

	buffer []byte
}

// customInput is a call with an incomplete input.
type customInput struct {
	choice, index int64
	arguments     []byte // the contents of a JSON string
	sent          bool   // the input was sent
}

func (s *stream) Append(dst []byte, e sse.Event, f wire.Frame) []byte {
	s.buffer = s.first.Append(s.buffer[:0], e, f)
	return s.pass(dst)
}

func (s *stream) End(dst []byte, u wire.Usage) []byte {
	s.buffer = s.first.End(s.buffer[:0], u)
	return s.pass(dst)
}

func (s *stream) Fail(dst []byte, err *fault.Error) []byte { return s.first.Fail(dst, err) }

func (s *stream) Err() error { return s.first.Err() }

// pass appends the changed buffer.
func (s *stream) pass(dst []byte) []byte {
	if len(s.calls) == 0 && !bytes.Contains(s.buffer, []byte(`"tool_calls"`)) {
		return append(dst, s.buffer...)
	}
	events := sse.NewReader(bytes.NewReader(s.buffer), len(s.buffer)+1)
	for {
		e, err := events.Next()
		if err != nil {
			return dst // the end; the events were checked before they were written
		}
		dst = s.event(dst, e)
	}
}

// event appends an event. If the event ends a choice, the inputs of the choice's custom tools come before it.
func (s *stream) event(dst []byte, e sse.Event) []byte {
	choices := rawjson.Field(e.Data, "choices")
	if choices == nil {
		return append(dst, e.Raw...)
	}
	var inputs []byte
	keep := false
	now, changed := form.EditElements(choices, func(choice []byte) []byte {
		number, _ := rawjson.Count(rawjson.Field(choice, "index"))
		before := choice
		choice = form.EditMember(choice, "delta", func(delta []byte) []byte { return s.delta(number, delta) })
		ended := rawjson.IsText(rawjson.Field(choice, "finish_reason"))
		if ended {
			inputs = append(inputs, s.inputsOf(number)...)
		}
		keep = keep || ended || bytes.Equal(choice, before) || !isEmpty(rawjson.Field(choice, "delta"))
		return choice
	})
	if inputs != nil {
		inputs[0] = '['
		dst = appendEvent(dst, form.WithoutMember(e.Data, "usage"), append(inputs, ']'))
	}
	switch {
	case !changed:
		return append(dst, e.Raw...)
	case !keep && rawjson.Field(e.Data, "usage") == nil:
		return dst // the event had only arguments
	}
	return appendEvent(dst, e.Data, now)
}

// appendEvent appends an event with other choices.
func appendEvent(dst, data, choices []byte) []byte {
	return sse.AppendLines(dst, "", form.EditMember(data, "choices", func([]byte) []byte { return choices }))
}

// delta returns the delta of a choice without arguments of custom tools.
func (s *stream) delta(choice int64, delta []byte) []byte {
	calls := rawjson.Field(delta, "tool_calls")
	if calls == nil {
		return delta
	}
	var list []byte
	same := true
	for position, call := range rawjson.Elements(calls) {
		out := s.call(choice, int64(position), call)
		same = same && bytes.Equal(out, call)
		if out != nil {
			list = append(append(list, ','), out...)
		}
	}
	switch {
	case same:
		return delta
	case list == nil:
		return form.WithoutMember(delta, "tool_calls")
	}
	list[0] = '['
	return form.EditMember(delta, "tool_calls", func([]byte) []byte { return append(list, ']') })
}

// call returns the bytes to send now for a call or a piece of a call, or nil.
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
	text := textOf(rawjson.Field(function, "arguments"))
	s.bytesKept += len(text)
	known.arguments = append(known.arguments, text...)
	text = nil
	if known.sent || s.bytesKept > maxInput {
		text, known.arguments, known.sent = known.arguments, nil, true
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

// find returns the custom tool's call with an index, or nil.
func (s *stream) find(choice, index int64) *customInput {
	for _, c := range s.calls {
		if c.choice == choice && c.index == index {
			return c
		}
	}
	return nil
}

// inputPiece returns a piece of a call's input. text is the contents of a JSON string.
func inputPiece(index int64, text []byte) []byte {
	return rawjson.Put(strconv.AppendInt([]byte(`{"index":`), index, 10), `,"custom":{"input":"`, text, `"}}`)
}

// inputsOf returns a comma and a choice with the complete inputs of its calls, or nil.
func (s *stream) inputsOf(choice int64) []byte {
	var list []byte
	for _, c := range s.calls {
		if c.choice == choice && !c.sent {
			c.sent = true
			list = append(append(list, ','), inputPiece(c.index, conversation.UnwrapInput(c.arguments))...)
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

func isEmpty(delta []byte) bool {
	for range rawjson.Members(delta) {
		return false
	}
	return true
}
