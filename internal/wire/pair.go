package wire

import (
	"tollgate/internal/fault"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// Request is a request of any form that passed its Check.
type Request interface {
	// Asking returns what the request asks for.
	Asking() *Asked
	// Body returns the bytes for a line of the same form.
	Body(e Edits) rawjson.Pieces
	// Direct is how the request meets a line of the same form.
	Direct(id Identity) Pair
	// Prompt is our own count of the prompt's tokens, with so many for an image.
	Prompt(c *Counter, perImage int64) int64
	// Estimate is a rough count of the same.
	Estimate() int64
	// HasTools tells whether it brings tools, whosever they are.
	HasTools() bool
}

// Pair is how a request of a client's form meets a line of a form.
type Pair interface {
	// Body is the request for the line. Its error is a *fault.Error: the line's
	// form cannot express the request.
	Body(t Translation) (rawjson.Pieces, error)
	// Events makes the meter of the line's stream and the writer of the client's.
	Events() (Meter, Writer)
	// Read reads a whole answer of the line; ErrMalformed when it is no JSON
	// object. It keeps raw.
	Read(raw []byte) (Answer, error)
	// Render writes a whole answer that Read has read for the client, with the
	// usage that was charged, in pieces to be written one after the other, so that
	// a long answer is not copied.
	Render(a Answer, raw []byte, u Usage) ([3][]byte, error)
}

// Meter reads the events of a stream in the line's form as they pass: what they
// mean and what they cost. Not for concurrent use.
type Meter interface {
	// Read reads the next event. It returns ErrMalformed for data that is no JSON
	// object; events after the first token that hold nothing to read may be
	// checked by their brackets alone.
	Read(e sse.Event) (Frame, error)
	// Usage is what the provider has reported. While false, that is not its last
	// word: parts that are 0 are not known, and the completion may be larger.
	Usage() (Usage, bool)
	// Complete tells whether the answer has come to its end.
	Complete() bool
	// Filtered tells whether a content filter ended it, or a choice of it.
	Filtered() bool
	// Limited tells whether the limit of tokens ended it, or a choice of it.
	Limited() bool
	// Text is what was produced so far (text, reasoning, tool calls), as far as
	// it is kept. It is valid until the next Read.
	Text() []byte
	// Completion is our own count of the tokens produced so far.
	Completion(c *Counter) int64
	// Estimate is a rough count of the same, without looking into the text.
	Estimate() int64
}

// Answer is an answer in the line's form that was not streamed.
type Answer interface {
	// Judged returns what the answer amounts to.
	Judged() *Judgement
	// Usage is what the provider reported; false when it did not count both the
	// prompt and the completion.
	Usage() (Usage, bool)
	// Text is what was produced (text, reasoning, tool calls), as far as it is
	// kept.
	Text() []byte
	// Completion is our own count of the tokens produced.
	Completion(c *Counter) int64
}

// Writer writes a stream in a client's form from the events of a line's.
type Writer interface {
	// Append appends what the client gets of an event that the line's meter
	// read as f. The event's slices are only valid during the call.
	Append(dst []byte, e sse.Event, f Frame) []byte
	// End appends what completes the stream, which was settled for u.
	End(dst []byte, u Usage) []byte
	// Fail appends what tells that the stream broke off. Nothing follows.
	Fail(dst []byte, err *fault.Error) []byte
}

// Identity is what the client sees as the source of its answer.
type Identity struct {
	// Request is our id of the request (`req_…`). Ids that a translator has to
	// make derive from it, so that the same answer always looks the same.
	Request string
	// Model is the id that the client sent.
	Model string
	// Created is when the answer began, in Unix seconds.
	Created int64
	// Origin tells the account at the provider that answers from others: what it
	// has encrypted goes back to no other. It holds no secret.
	Origin string
}

const (
	// SealMark begins what a client carries of a model's encrypted reasoning that
	// is not of its own form: no line gets it but as what it holds.
	SealMark = "tg1."
	// LeastResponsesLimit is the smallest limit on output tokens that the
	// responses form knows.
	LeastResponsesLimit = 16
)

// Translation is what a request needs to become one of another form.
type Translation struct {
	Edits
	// MaxOutput is the model's max_output_tokens: it is sent where the form
	// demands a limit and the client named none.
	MaxOutput int64
	// Reasoning tells that the model thinks.
	Reasoning bool
	// NoEncrypted, NoSummary and NoSealed tell what the model has refused of what
	// goes to a line of responses beyond the client's words: to return what it
	// thought encrypted, to sum it up, or to read what is encrypted in the
	// conversation.
	NoEncrypted, NoSummary, NoSealed bool
	// OpenAI tells that the line's host is OpenAI's or Azure's, which know what
	// compatible ones do not.
	OpenAI bool
	// Images fetches the images at addresses that differ, for a line that takes
	// images inline alone, and returns what came of each, in their order. Nil:
	// nobody fetches.
	Images func(addresses []string) []FetchedImage
}

// FetchedImage is the image at an address: its media type and its bytes, or why
// there is none, a *fault.Error.
type FetchedImage struct {
	MIME string
	Data []byte
	Err  error
}
