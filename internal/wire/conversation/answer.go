package conversation

import (
	"bytes"
	"errors"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/sse"
)

// Output is a part of an answer. All texts are the contents of JSON strings. A reader creates one for each
// part; the pointer identifies the part until its end.
type Output struct {
	Kind   PartKind
	Choice int
	// Message is the message that a text or reasoning belongs to. Texts of different messages are
	// paragraphs; texts of the same message are one text.
	Message int
	// Number is the number of a call among the choice's calls, and of an image among its images.
	Number int
	// ID is the provider's id of a call, or nil. Name is the client's name of the tool.
	ID, Name, Namespace []byte
	Custom              bool // the call of a custom tool
	// Complete is set at the end of a call whose arguments are whole.
	Complete bool
	// Signature is set at the start of a call or an image, and at the end of reasoning.
	Signature Signature
	// Media is the type, Data the base64 of an image.
	Media, Data []byte

	// Text and Logprobs are the whole text in a whole answer.
	Text, Logprobs []byte

	wrapped bool // the arguments are those of the function that replaces a custom tool
	// begun is set after the first arguments of a call. empty is set if they were only a placeholder.
	begun, empty bool
}

// EventKind is the kind of an event.
type EventKind int

// The kinds of events, in the order in which they come. Parts of different kinds may interleave.
const (
	Begin  EventKind = iota // the provider has begun to answer
	Settle                  // the provider has finished: bytes from here on wait for the settlement
	Start                   // a part starts, possibly with a text
	Delta                   // a part continues
	End                     // a part ends
	Finish                  // a choice ends
	Idle                    // the line has sent an event without output
)

// Event is an event of an answer.
type Event struct {
	Kind   EventKind
	Choice int
	Output *Output // of Start, Delta and End
	// Text is the contents of a JSON string; Logprobs are those of a text, a JSON array or nil.
	Text, Logprobs []byte
	Finish         form.FinishKind
	// Stop is the stop sequence at which the gateway ended the choice, a JSON string, or nil.
	Stop []byte
}

// Writer writes an answer in the client's form. It is not safe for concurrent use. Its output is well
// formed whatever the events.
type Writer interface {
	// Write appends the client's bytes for an event of a stream.
	Write(dst []byte, e Event) []byte
	// End appends the end of a stream settled for u.
	End(dst []byte, u wire.Usage) []byte
	// Fail appends the error for a broken stream. Nothing follows it.
	Fail(dst []byte, err *fault.Error) []byte
	// Whole returns a whole answer with the usage u.
	Whole(a *Answer, u wire.Usage) []byte
}

// ErrTooLarge reports an answer larger than any model's.
var ErrTooLarge = errors.New("answer has too many calls, or too many arguments without a call")

// Reader reads an answer in the line's form. It is not safe for concurrent use. Events come in an
// order that can be written, with bounded memory, whatever the provider sends. A reader calls
// Emitter.Fail if it cannot read the answer without a guess.
type Reader interface {
	// Read reads a JSON object: an event of a stream. name is the event's name.
	Read(name string, object []byte)
	// Whole reads an answer that was not streamed.
	Whole(object []byte)
	// End ends all parts of a complete answer.
	End()
}

// Answer is a whole answer.
type Answer struct {
	Choices []OutputChoice
}

// OutputChoice is one choice of a whole answer.
type OutputChoice struct {
	Outputs []*Output
	Finish  form.FinishKind
	Stop    []byte // as in Event
}

// Calls reports whether the choice calls a tool.
func (c *OutputChoice) Calls() bool {
	for _, o := range c.Outputs {
		if o.Kind == ToolCall {
			return true
		}
	}
	return false
}

// sink receives events.
type sink interface {
	Write(dst []byte, e Event) []byte
}

// Emitter passes the events of a reader to a writer. It restores the client's names of tools, and the calls
// of custom tools replaced by functions.
type Emitter struct {
	ID   wire.Identity
	Line wire.Form

	request *Request
	to      sink
	dst     []byte
	err     error // the first of Fail
	held    int   // bytes of arguments not passed on
}

// maxHeld bounds the arguments of custom tools not passed on.
const maxHeld = 8 << 20

// Emit passes an event on.
func (m *Emitter) Emit(e Event) { m.dst = m.to.Write(m.dst, e) }

// Fail ends the answer with an error.
func (m *Emitter) Fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

// Err returns the error that ended the answer, or nil.
func (m *Emitter) Err() error { return m.err }

// Start starts a part with a text, which may be empty.
func (m *Emitter) Start(o *Output, text []byte) {
	if o.Kind == ToolCall {
		m.restoreName(o)
		if o.wrapped {
			m.Emit(Event{Kind: Start, Choice: o.Choice, Output: o})
			m.Text(o, text, nil)
			return
		}
	}
	m.Emit(Event{Kind: Start, Choice: o.Choice, Output: o, Text: text})
}

// restoreName replaces the line's name of a tool by the client's.
func (m *Emitter) restoreName(o *Output) {
	if m.request == nil || len(m.request.byLine) == 0 {
		return
	}
	name := o.Name
	tool := m.request.byLine[string(unescaped(name))]
	if tool == nil {
		return
	}
	o.wrapped = tool.Custom && !o.Custom
	o.Custom = o.Custom || tool.Custom
	if tool.Line != tool.Name {
		o.Name = contentsOf(tool.Name)
	}
	if tool.Namespace != "" {
		o.Namespace = contentsOf(tool.Namespace)
	}
}

// emptyArguments are the arguments of a call without any.
const emptyArguments = "{}"

// Some providers send one of placeholders before the arguments of a call.
var placeholders = [...]string{emptyArguments, "null"}

// withoutPlaceholder returns the next piece of a call's arguments, without a placeholder at the start. If
// nothing follows, Emitter.End sends emptyArguments.
func (o *Output) withoutPlaceholder(text []byte) []byte {
	if o.Custom && !o.wrapped || len(text) == 0 {
		return text
	}
	first := !o.begun
	o.begun = true
	for _, word := range placeholders {
		switch rest, found := bytes.CutPrefix(trim(text), []byte(word)); {
		case first && found && len(trim(rest)) == 0:
			o.empty = true
			return nil
		case first && found && trim(rest)[0] == '{':
			return rest
		}
	}
	switch {
	case o.empty && trim(text) == nil:
		return nil
	case o.empty && trim(text)[0] != '{':
		text = append([]byte(emptyArguments), text...)
	}
	o.empty = false
	return text
}

// Text continues a part.
func (m *Emitter) Text(o *Output, text, logprobs []byte) {
	if o.Kind == ToolCall {
		text = o.withoutPlaceholder(text)
	}
	switch {
	case len(text) == 0 && len(logprobs) == 0:
	case o.wrapped:
		o.Text = append(o.Text, text...)
		if m.held += len(text); m.held > maxHeld {
			m.Emit(Event{Kind: Delta, Choice: o.Choice, Output: o, Text: o.Text})
			o.wrapped, o.Text = false, nil
		}
	default:
		m.Emit(Event{Kind: Delta, Choice: o.Choice, Output: o, Text: text, Logprobs: logprobs})
	}
}

// End ends a part.
func (m *Emitter) End(o *Output) {
	if o.empty {
		o.empty = false
		m.Text(o, []byte(emptyArguments), nil)
	}
	if o.wrapped {
		text := UnwrapInput(o.Text)
		m.held -= len(o.Text)
		o.wrapped, o.Text = false, nil
		m.Text(o, text, nil)
	}
	m.Emit(Event{Kind: End, Choice: o.Choice, Output: o})
}

// Finish ends a choice.
func (m *Emitter) Finish(choice int, kind form.FinishKind) {
	m.Emit(Event{Kind: Finish, Choice: choice, Finish: kind})
}

// NewReader creates the reader of a form.
type NewReader func(*Emitter) Reader

// stream implements wire.Writer.
type stream struct {
	Emitter
	reader  Reader
	writer  Writer
	settled bool
}

// NewStream returns the writer of a stream from a line of a form to a client.
func NewStream(r *Request, id wire.Identity, line wire.Form, reader NewReader, w Writer) wire.Writer {
	s := &stream{Emitter: Emitter{ID: id, Line: line, request: r, to: r.withLocalStops(w)}, writer: w}
	s.reader = reader(&s.Emitter)
	return s
}

// Append implements wire.Writer.
func (s *stream) Append(dst []byte, e sse.Event, f wire.Frame) []byte {
	s.dst = dst
	if f.Finished && !s.settled {
		s.settled = true
		s.Emit(Event{Kind: Settle})
	}
	switch data := trim(e.Data); {
	case len(data) == 0:
		s.Emit(Event{Kind: Idle})
	case f.Err != nil:
	default:
		if data = object(data); data != nil {
			s.reader.Read(e.Name, data)
		}
	}
	dst, s.dst = s.dst, nil
	return dst
}

func (s *stream) End(dst []byte, u wire.Usage) []byte {
	s.dst = dst
	s.reader.End()
	dst, s.dst = s.dst, nil
	return s.writer.End(dst, u)
}

func (s *stream) Fail(dst []byte, err *fault.Error) []byte { return s.writer.Fail(dst, err) }

// ReadAnswer reads a whole answer. It returns ErrMalformed if raw is not a JSON object, and the reader's
// error if it cannot read the answer.
func ReadAnswer(r *Request, id wire.Identity, line wire.Form, reader NewReader, raw []byte) (*Answer, error) {
	data := wholeObject(raw)
	if data == nil {
		return nil, wire.ErrMalformed
	}
	a := &Answer{}
	m := &Emitter{ID: id, Line: line, request: r, to: r.withLocalStops(a)}
	from := reader(m)
	from.Whole(data)
	from.End()
	return a, m.err
}

// maxChoices bounds the choices of an answer.
const maxChoices = form.MaxChoices

// Write adds an event to the answer. It returns dst unchanged.
func (a *Answer) Write(dst []byte, e Event) []byte {
	if e.Choice >= maxChoices {
		return dst
	}
	if e.Kind == Start || e.Kind == Finish {
		for len(a.Choices) <= e.Choice {
			a.Choices = append(a.Choices, OutputChoice{})
		}
	}
	switch e.Kind {
	case Start:
		c := &a.Choices[e.Choice]
		c.Outputs = append(c.Outputs, e.Output)
		e.Output.Text, e.Output.Logprobs = append([]byte(nil), e.Text...), nil
	case Delta:
		e.Output.Text = append(e.Output.Text, e.Text...)
		e.Output.Logprobs = appendLogprobLists(e.Output.Logprobs, e.Logprobs)
	case Finish:
		a.Choices[e.Choice].Finish, a.Choices[e.Choice].Stop = e.Finish, e.Stop
	}
	return dst
}

// Encode returns the body of a request for a line of a form. It returns a *fault.Error if the form
// cannot express the request.
type Encode func(r *Request, t wire.Translation, id wire.Identity) ([]byte, error)
