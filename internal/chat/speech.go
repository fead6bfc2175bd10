package chat

import (
	"bytes"
	"fmt"

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
	// stream makes the meter of the line's stream and the writer of the
	// client's.
	stream func() (meter, wire.Writer)
	// read reads a whole answer of the line, render writes it for the client.
	read   func(raw []byte) (result, error)
	render func(a result, raw []byte, u wire.Usage) ([3][]byte, error)
}

// speech returns how the request meets a line of a form.
func (x *exchange) speech(form wire.Form) speech {
	id := wire.Identity{Request: x.Request, Model: x.Model.ID, Created: x.Received.Unix()}
	switch r := x.Body.(type) {
	case *wire.ChatRequest:
		return chatSpeech(r, form, id)
	case *wire.MessagesRequest:
		if form != wire.FormMessages {
			return byChat(form, id, translator{
				request: r.AsChat,
				writer:  func() wire.Writer { return wire.NewMessagesFromChat(id) },
				whole: func(raw []byte, u wire.Usage) ([]byte, error) {
					return wire.MessagesFromChat(raw, id, u)
				},
			})
		}
		return speech{
			request: func(t wire.Translation) ([]byte, error) { return r.Body(t.Edits), nil },
			stream:  func() (meter, wire.Writer) { return wire.NewMessagesMeter(), wire.NewMessagesEditor(id) },
			read:    readMessages,
			render: func(a result, _ []byte, _ wire.Usage) ([3][]byte, error) {
				return a.(*wire.MessagesAnswer).Pieces(id.Model), nil
			},
		}
	case *wire.ResponsesRequest:
		if form != wire.FormResponses {
			return byChat(form, id, translator{
				request: r.AsChat,
				writer:  func() wire.Writer { return wire.NewResponsesFromChat(id, r) },
				whole: func(raw []byte, u wire.Usage) ([]byte, error) {
					return wire.ResponsesFromChat(raw, id, u, r)
				},
			})
		}
		return speech{
			request: func(t wire.Translation) ([]byte, error) { return r.Body(t.Edits), nil },
			stream:  func() (meter, wire.Writer) { return wire.NewResponsesMeter(), wire.NewResponsesEditor(id, r) },
			read:    func(raw []byte) (result, error) { return wire.ReadResponsesAnswer(raw) },
			render: func(a result, _ []byte, _ wire.Usage) ([3][]byte, error) {
				return a.(*wire.ResponsesAnswer).Pieces(id.Model), nil
			},
		}
	}
	panic(fmt.Sprintf("chat: no speech for a %T", x.Body)) // a mistake in this package
}

func readChat(raw []byte) (result, error)     { return wire.ReadChatAnswer(raw) }
func readMessages(raw []byte) (result, error) { return wire.ReadMessagesAnswer(raw) }
func readGemini(raw []byte) (result, error)   { return wire.ReadGeminiAnswer(raw) }

// chatSpeech is how chat completions meet a line of a form.
func chatSpeech(r *wire.ChatRequest, form wire.Form, id wire.Identity) speech {
	switch form {
	case wire.FormMessages:
		return speech{
			request: r.AsMessages,
			stream: func() (meter, wire.Writer) {
				return wire.NewMessagesMeter(), wire.NewChatFromMessages(id, r.IncludeUsage)
			},
			read: readMessages,
			render: func(_ result, raw []byte, u wire.Usage) ([3][]byte, error) {
				out, err := wire.ChatFromMessages(raw, id, u)
				return [3][]byte{out}, err
			},
		}
	case wire.FormGemini:
		return speech{
			request: r.AsGemini,
			stream: func() (meter, wire.Writer) {
				return wire.NewGeminiMeter(r.N), wire.NewChatFromGemini(id, r.IncludeUsage)
			},
			read: readGemini,
			render: func(_ result, raw []byte, u wire.Usage) ([3][]byte, error) {
				out, err := wire.ChatFromGemini(raw, id, u)
				return [3][]byte{out}, err
			},
		}
	}
	return speech{
		request: func(t wire.Translation) ([]byte, error) { return r.Body(t.Edits), nil },
		stream: func() (meter, wire.Writer) {
			m := wire.NewChatMeter(r.N)
			return m, wire.NewChatEditor(id, r.IncludeUsage, m)
		},
		read: readChat,
		render: func(a result, _ []byte, _ wire.Usage) ([3][]byte, error) {
			return a.(*wire.ChatAnswer).Pieces(id.Model), nil
		},
	}
}

// translator leads from a client's form to chat completions and back.
type translator struct {
	request func(wire.Translation) ([]byte, error)
	writer  func() wire.Writer
	whole   func(raw []byte, u wire.Usage) ([]byte, error)
}

// byChat is how a form meets a line of chat completions, or one of another form
// by way of chat completions.
func byChat(form wire.Form, id wire.Identity, to translator) speech {
	if form == wire.FormChat {
		return speech{
			request: to.request,
			stream:  func() (meter, wire.Writer) { return wire.NewChatMeter(1), to.writer() },
			read:    readChat,
			render: func(_ result, raw []byte, u wire.Usage) ([3][]byte, error) {
				out, err := to.whole(raw, u)
				return [3][]byte{out}, err
			},
		}
	}
	// The request between the two is made with the first use of the line; its
	// answers need nothing of it but that it asks for one choice and its usage.
	on := chatSpeech(&wire.ChatRequest{Asked: wire.Asked{N: 1, IncludeUsage: true}}, form, id)
	return speech{
		request: func(t wire.Translation) ([]byte, error) {
			raw, err := to.request(t)
			if err != nil {
				return nil, err
			}
			r, err := wire.OpenChat(raw)
			if err == nil {
				err = r.Check()
			}
			if err != nil {
				return nil, err
			}
			return chatSpeech(r, form, id).request(t)
		},
		stream: func() (meter, wire.Writer) {
			m, first := on.stream()
			return m, wire.NewChain(first, to.writer())
		},
		read: on.read,
		render: func(a result, raw []byte, u wire.Usage) ([3][]byte, error) {
			pieces, err := on.render(a, raw, u)
			if err != nil {
				return pieces, err
			}
			out, err := to.whole(bytes.Join(pieces[:], nil), u)
			return [3][]byte{out}, err
		},
	}
}
