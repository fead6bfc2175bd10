// Package chatcall owns calls to a chat provider: a call, its response, and the interface of an
// adapter.
//
// Invariants:
//   - An adapter never repeats a call, because the loop over lines (package line) is the only retry
//     loop. Only package credential sends a call again, once, after a rejected token.
//   - A provider gets only the body of the client's request and the headers named by Call.
package chatcall

import (
	"context"
	"errors"
	"io"
	"net/http"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/rawjson"
)

// Call is one request for a provider, ready to be sent.
type Call struct {
	// Form is the wire form of Body.
	Form wire.Form
	// Model is the provider's ID of the model, for providers with the model in the address instead
	// of the body.
	Model string
	// Path is the path of the call below the line's base address, for the forms of package wire/kind.
	Path string
	// File is the file of a multipart call, or nil. Body then has the text fields as a JSON object.
	File *kind.Upload
	// AnyType is true if a good answer may have any content type.
	AnyType bool
	// Reserve takes memory for an answer from the gateway's budget until the end of the attempt. It
	// returns false if the budget is too small. If Reserve is nil, there is no budget.
	Reserve func(bytes int64) bool
	// Stream is true if Body requests a stream.
	Stream bool
	// Body is sent unchanged. The adapter only reads Body. The caller must not change Body until
	// the body of the response is closed.
	Body rawjson.Pieces
	// Header holds the forwarded headers of the client (`anthropic-version`, `anthropic-beta`).
	// Adapters without these headers ignore them.
	Header http.Header
	// IdempotencyKey is the gateway's key, unique for this attempt. If empty, no key is sent.
	IdempotencyKey string
}

// Response is a 2xx response with the right content type: JSON for a plain call, an event stream
// for a streamed call, any type if Call.AnyType is set. The content of its body is not checked yet.
type Response struct {
	// Body must be closed once, also after a read error or before its end, because closing cancels
	// any work still running at the provider. upstream.ConnectionFailure turns a read error of Body
	// into a *upstream.Failure.
	Body io.ReadCloser
	// ContentType is the provider's content type, with its parameters.
	ContentType string
	// Header is the provider's header. It is nil for a translated answer.
	Header http.Header
	// Length is the Content-Length in bytes, or 0 if unknown.
	Length int64
	// Stream is true if Body is an event stream. It equals Call.Stream.
	Stream bool
}

// Adapter calls one provider for one line. It is safe for concurrent use and need not be closed.
type Adapter interface {
	// Chat sends one chat request in the call's form and returns after the response's header. The
	// error is always a *upstream.Failure. The context bounds the whole exchange, including reads
	// of the body.
	Chat(ctx context.Context, c Call) (*Response, error)
}

// TokenCounter is implemented by adapters of providers that count the tokens of a prompt without
// answering the prompt.
type TokenCounter interface {
	// CountTokens returns the provider's token count for the prompt of the call. Stream is ignored.
	// The error is always a *upstream.Failure.
	CountTokens(ctx context.Context, c Call) (int64, error)
}

// InputLimiter is implemented by adapters of providers that accept fewer inputs in a call than a
// client's request may have.
type InputLimiter interface {
	// MaxInputs returns the maximum number of inputs in a call for a model in a form. Zero means no limit.
	MaxInputs(form wire.Form, model string) int64
}

// Secretive is implemented by adapters with secrets in addition to the line's key, such as renewed
// tokens.
type Secretive interface {
	// Secrets returns the current secrets, which must not be shown or logged.
	Secrets() []string
}

// NoChat is embedded by adapters of providers without chat.
type NoChat struct{}

// Chat implements Adapter. It always returns an error.
func (NoChat) Chat(context.Context, Call) (*Response, error) {
	return nil, upstream.Fail(fault.UpstreamUnavailable, errors.New("the provider has no chat"))
}
