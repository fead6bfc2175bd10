// Package cloud owns what clouds have in common that offer OpenAI's forms and
// Anthropic's beside each other, at two paths of one address and by one
// credential. What is said is as these two have it (packages openai, anthropic).
//
// Invariants:
//   - The messages form goes to Anthropic's path, all else to OpenAI's.
//   - What the credential's source keeps is in no error.
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

// Paths of a cloud's address, for base addresses without one.
const (
	openAIPath = "/openai/v1"
	claudePath = "/anthropic"
)

// Options are what the clouds differ in.
type Options struct {
	// Info describes the provider.
	Info upstream.Info
	// OpenAIKey and ClaudeKey are headers with the line's key; nil: Source has
	// the credential, and the transport puts it on the calls.
	OpenAIKey, ClaudeKey http.Header
	Source               *credential.Source
}

// Adapter speaks for one line. It is safe for concurrent use.
type Adapter struct {
	// OpenAI speaks OpenAI's forms, also of images and videos. Source hides the
	// secrets in its errors.
	OpenAI *openai.Adapter
	Source *credential.Source
	claude *anthropic.Adapter
}

var (
	_ chatcall.TokenCounter = (*Adapter)(nil)
	_ chatcall.Secretive    = (*Adapter)(nil)
)

// Open makes the adapter of a line. Its base address is the cloud's, or what
// stands before `/chat/completions` or `/v1/messages` there. It fails when that
// is no http(s) URL with a host, or has credentials or a query in it, and for
// options.
func Open(t upstream.Target, o Options, transport http.RoundTripper) (*Adapter, error) {
	a := &Adapter{Source: o.Source}
	at, err := t.BaseURL, error(nil)
	t.BaseURL = exchange.Below(at, openAIPath)
	if a.OpenAI, err = openai.Speak(t, o.Info, o.OpenAIKey, transport); err != nil {
		return nil, err
	}
	t.BaseURL = exchange.Below(at, claudePath)
	a.claude, err = anthropic.Speak(t, o.Info, o.ClaudeKey, transport)
	return a, err
}

// Secrets implements chatcall.Secretive.
func (a *Adapter) Secrets() []string { return a.Source.Secrets() }

// Chat implements chatcall.Adapter for OpenAI's forms and the messages form.
func (a *Adapter) Chat(ctx context.Context, c chatcall.Call) (*chatcall.Response, error) {
	speak := a.OpenAI.Chat
	if c.Form == wire.FormMessages {
		speak = a.claude.Chat
	}
	answer, err := speak(ctx, c)
	return answer, a.Source.Hide(err)
}

// CountTokens implements chatcall.TokenCounter for the messages form.
func (a *Adapter) CountTokens(ctx context.Context, c chatcall.Call) (int64, error) {
	n, err := a.claude.CountTokens(ctx, c)
	return n, a.Source.Hide(err)
}
