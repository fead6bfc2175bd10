// Package fault owns the only error type that clients see: its code, its message, the field at
// fault, and its encoding. Only the table in table.go maps a code to a status and a type
// (interface.md, Errors).
//
// Invariants: the table has every code of the product. A cause is logged and never sent to a
// client.
package fault

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Error is an API error. A package creates an Error where the cause is known, and package httpapi
// sends the Error to the client.
type Error struct {
	// Code is the stable identifier for clients to branch on. For a rejection by the provider, Code
	// is the provider's own value.
	Code Code
	// Template is the message for people and tells them what to do. "{param}" stands for Param. The
	// message never contains a secret, a line's name or an internal cause.
	Template string
	// Format and Values are the format of Template and its values, for a translation. Format is empty if
	// the message has no translation.
	Format string
	Values []any
	// Param is the path of the field at fault (`messages[2].role`). An empty Param is sent as null.
	Param string
	// RetryAfter is sent as the header Retry-After, in whole seconds, rounded up. If zero, the
	// header is not sent.
	RetryAfter time.Duration
	// NoRetry sends the header `x-should-retry: false`, because a retry would fail again.
	NoRetry bool
	// Fields are extra top-level members of the /v1 body (`attempts`, `retry_after`).
	Fields map[string]any
	// Rejection is set if a provider rejected the request and the client gets the provider's status
	// and type (interface.md, Error object).
	Rejection *Rejection
	// Cause is the internal error. Package httpapi logs Cause once, with Line.
	Cause error
	// Line is the last line used, or empty if the request reached no line.
	Line string
}

// Rejection holds the fields of a provider's rejection.
type Rejection struct {
	Status int    // the provider's HTTP status, 400 to 499
	Type   string // the provider's error.type, or empty
	// StatusName is the provider's error.status, the name of a numeric code (INVALID_ARGUMENT), or
	// empty.
	StatusName string
	// Prefix precedes the provider's message.
	Prefix string
}

// New returns an error with a code and a formatted message.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Template: fmt.Sprintf(format, args...), Format: format, Values: args}
}

// At is New for an error with a field at fault. "{param}" in format stands for param.
func At(code Code, param, format string, args ...any) *Error {
	e := New(code, format, args...)
	e.Param = param
	return e
}

// Unavailable returns the error with status 503 for an internal failure. The cause is logged; the
// client learns only that the request was not charged and may be sent again.
func Unavailable(cause error) *Error {
	return &Error{
		Code:     ServiceUnavailable,
		Template: "The service has a temporary problem. You were not charged; please try again in a moment.",
		Cause:    cause,
	}
}

// TryAgain is like Unavailable with a RetryAfter of one second, for an unavailable database.
func TryAgain(cause error) *Error {
	e := Unavailable(cause)
	e.RetryAfter = time.Second
	return e
}

// Of returns the first *Error in err's chain. Without one, err is an internal failure, and Of
// returns Unavailable(err). Of(nil) returns nil.
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

// Is reports whether err is an error with a code, or wraps one.
func Is(err error, code Code) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

// WithCause sets the cause of e and returns e, so that calls can be chained.
func (e *Error) WithCause(cause error) *Error {
	e.Cause = cause
	return e
}

// Message returns the message for people: Template with Param in place of "{param}". A provider's
// message is returned unchanged after its Prefix.
func (e *Error) Message() string {
	if e.Rejection != nil {
		return e.Rejection.Prefix + e.Template
	}
	return strings.ReplaceAll(e.Template, "{param}", e.Param)
}

// Error implements error. The text has the code, message and cause, for logs.
func (e *Error) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message(), e.Cause)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message())
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }
