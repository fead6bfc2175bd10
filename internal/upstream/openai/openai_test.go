package openai_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/openai"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-line-credential-0123456789"

// open returns the adapter of a line whose provider is p, with a new transport.
func open(t *testing.T, p *fakeprovider.Server) *openai.Adapter {
	t.Helper()
	transport := conformance.Transport(t)
	return openWith(t, p, transport)
}

func openWith(t *testing.T, p *fakeprovider.Server, transport http.RoundTripper) *openai.Adapter {
	t.Helper()
	a, err := openai.New(upstream.Target{Line: "main", Provider: openai.Provider, BaseURL: p.URL(), Key: key},
		transport)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func call(stream bool) chatcall.Call {
	return chatcall.Call{
		Form: wire.FormChat, Stream: stream, IdempotencyKey: "att_1",
		Body:   rawjson.Pieces{[]byte("{\"model\":\"vendor-model\",  \"odd\" : \"\\u00e9\" }")},
		Header: http.Header{"Anthropic-Beta": {"flag"}, "X-Client": {"secret"}},
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		reply, accept := fakeprovider.Answer("hi", 3, 1), "application/json"
		if stream {
			reply, accept = fakeprovider.Stream(3, 1, "hi"), "text/event-stream"
		}
		p := fakeprovider.New(t, reply)
		answer, err := open(t, p).Chat(t.Context(), call(stream))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(answer.Body); err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.Stream != stream || !strings.HasPrefix(answer.ContentType, accept) {
			t.Errorf("answer.Stream = %t, ContentType = %q", answer.Stream, answer.ContentType)
		}
		got := p.Requests()[0]
		if got.Method != http.MethodPost || got.Path != "/v1/chat/completions" {
			t.Errorf("%s %s", got.Method, got.Path)
		}
		if string(got.Body) != string(call(stream).Body.Bytes()) {
			t.Errorf("the provider got body %q, want the client's bytes", got.Body)
		}
		want := map[string]string{
			"Content-Type": "application/json", "Accept": accept, "Authorization": "Bearer " + key,
			"Idempotency-Key": "att_1", "User-Agent": "tollgate", "Content-Length": "44",
		}
		for name, value := range want {
			if got.Header.Get(name) != value {
				t.Errorf("header %s = %q, want %q", name, got.Header.Get(name), value)
			}
		}
		for name := range got.Header {
			if _, ok := want[name]; !ok {
				t.Errorf("unexpected header %s: %q", name, got.Header[name])
			}
		}
	}
}

func TestStreamPassesBytes(t *testing.T) {
	t.Parallel()
	raw := []string{": comment\n\n", "data: {\"a\":1}\r\n\r\n", "da", "ta: {}\n\n", "data: [DONE]\n\n"}
	p := fakeprovider.New(t, fakeprovider.Reply{ContentType: "text/event-stream; charset=utf-8", Raw: raw})
	answer, err := open(t, p).Chat(t.Context(), call(true))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err != nil || string(got) != strings.Join(raw, "") {
		t.Errorf("read %q, %v", got, err)
	}
}

// TestOutcomes tests a rejection of the request, and an error in place of a stream.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stream bool
		reply  fakeprovider.Reply
		code   fault.Code
		health upstream.Health
		passed int
	}{
		"rejection": {reply: fakeprovider.Error(400, "invalid_request_error", "context_length_exceeded", "too long"),
			code: "context_length_exceeded", passed: 400},
		"error": {stream: true, reply: fakeprovider.Reply{Body: `{"error":` + fakeprovider.ErrorObject("server_error", "", "oops") + `}`},
			code: fault.UpstreamUnavailable, health: upstream.HealthFail},
		"rate limit": {stream: true, reply: fakeprovider.Reply{Body: `{"error":{"code":429,"message":"slow down"}}`},
			code: fault.UpstreamBusy, health: upstream.HealthCool},
	} {
		_, err := open(t, fakeprovider.New(t, tt.reply)).Chat(t.Context(), call(tt.stream))
		f := conformance.ChatFailure(t, err)
		if f.Code != tt.code || f.Health != tt.health {
			t.Errorf("%s: code %s, health %s, want %s, %s (%v)", name, f.Code, f.Health, tt.code, tt.health, f)
		}
		if (f.Rejection != nil) != (tt.passed != 0) || f.Rejection != nil && f.Rejection.Status() != tt.passed {
			t.Errorf("%s: passed on: %+v", name, f.Rejection)
		}
	}
}

func TestCloseCancelsTheCall(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{}, 1)
	gate <- struct{}{}
	p := fakeprovider.New(t, fakeprovider.Reply{Events: []string{fakeprovider.Text("a"), fakeprovider.Text("b")}, Gate: gate})
	answer, err := open(t, p).Chat(t.Context(), call(true))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := answer.Body.Read(make([]byte, 4096)); err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	answer.Body.Close() // the second Close must be a no-op
	p.WaitReplyEnd()
	if p.Disconnects() != 1 {
		t.Error("the provider did not see the disconnect")
	}
}

// TestNeverSentTwice checks that a request is not sent again if the provider closes a reused
// connection after reading the request. By default, net/http repeats a POST that has an
// Idempotency-Key.
func TestNeverSentTwice(t *testing.T) {
	t.Parallel()
	for name, breakage := range map[string]fakeprovider.Break{"closed": fakeprovider.Cut, "reset": fakeprovider.Reset} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := fakeprovider.New(t, fakeprovider.Answer("warm", 1, 1), fakeprovider.Reply{Before: breakage})
			a := open(t, p)
			readAll(t, a, false)
			_, err := a.Chat(t.Context(), call(false))
			if f := conformance.ChatFailure(t, err); f.Code != fault.UpstreamConnectionError {
				t.Errorf("%v, want %s", f, fault.UpstreamConnectionError)
			}
			got := p.Requests()
			if len(got) != 2 {
				t.Fatalf("%d requests reached the provider, want 2", len(got))
			}
			if got[0].From != got[1].From {
				t.Error("the second call did not reuse the connection, so this test checks nothing")
			}
		})
	}
}

// TestUnsentIsRetried checks that the next call succeeds after the provider closed the idle
// connection. Nothing was sent on the closed connection, so the call may use a new connection.
func TestUnsentIsRetried(t *testing.T) {
	t.Parallel()
	dialed := make(chan net.Conn, 8)
	transport := conformance.Transport(t, func(standard *http.Transport) {
		dial := standard.DialContext
		standard.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dial(ctx, network, address)
			dialed <- c
			return c, err
		}
	})
	p := fakeprovider.New(t, fakeprovider.Answer("one", 1, 1), fakeprovider.Answer("two", 1, 1))
	a := openWith(t, p, transport)
	readAll(t, a, false)
	p.DropConnections()
	if n, err := (<-dialed).Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) { // waits for the end
		t.Fatalf("the dropped connection has %d bytes, %v", n, err)
	}
	readAll(t, a, false)
	if got := p.Requests(); len(got) != 2 || got[0].From == got[1].From {
		t.Errorf("%d requests, want 2 on two connections", len(got))
	}
}

// TestConnectionIsKept checks that calls reuse the connection, even after a stream whose reader
// stopped at [DONE].
func TestConnectionIsKept(t *testing.T) {
	t.Parallel()
	p := fakeprovider.New(t, fakeprovider.Answer("one", 1, 1), fakeprovider.Stream(1, 1, "two"),
		fakeprovider.Error(400, "invalid_request_error", "", "three"), fakeprovider.Answer("four", 1, 1))
	a := open(t, p)
	readAll(t, a, false)
	answer, err := a.Chat(t.Context(), call(true))
	if err != nil {
		t.Fatal(err)
	}
	var read strings.Builder
	for !strings.HasSuffix(read.String(), "data: [DONE]\n\n") {
		buffer := make([]byte, 7)
		n, err := answer.Body.Read(buffer)
		read.Write(buffer[:n])
		if err != nil {
			break
		}
	}
	answer.Body.Close()
	if _, err := a.Chat(t.Context(), call(false)); err == nil {
		t.Fatal("no error")
	}
	readAll(t, a, false)
	for i, r := range p.Requests() {
		if r.From != p.Requests()[0].From {
			t.Errorf("request %d did not reuse the connection", i)
		}
	}
}

func readAll(t *testing.T, a *openai.Adapter, stream bool) {
	t.Helper()
	answer, err := a.Chat(t.Context(), call(stream))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.ReadAll(answer.Body); err != nil {
		t.Fatal(err)
	}
}

func TestHTTP2(t *testing.T) {
	t.Parallel()
	p := fakeprovider.NewTLS(t, fakeprovider.Stream(3, 2, "a", "b"),
		fakeprovider.Reply{Events: []string{fakeprovider.Text("a")}, End: fakeprovider.Cut})
	transport := conformance.Transport(t, func(standard *http.Transport) { standard.TLSClientConfig = p.Transport().TLSClientConfig })
	a := openWith(t, p, transport)
	readAll(t, a, true)
	answer, err := a.Chat(t.Context(), call(true))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.ReadAll(answer.Body); err == nil {
		t.Error("the broken stream ended without an error")
	}
	for _, r := range p.Requests() {
		if r.Header.Get("Idempotency-Key") != "att_1" {
			t.Errorf("idempotency key %q", r.Header.Get("Idempotency-Key"))
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"ftp://host/v1", "host/v1", "http://", "https://user:pass@host/v1", "https://host/v1?x=1",
		"https://host/v1#x", "://"} {
		if _, err := openai.New(upstream.Target{Line: "main", BaseURL: base}, nil); err == nil {
			t.Errorf("base address %q was accepted", base)
		} else if strings.Contains(err.Error(), "pass") {
			t.Errorf("the error repeats the address: %v", err)
		}
	}
	if _, err := openai.New(upstream.Target{Line: "main", Options: map[string]any{"x": 1}}, nil); err == nil {
		t.Error("an unknown option was accepted")
	}
	if err := openai.Info().CheckOptions(nil); err != nil {
		t.Error(err)
	}
}
