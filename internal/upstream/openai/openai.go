// Package openai owns the speech with OpenAI and every vendor that is
// compatible with it: chat in the chat and the responses form, whose bodies pass
// through untouched in both directions, images, which come with the answer, and
// videos, which are polled.
//
// Invariants:
//   - One call is sent at most once (package exchange sends it).
//   - The line's credential goes to the line's base address alone.
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

// defaultBaseURL is used by lines that name none.
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

// New makes the adapter of a line, whose calls go over transport. It fails as
// exchange.Open does.
func New(t upstream.Target, transport http.RoundTripper) (*Adapter, error) {
	var header http.Header
	if t.Key != "" {
		header = http.Header{"Authorization": {"Bearer " + t.Key}}
	}
	return Speak(t, Info(), header, transport)
}

// Speak is New for another provider that speaks as OpenAI does. header goes out
// with every call: the credential, where transport does not add it.
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

// Chat implements chatcall.Adapter for the forms that Info names.
func (a *Adapter) Chat(ctx context.Context, c chatcall.Call) (*chatcall.Response, error) {
	to, ok := a.endpoints[c.Form]
	if !ok {
		return nil, upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("provider %s does not speak the form %q", Provider, c.Form))
	}
	return a.line.Send(ctx, exchange.Post{URL: to.url, Header: a.header, Call: c, Ends: to.ends})
}

// keyed is the header of a submission with a key of our own. The name is in
// lower case so that the transport does not take it for leave to send twice.
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
