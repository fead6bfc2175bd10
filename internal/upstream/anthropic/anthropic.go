// Package anthropic owns calls to Anthropic and to hosts compatible with its messages form. It sets
// the addresses and headers of requests. Bodies pass through unchanged in both directions.
//
// Invariants:
//   - A call is sent at most once (by package exchange).
//   - The line's credential is only sent to the line's base address.
//   - The only client headers sent are the version and the beta flags. The client's query is not
//     sent.
package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/wire"
)

// Provider is the adapter's name in the catalog.
const Provider = "anthropic"

// defaultBaseURL is the base address of lines without base_url.
const defaultBaseURL = "https://api.anthropic.com"

// Headers of the form.
const (
	keyHeader     = "X-Api-Key"
	versionHeader = "Anthropic-Version"
	betaHeader    = "Anthropic-Beta"
)

// defaultVersion is the version for clients without a version. It is the oldest version supported by
// all hosts, and accepts the sampling fields rejected by later versions.
const defaultVersion = "2023-06-01"

// lastEvent begins the last event of a stream.
const lastEvent = "event: message_stop"

// maxCountBody is the maximum length of the response to a token count, in bytes.
const maxCountBody = 64 << 10

// Info describes the provider for the catalog. The key is optional, because servers in private
// networks use the form too.
func Info() upstream.Info {
	return upstream.Info{
		Kinds:          []string{"chat"},
		Forms:          []wire.Form{wire.FormMessages},
		DefaultBaseURL: defaultBaseURL,
		KeyHeaders:     []string{keyHeader},
		CheckOptions:   exchange.NoOptions(Provider),
	}
}

// Adapter calls the provider for one line. It is safe for concurrent use.
type Adapter struct {
	line            *exchange.Client
	messages, count *url.URL
	credential      http.Header
}

var _ chatcall.TokenCounter = (*Adapter)(nil)

// New returns the adapter of a line. The base address is the part before `/v1/messages`; a base
// address with `/v1` at the end is accepted too. New returns an error if the address is not an
// http(s) URL with a host, if the address has credentials or a query, or if the options are
// invalid. transport carries the calls; use exchange.NewTransport.
func New(t upstream.Target, transport http.RoundTripper) (*Adapter, error) {
	var credential http.Header
	if t.Key != "" {
		credential = http.Header{keyHeader: {t.Key}}
	}
	return NewFor(t, Info(), credential, transport)
}

// NewFor is New for another provider with Anthropic's API. credential is sent with every call. If
// nil, transport adds the credential.
func NewFor(t upstream.Target, p upstream.Info, credential http.Header, transport http.RoundTripper) (*Adapter, error) {
	t.BaseURL = strings.TrimSuffix(strings.TrimRight(t.BaseURL, "/"), "/v1")
	line, err := exchange.Open(t, p, transport)
	if err != nil {
		return nil, err
	}
	return &Adapter{
		line: line, messages: line.URL("v1", "messages"), count: line.URL("v1", "messages", "count_tokens"), credential: credential,
	}, nil
}

// Chat implements chatcall.Adapter for the messages form.
func (a *Adapter) Chat(ctx context.Context, c chatcall.Call) (*chatcall.Response, error) {
	if c.Form != wire.FormMessages {
		return nil, unsupportedForm(c)
	}
	return a.line.Send(ctx, exchange.Post{URL: a.messages, Header: a.header(c), Call: c, LastEvents: []string{lastEvent}})
}

// CountTokens implements chatcall.TokenCounter. An unknown address does not affect the line's health,
// because many compatible hosts do not count tokens.
func (a *Adapter) CountTokens(ctx context.Context, c chatcall.Call) (int64, error) {
	if c.Form != wire.FormMessages {
		return 0, unsupportedForm(c)
	}
	body, err := a.line.FetchDocument(ctx, exchange.Post{URL: a.count, Header: a.header(c), Call: c}, maxCountBody)
	if err != nil {
		var f *upstream.Failure
		if errors.As(err, &f) && f.Health == upstream.HealthModel {
			f.Health = upstream.HealthNone
		}
		return 0, err
	}
	var answer struct {
		InputTokens *int64 `json:"input_tokens"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.InputTokens == nil || *answer.InputTokens < 0 {
		return 0, upstream.Fail(fault.UpstreamUnavailable, errors.New("the count of tokens says no number"))
	}
	return *answer.InputTokens, nil
}

func unsupportedForm(c chatcall.Call) *upstream.Failure {
	return upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("provider %s does not speak the form %q", Provider, c.Form))
}

// header returns the credential and the forwarded headers of the client.
func (a *Adapter) header(c chatcall.Call) http.Header {
	header := http.Header{versionHeader: {defaultVersion}}
	if version := c.Header.Get(versionHeader); version != "" {
		header[versionHeader] = []string{version}
	}
	if flags := c.Header.Values(betaHeader); len(flags) > 0 {
		header[betaHeader] = flags
	}
	maps.Copy(header, a.credential)
	return header
}
