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
	"tollgate/internal/upstream/azure"
	"tollgate/internal/upstream/bedrock"
	"tollgate/internal/upstream/bfl"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/credential"
	"tollgate/internal/upstream/dashscope"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/fal"
	"tollgate/internal/upstream/gemini"
	"tollgate/internal/upstream/ideogram"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/kling"
	"tollgate/internal/upstream/luma"
	"tollgate/internal/upstream/minimax"
	"tollgate/internal/upstream/openai"
	"tollgate/internal/upstream/recraft"
	"tollgate/internal/upstream/replicate"
	"tollgate/internal/upstream/runway"
	"tollgate/internal/upstream/sandbox"
	"tollgate/internal/upstream/stability"
	"tollgate/internal/upstream/vertex"
	"tollgate/internal/upstream/xai"
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
	keeper               credential.Keeper
}

// New makes the set of a process. Make one only: each has its own connections.
// Close it.
func New(o Options) *Set {
	if o.Transport == nil {
		o.Transport = exchange.NewTransport()
	}
	return &Set{transport: o.Transport, strangers: o.Strangers}
}

// Close ends what its adapters still fetch for themselves, and waits for it.
// Their calls should have ended before.
func (s *Set) Close() { s.keeper.Close() }

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
	case azure.Provider:
		adapter, err = azure.New(t, s.transport, &s.keeper)
	case bedrock.Provider:
		adapter, err = bedrock.New(t, s.transport, &s.keeper)
	case bfl.Provider:
		adapter, err = bfl.New(t, s.transport)
	case dashscope.Provider:
		adapter, err = dashscope.New(t, s.transport)
	case fal.Provider:
		adapter, err = fal.New(t, s.transport)
	case gemini.Provider:
		adapter, err = gemini.New(t, s.transport)
	case kling.Provider:
		adapter, err = kling.New(t, s.transport, &s.keeper)
	case ideogram.Provider:
		adapter, err = ideogram.New(t, s.transport)
	case luma.Provider:
		adapter, err = luma.New(t, s.transport)
	case minimax.Provider:
		adapter, err = minimax.New(t, s.transport)
	case openai.Provider:
		adapter, err = openai.New(t, s.transport)
	case recraft.Provider:
		adapter, err = recraft.New(t, s.transport)
	case replicate.Provider:
		adapter, err = replicate.New(t, s.transport)
	case runway.Provider:
		adapter, err = runway.New(t, s.transport)
	case sandbox.Provider:
		adapter, err = sandbox.New(t)
	case vertex.Provider:
		adapter, err = vertex.New(t, s.transport, &s.keeper)
	case xai.Provider:
		adapter, err = xai.New(t, s.transport)
	case stability.Provider:
		adapter, err = stability.New(t, s.transport)
	default:
		err = fmt.Errorf("line %s: unknown provider %q", t.Line, t.Provider)
	}
	if err != nil {
		return nil, err
	}
	return adapter, nil
}

// CheckField tells why a line cannot have a fixed value for a field of a task's
// model, or omit it; nil: it can, or other faults of the line tell more.
func CheckField(t upstream.Target, w jobcall.Task, field string, omit bool) error {
	adapter, err := (&Set{}).Open(t)
	if err != nil {
		return nil
	}
	generator, ok := adapter.(jobcall.Generator)
	if !ok {
		return nil
	}
	rule := generator.ParamRule(w)
	if omit && !rule.Decides(field) {
		return nil
	}
	return rule.Refuses(field)
}

// Providers lists every provider by name with what the catalog checks lines
// against. The map is the caller's.
func Providers() map[string]upstream.Info {
	return map[string]upstream.Info{
		anthropic.Provider: anthropic.Info(),
		ark.Provider:       ark.Info(),
		azure.Provider:     azure.Info(),
		bedrock.Provider:   bedrock.Info(),
		bfl.Provider:       bfl.Info(),
		dashscope.Provider: dashscope.Info(),
		fal.Provider:       fal.Info(),
		gemini.Provider:    gemini.Info(),
		kling.Provider:     kling.Info(),
		ideogram.Provider:  ideogram.Info(),
		luma.Provider:      luma.Info(),
		minimax.Provider:   minimax.Info(),
		openai.Provider:    openai.Info(),
		recraft.Provider:   recraft.Info(),
		replicate.Provider: replicate.Info(),
		runway.Provider:    runway.Info(),
		sandbox.Provider:   sandbox.Info(),
		vertex.Provider:    vertex.Info(),
		xai.Provider:       xai.Info(),
		stability.Provider: stability.Info(),
	}
}
