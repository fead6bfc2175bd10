// Package openai owns calls to OpenAI and compatible vendors. Bodies in the chat and the responses form
// pass through unchanged in both directions. Images are returned in the response; videos are polled.
//
// Invariants:
//   - A call is sent at most once (by package exchange).
//   - The line's credential is only sent to the line's base address.
package openai

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/wire"
	"tollgate/internal/wire/kind/registry"
)

// Provider is the adapter's name in the catalog.
const Provider = "openai"

// defaultBaseURL is the base address of lines without base_url.
const defaultBaseURL = "https://api.openai.com/v1"

// endpoint is the address for the calls of one form.
type endpoint struct {
	url *url.URL
	// lastEvents are the possible first words of a stream's last event (exchange.Post).
	lastEvents []string
}

// Info describes the provider for the catalog. The key is optional, because many compatible servers
// in private networks need none.
func Info() upstream.Info {
	return upstream.Info{
		Kinds:          append([]string{"chat", upstream.KindImage, upstream.KindVideo}, registry.Names()...),
		Forms:          []wire.Form{wire.FormChat, wire.FormResponses},
		DefaultBaseURL: defaultBaseURL,
		CheckOptions:   exchange.NoOptions(Provider),
	}
}

// Adapter calls the provider for one line. It is safe for concurrent use.
type Adapter struct {
	line      *exchange.Client
	endpoints map[wire.Form]endpoint
	header    http.Header
}

// New returns the adapter of a line. transport carries the calls. New returns the errors of
// exchange.Open.
func New(t upstream.Target, transport http.RoundTripper) (*Adapter, error) {
	var header http.Header
	if t.Key != "" {
		header = http.Header{"Authorization": {"Bearer " + t.Key}}
	}
	return NewFor(t, Info(), header, transport)
}

// NewFor returns the adapter of a line of another provider with OpenAI's API. Every call gets
// header, which holds the credential unless transport adds the credential.
func NewFor(t upstream.Target, p upstream.Info, header http.Header, transport http.RoundTripper) (*Adapter, error) {
	line, err := exchange.Open(t, p, transport)
	if err != nil {
		return nil, err
	}
	return &Adapter{line: line, header: header, endpoints: map[wire.Form]endpoint{
		wire.FormChat:      {line.URL("chat", "completions"), []string{"[DONE]"}},
		wire.FormResponses: {line.URL("responses"), []string{`"response.completed"`, `"response.incomplete"`, `"response.failed"`}},
	}}, nil
}

// Chat implements chatcall.Adapter for the forms of Info and of package wire/kind.
func (a *Adapter) Chat(ctx context.Context, c chatcall.Call) (*chatcall.Response, error) {
	e, ok := a.endpoints[c.Form]
	switch {
	case ok:
	case c.Path != "":
		e.url = a.line.URL(c.Path)
	default:
		return nil, upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("provider %s does not speak the form %q", Provider, c.Form))
	}
	return a.line.Send(ctx, exchange.Post{URL: e.url, Header: a.header, Call: c, LastEvents: e.lastEvents})
}

// headerWithKey returns the header of a submission with the gateway's idempotency key. The name is
// in lower case, because net/http may repeat a request that has the canonical name.
func (a *Adapter) headerWithKey(key string) http.Header {
	h := a.header.Clone()
	if h == nil {
		h = http.Header{}
	}
	if key != "" {
		h["idempotency-key"] = []string{key}
	}
	return h
}
