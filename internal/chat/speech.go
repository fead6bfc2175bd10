package chat

import (
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
	// Usage is the provider's last word on usage. While false, its parts that
	// are not 0 are known already.
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

// writer writes a stream in the client's form.
type writer interface {
	// Append appends what the client gets of an event of the line's form that
	// the meter read as f.
	Append(dst []byte, e wire.Event, f wire.Frame) []byte
	// End appends what completes a stream that was settled for u.
	End(dst []byte, u wire.Usage) []byte
	// Fail appends what tells that the stream broke off.
	Fail(dst []byte, err *fault.Error) []byte
}

// result is a whole answer in the line's form.
type result interface {
	Judged() *wire.Outcome
	Usage() (wire.Usage, bool)
	Text() []byte
	Completion(*wire.Counter) int64
}

// speech is how a client's form meets a line's.
type speech struct {
	// request is the body for the line. Its error is a *fault.Error: the line's
	// form cannot express the request.
	request func(wire.Translation) ([]byte, error)
	stream  func() (meter, writer)
	// read reads a whole answer of the line; render writes it for the client.
	read   func(raw []byte) (result, error)
	render func(a result, u wire.Usage) ([3][]byte, error)
}

// speech returns how the request meets a line of a form. line.Try asks only
// lines whose form is one of these.
func (x *exchange) speech(form wire.Form) speech {
	id := wire.Identity{Request: x.Request, Model: x.Model.ID, Created: x.Received.Unix()}
	switch r := x.Body.(type) {
	case *wire.ChatRequest:
		return chatOnChat(r, id)
	case *wire.MessagesRequest:
		return messagesOnMessages(r, id)
	}
	panic("chat: no speech for the form " + string(form)) // a mistake in this package
}

// chatOnChat passes chat completions through.
func chatOnChat(r *wire.ChatRequest, id wire.Identity) speech {
	return speech{
		request: func(t wire.Translation) ([]byte, error) { return r.Body(t.Edits), nil },
		stream: func() (meter, writer) {
			m := wire.NewChatMeter(r.N)
			return m, wire.NewChatEditor(id, r.IncludeUsage, m)
		},
		read:   func(raw []byte) (result, error) { return wire.ReadChatAnswer(raw) },
		render: func(a result, _ wire.Usage) ([3][]byte, error) { return a.(*wire.ChatAnswer).Pieces(id.Model), nil },
	}
}

// messagesOnMessages passes native messages through.
func messagesOnMessages(r *wire.MessagesRequest, id wire.Identity) speech {
	return speech{
		request: func(t wire.Translation) ([]byte, error) { return r.Body(t.Edits), nil },
		stream:  func() (meter, writer) { return wire.NewMessagesMeter(), wire.NewMessagesEditor(id) },
		read:    func(raw []byte) (result, error) { return wire.ReadMessagesAnswer(raw) },
		render:  func(a result, _ wire.Usage) ([3][]byte, error) { return a.(*wire.MessagesAnswer).Pieces(id.Model), nil },
	}
}
