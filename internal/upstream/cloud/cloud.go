// Package cloud owns the common part of adapters for clouds that offer OpenAI's and Anthropic's forms
// at two paths of one address with one credential. Packages openai and anthropic make the requests.
//
// Invariants:
//   - The messages form is sent to Anthropic's path, everything else to OpenAI's.
//   - No error contains a secret of the credential's source.
package cloud

import (
	"context"
	"net/http"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/anthropic"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/credential"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/openai"
	"tollgate/internal/wire"
)

// Paths of a cloud's address, for base addresses without a path.
const (
	OpenAIPath = "/openai/v1"
	claudePath = "/anthropic"
)

// Options are the properties in which clouds differ.
type Options struct {
	// Info describes the provider.
	Info upstream.Info
	// OpenAIKey and ClaudeKey are headers with the line's key. If nil, Source has the credential
	// and the transport adds it to the calls.
	OpenAIKey, ClaudeKey http.Header
	Source               *credential.Source
}

// Adapter calls the provider for one line. It is safe for concurrent use.
type Adapter struct {
	// OpenAI speaks OpenAI's forms, including images and videos. Source redacts the secrets from
	// its errors.
	OpenAI *openai.Adapter
	Source *credential.Source
	claude *anthropic.Adapter
}

var (
	_ chatcall.TokenCounter = (*Adapter)(nil)
	_ chatcall.Secretive    = (*Adapter)(nil)
)

// Open returns the adapter of a line. The line's base address is the cloud's, or the part before the
// cloud's `/chat/completions` or `/v1/messages`. Open returns the errors of exchange.Open.
func Open(t upstream.Target, o Options, transport http.RoundTripper) (*Adapter, error) {
	a := &Adapter{Source: o.Source}
	base, err := t.BaseURL, error(nil)
	t.BaseURL = exchange.AddPath(base, OpenAIPath)
	if a.OpenAI, err = openai.NewFor(t, o.Info, o.OpenAIKey, transport); err != nil {
		return nil, err
	}
	t.BaseURL = exchange.AddPath(base, claudePath)
	a.claude, err = anthropic.NewFor(t, o.Info, o.ClaudeKey, transport)
	return a, err
}

// Secrets implements chatcall.Secretive.
func (a *Adapter) Secrets() []string { return a.Source.Secrets() }

// Chat implements chatcall.Adapter for OpenAI's forms and the messages form.
func (a *Adapter) Chat(ctx context.Context, c chatcall.Call) (*chatcall.Response, error) {
	chat := a.OpenAI.Chat
	if c.Form == wire.FormMessages {
		chat = a.claude.Chat
	}
	answer, err := chat(ctx, c)
	return answer, a.Source.Hide(err)
}

// CountTokens implements chatcall.TokenCounter for the messages form.
func (a *Adapter) CountTokens(ctx context.Context, c chatcall.Call) (int64, error) {
	n, err := a.claude.CountTokens(ctx, c)
	return n, a.Source.Hide(err)
}
