// Package bedrock owns the speech with AWS Bedrock on its compatible surfaces:
// OpenAI's chat and responses form, and Anthropic's messages form. What is said is
// as these have it (packages openai, anthropic); where it goes and how it is
// signed is here.
//
// Invariants:
//   - One call is sent at most once, but for one that was refused for its
//     signature (packages exchange, credential).
//   - The key goes to the line's base address alone; a secret key goes nowhere,
//     only signatures do.
package bedrock

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/anthropic"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/credential"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/openai"
	"tollgate/internal/wire"
)

// Provider is the adapter's name in the catalog.
const Provider = "bedrock"

// Paths of an endpoint, for base addresses without one.
const (
	openAIPath = "/openai/v1"
	claudePath = "/anthropic"
)

// Ways to get a credential, in the option `auth`.
const (
	authKey   = "api_key"
	authSigV4 = "sigv4"
)

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return upstream.Info{
		Kinds:        []string{"chat"},
		Forms:        []wire.Form{wire.FormChat, wire.FormResponses, wire.FormMessages},
		NeedsBaseURL: true,
		NeedsKey:     true,
		Keyless: func(options map[string]any) bool {
			return auth(options) == authSigV4 && options["access_key_id"] == nil
		},
		NeedsForms:   true,
		KeyHeaders:   []string{"X-Api-Key"},
		CheckOptions: checkOptions,
	}
}

func auth(options map[string]any) string { return exchange.Text(options, "auth", authKey) }

func checkOptions(options map[string]any) error {
	err := exchange.Texts(options, Provider, map[string]func(string) error{
		"auth":   exchange.OneOf(authKey, authSigV4),
		"region": exchange.Word, "service": exchange.Word, "access_key_id": exchange.Word, "profile": nil,
	})
	switch {
	case err != nil:
		return err
	case auth(options) == authSigV4 && options["region"] == nil:
		return fmt.Errorf("region: is required with auth %s", authSigV4)
	case options["access_key_id"] != nil && options["profile"] != nil:
		return fmt.Errorf("profile: has no meaning beside access_key_id")
	}
	return nil
}

// Adapter speaks for one line. It is safe for concurrent use.
type Adapter struct {
	openAI *openai.Adapter
	claude *anthropic.Adapter
	source *credential.Source // of keys to sign with; nil: the key goes out
}

var (
	_ chatcall.TokenCounter = (*Adapter)(nil)
	_ chatcall.Secretive    = (*Adapter)(nil)
)

// New makes the adapter of a line. Its base address is that of the endpoint, or
// what stands before `/chat/completions` or `/v1/messages` there. It fails when
// that is no http(s) URL with a host, or has credentials or a query in it, and
// for options. Calls go over transport: exchange.NewTransport makes the one to
// use.
func New(t upstream.Target, transport http.RoundTripper, keeper *credential.Keeper) (*Adapter, error) {
	if err := checkOptions(t.Options); err != nil {
		return nil, fmt.Errorf("line %s: %w", t.Line, err)
	}
	a := &Adapter{}
	var header http.Header
	if auth(t.Options) == authKey {
		header = http.Header{"Authorization": {"Bearer " + t.Key}}
	} else {
		own, err := url.Parse(t.BaseURL)
		if err != nil {
			return nil, fmt.Errorf("line %s: base_url is not a plain http(s) address", t.Line)
		}
		a.source = keeper.Source([]any{Provider, t.Options, t.Key}, fetchKeys(t.Options, t.Key, keeper.Time))
		// An outworn session is a 403 here.
		transport = &credential.Transport{Base: transport, Source: a.source, Own: own, Also: http.StatusForbidden}
	}
	at, err := t.BaseURL, error(nil)
	t.BaseURL = exchange.Below(at, openAIPath)
	if a.openAI, err = openai.Speak(t, Info(), header, transport); err != nil {
		return nil, err
	}
	t.BaseURL = exchange.Below(at, claudePath)
	a.claude, err = anthropic.Speak(t, Info(), header, transport)
	return a, err
}

// Secrets implements chatcall.Secretive.
func (a *Adapter) Secrets() []string { return a.source.Secrets() }

// Chat implements chatcall.Adapter for the forms that Info names.
func (a *Adapter) Chat(ctx context.Context, c chatcall.Call) (*chatcall.Response, error) {
	speak := a.openAI.Chat
	if c.Form == wire.FormMessages {
		speak = a.claude.Chat
	}
	answer, err := speak(ctx, c)
	return answer, a.source.Hide(err)
}

// CountTokens implements chatcall.TokenCounter for the messages form.
func (a *Adapter) CountTokens(ctx context.Context, c chatcall.Call) (int64, error) {
	n, err := a.claude.CountTokens(ctx, c)
	return n, a.source.Hide(err)
}
