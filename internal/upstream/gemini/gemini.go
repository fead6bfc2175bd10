// Package gemini owns calls to Google's Gemini API. Chat bodies, of generateContent or of interactions,
// pass through unchanged in both directions. Speech and embeddings are translated. Each image is one call
// and is returned in the response. Videos are polled: Veo's as long-running operations, Omni's as
// interactions.
//
// Invariants:
//   - A call is sent at most once (by package exchange).
//   - The line's credential is only sent to the line's base address, in a header and never in the
//     address.
package gemini

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/vector"
	"tollgate/internal/upstream/voice"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// Provider is the adapter's name in the catalog.
const Provider = "gemini"

// defaultBaseURL is the base address of lines without base_url.
const defaultBaseURL = "https://generativelanguage.googleapis.com/v1beta"

// maxCount is the maximum length of the response to a token count, in bytes.
const maxCount = 64 << 10

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return upstream.Info{
		Kinds:          []string{"chat", vector.Kind, voice.Kind, upstream.KindImage, upstream.KindVideo},
		Forms:          []wire.Form{wire.FormGemini},
		OptionalForms:  []wire.Form{wire.FormInteractions},
		DefaultBaseURL: defaultBaseURL,
		NeedsKey:       true,
		KeyHeaders:     []string{"X-Goog-Api-Key"},
		CheckOptions:   voice.CheckOptions(Provider),
	}
}

// Adapter calls the provider for one line. It is safe for concurrent use.
type Adapter struct {
	line   *exchange.Client
	folder string // path before model names in addresses
	header http.Header

	options map[string]any
}

var _ chatcall.TokenCounter = (*Adapter)(nil)

// New returns the adapter of a line. transport carries the calls. New returns the errors of
// exchange.Open.
func New(t upstream.Target, transport http.RoundTripper) (*Adapter, error) {
	var header http.Header
	if t.Key != "" {
		header = http.Header{"X-Goog-Api-Key": {t.Key}}
	}
	return NewFor(t, Info(), "models/", header, transport)
}

// NewFor is New for another provider with Google's API for images and clips. folder is the path
// before model names in addresses. header is sent with every call and contains the credential,
// unless transport adds the credential.
func NewFor(t upstream.Target, p upstream.Info, folder string, header http.Header, transport http.RoundTripper) (*Adapter, error) {
	line, err := exchange.Open(t, p, transport)
	if err != nil {
		return nil, err
	}
	return &Adapter{line: line, folder: folder, header: header, options: t.Options}, nil
}

// Chat implements chatcall.Adapter for the forms of Gemini and of interactions, speech and embeddings.
func (a *Adapter) Chat(ctx context.Context, c chatcall.Call) (*chatcall.Response, error) {
	switch c.Form {
	case voice.Kind:
		return a.speak(ctx, c)
	case vector.Kind:
		return a.embed(ctx, c)
	case wire.FormInteractions: // the body has the model, and asks for a stream
		return a.line.Send(ctx, exchange.Post{URL: a.line.URL("interactions"), Header: a.header, Call: c})
	}
	method := "generateContent"
	if c.Stream {
		method = "streamGenerateContent"
	}
	post, err := a.post(c, method)
	if err != nil {
		return nil, err
	}
	if c.Stream {
		post.URL.RawQuery = "alt=sse" // otherwise the stream would be one JSON array
	}
	return a.line.Send(ctx, post)
}

// CountTokens implements chatcall.TokenCounter for the Gemini form. The whole request is counted,
// including tools and instructions. Interactions have no counts.
func (a *Adapter) CountTokens(ctx context.Context, c chatcall.Call) (int64, error) {
	post, err := a.post(c, "countTokens")
	if err != nil {
		return 0, err
	}
	post.Call.Body = rawjson.Pieces{countBody(c, a.resource(c.Model))}
	data, err := a.line.FetchDocument(ctx, post, maxCount)
	if err != nil {
		return 0, err
	}
	var answer struct {
		Total *int64 `json:"totalTokens"`
	}
	if err := json.Unmarshal(data, &answer); err != nil || answer.Total == nil || *answer.Total < 0 {
		return 0, upstream.Fail(fault.UpstreamUnavailable, errors.New("no count of tokens in the answer"))
	}
	return *answer.Total, nil
}

// countBody wraps a request for the token count method, which needs the model's name again.
func countBody(c chatcall.Call, name string) []byte {
	model, _ := json.Marshal(name) // cannot fail for a string
	body := bytes.TrimSpace(c.Body.Bytes())
	out := append([]byte(`{"generateContentRequest":{"model":`), model...)
	if rest := bytes.TrimSpace(bytes.TrimPrefix(body, []byte("{"))); !bytes.HasPrefix(rest, []byte("}")) {
		out = append(out, ',')
	}
	return append(append(out, bytes.TrimPrefix(body, []byte("{"))...), '}')
}

// post returns the call with its address. The error is a *upstream.Failure. If the model's name is not
// valid in an address, the failure takes the model out of use on this line.
func (a *Adapter) post(c chatcall.Call, method string) (exchange.Post, error) {
	if c.Form != wire.FormGemini {
		return exchange.Post{}, upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("provider %s does not speak the form %q", Provider, c.Form))
	}
	u, f := a.address(a.resource(c.Model), method)
	if f != nil {
		return exchange.Post{}, f
	}
	return exchange.Post{URL: u, Header: a.header, Call: c}, nil
}

// address returns the address of a method of a resource, or of the resource if method is empty.
func (a *Adapter) address(name, method string) (*url.URL, *upstream.Failure) {
	path := strings.Split(name, "/")
	for i, segment := range path {
		if segment == "" || segment == "." || segment == ".." {
			f := upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("%q is not the name of a resource", name))
			f.Health = upstream.HealthModel
			return nil, f
		}
		path[i] = url.PathEscape(segment)
	}
	if method != "" {
		path[len(path)-1] += ":" + method
	}
	return a.line.URL(path...), nil
}

// resource returns the API's name of a model. A name that already has a folder (`tunedModels/…`)
// stays unchanged.
func (a *Adapter) resource(model string) string {
	if strings.Contains(model, "/") {
		return model
	}
	return a.folder + model
}
