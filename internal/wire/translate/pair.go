package translate

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/gemini"
	"tollgate/internal/wire/interactions"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/responses"
)

// client is a request that can be translated.
type client interface {
	wire.Request
	// Decode returns the request as a conversation.
	Decode() (*conversation.Request, error)
	// Writer returns the writer of the answer from a line of another form.
	Writer(id wire.Identity, line wire.Form) conversation.Writer
}

// line holds the functions of a line's form.
type line struct {
	encode conversation.Encode
	reader conversation.NewReader
	meter  func(n int64) wire.Meter
	answer func(raw []byte) (wire.Answer, error)
}

// lineOf returns the line of a form. A new form is one case.
func lineOf(form wire.Form) line {
	switch form {
	case wire.FormMessages:
		return line{messages.Encode, messages.NewReader, func(int64) wire.Meter { return messages.NewMeter() }, messages.ReadAnswer}
	case wire.FormResponses:
		return line{responses.Encode, responses.NewReader, func(int64) wire.Meter { return responses.NewMeter() }, responses.ReadAnswer}
	case wire.FormGemini:
		return line{gemini.Encode, gemini.NewReader, gemini.NewMeter, gemini.ReadAnswer}
	case wire.FormInteractions:
		return line{interactions.Encode, interactions.NewReader, func(int64) wire.Meter { return interactions.NewMeter() },
			interactions.ReadAnswer}
	default:
		return line{completions.Encode, completions.NewReader, completions.NewMeter, completions.ReadAnswer}
	}
}

// pair translates a request of a client's form for a line of another form.
type pair struct {
	client
	line
	form wire.Form
	id   wire.Identity

	decoded *conversation.Request
	err     error // of decoding
}

// newPair returns the pair for a request and a line of another form.
func newPair(r client, form wire.Form, id wire.Identity) wire.Pair {
	id.Origin = originOf(id.Origin, form)
	return &pair{client: r, line: lineOf(form), form: form, id: id}
}

// originOf returns the origin that seals the state of a line's account. Google has two forms, and does not
// document that signatures of one form are valid in the other.
func originOf(account string, form wire.Form) string {
	if form == wire.FormInteractions {
		return account + "\n" + string(form)
	}
	return account
}

// conversation returns the client's request, decoded once.
func (p *pair) conversation() (*conversation.Request, error) {
	if p.decoded == nil && p.err == nil {
		if p.decoded, p.err = p.Decode(); p.err == nil {
			p.decoded.NameTools()
			p.decoded.CorrectMedia()
		}
	}
	return p.decoded, p.err
}

// Body implements wire.Pair.
func (p *pair) Body(t wire.Translation) (rawjson.Pieces, error) {
	c, err := p.conversation()
	if err != nil {
		return nil, err
	}
	out, err := p.encode(c, t, p.id)
	if err != nil {
		return nil, err
	}
	return rawjson.Pieces{out}, nil
}

// Events implements wire.Pair.
func (p *pair) Events() (wire.Meter, wire.Writer) {
	c, _ := p.conversation() // Body has returned the error
	return p.meter(max(p.Params().N, 1)), conversation.NewStream(c, p.id, p.form, p.reader, p.Writer(p.id, p.form))
}

// Read implements wire.Pair.
func (p *pair) Read(raw []byte) (wire.Answer, error) { return p.answer(raw) }

// Render implements wire.Pair.
func (p *pair) Render(_ wire.Answer, raw []byte, u wire.Usage) ([3][]byte, error) {
	c, _ := p.conversation()
	a, err := conversation.ReadAnswer(c, p.id, p.form, p.reader, raw)
	if err != nil {
		return [3][]byte{}, err
	}
	return [3][]byte{p.Writer(p.id, p.form).Whole(a, u)}, nil
}
