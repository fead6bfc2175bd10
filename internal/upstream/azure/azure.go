// Package azure owns calls to Azure: OpenAI's models through the v1 API (chat, responses, embeddings, speech,
// transcriptions, images and videos), and Claude on Foundry (messages). Package cloud makes the requests of
// the forms; this package owns addresses and credentials.
//
// Invariants:
//   - A call is sent at most once, except after a rejected token (packages exchange, credential).
//   - Key and token are only sent to the line's base address.
package azure

import (
	"fmt"
	"net/http"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/cloud"
	"tollgate/internal/upstream/credential"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/wire"
)

// Provider is the adapter's name in the catalog.
const Provider = "azure"

// Values of the option `auth`, the source of the credential.
const (
	authKey              = "api_key"
	authClientSecret     = "client_secret"
	authWorkloadIdentity = "workload_identity"
	authManagedIdentity  = "managed_identity"
)

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return upstream.Info{
		Kinds:        []string{"chat", upstream.KindImage, upstream.KindVideo, kindEmbedding, kindSpeech, kindTranscription},
		Forms:        []wire.Form{wire.FormChat, wire.FormResponses, wire.FormMessages},
		NeedsBaseURL: true,
		NeedsKey:     true,
		Keyless: func(options map[string]any) bool {
			return authOption(options) == authWorkloadIdentity || authOption(options) == authManagedIdentity
		},
		NeedsForms:   true,
		KeyHeaders:   []string{"Api-Key", "X-Api-Key"},
		CheckOptions: checkOptions,
	}
}

func authOption(options map[string]any) string { return exchange.TextOption(options, "auth", authKey) }

// requiredOptions lists the required options for each value of `auth`.
var requiredOptions = map[string][]string{
	authClientSecret: {"tenant", "client_id"},
}

func checkOptions(options map[string]any) error {
	err := exchange.CheckTexts(options, Provider, map[string]func(string) error{
		"auth":   exchange.OneOf(authKey, authClientSecret, authWorkloadIdentity, authManagedIdentity),
		"tenant": exchange.CheckWord, "client_id": exchange.CheckWord, "scope": nil, "token_file": nil, "authority": exchange.CheckAddress,
		"api_version": exchange.CheckWord,
	})
	if err != nil {
		return err
	}
	for _, name := range requiredOptions[authOption(options)] {
		if options[name] == nil {
			return fmt.Errorf("%s: is required with auth %s", name, authOption(options))
		}
	}
	return nil
}

// Adapter calls the provider for one line. It is safe for concurrent use.
type Adapter struct {
	*cloud.Adapter
	audio audio
}

// New returns the adapter of a line. It returns the errors of cloud.Open. transport carries the
// calls; use exchange.NewTransport.
func New(t upstream.Target, transport http.RoundTripper, keeper *credential.Keeper) (*Adapter, error) {
	if err := checkOptions(t.Options); err != nil {
		return nil, fmt.Errorf("line %s: %w", t.Line, err)
	}
	o := cloud.Options{Info: Info()}
	if authOption(t.Options) == authKey {
		o.OpenAIKey, o.ClaudeKey = http.Header{"Api-Key": {t.Key}}, http.Header{"X-Api-Key": {t.Key}}
	} else {
		authTransport, err := keeper.Open(t, transport, fetchToken(t.Options, t.Key, transport))
		if err != nil {
			return nil, err
		}
		transport, o.Source = authTransport, authTransport.Source
	}
	a, err := cloud.Open(t, o, transport)
	if err != nil {
		return nil, err
	}
	sound, err := openAudio(t, o, transport)
	return &Adapter{a, sound}, err
}
