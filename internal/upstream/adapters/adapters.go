// Package adapters owns the list of providers: which adapter a line's
// `provider` names, and what the catalog must know about it. It is the one
// place that imports every adapter. Invariant: a provider that Providers lists
// is one that Open can open.
package adapters

import (
	"fmt"
	"net/http"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/anthropic"
	"tollgate/internal/upstream/ark"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/dashscope"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/fal"
	"tollgate/internal/upstream/gemini"
	"tollgate/internal/upstream/openai"
	"tollgate/internal/upstream/replicate"
	"tollgate/internal/upstream/sandbox"
)

// Options are what all adapters of a process share.
type Options struct {
	// Transport carries the calls of adapters that speak HTTP; nil makes one
	// with exchange.NewTransport.
	Transport http.RoundTripper
	// Strangers is upstream.Target's of each line.
	Strangers http.RoundTripper
}

// Set opens adapters that share one pool of connections. It is safe for
// concurrent use.
type Set struct {
	transport, strangers http.RoundTripper
}

// New makes the set of a process. Make one only: each has its own connections.
func New(o Options) *Set {
	if o.Transport == nil {
		o.Transport = exchange.NewTransport()
	}
	return &Set{transport: o.Transport, strangers: o.Strangers}
}

// Open makes the adapter of a line. It opens no connection, so it is cheap and
// needs no closing. It fails for an unknown provider, a base address that is
// no http(s) URL, and options that do not pass the provider's CheckOptions.
func (s *Set) Open(t upstream.Target) (chatcall.Adapter, error) {
	t.Strangers = s.strangers
	var (
		adapter chatcall.Adapter
		err     error
	)
	switch t.Provider {
	case anthropic.Provider:
		adapter, err = anthropic.New(t, s.transport)
	case ark.Provider:
		adapter, err = ark.New(t, s.transport)
	case dashscope.Provider:
		adapter, err = dashscope.New(t, s.transport)
	case fal.Provider:
		adapter, err = fal.New(t, s.transport)
	case gemini.Provider:
		adapter, err = gemini.New(t, s.transport)
	case openai.Provider:
		adapter, err = openai.New(t, s.transport)
	case replicate.Provider:
		adapter, err = replicate.New(t, s.transport)
	case sandbox.Provider:
		adapter, err = sandbox.New(t)
	default:
		err = fmt.Errorf("line %s: unknown provider %q", t.Line, t.Provider)
	}
	if err != nil {
		return nil, err
	}
	return adapter, nil
}

// Providers lists every provider by name with what the catalog checks lines
// against. The map is the caller's.
func Providers() map[string]upstream.Info {
	return map[string]upstream.Info{
		anthropic.Provider: anthropic.Info(),
		ark.Provider:       ark.Info(),
		dashscope.Provider: dashscope.Info(),
		fal.Provider:       fal.Info(),
		gemini.Provider:    gemini.Info(),
		openai.Provider:    openai.Info(),
		replicate.Provider: replicate.Info(),
		sandbox.Provider:   sandbox.Info(),
	}
}
