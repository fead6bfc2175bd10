// Package vertex owns calls to Google's Vertex AI: Gemini through generateContent and Claude
// through rawPredict, each at the address of its publisher. The form of a call decides between the
// two. Images and Veo clips use the requests of Google's own service (package gemini); this package
// owns their addresses and credentials.
//
// Invariants:
//   - A call is sent at most once, except after a rejected token (packages exchange, credential).
//   - Key and token are only sent to the line's base address, in a header.
//   - Only the parts of a body with another place or format on Vertex AI than at the publisher's
//     own service are converted: the rest passes through unchanged.
package vertex

import (
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
	"tollgate/internal/upstream/credential"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/gemini"
	"tollgate/internal/wire"
)

// Provider is the adapter's name in the catalog.
const Provider = "vertex"

// defaultBaseURL is the base address of lines without a base_url and a location.
const defaultBaseURL = "https://aiplatform.googleapis.com/v1"

// betaHeader holds the client's flags for Claude.
const betaHeader = "Anthropic-Beta"

// maxCount is the maximum length of the response to a token count, in bytes.
const maxCount = 64 << 10

// Values of the option `auth`: how to get a credential.
const (
	authKey              = "api_key"
	authServiceAccount   = "service_account"
	authWorkloadIdentity = "workload_identity"
	authMetadata         = "metadata"
)

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return upstream.Info{
		Kinds:          []string{"chat", upstream.KindImage, upstream.KindVideo},
		Forms:          []wire.Form{wire.FormGemini, wire.FormMessages},
		DefaultBaseURL: defaultBaseURL,
		NeedsKey:       true,
		Keyless:        func(options map[string]any) bool { return auth(options) == authMetadata },
		NeedsForms:     true,
		KeyHeaders:     []string{"X-Goog-Api-Key"},
		CheckOptions:   checkOptions,
	}
}

func auth(options map[string]any) string { return exchange.TextOption(options, "auth", authKey) }

func checkOptions(options map[string]any) error {
	err := exchange.CheckTexts(options, Provider, map[string]func(string) error{
		"auth":    exchange.OneOf(authKey, authServiceAccount, authWorkloadIdentity, authMetadata),
		"project": exchange.CheckWord, "location": exchange.CheckWord,
	})
	switch {
	case err != nil:
		return err
	case auth(options) != authKey && options["project"] == nil:
		return fmt.Errorf("project: is required with auth %s", auth(options))
	case options["location"] != nil && options["project"] == nil:
		return errors.New("location: requires the option project too, because an API key alone only works at the global address")
	}
	return nil
}

// Adapter calls the provider for one line. It is safe for concurrent use.
type Adapter struct {
	line   *exchange.Client
	google *gemini.Adapter    // for images and clips
	header http.Header        // contains the key, if the line has one
	source *credential.Source // source of tokens; nil if the line has a key
}

var (
	_ chatcall.TokenCounter = (*Adapter)(nil)
	_ chatcall.Secretive    = (*Adapter)(nil)
)

// New returns the adapter of a line. transport carries the calls. New returns the errors of
// exchange.Open.
func New(t upstream.Target, transport http.RoundTripper, keeper *credential.Keeper) (*Adapter, error) {
	if err := checkOptions(t.Options); err != nil {
		return nil, fmt.Errorf("line %s: %w", t.Line, err)
	}
	t.BaseURL = base(t)
	a := &Adapter{}
	if auth(t.Options) == authKey {
		a.header = http.Header{"X-Goog-Api-Key": {t.Key}}
	} else {
		withCredential, err := keeper.Open(t, transport, fetchToken(auth(t.Options), t.Key, keeper.Time, transport))
		if err != nil {
			return nil, err
		}
		transport, a.source = withCredential, withCredential.Source
	}
	var err error
	if a.line, err = exchange.Open(t, Info(), transport); err != nil {
		return nil, err
	}
	a.google, err = gemini.NewFor(t, Info(), "publishers/google/models/", a.header, transport)
	return a, err
}

// base returns the address of a line's publishers: below the project, or at the root for keys of
// express mode.
func base(t upstream.Target) string {
	address := strings.TrimRight(t.BaseURL, "/")
	location := exchange.TextOption(t.Options, "location", "global")
	if address == "" || address == defaultBaseURL {
		address = "https://" + host(location) + "/v1"
	}
	if project := exchange.TextOption(t.Options, "project", ""); project != "" {
		address += "/projects/" + project + "/locations/" + location
	}
	return address
}

// host returns the host of a location.
func host(location string) string {
	switch location {
	case "global":
		return "aiplatform.googleapis.com"
	case "us", "eu":
		return "aiplatform." + location + ".rep.googleapis.com"
	}
	return location + "-aiplatform.googleapis.com"
}

// Secrets implements chatcall.Secretive.
func (a *Adapter) Secrets() []string { return a.source.Secrets() }

// Chat implements chatcall.Adapter for the forms of Info.
func (a *Adapter) Chat(ctx context.Context, c chatcall.Call) (*chatcall.Response, error) {
	post := exchange.Post{Header: a.header, Call: c}
	var f *upstream.Failure
	switch c.Form {
	case wire.FormGemini:
		method, query := "generateContent", ""
		if c.Stream {
			method, query = "streamGenerateContent", "alt=sse" // otherwise the stream would be one JSON array
		}
		if post.URL, f = a.address("google", c.Model, method); f != nil {
			return nil, f
		}
		post.URL.RawQuery = query
		post.Call.Body, f = geminiBody(c.Body)
	case wire.FormMessages:
		method := "rawPredict"
		if c.Stream {
			method = "streamRawPredict"
		}
		if post.URL, f = a.address("anthropic", c.Model, method); f != nil {
			return nil, f
		}
		post.Header, post.LastEvents = a.withFlags(c), []string{"event: message_stop"}
		post.Call.Body, f = claudeBody(c.Body, "")
	default:
		return nil, wrongForm(c)
	}
	if f != nil {
		return nil, f
	}
	answer, err := a.line.Send(ctx, post)
	return answer, a.source.Hide(err)
}

// CountTokens implements chatcall.TokenCounter.
func (a *Adapter) CountTokens(ctx context.Context, c chatcall.Call) (int64, error) {
	post := exchange.Post{Header: a.header, Call: c}
	var f *upstream.Failure
	switch c.Form {
	case wire.FormGemini:
		if post.URL, f = a.address("google", c.Model, "countTokens"); f != nil {
			return 0, f
		}
		post.Call.Body, f = geminiCountBody(c.Body)
	case wire.FormMessages:
		if post.URL, f = a.address("anthropic", "count-tokens", "rawPredict"); f != nil {
			return 0, f
		}
		post.Header = a.withFlags(c)
		post.Call.Body, f = claudeBody(c.Body, c.Model)
	default:
		return 0, wrongForm(c)
	}
	if f != nil {
		return 0, f
	}
	data, err := a.line.FetchDocument(ctx, post, maxCount)
	if err != nil {
		return 0, a.source.Hide(err)
	}
	var answer struct {
		Gemini *int64 `json:"totalTokens"`
		Claude *int64 `json:"input_tokens"`
	}
	err = json.Unmarshal(data, &answer)
	if answer.Gemini == nil {
		answer.Gemini = answer.Claude
	}
	if err != nil || answer.Gemini == nil || *answer.Gemini < 0 {
		return 0, upstream.Fail(fault.UpstreamUnavailable, errors.New("no count of tokens in the answer"))
	}
	return *answer.Gemini, nil
}

// address returns the address of a method of a publisher's model. A model name invalid in an
// address is the catalog's fault and takes this line's model out of use.
func (a *Adapter) address(publisher, model, method string) (*url.URL, *upstream.Failure) {
	if model == "" || strings.Trim(model, ".") == "" || strings.ContainsAny(model, "/?#%") {
		f := upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("%q is not the name of a model", model))
		f.Health = upstream.HealthModel
		return nil, f
	}
	return a.line.URL("publishers", publisher, "models", url.PathEscape(model)+":"+method), nil
}

// withFlags returns the header of a call to Claude, with the client's flags.
func (a *Adapter) withFlags(c chatcall.Call) http.Header {
	flags := c.Header.Values(betaHeader)
	if len(flags) == 0 {
		return a.header
	}
	header := a.header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header[betaHeader] = flags
	return header
}

func wrongForm(c chatcall.Call) *upstream.Failure {
	return upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("provider %s does not speak the form %q", Provider, c.Form))
}
