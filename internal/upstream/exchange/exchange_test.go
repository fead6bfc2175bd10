package exchange

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTransportIsClosedToTheEnvironment(t *testing.T) {
	t.Parallel()
	transport := NewStandardTransport()
	if transport.Proxy != nil || !transport.DisableCompression || transport.ResponseHeaderTimeout <= 0 ||
		transport.TLSHandshakeTimeout <= 0 || transport.IdleConnTimeout <= 0 || transport.MaxResponseHeaderBytes <= 0 {
		t.Errorf("the transport lacks a bound: %+v", transport)
	}
}

func TestURL(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"":                "https://default/v9/a/b",
		"http://host":     "http://host/a/b",
		"http://host/":    "http://host/a/b",
		"http://host/v1/": "http://host/v1/a/b",
	} {
		c, err := Open(upstream.Target{BaseURL: base}, upstream.Info{DefaultBaseURL: "https://default/v9", CheckOptions: NoOptions("x")}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.URL("a", "b"); got.String() != want || !strings.HasPrefix(got.RequestURI(), "/") {
			t.Errorf("%q: %s, path %s", base, got, got.RequestURI())
		}
	}
}

// TestEndsHoweverCut checks that the last event is found wherever the reads split it, and nowhere
// else.
func TestEndsHoweverCut(t *testing.T) {
	t.Parallel()
	const word = "event: message_stop"
	stream := strings.Repeat("data: {}\n\n", 30) + word + "\ndata: {}\n\n"
	end := strings.Index(stream, word) + len(word)
	for size := 1; size <= len(stream); size++ {
		e := endFinder{words: []string{"[DONE]", word}}
		for at := 0; at < len(stream); at += size {
			to := min(at+size, len(stream))
			if got, want := e.read([]byte(stream[at:to])), to >= end; got != want {
				t.Fatalf("reads of %d bytes: after byte %d: %t, want %t", size, to, got, want)
			}
		}
	}
}

// TestRetryAfterWithoutDate tests a Retry-After with a date in a response without a Date header:
// the gateway's own clock is the base.
func TestRetryAfterWithoutDate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		resp := &http.Response{
			StatusCode: http.StatusTooManyRequests,
			Header:     http.Header{"Retry-After": {time.Now().Add(30 * time.Second).UTC().Format(http.TimeFormat)}},
		}
		from := &body{src: io.NopCloser(strings.NewReader(`{"error":{"message":"slow down"}}`)), cancel: func() {}}
		if f := (&Client{}).checkResponse(resp, from, chatcall.Call{}); f.RetryAfter != 30*time.Second {
			t.Errorf("wait of %s, want 30s", f.RetryAfter)
		}
	})
}

// TestErrorsTellWhatTheyUsed checks that the failure has the usage beside an error, in each form.
func TestErrorsTellWhatTheyUsed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		form  wire.Form
		usage string
		want  upstream.TokenCounts
	}{
		{wire.FormChat, `"usage":{"prompt_tokens":70,"prompt_tokens_details":{"cached_tokens":40},"completion_tokens":7}`,
			upstream.TokenCounts{Prompt: 70, Cached: 40, Completion: 7}},
		{wire.FormResponses, `"usage":{"input_tokens":70,"input_tokens_details":{"cached_tokens":40},"output_tokens":7}`,
			upstream.TokenCounts{Prompt: 70, Cached: 40, Completion: 7}},
		{wire.FormMessages, `"usage":{"input_tokens":30,"cache_read_input_tokens":40,"output_tokens":7}`,
			upstream.TokenCounts{Prompt: 70, Cached: 40, Completion: 7}},
		{wire.FormGemini, `"usageMetadata":{"promptTokenCount":70,"cachedContentTokenCount":40,"candidatesTokenCount":4,"thoughtsTokenCount":3}`,
			upstream.TokenCounts{Prompt: 70, Cached: 40, Completion: 7}},
		{wire.FormInteractions, `"usage":{"total_input_tokens":70,"total_cached_tokens":40,"total_output_tokens":4,"total_thought_tokens":3}`,
			upstream.TokenCounts{Prompt: 70, Cached: 40, Completion: 7}},
		{wire.FormChat, `"usage":{"prompt_tokens":70}`, upstream.TokenCounts{Prompt: 70}},
		{wire.FormChat, `"usage":{"prompt_tokens":-70,"completion_tokens":-7}`, upstream.TokenCounts{}},
		{wire.FormChat, `"usage":"none"`, upstream.TokenCounts{}},
		{wire.FormChat, `"param":null`, upstream.TokenCounts{}},
	} {
		for _, status := range []int{400, 429, 500} {
			from := &body{src: io.NopCloser(strings.NewReader(` {"error":{"message":"x"},` + test.usage + `}`)), cancel: func() {}}
			resp := &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}}
			if f := (&Client{}).checkResponse(resp, from, chatcall.Call{Form: test.form}); f == nil || f.Tokens != test.want {
				t.Errorf("%d with %s: %+v; want %+v", status, test.usage, f, test.want)
			}
		}
	}
}

// TestOwn checks that only addresses with the line's scheme, host and port may get the credential.
func TestOwn(t *testing.T) {
	t.Parallel()
	line, err := Open(upstream.Target{Line: "main", BaseURL: "https://api.example.com/v1"}, upstream.Info{CheckOptions: NoOptions("x")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]bool{
		"https://api.example.com/v1/x?y=1":     true,
		"https://api.example.com/elsewhere":    true,
		"https://api.example.com:443/x":        true,
		"https://API.example.com/x":            true,
		"http://api.example.com/v1/x":          false,
		"https://api.example.com:8443/x":       false,
		"https://api.example.com.evil.net/x":   false,
		"https://evil.net/https://api.example": false,
		"https://u@api.example.com/x":          false,
		"https://api.example.com@evil.net/x":   false,
		"//api.example.com/x":                  false,
		"https:api.example.com":                false,
		"/v1/x":                                false,
		"":                                     false,
		"https://[::1":                         false,
	} {
		u, ok := line.ParseOwnURL(address)
		if ok != want || ok && u.String() != address {
			t.Errorf("%q: %v", address, ok)
		}
	}
}

// TestDownloadsFromStrangers checks, across redirects, that the line's own transport and credential
// are only used for the line's own scheme, host and port. Another port of the same host goes
// through the guard.
func TestDownloadsFromStrangers(t *testing.T) {
	t.Parallel()
	const own, port, other = "http://10.0.0.9:8080", "http://10.0.0.9:9090", "http://10.0.0.8:8080"
	for name, test := range map[string]struct {
		address string
		moves   map[string]string // target of the redirect of each address
		blind   bool              // whether the line has no PublicTransport
		want    []string          // requests by transport; none after a rejection
		failed  bool
	}{
		"own":                {address: own + "/1", want: []string{"own " + own + "/1"}},
		"other port":         {address: port + "/1", want: []string{"strange " + port + "/1"}},
		"default port":       {address: "http://10.0.0.9/1", want: []string{"strange http://10.0.0.9/1"}},
		"other scheme":       {address: "https://10.0.0.9:8080/1", want: []string{"strange https://10.0.0.9:8080/1"}},
		"port of a database": {address: "http://10.0.0.9:5432/", want: []string{"strange http://10.0.0.9:5432/"}},
		"other port, no way": {address: port + "/1", blind: true, failed: true},
		"own, then other port": {address: own + "/1", moves: map[string]string{own + "/1": port + "/2"},
			want: []string{"own " + own + "/1", "strange " + port + "/2"}},
		"other, then other port": {address: other + "/1", moves: map[string]string{other + "/1": port + "/2"},
			want: []string{"strange " + other + "/1", "strange " + port + "/2"}},
		"other":         {address: other + "/1", want: []string{"strange " + other + "/1"}},
		"other, no way": {address: other + "/1", blind: true, failed: true},
		"own, then other": {address: own + "/1", moves: map[string]string{own + "/1": other + "/2"},
			want: []string{"own " + own + "/1", "strange " + other + "/2"}},
		"own, then other, blind": {address: own + "/1", moves: map[string]string{own + "/1": other + "/2"}, blind: true,
			want: []string{"own " + own + "/1"}, failed: true},
		"other, then own": {address: other + "/1", moves: map[string]string{other + "/1": own + "/2"},
			want: []string{"strange " + other + "/1", "own " + own + "/2"}},
		"with a user": {address: "http://u:p@10.0.0.9:8080/1", want: []string{"strange http://u:p@10.0.0.9:8080/1"}},
		"no address":  {address: "file:///etc/passwd", failed: true},
	} {
		var requests []string
		way := func(which string) roundTripper {
			return func(r *http.Request) (*http.Response, error) {
				requests = append(requests, which+" "+r.URL.String())
				if got := r.Header.Get("Authorization"); (got != "") != (which == "own" && "http://"+r.URL.Host == own) {
					t.Errorf("%s: authorization %q to %s", name, got, r.URL)
				}
				resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}
				if to := test.moves[r.URL.String()]; to != "" {
					resp.StatusCode, resp.Header = 302, http.Header{"Location": {to}}
				}
				return resp, nil
			}
		}
		target := upstream.Target{Line: "main", BaseURL: own + "/v1", Key: "secret"}
		if !test.blind {
			target.PublicTransport = way("strange")
		}
		line, err := Open(target, upstream.Info{CheckOptions: NoOptions("x")}, way("own"))
		if err != nil {
			t.Fatal(err)
		}
		file, err := line.Download(t.Context(), test.address, http.Header{"Authorization": {"Bearer secret"}})
		if (err != nil) != test.failed || !slices.Equal(requests, test.want) {
			t.Errorf("%s: %v, requests %q, want %q", name, err, requests, test.want)
		}
		if err != nil {
			var failure *upstream.JobFailure
			if !errors.As(err, &failure) || failure.Next != upstream.NextPoll {
				t.Errorf("%s: %v is not the line's failure", name, err)
			}
			continue
		}
		file.Body.Close()
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }

// answering is a transport that answers each call with the next body.
type answering struct{ bodies chan string }

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(<-a.bodies))}, nil
}

// TestWorkTellsWhatItUsed tests that the usage in the responses to the calls of one step is added
// up. Without a Spending in the context, usage is not read.
func TestWorkTellsWhatItUsed(t *testing.T) {
	t.Parallel()
	bodies := make(chan string, 4)
	line, err := Open(upstream.Target{Line: "main", BaseURL: "https://api.example.com"}, upstream.Info{CheckOptions: NoOptions("x")},
		answering{bodies})
	if err != nil {
		t.Fatal(err)
	}
	var spending upstream.Spending
	for ctx, body := range map[context.Context]string{
		spending.In(t.Context()): `{"data":[],"usage":{"input_tokens":10,"output_tokens":4000}}`,
		t.Context():              `{"usage":{"input_tokens":1,"output_tokens":1}}`,
		spending.In(context.WithoutCancel(
			t.Context())): `{"usageMetadata":{"promptTokenCount":8,"cachedContentTokenCount":3,"candidatesTokenCount":1290}}`,
	} {
		bodies <- body
		if _, err := line.Submit(ctx, JobCall{Method: http.MethodPost, URL: line.URL("x"), Limit: 1 << 10}); err != nil {
			t.Fatal(err)
		}
	}
	bodies <- `{"usage":{"completion_tokens":100,"total_tokens":100}}`
	if _, err := line.Query(spending.In(t.Context()), JobCall{Method: http.MethodGet, URL: line.URL("x"), Limit: 1 << 10}); err != nil {
		t.Fatal(err)
	}
	if got, want := spending.Total(), (upstream.TokenCounts{Prompt: 18, Cached: 3, Completion: 5390}); got != want {
		t.Errorf("%+v; want %+v", got, want)
	}
}

// TestHostileDocuments tests that job responses with too deep nesting or too many values do not
// reach an adapter.
func TestHostileDocuments(t *testing.T) {
	t.Parallel()
	bodies := make(chan string, 1)
	line, err := Open(upstream.Target{Line: "main", BaseURL: "https://api.example.com"}, upstream.Info{CheckOptions: NoOptions("x")},
		answering{bodies})
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{
		"depth":  `{"id":` + strings.Repeat("[", 2<<20),
		"number": `{"data":[` + strings.Repeat("{},", 500_000) + `{}]}`,
	} {
		r := JobCall{Method: http.MethodGet, URL: line.URL("x"), Limit: 16 << 20}
		bodies <- body
		if reply, err := line.Query(t.Context(), r); err == nil {
			t.Errorf("%s: %d bytes were passed on", name, len(reply.Body))
		}
		bodies <- body
		if reply, err := line.Submit(t.Context(), r); err == nil {
			t.Errorf("%s: %d bytes were passed on", name, len(reply.Body))
		}
	}
}
