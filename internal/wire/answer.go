package wire

import "errors"

// ErrMalformed reports that a provider sent something other than a JSON object.
var ErrMalformed = errors.New("not a JSON object")

// ProviderError is an error reported by a provider inside an answer of status 200 or a stream.
type ProviderError struct {
	// Body is the JSON of the error. It is nil if only a finish_reason reported it.
	Body []byte
	// Reason is the finish_reason of a failure (`network_error`), or empty.
	Reason string
}

// Error implements error. The text is for logs.
func (e *ProviderError) Error() string {
	if e.Reason != "" {
		return "provider finished with " + e.Reason
	}
	const limit = 500
	return "provider reported " + string(e.Body[:min(len(e.Body), limit)])
}

// Frame describes one event of a stream.
type Frame struct {
	// Done is set for the closing `[DONE]`.
	Done bool
	// Token is set if the frame holds text, reasoning, a refusal or a tool call. Roles, comments
	// and empty deltas do not count.
	Token bool
	// Finish is set if the frame ends a choice. Finished is set if all choices requested or seen
	// have ended, in this frame or an earlier one.
	Finish, Finished bool
	// Usage is set if the frame has usage at its top level, UsageOnly if it has nothing else
	// (`choices: []`).
	Usage, UsageOnly bool
	// Err is the error reported by the frame.
	Err *ProviderError
}

// AnswerSummary summarizes an answer of any form that was not streamed.
type AnswerSummary struct {
	// Content is set if a choice holds text, a refusal, tool calls or images. Reasoning is set if a choice
	// holds reasoning.
	Content, Reasoning bool
	// Limited is set if a choice ended at the token limit. Filtered is set if the content filter ended a
	// choice.
	Limited, Filtered bool
	// Ended is set if the answer gives a reason for its end.
	Ended bool
	// Err is the error inside the answer, or a finish_reason of a failure.
	Err *ProviderError
}

// Summary returns o, so that every answer with an embedded AnswerSummary has the method.
func (o *AnswerSummary) Summary() *AnswerSummary { return o }
