// Package fault owns the only error type that clients see: its code, its message, the field at
// fault, and its encoding. Only the table in table.go maps a code to a status and a type
// (interface.md, Errors). Invariants: the table has every code of the product; a cause goes to the
// log and never to a client.
package fault

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Error is an API error. Rooms create an Error where the cause is known; package httpapi renders
// it.
type Error struct {
	// Code is the stable identifier for clients to branch on. For a rejection by the provider, Code
	// is the provider's own value.
	Code Code
	// Template is the message for people and says what to do. "{param}" stands for Param. The text
	// never holds a secret, a line's name or an internal cause.
	Template string
	// Param is the path of the field at fault (`messages[2].role`). If empty, it
	// is shown as null.
	Param string
	// RetryAfter is sent in whole seconds, rounded up; 0 sends no header.
	RetryAfter time.Duration
	// NoRetry sends `x-should-retry: false`: a repetition cannot help.
	NoRetry bool
	// Fields are extra top-level members of the /v1 body (`attempts`,
	// `retry_after`).
	Fields map[string]any
	// Passed is set when a provider rejected the request and its own status
	// and type are passed on (interface.md, Error object).
	Passed *Passed
	// Cause is the internal error. Package httpapi logs it once, with Line, the last line used.
	// Line is empty if the request reached no line.
	Cause error
	Line  string
}

// Passed holds the fields of a provider's rejection.
type Passed struct {
	Status int    // the provider's HTTP status, 400 to 499
	Type   string // the provider's error.type; empty if it gave none
	// StatusName is the provider's error.status, the name of a numeric code (INVALID_ARGUMENT), or
	// empty.
	StatusName string
	// Prefix stands before the provider's message.
	Prefix string
}

// New makes an error of the given code with a formatted message.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Template: fmt.Sprintf(format, args...)}
}

// At is New for an error with a field at fault. "{param}" in format stands for param.
func At(code Code, param, format string, args ...any) *Error {
	e := New(code, format, args...)
	e.Param = param
	return e
}

// Unavailable returns the 503 for an internal failure. The cause is logged; the client learns only
// that the request was not charged and may be sent again.
func Unavailable(cause error) *Error {
	return &Error{
		Code:     ServiceUnavailable,
		Template: "The service has a temporary problem. You were not charged; please try again in a moment.",
		Cause:    cause,
	}
}

// TryAgain is Unavailable with the advice to try again in a second, for an unavailable database.
func TryAgain(cause error) *Error {
	e := Unavailable(cause)
	e.RetryAfter = time.Second
	return e
}

// Of returns the client-visible error in err's chain. Any other error is a
// fault of ours and becomes Unavailable with err as its cause. Of(nil) is nil.
func Of(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return Unavailable(err)
}

// WithCause returns e with the cause set, for chaining at the place where both
// are known.
func (e *Error) WithCause(cause error) *Error {
	e.Cause = cause
	return e
}

// Message returns the text for people. A provider's text is returned unchanged.
func (e *Error) Message() string {
	if e.Passed != nil {
		return e.Passed.Prefix + e.Template
	}
	return strings.ReplaceAll(e.Template, "{param}", e.Param)
}

// Error implements error with code, message and cause, for logs.
func (e *Error) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message(), e.Cause)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message())
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }
