package anthropic_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/anthropic"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/wire"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-line-credential-0123456789"

// open returns the adapter of a line at p with a new transport.
func open(t *testing.T, p *fakeprovider.Server) *anthropic.Adapter {
	t.Helper()
	transport := conformance.Transport(t)
	a, err := anthropic.New(upstream.Target{Line: "main", Provider: anthropic.Provider, BaseURL: p.URL(), Key: key},
		transport)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func call(stream bool) chatcall.Call {
	return chatcall.Call{
		Form: wire.FormMessages, Stream: stream, IdempotencyKey: "att_1",
		Body:   rawjson.Pieces{[]byte("{\"model\":\"vendor-model\",  \"odd\" : \"\\u00e9\" }")},
		Header: http.Header{},
	}
}

// TestRequest tests that the body is sent unchanged, with the line's credential and, of the
// client's headers, only the version and the beta flags.
func TestRequest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stream  bool
		header  http.Header
		version string
		flags   string
	}{
		"plain":    {header: http.Header{"Authorization": {"Bearer client"}, "X-Api-Key": {"client"}, "X-Client": {"c"}}, version: "2023-06-01"},
		"streamed": {stream: true, version: "2023-06-01"},
		"version":  {header: http.Header{"Anthropic-Version": {"2026-10-21"}}, version: "2026-10-21"},
		"flags":    {stream: true, header: http.Header{"Anthropic-Beta": {"a,b", "c"}}, version: "2023-06-01", flags: "a,b|c"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reply, accept := fakeprovider.NativeAnswer("hi", 3, 1), "application/json"
			if tt.stream {
				reply, accept = fakeprovider.NativeStream(3, 1, "hi"), "text/event-stream"
			}
			p := fakeprovider.New(t, reply)
			c := call(tt.stream)
			c.Header = tt.header
			answer, err := open(t, p).Chat(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			if _, err := io.ReadAll(answer.Body); err != nil {
				t.Fatal(err)
			}
			if answer.Stream != tt.stream || !strings.HasPrefix(answer.ContentType, accept) {
				t.Errorf("answer.Stream = %t, ContentType = %q", answer.Stream, answer.ContentType)
			}
			got := p.Requests()[0]
			if got.Method != http.MethodPost || got.Path != "/v1/messages" || string(got.Body) != string(c.Body.Bytes()) {
				t.Errorf("%s %s %q", got.Method, got.Path, got.Body)
			}
			want := map[string]string{
				"Content-Type": "application/json", "Accept": accept, "X-Api-Key": key, "Anthropic-Version": tt.version,
				"Anthropic-Beta": tt.flags, "Idempotency-Key": "att_1", "User-Agent": "tollgate", "Content-Length": "44",
			}
			for name, value := range want {
				if sent := strings.Join(got.Header[name], "|"); sent != value {
					t.Errorf("header %s = %q, want %q", name, sent, value)
				}
			}
			for name := range got.Header {
				if _, ok := want[name]; !ok {
					t.Errorf("header %s: %q was sent", name, got.Header[name])
				}
			}
		})
	}
}

func TestBaseURLs(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{"", "/", "/v1", "/v1/"} {
		p := fakeprovider.New(t, fakeprovider.NativeAnswer("hi", 1, 1))
		transport := conformance.Transport(t)
		base := strings.TrimSuffix(p.URL(), "/v1") + "/anthropic" + suffix
		a, err := anthropic.New(upstream.Target{Line: "main", BaseURL: base}, transport)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := a.Chat(t.Context(), call(false))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		got := p.Requests()[0]
		if got.Path != "/anthropic/v1/messages" || got.Header.Get("X-Api-Key") != "" {
			t.Errorf("%s: path %s with key %q", base, got.Path, got.Header.Get("X-Api-Key"))
		}
	}
}

// TestErrors tests the classification of each of the provider's errors.
func TestErrors(t *testing.T) {
	t.Parallel()
	limited := fakeprovider.NativeError(429, "rate_limit_error", "Slow down.")
	limited.Header = map[string]string{"Retry-After": "7"}
	spent := fakeprovider.Reply{Status: 429,
		Body: `{"type":"error","error":{"type":"rate_limit_error","code":"contract_spend_limit_reached","message":"x"}}`}
	for name, tt := range map[string]struct {
		reply  fakeprovider.Reply
		code   fault.Code
		health upstream.Health
		passed int
		native string // error.type for a client of /native
	}{
		"bad request": {fakeprovider.NativeError(400, "invalid_request_error", "max_tokens: Field required"), fault.InvalidRequest,
			upstream.HealthNone, 400, "invalid_request_error"},
		"prompt too long": {fakeprovider.NativeError(400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"),
			upstream.ContextLengthExceeded, upstream.HealthNone, 400, "invalid_request_error"},
		"too large": {fakeprovider.NativeError(413, "request_too_large", "Request exceeds the maximum size"), fault.InvalidRequest,
			upstream.HealthNone, 413, "request_too_large"},
		"balance": {fakeprovider.NativeError(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
			fault.UpstreamUnavailable, upstream.HealthCredential, 0, "api_error"},
		"own limit": {fakeprovider.NativeError(400, "invalid_request_error", "You have reached your specified API usage limits."),
			fault.UpstreamUnavailable, upstream.HealthCredential, 0, "api_error"},
		"key": {fakeprovider.NativeError(401, "authentication_error", "invalid x-api-key"), fault.UpstreamUnavailable,
			upstream.HealthCredential, 0, "api_error"},
		"billing": {fakeprovider.NativeError(402, "billing_error", "x"), fault.UpstreamUnavailable, upstream.HealthCredential, 0,
			"api_error"},
		"permission": {fakeprovider.NativeError(403, "permission_error", "x"), fault.UpstreamUnavailable, upstream.HealthCredential, 0,
			"api_error"},
		"unknown model": {fakeprovider.NativeError(404, "not_found_error", "model: vendor-model"), fault.UpstreamUnavailable,
			upstream.HealthModel, 0, "api_error"},
		"conflict":    {fakeprovider.NativeError(409, "conflict_error", "x"), fault.UpstreamUnavailable, upstream.HealthFail, 0, "api_error"},
		"rate":        {limited, fault.UpstreamBusy, upstream.HealthCool, 0, "api_error"},
		"spend limit": {spent, fault.UpstreamUnavailable, upstream.HealthCredential, 0, "api_error"},
		"internal": {fakeprovider.NativeError(500, "api_error", "Internal server error"), fault.UpstreamUnavailable, upstream.HealthFail, 0,
			"api_error"},
		"unavailable": {fakeprovider.NativeError(503, "api_error", "x"), fault.UpstreamUnavailable, upstream.HealthFail, 0, "api_error"},
		"timeout":     {fakeprovider.NativeError(504, "timeout_error", "x"), fault.UpstreamTimeout, upstream.HealthFail, 0, "api_error"},
		"overloaded":  {fakeprovider.NativeError(529, "overloaded_error", "Overloaded"), fault.UpstreamBusy, upstream.HealthCool, 0, "api_error"},
		"page":        {fakeprovider.Page(529), fault.UpstreamBusy, upstream.HealthCool, 0, "api_error"},
		"inside 200": {fakeprovider.Reply{ContentType: "text/html", Body: `{"type":"error","error":{"type":"overloaded_error","message":"x"}}`},
			fault.UpstreamBusy, upstream.HealthCool, 0, "api_error"},
	} {
		for _, count := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				a, err := open(t, fakeprovider.New(t, tt.reply)), error(nil)
				health := tt.health
				if count {
					_, err = a.CountTokens(t.Context(), call(false))
					if health == upstream.HealthModel {
						health = upstream.HealthNone
					}
				} else {
					_, err = a.Chat(t.Context(), call(false))
				}
				f := conformance.ChatFailure(t, err)
				if f.Code != tt.code || f.Health != health {
					t.Errorf("code %s, health %s, want %s, %s (%v)", f.Code, f.Health, tt.code, health, f)
				}
				if (f.Rejection != nil) != (tt.passed != 0) || f.Rejection != nil && f.Rejection.Status() != tt.passed {
					t.Errorf("passed on: %+v", f.Rejection)
				}
				if got := f.Fault().NativeType(); got != tt.native {
					t.Errorf("type %s, want %s", got, tt.native)
				}
				if name == "rate" && f.RetryAfter != 7*time.Second {
					t.Errorf("retry after %s", f.RetryAfter)
				}
			})
		}
	}
}

// TestErrorsInStreams tests that an error in a stream is classified like the HTTP status of the
// same error.
func TestErrorsInStreams(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]fault.Code{
		"overloaded_error": fault.UpstreamBusy, "rate_limit_error": fault.UpstreamBusy, "api_error": fault.UpstreamUnavailable,
		"timeout_error": fault.UpstreamTimeout, "authentication_error": fault.UpstreamUnavailable, "invalid_request_error": fault.InvalidRequest,
	} {
		p := fakeprovider.New(t, fakeprovider.NativeEvents(fakeprovider.NativeStart(3), fakeprovider.NativePing(), fakeprovider.NativeText("a"),
			fakeprovider.NativeFailure(kind, "x")))
		answer, err := open(t, p).Chat(t.Context(), call(true))
		if err != nil {
			t.Fatal(err)
		}
		r, m := sse.NewReader(answer.Body, 1<<20), messages.NewMeter()
		var f wire.Frame
		for f.Err == nil {
			e, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			if f, err = m.Read(e); err != nil {
				t.Fatal(err)
			}
		}
		if got := upstream.Classify(http.StatusOK, "", f.Err.Body, nil); got == nil || got.Code != want {
			t.Errorf("%s: %v, want %s", kind, got, want)
		}
		answer.Body.Close()
	}
}

// TestConnectionIsKept checks that the next call uses the same connection if the reader of a stream
// stops at message_stop.
func TestConnectionIsKept(t *testing.T) {
	t.Parallel()
	p := fakeprovider.New(t, fakeprovider.NativeStream(1, 1, "one"), fakeprovider.NativeCount(5))
	a := open(t, p)
	answer, err := a.Chat(t.Context(), call(true))
	if err != nil {
		t.Fatal(err)
	}
	r, m := sse.NewReader(answer.Body, 1<<20), messages.NewMeter()
	for done := false; !done; {
		e, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		f, err := m.Read(e)
		if err != nil {
			t.Fatal(err)
		}
		done = f.Done
	}
	answer.Body.Close()
	if _, err := a.CountTokens(t.Context(), call(false)); err != nil {
		t.Fatal(err)
	}
	if got := p.Requests(); got[0].From != got[1].From {
		t.Error("the second call came on another connection")
	}
}

func TestCountTokens(t *testing.T) {
	t.Parallel()
	long := fakeprovider.Reply{Body: `{"input_tokens":5,"x":"` + strings.Repeat("x", 1<<20) + `"}`}
	p := fakeprovider.New(t, fakeprovider.NativeCount(2095), fakeprovider.Reply{Body: `{"input_tokens":null}`},
		fakeprovider.Reply{Body: `{"input_tokens":-1}`},
		fakeprovider.Reply{Body: `{"input_tokens":"9"}`}, long, fakeprovider.Reply{Body: `{"input_tokens":5`},
		fakeprovider.Reply{Length: 99, Body: `{"input`})
	a := open(t, p)
	c := call(true)
	c.Header = http.Header{"Anthropic-Beta": {"a"}}
	n, err := a.CountTokens(t.Context(), c)
	if err != nil || n != 2095 {
		t.Errorf("%d, %v", n, err)
	}
	got := p.Requests()[0]
	if got.Path != "/v1/messages/count_tokens" || string(got.Body) != string(c.Body.Bytes()) || got.Header.Get("Anthropic-Beta") != "a" ||
		got.Header.Get("Anthropic-Version") != "2023-06-01" || got.Header.Get("X-Api-Key") != key ||
		got.Header.Get("Accept") != "application/json" {
		t.Errorf("sent %s %q %v", got.Path, got.Body, got.Header)
	}
	for range 6 {
		if n, err := a.CountTokens(t.Context(), call(false)); err == nil {
			t.Errorf("counted %d", n)
		} else if f := conformance.ChatFailure(t, err); f.Code != fault.UpstreamUnavailable && f.Code != fault.UpstreamConnectionError {
			t.Errorf("%v", f)
		}
	}
}

func TestNewRejects(t *testing.T) {
	t.Parallel()
	for _, target := range []upstream.Target{
		{Line: "main", BaseURL: "ftp://host"}, {Line: "main", BaseURL: "https://user:pass@host"}, {Line: "main", Options: map[string]any{"x": 1}},
	} {
		if _, err := anthropic.New(target, nil); err == nil || !strings.Contains(err.Error(), "line main") {
			t.Errorf("%+v: %v", target, err)
		}
	}
}
