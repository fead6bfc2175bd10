// Package adapters owns the list of providers: the adapter for the `provider` of a line, and the
// facts for the catalog's checks. Only this package imports every adapter. Invariant: Open can open
// every provider in Providers.
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
	"tollgate/internal/upstream/deepgram"
	"tollgate/internal/upstream/elevenlabs"
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
	"tollgate/internal/upstream/tei"
	"tollgate/internal/upstream/vertex"
	"tollgate/internal/upstream/xai"
)

// Options configures the adapters of a process.
type Options struct {
	// Transport carries the calls of HTTP adapters. If nil, New uses exchange.NewTransport.
	Transport http.RoundTripper
	// PublicTransport is upstream.Target.PublicTransport for each line.
	PublicTransport http.RoundTripper
}

// Set opens adapters with one shared pool of connections. It is safe for concurrent use.
type Set struct {
	transport, publicTransport http.RoundTripper
	keeper                     credential.Keeper
}

// New returns a set with its own connection pool. A process should have one set and must close it.
func New(o Options) *Set {
	if o.Transport == nil {
		o.Transport = exchange.NewTransport()
	}
	return &Set{transport: o.Transport, publicTransport: o.PublicTransport}
}

// Close stops the requests for credentials and waits for them. It must not be called before all
// calls have ended.
func (s *Set) Close() { s.keeper.Close() }

// Open returns the adapter of a line. It opens no connection, so an adapter is cheap
// and needs no closing. It returns an error if the provider is unknown, the base
// address is not an http(s) URL, or CheckOptions rejects the options.
func (s *Set) Open(t upstream.Target) (chatcall.Adapter, error) {
	t.PublicTransport = s.publicTransport
	p, ok := providers()[t.Provider]
	if !ok {
		return nil, fmt.Errorf("line %s: unknown provider %q", t.Line, t.Provider)
	}
	return p.open(t, s)
}

// provider is one entry of the list of providers.
type provider struct {
	info func() upstream.Info
	open func(upstream.Target, *Set) (chatcall.Adapter, error)
}

// providers lists every provider by its name in the catalog.
func providers() map[string]provider {
	return map[string]provider{
		anthropic.Provider:  {anthropic.Info, plain(anthropic.New)},
		ark.Provider:        {ark.Info, plain(ark.New)},
		azure.Provider:      {azure.Info, withKeeper(azure.New)},
		bedrock.Provider:    {bedrock.Info, withKeeper(bedrock.New)},
		bfl.Provider:        {bfl.Info, plain(bfl.New)},
		dashscope.Provider:  {dashscope.Info, plain(dashscope.New)},
		deepgram.Provider:   {deepgram.Info, plain(deepgram.New)},
		elevenlabs.Provider: {elevenlabs.Info, plain(elevenlabs.New)},
		fal.Provider:        {fal.Info, plain(fal.New)},
		gemini.Provider:     {gemini.Info, plain(gemini.New)},
		ideogram.Provider:   {ideogram.Info, plain(ideogram.New)},
		kling.Provider:      {kling.Info, withKeeper(kling.New)},
		luma.Provider:       {luma.Info, plain(luma.New)},
		minimax.Provider:    {minimax.Info, plain(minimax.New)},
		openai.Provider:     {openai.Info, plain(openai.New)},
		recraft.Provider:    {recraft.Info, plain(recraft.New)},
		replicate.Provider:  {replicate.Info, plain(replicate.New)},
		runway.Provider:     {runway.Info, plain(runway.New)},
		sandbox.Provider: {sandbox.Info, plain(func(t upstream.Target, _ http.RoundTripper) (*sandbox.Adapter, error) {
			return sandbox.New(t)
		})},
		stability.Provider: {stability.Info, plain(stability.New)},
		tei.Provider:       {tei.Info, plain(tei.New)},
		vertex.Provider:    {vertex.Info, withKeeper(vertex.New)},
		xai.Provider:       {xai.Info, plain(xai.New)},
	}
}

// plain wraps the constructor of an adapter that uses the line's own key.
func plain[A chatcall.Adapter](
	open func(upstream.Target, http.RoundTripper) (A, error),
) func(upstream.Target, *Set) (chatcall.Adapter, error) {
	return func(t upstream.Target, s *Set) (chatcall.Adapter, error) { return orNil(open(t, s.transport)) }
}

// withKeeper wraps the constructor of an adapter that may use short-lived credentials.
func withKeeper[A chatcall.Adapter](
	open func(upstream.Target, http.RoundTripper, *credential.Keeper) (A, error),
) func(upstream.Target, *Set) (chatcall.Adapter, error) {
	return func(t upstream.Target, s *Set) (chatcall.Adapter, error) {
		return orNil(open(t, s.transport, &s.keeper))
	}
}

// orNil returns a nil interface if there is an error, and not an interface with a nil pointer.
func orNil[A chatcall.Adapter](adapter A, err error) (chatcall.Adapter, error) {
	if err != nil {
		return nil, err
	}
	return adapter, nil
}

// CheckField returns an error if a line cannot set a field of the task's model to a fixed value or,
// if omit is true, cannot omit it. It returns nil if the line cannot be opened, because the catalog
// reports that fault itself.
func CheckField(t upstream.Target, task jobcall.Task, field string, omit bool) error {
	adapter, err := (&Set{}).Open(t)
	if err != nil {
		return nil
	}
	generator, ok := adapter.(jobcall.Generator)
	if !ok {
		return nil
	}
	rule := generator.ParamRule(task)
	if omit && !rule.SetsField(field) {
		return nil
	}
	return rule.CheckName(field)
}

// Providers returns the facts for the catalog's checks, by the provider's name. The caller may
// change the map.
func Providers() map[string]upstream.Info {
	infos := map[string]upstream.Info{}
	for name, p := range providers() {
		infos[name] = p.info()
	}
	return infos
}
