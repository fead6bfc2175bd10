// Package openai owns calls to OpenAI and compatible vendors: chat in the chat and the responses
// form, with bodies passed through unchanged in both directions; images, returned in the response;
// and videos, polled.
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
)

// Provider is the adapter's name in the catalog.
const Provider = "openai"

// defaultBaseURL is the base address of lines without base_url.
const defaultBaseURL = "https://api.openai.com/v1"

// endpoint is where calls of one form go.
type endpoint struct {
	url *url.URL
	// ends are the words of a stream's last event. Inside a text they would
	// stand with other quotes.
	ends []string
}

// Info describes the provider for the catalog. A key is not demanded, since
// many compatible servers of one's own network take none.
func Info() upstream.Info {
	return upstream.Info{
		Kinds:          []string{"chat", upstream.KindImage, upstream.KindVideo},
		Forms:          []wire.Form{wire.FormChat, wire.FormResponses},
		DefaultBaseURL: defaultBaseURL,
		CheckOptions:   exchange.NoOptions(Provider),
	}
}

// Adapter speaks for one line. It is safe for concurrent use.
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
	return Speak(t, Info(), header, transport)
}

// Speak is New for another provider with OpenAI's API. header is sent with every call and holds the
// credential, unless transport adds the credential.
func Speak(t upstream.Target, p upstream.Info, header http.Header, transport http.RoundTripper) (*Adapter, error) {
	line, err := exchange.Open(t, p, transport)
	if err != nil {
		return nil, err
	}
	return &Adapter{line: line, header: header, endpoints: map[wire.Form]endpoint{
		wire.FormChat:      {line.URL("chat", "completions"), []string{"[DONE]"}},
		wire.FormResponses: {line.URL("responses"), []string{`"response.completed"`, `"response.incomplete"`, `"response.failed"`}},
	}}, nil
}

// Chat implements chatcall.Adapter for the forms of Info.
func (a *Adapter) Chat(ctx context.Context, c chatcall.Call) (*chatcall.Response, error) {
	to, ok := a.endpoints[c.Form]
	if !ok {
		return nil, upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("provider %s does not speak the form %q", Provider, c.Form))
	}
	return a.line.Send(ctx, exchange.Post{URL: to.url, Header: a.header, Call: c, Ends: to.ends})
}

// keyed returns the header of a submission with the gateway's own key. The name is lower case,
// because the transport may repeat a request with the canonical name.
func (a *Adapter) keyed(key string) http.Header {
	h := a.header.Clone()
	if h == nil {
		h = http.Header{}
	}
	if key != "" {
		h["idempotency-key"] = []string{key}
	}
	return h
}
