// Package chatcall owns what the gateway asks of a provider of chat: one call,
// its answer, and what an adapter promises about both.
//
// Invariants:
//   - An adapter makes one call and never repeats it: the walk over lines
//     (package line) is the only retry loop. Package credential alone sends a
//     call again, once, that was refused for its token.
//   - Nothing a client sent reaches a provider but the body and the headers
//     that Call names.
package chatcall

import (
	"context"
	"errors"
	"io"
	"net/http"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// Call is one request for a provider, ready to be sent.
type Call struct {
	// Form is the wire form of Body.
	Form wire.Form
	// Model is the provider's id of the model, for providers that have it in
	// the address instead of the body.
	Model string
	// Stream says whether Body asks for a stream.
	Stream bool
	// Body is sent as it is. The adapter only reads it, and it must not change
	// until the answer's body is closed.
	Body rawjson.Pieces
	// Header holds headers of the client that may travel (`anthropic-version`,
	// `anthropic-beta`); adapters that do not know them leave them out.
	Header http.Header
	// IdempotencyKey is a key of our own, unique for this attempt; empty sends
	// none.
	IdempotencyKey string
}

// Response is a 2xx answer whose head looks right: JSON for a plain call, an
// event stream for a streamed one. What its body says is not judged yet.
type Response struct {
	// Body must be closed, once, also after an error and also by a caller that
	// does not want the rest: closing cancels what is still running at the
	// provider. Its read errors become a *upstream.Failure through upstream.Interrupted.
	Body io.ReadCloser
	// ContentType is the provider's, with its parameters.
	ContentType string
	// Length is what the provider announced that Body has, bytes; 0: nothing was.
	Length int64
	// Stream says whether Body is an event stream. It equals Call.Stream.
	Stream bool
}

// Adapter speaks to one provider on behalf of one line. It is safe for
// concurrent use and holds nothing that must be closed.
type Adapter interface {
	// Chat sends one chat request in the call's form. It returns when the head
	// of the answer is there. The error is always a *upstream.Failure. The context
	// bounds the whole exchange, the reading of the body included.
	Chat(ctx context.Context, c Call) (*Response, error)
}

// TokenCounter is implemented by adapters whose provider counts the tokens of
// a prompt without answering it.
type TokenCounter interface {
	// CountTokens returns how many tokens the provider says the prompt of the
	// call has. Stream is ignored. The error is always a *upstream.Failure.
	CountTokens(ctx context.Context, c Call) (int64, error)
}

// Secretive is implemented by adapters whose line has secrets beside its key:
// tokens that are renewed.
type Secretive interface {
	// Secrets are what must not be told, as of now.
	Secrets() []string
}

// NoChat is for adapters of providers that have no chat; they embed it.
type NoChat struct{}

// Chat implements Adapter: it always fails.
func (NoChat) Chat(context.Context, Call) (*Response, error) {
	return nil, upstream.Fail(fault.UpstreamUnavailable, errors.New("the provider has no chat"))
}
