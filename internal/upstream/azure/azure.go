// Package azure owns the speech with Azure: OpenAI's models by the v1 API, in
// the chat and the responses form, images and videos, and Claude on Foundry in
// the messages form. What is said is as OpenAI and Anthropic have it (packages
// openai, anthropic); where it goes and by which credential is here.
//
// Invariants:
//   - One call is sent at most once, but for one that was refused for its token
//     (packages exchange, credential).
//   - Key and token go to the line's base address alone.
package azure

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
const Provider = "azure"

// Paths of a resource, for base addresses without one.
const (
	openAIPath = "/openai/v1"
	claudePath = "/anthropic"
)

// Ways to get a credential, in the option `auth`.
const (
	authKey              = "api_key"
	authClientSecret     = "client_secret"
	authWorkloadIdentity = "workload_identity"
	authManagedIdentity  = "managed_identity"
)

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return upstream.Info{
		Kinds:        []string{"chat", upstream.KindImage, upstream.KindVideo},
		Forms:        []wire.Form{wire.FormChat, wire.FormResponses, wire.FormMessages},
		NeedsBaseURL: true,
		NeedsKey:     true,
		Keyless: func(options map[string]any) bool {
			return auth(options) == authWorkloadIdentity || auth(options) == authManagedIdentity
		},
		NeedsForms:   true,
		KeyHeaders:   []string{"Api-Key", "X-Api-Key"},
		CheckOptions: checkOptions,
	}
}

func auth(options map[string]any) string { return exchange.Text(options, "auth", authKey) }

// wants are the options that a way to get a credential has no default for.
var wants = map[string][]string{
	authClientSecret: {"tenant", "client_id"},
}

func checkOptions(options map[string]any) error {
	err := exchange.Texts(options, Provider, map[string]func(string) error{
		"auth":   exchange.OneOf(authKey, authClientSecret, authWorkloadIdentity, authManagedIdentity),
		"tenant": exchange.Word, "client_id": exchange.Word, "scope": nil, "token_file": nil, "authority": exchange.Address,
	})
	if err != nil {
		return err
	}
	for _, name := range wants[auth(options)] {
		if options[name] == nil {
			return fmt.Errorf("%s: is required with auth %s", name, auth(options))
		}
	}
	return nil
}

// Adapter speaks for one line. It is safe for concurrent use.
type Adapter struct {
	openAI *openai.Adapter
	claude *anthropic.Adapter
	source *credential.Source // of tokens; nil: the key
}

var (
	_ chatcall.TokenCounter = (*Adapter)(nil)
	_ chatcall.Secretive    = (*Adapter)(nil)
)

// New makes the adapter of a line. Its base address is that of the resource, or
// what stands before `/chat/completions` or `/v1/messages` there. It fails when
// that is no http(s) URL with a host, or has credentials or a query in it, and
// for options. Calls go over transport: exchange.NewTransport makes the one to
// use.
func New(t upstream.Target, transport http.RoundTripper, keeper *credential.Keeper) (*Adapter, error) {
	if err := checkOptions(t.Options); err != nil {
		return nil, fmt.Errorf("line %s: %w", t.Line, err)
	}
	a := &Adapter{}
	var openAIKey, claudeKey http.Header
	if auth(t.Options) == authKey {
		openAIKey, claudeKey = http.Header{"Api-Key": {t.Key}}, http.Header{"X-Api-Key": {t.Key}}
	} else {
		own, err := url.Parse(t.BaseURL)
		if err != nil {
			return nil, fmt.Errorf("line %s: base_url is not a plain http(s) address", t.Line)
		}
		a.source = keeper.Source([]any{Provider, t.Options, t.Key}, fetchToken(t.Options, t.Key, transport))
		transport = &credential.Transport{Base: transport, Source: a.source, Own: own}
	}
	at, err := t.BaseURL, error(nil)
	t.BaseURL = exchange.Below(at, openAIPath)
	if a.openAI, err = openai.Speak(t, Info(), openAIKey, transport); err != nil {
		return nil, err
	}
	t.BaseURL = exchange.Below(at, claudePath)
	a.claude, err = anthropic.Speak(t, Info(), claudeKey, transport)
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
