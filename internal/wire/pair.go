package wire

import (
	"tollgate/internal/fault"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// Request is a checked request of any form.
type Request interface {
	// Params returns the parameters of the request.
	Params() *Parameters
	// Body returns the body for a line of the same form.
	Body(e Edits) rawjson.Pieces
	// Direct returns the pair for a line of the same form.
	Direct(id Identity) Pair
	// Prompt returns the gateway's count of the prompt's tokens, with perImage tokens for each
	// image.
	Prompt(c *Counter, perImage int64) int64
	// Estimate returns a rough token count of the prompt.
	Estimate() int64
	// HasTools reports whether the request has tools of the client or hosted tools.
	HasTools() bool
}

// Pair converts a request of the client's form for a line of another or the same form, and converts
// the answer back.
type Pair interface {
	// Body returns the request for the line. It returns a *fault.Error if the line's form cannot
	// express the request.
	Body(t Translation) (rawjson.Pieces, error)
	// Events returns the meter for the line's stream and the writer for the client's.
	Events() (Meter, Writer)
	// Read reads an answer of the line that was not streamed, and retains raw. It returns
	// ErrMalformed if raw is not a JSON object.
	Read(raw []byte) (Answer, error)
	// Render returns the client's answer for an answer returned by Read, with the charged usage. It
	// returns pieces to be written one after the other, so that a long answer is not copied.
	Render(a Answer, raw []byte, u Usage) ([3][]byte, error)
}

// Meter reads the events of a line's stream and counts its tokens. It is not safe for concurrent
// use.
type Meter interface {
	// Read reads the next event. It returns ErrMalformed for data other than a JSON object. After
	// the first token, it may check only the brackets of an event with nothing to read.
	Read(e sse.Event) (Frame, error)
	// Usage returns the provider's report. While Usage returns false, the report is not final: counts of 0
	// are unknown, and the completion may be larger.
	Usage() (Usage, bool)
	// Complete reports whether the answer has ended.
	Complete() bool
	// Filtered reports whether a content filter ended the answer or a choice of it.
	Filtered() bool
	// Limited reports whether the token limit ended the answer or a choice of it.
	Limited() bool
	// Text returns the retained output so far (text, reasoning, tool calls). It is valid until the
	// next Read.
	Text() []byte
	// Completion returns the gateway's count of the output tokens so far.
	Completion(c *Counter) int64
	// SoundTokens returns the gateway's count of the tokens of sound, which Completion does not count.
	SoundTokens() int64
	// Estimate returns a rough count of the output tokens so far, without reading the text.
	Estimate() int64
}

// Answer is an answer in the line's form that was not streamed.
type Answer interface {
	// Summary returns a summary of the answer.
	Summary() *AnswerSummary
	// Usage returns the provider's report. It returns false unless the provider counted both the
	// prompt and the completion.
	Usage() (Usage, bool)
	// Text returns the retained output (text, reasoning, tool calls).
	Text() []byte
	// Completion returns the gateway's count of the output tokens.
	Completion(c *Counter) int64
	// SoundTokens returns the gateway's count of the tokens of sound, which Completion does not count.
	SoundTokens() int64
}

// Writer writes a stream in the client's form from the events of a line's stream.
type Writer interface {
	// Append appends the client's part of an event read by the line's meter as f. It must not
	// retain the event's slices.
	Append(dst []byte, e sse.Event, f Frame) []byte
	// End appends the end of a stream settled for u.
	End(dst []byte, u Usage) []byte
	// Fail appends the error for a broken stream. Nothing follows it.
	Fail(dst []byte, err *fault.Error) []byte
	// Err returns the reason why the line's stream cannot be written in the client's form, or nil.
	Err() error
}

// Identity identifies an answer to the client.
type Identity struct {
	// Request is the gateway's id of the request (`req_…`). Translators derive their ids from it,
	// so that the same answer always has the same ids.
	Request string
	// Model is the model id sent by the client.
	Model string
	// Created is the time of the answer's start in Unix seconds.
	Created int64
	// Prompt is the gateway's rough count of the prompt's tokens. The messages form sends it at the start of
	// a stream, before the provider reports its own count.
	Prompt int64
	// Origin identifies the provider's account, so that data encrypted by the account is sent to no other
	// account. It holds no secret.
	Origin string
	// Seals is set if the model has lines of several accounts. Then the account's state (see SealOf) is
	// sealed even if the line has the client's form.
	Seals bool
}

// LeastResponsesLimit is the smallest limit on output tokens in the responses form.
const LeastResponsesLimit = 16

// Translation holds the data to convert a request into another form.
type Translation struct {
	Edits
	// MaxOutput is the model's max_output_tokens. It is sent if the form requires a limit and the
	// client sent none.
	MaxOutput int64
	// Reasoning is set for a reasoning model.
	Reasoning bool
	// NoEncrypted and NoSummary are set after the model rejected an addition of the gateway to a
	// responses request: to return its reasoning encrypted, or to summarize it.
	NoEncrypted, NoSummary bool
	// NoStops is set after the model of a chat line rejected stop sequences.
	NoStops bool
	// NoReasoning is set after a chat line rejected the field for reasoning in the conversation.
	NoReasoning bool
	// NeedsReasoning is set if the line's host rejects a tool call of the current turn without the reasoning
	// before the call.
	NeedsReasoning bool
	// OpenAI is set if the line's host is OpenAI's or Azure's. Compatible hosts lack some features, such as
	// custom tools.
	OpenAI bool
	// Images, if not nil, fetches the images at distinct addresses for a line without image
	// addresses. It returns a result for each, in order.
	Images func(addresses []string) []FetchedImage
}

// FetchedImage is an image fetched from an address. Err is a *fault.Error.
type FetchedImage struct {
	MIME string
	Data []byte
	Err  error
}
