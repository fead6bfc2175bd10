// Package upstream owns the speech with providers: what an adapter promises,
// and the verdict on each answer that is not a good one. The adapters
// themselves live in a folder each (openai, sandbox); package adapters lists
// them.
//
// Invariants:
//   - An adapter makes one call and never repeats it: the walk over lines
//     (package line) is the only retry loop.
//   - Nothing a client sent reaches a provider but the body and the headers
//     that Call names; nothing a provider says about our own account reaches
//     a client.
//   - Every way in which a call can end badly is a *Failure, made by the pure
//     functions Classify, Interrupted and Fail.
//   - No credential is in a Failure.
package upstream

import (
	"context"
	"io"
	"net/http"

	"tollgate/internal/wire"
)

// Target is one line as an adapter needs to know it.
type Target struct {
	// Line is the line's id, for messages of our own.
	Line string
	// Provider names the adapter ("openai").
	Provider string
	// BaseURL is the provider's base address without a slash at its end; empty
	// means the adapter's default.
	BaseURL string
	// Key is the resolved credential; empty for providers that need none.
	Key string
	// Options are the line's options for the adapter, already checked by
	// Info.CheckOptions.
	Options map[string]any
	// Strangers carries downloads from hosts that are not the line's own: a
	// provider's answer named them, so it lets out to public addresses alone. It
	// follows no redirect. nil: nothing is downloaded from them.
	Strangers http.RoundTripper
}

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
	Body []byte
	// Header holds headers of the client that may travel (`anthropic-version`,
	// `anthropic-beta`); adapters that do not know them leave them out.
	Header http.Header
	// IdempotencyKey is a key of our own, unique for this attempt; empty sends
	// none.
	IdempotencyKey string
}

// Answer is a 2xx answer whose head looks right: JSON for a plain call, an
// event stream for a streamed one. What its body says is not judged yet.
type Answer struct {
	// Body must be closed, once, also after an error and also by a caller that
	// does not want the rest: closing cancels what is still running at the
	// provider. Its read errors become a *Failure through Interrupted.
	Body io.ReadCloser
	// ContentType is the provider's, with its parameters.
	ContentType string
	// Stream says whether Body is an event stream. It equals Call.Stream.
	Stream bool
}

// Adapter speaks to one provider on behalf of one line. It is safe for
// concurrent use and holds nothing that must be closed.
type Adapter interface {
	// Chat sends one chat request in the call's form. It returns when the head
	// of the answer is there. The error is always a *Failure. The context
	// bounds the whole exchange, the reading of the body included.
	Chat(ctx context.Context, c Call) (*Answer, error)
}

// TokenCounter is implemented by adapters whose provider counts the tokens of
// a prompt without answering it.
type TokenCounter interface {
	// CountTokens returns how many tokens the provider says the prompt of the
	// call has. Stream is ignored. The error is always a *Failure.
	CountTokens(ctx context.Context, c Call) (int64, error)
}

// Info is what the catalog must know about a provider to check a line.
type Info struct {
	// Kinds are the kinds of models it serves: "chat", "image", "video".
	Kinds []string
	// Forms are the chat forms it speaks itself.
	Forms []wire.Form
	// DefaultBaseURL is used by lines that name none; empty when there is none.
	DefaultBaseURL string
	// NeedsBaseURL and NeedsKey say what a line must have.
	NeedsBaseURL, NeedsKey bool
	// CheckOptions reports what is wrong with a line's options, in words for
	// the operator that name the option. It is never nil.
	CheckOptions func(options map[string]any) error
}
