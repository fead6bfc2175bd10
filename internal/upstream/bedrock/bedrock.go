// Package bedrock owns calls to AWS Bedrock in OpenAI's chat and responses forms, in Anthropic's
// messages form, and for embeddings and reranking. Package cloud makes the requests of the forms; this package owns
// addresses and signatures.
//
// Invariants:
//   - A call is sent at most once, except after a rejected signature (packages exchange,
//     credential).
//   - The key is only sent to the line's base address. A secret key is never sent, only signatures.
package bedrock

import (
	"fmt"
	"net/http"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/cloud"
	"tollgate/internal/upstream/credential"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/vector"
	"tollgate/internal/wire"
)

// Provider is the adapter's name in the catalog.
const Provider = "bedrock"

// Values of the option `auth`, the source of the credential.
const (
	authKey   = "api_key"
	authSigV4 = "sigv4"
)

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return upstream.Info{
		Kinds:        []string{"chat", vector.Kind, kindRerank},
		Forms:        []wire.Form{wire.FormChat, wire.FormResponses, wire.FormMessages},
		NeedsBaseURL: true,
		NeedsKey:     true,
		Keyless: func(options map[string]any) bool {
			return authOption(options) == authSigV4 && options["access_key_id"] == nil
		},
		NeedsForms:   true,
		KeyHeaders:   []string{"X-Api-Key"},
		CheckOptions: checkOptions,
	}
}

func authOption(options map[string]any) string { return exchange.TextOption(options, "auth", authKey) }

func checkOptions(options map[string]any) error {
	err := exchange.CheckTexts(options, Provider, map[string]func(string) error{
		"auth":   exchange.OneOf(authKey, authSigV4),
		"region": exchange.CheckWord, "service": exchange.CheckWord, "access_key_id": exchange.CheckWord, "profile": nil,
	})
	switch {
	case err != nil:
		return err
	case authOption(options) == authSigV4 && options["region"] == nil:
		return fmt.Errorf("region: is required with auth %s", authSigV4)
	case options["access_key_id"] != nil && options["profile"] != nil:
		return fmt.Errorf("profile: cannot be combined with access_key_id: remove one of the two")
	}
	return nil
}

// New returns the adapter of a line. It returns the errors of newAdapter. transport carries the
// calls; use exchange.NewTransport.
func New(t upstream.Target, transport http.RoundTripper, keeper *credential.Keeper) (*Adapter, error) {
	if err := checkOptions(t.Options); err != nil {
		return nil, fmt.Errorf("line %s: %w", t.Line, err)
	}
	o := cloud.Options{Info: Info()}
	if authOption(t.Options) == authKey {
		o.OpenAIKey = http.Header{"Authorization": {"Bearer " + t.Key}}
		o.ClaudeKey = o.OpenAIKey
	} else {
		signer, err := keeper.Open(t, transport, fetchKeys(t.Options, t.Key, keeper.Time))
		if err != nil {
			return nil, err
		}
		signer.RejectionStatus = http.StatusForbidden // the status for an expired session
		transport, o.Source = signer, signer.Source
	}
	return newAdapter(t, o, transport)
}
