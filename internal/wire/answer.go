package wire

import "errors"

// ErrMalformed says that a provider sent what is not JSON where the form has
// JSON.
var ErrMalformed = errors.New("not a JSON object")

// ProviderError is an error that a provider reported inside an answer of
// status 200 or a stream.
type ProviderError struct {
	// Body is the JSON that reports it, as it came; nil when only a
	// finish_reason did.
	Body []byte
	// Reason is the finish_reason that means failure (`network_error`), or
	// empty.
	Reason string
}

// Error implements error; it is for logs.
func (e *ProviderError) Error() string {
	if e.Reason != "" {
		return "provider finished with " + e.Reason
	}
	const most = 500
	return "provider reported " + string(e.Body[:min(len(e.Body), most)])
}

// Frame is what one event of a stream means.
type Frame struct {
	// Done is the closing `[DONE]`.
	Done bool
	// Token is set when the frame holds text, reasoning, refusal or a tool
	// call; roles, comments and empty deltas are none.
	Token bool
	// Finish is set when the frame ends a choice, Finished when all choices
	// that were asked for or seen have ended, in this frame or before it.
	Finish, Finished bool
	// Usage is set when the frame shows usage at its top level, UsageOnly when
	// it shows nothing else (`choices: []`).
	Usage, UsageOnly bool
	// Err is the error that the frame reports.
	Err *ProviderError
}

// Judgement is what an answer that is not streamed amounts to, in any form.
type Judgement struct {
	// Content is set when a choice holds text, a refusal, tool calls or images;
	// Reasoning when one holds reasoning.
	Content, Reasoning bool
	// Limited, Filtered: a choice ended at the limit of tokens, or by the
	// content filter.
	Limited, Filtered bool
	// Ended is set when the answer says how it ended.
	Ended bool
	// Err is the error that the provider reported inside the answer, also by a
	// finish_reason that means failure where there is no content.
	Err *ProviderError
}

// Judged returns what an answer amounts to, whatever its form is.
func (o *Judgement) Judged() *Judgement { return o }
