package chat

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
)

// Request is a chat request of any form that passed its Check.
type Request interface {
	// Asking returns what the request asks for.
	Asking() *wire.Asked
	// Body returns the bytes for a line of the same form.
	Body(wire.Edits) []byte
	// Prompt is our own count of the prompt's tokens, with so many for an image.
	Prompt(c *wire.Counter, perImage int64) int64
	// Estimate is a rough count of the same.
	Estimate() int64
}

// meter reads the events of a stream in the line's form: what they mean and
// what they cost.
type meter interface {
	Read(wire.Event) (wire.Frame, error)
	// Usage is what the provider has reported. While false, that is not its last
	// word: parts that are 0 are not known, and the completion may be larger.
	Usage() (wire.Usage, bool)
	// Complete tells whether the answer has come to its end.
	Complete() bool
	Filtered() bool
	Limited() bool
	// Text is what was produced so far, as far as it is kept.
	Text() []byte
	Completion(*wire.Counter) int64
	Estimate() int64
}

// result is a whole answer in the line's form.
type result interface {
	Judged() *wire.Outcome
	Usage() (wire.Usage, bool)
	Text() []byte
	Completion(*wire.Counter) int64
}

// speech is how a request of a client's form meets a line of a form.
type speech interface {
	// request is the body for the line. Its error is a *fault.Error: the line's
	// form cannot express the request.
	request(wire.Translation) ([]byte, error)
	// stream makes the meter of the line's stream and the writer of the
	// client's.
	stream() (meter, wire.Writer)
	// read reads a whole answer of the line, render writes it for the client.
	read(raw []byte) (result, error)
	render(a result, raw []byte, u wire.Usage) ([3][]byte, error)
}

// speech returns how the request meets a line of a form.
func (x *exchange) speech(form wire.Form) speech {
	id := wire.Identity{Request: x.Request, Model: x.Model.ID, Created: x.Received.Unix()}
	switch r := x.Body.(type) {
	case *wire.ChatRequest:
		return onForm(r, form, id)
	case *wire.MessagesRequest:
		if form == wire.FormMessages {
			return messagesOnMessages{r, id}
		}
		return byChat(messagesOnChat{r, id}, form, id)
	case *wire.ResponsesRequest:
		if form == wire.FormResponses {
			return responsesOnResponses{r, id}
		}
		return byChat(responsesOnChat{r, id}, form, id)
	}
	panic(fmt.Sprintf("chat: no speech for a %T", x.Body)) // a mistake in this package
}

// onForm is how chat completions meet a line.
func onForm(r *wire.ChatRequest, form wire.Form, id wire.Identity) speech {
	switch form {
	case wire.FormMessages:
		return chatOnMessages{r, id}
	case wire.FormGemini:
		return chatOnGemini{r, id}
	}
	return chatOnChat{r, id}
}

// chatOnChat passes chat completions through.
type chatOnChat struct {
	*wire.ChatRequest
	id wire.Identity
}

func (s chatOnChat) request(t wire.Translation) ([]byte, error) { return s.Body(t.Edits), nil }

func (s chatOnChat) stream() (meter, wire.Writer) {
	m := wire.NewChatMeter(s.N)
	return m, wire.NewChatEditor(s.id, s.IncludeUsage, m)
}

func (s chatOnChat) read(raw []byte) (result, error) { return wire.ReadChatAnswer(raw) }

func (s chatOnChat) render(a result, _ []byte, _ wire.Usage) ([3][]byte, error) {
	return a.(*wire.ChatAnswer).Pieces(s.id.Model), nil
}

// messagesOnMessages passes native messages through.
type messagesOnMessages struct {
	*wire.MessagesRequest
	id wire.Identity
}

func (s messagesOnMessages) request(t wire.Translation) ([]byte, error) { return s.Body(t.Edits), nil }

func (s messagesOnMessages) stream() (meter, wire.Writer) {
	return wire.NewMessagesMeter(), wire.NewMessagesEditor(s.id)
}

func (s messagesOnMessages) read(raw []byte) (result, error) { return wire.ReadMessagesAnswer(raw) }

func (s messagesOnMessages) render(a result, _ []byte, _ wire.Usage) ([3][]byte, error) {
	return a.(*wire.MessagesAnswer).Pieces(s.id.Model), nil
}

// responsesOnResponses passes responses through.
type responsesOnResponses struct {
	*wire.ResponsesRequest
	id wire.Identity
}

func (s responsesOnResponses) request(t wire.Translation) ([]byte, error) {
	return s.Body(t.Edits), nil
}

func (s responsesOnResponses) stream() (meter, wire.Writer) {
	return wire.NewResponsesMeter(), wire.NewResponsesEditor(s.id, s.ResponsesRequest)
}

func (s responsesOnResponses) read(raw []byte) (result, error) { return wire.ReadResponsesAnswer(raw) }

func (s responsesOnResponses) render(a result, _ []byte, _ wire.Usage) ([3][]byte, error) {
	return a.(*wire.ResponsesAnswer).Pieces(s.id.Model), nil
}

// chatOnMessages puts chat completions to a line of messages.
type chatOnMessages struct {
	*wire.ChatRequest
	id wire.Identity
}

func (s chatOnMessages) request(t wire.Translation) ([]byte, error) { return s.AsMessages(t) }

func (s chatOnMessages) stream() (meter, wire.Writer) {
	return wire.NewMessagesMeter(), wire.NewChatFromMessages(s.id, s.IncludeUsage)
}

func (s chatOnMessages) read(raw []byte) (result, error) { return wire.ReadMessagesAnswer(raw) }

func (s chatOnMessages) render(_ result, raw []byte, u wire.Usage) ([3][]byte, error) {
	return onePiece(wire.ChatFromMessages(raw, s.id, u))
}

// chatOnGemini puts chat completions to a line of Gemini.
type chatOnGemini struct {
	*wire.ChatRequest
	id wire.Identity
}

func (s chatOnGemini) request(t wire.Translation) ([]byte, error) { return s.AsGemini(t) }

func (s chatOnGemini) stream() (meter, wire.Writer) {
	return wire.NewGeminiMeter(s.N), wire.NewChatFromGemini(s.id, s.IncludeUsage)
}

func (s chatOnGemini) read(raw []byte) (result, error) { return wire.ReadGeminiAnswer(raw) }

func (s chatOnGemini) render(_ result, raw []byte, u wire.Usage) ([3][]byte, error) {
	return onePiece(wire.ChatFromGemini(raw, s.id, u))
}

// messagesOnChat puts native messages to a line of chat completions.
type messagesOnChat struct {
	*wire.MessagesRequest
	id wire.Identity
}

func (s messagesOnChat) request(t wire.Translation) ([]byte, error) { return s.AsChat(t) }

func (s messagesOnChat) stream() (meter, wire.Writer) {
	return wire.NewChatMeter(1), wire.NewMessagesFromChat(s.id)
}

func (s messagesOnChat) read(raw []byte) (result, error) { return wire.ReadChatAnswer(raw) }

func (s messagesOnChat) render(_ result, raw []byte, u wire.Usage) ([3][]byte, error) {
	return onePiece(wire.MessagesFromChat(raw, s.id, u))
}

// responsesOnChat puts responses to a line of chat completions.
type responsesOnChat struct {
	*wire.ResponsesRequest
	id wire.Identity
}

func (s responsesOnChat) request(t wire.Translation) ([]byte, error) { return s.AsChat(t) }

func (s responsesOnChat) stream() (meter, wire.Writer) {
	return wire.NewChatMeter(1), wire.NewResponsesFromChat(s.id, s.ResponsesRequest)
}

func (s responsesOnChat) read(raw []byte) (result, error) { return wire.ReadChatAnswer(raw) }

func (s responsesOnChat) render(_ result, raw []byte, u wire.Usage) ([3][]byte, error) {
	return onePiece(wire.ResponsesFromChat(raw, s.id, u, s.ResponsesRequest))
}

// onePiece is an answer that was written anew.
func onePiece(raw []byte, err error) ([3][]byte, error) { return [3][]byte{raw}, err }

// chained puts a request to a line by way of chat completions.
type chained struct {
	speech // of the client's form on a line of chat completions
	form   wire.Form
	id     wire.Identity
	second speech // of chat completions on the line
}

// byChat is how a request meets a line of a form, given how it meets one of
// chat completions.
func byChat(first speech, form wire.Form, id wire.Identity) speech {
	if form == wire.FormChat {
		return first
	}
	// What answers need of the request between the two: it asks for one choice
	// and its usage.
	between := &wire.ChatRequest{Asked: wire.Asked{N: 1, IncludeUsage: true}}
	return chained{first, form, id, onForm(between, form, id)}
}

func (s chained) request(t wire.Translation) ([]byte, error) {
	raw, err := s.speech.request(t)
	if err != nil {
		return nil, err
	}
	out, err := s.fromChat(raw, t)
	if err != nil {
		return nil, s.refused(err)
	}
	return out, nil
}

// fromChat puts a body of chat completions into the line's form.
func (s chained) fromChat(raw []byte, t wire.Translation) ([]byte, error) {
	r, err := wire.OpenChat(raw)
	if err != nil {
		return nil, err
	}
	if err := r.Check(); err != nil {
		return nil, err
	}
	return onForm(r, s.form, s.id).request(t)
}

// refused is a refusal of the body between as one of the client's own request:
// a path in it is cut to the client's field.
func (s chained) refused(err error) error {
	var f *fault.Error
	if !errors.As(err, &f) || f.Param == "" {
		return err
	}
	field := f.Param
	if i := strings.IndexAny(field, ".["); i >= 0 {
		field = field[:i]
	}
	told := *f
	told.Param = s.fieldOf(field)
	before, rest, found := strings.Cut(f.Message, "`"+field)
	if _, after, closed := strings.Cut(rest, "`"); found && closed {
		told.Message = before + "`" + told.Param + "`" + after
	}
	return &told
}

// fieldOf is the client's name of a field of chat completions.
func (s chained) fieldOf(field string) string {
	_, isResponses := s.speech.(responsesOnChat)
	switch {
	case field == "messages" && isResponses:
		return "input"
	case field == "response_format" && isResponses:
		return "text"
	case field == "response_format":
		return "output_config"
	case field == "reasoning_effort" && isResponses:
		return "reasoning"
	case field == "reasoning_effort":
		return "thinking"
	}
	return field
}

func (s chained) stream() (meter, wire.Writer) {
	m, first := s.second.stream()
	_, second := s.speech.stream()
	return m, wire.NewChain(first, second)
}

func (s chained) read(raw []byte) (result, error) { return s.second.read(raw) }

func (s chained) render(a result, raw []byte, u wire.Usage) ([3][]byte, error) {
	pieces, err := s.second.render(a, raw, u)
	if err != nil {
		return pieces, err
	}
	return s.speech.render(nil, bytes.Join(pieces[:], nil), u)
}
