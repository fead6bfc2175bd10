package gemini_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/gemini"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "AIza-line-credential-0123456789"

// open returns the adapter of a line whose provider is p, with a new transport.
func open(t *testing.T, p *fakeprovider.Server) *gemini.Adapter {
	t.Helper()
	transport := conformance.Transport(t)
	a, err := gemini.New(upstream.Target{Line: "main", Provider: gemini.Provider, BaseURL: p.URL(), Key: key},
		transport)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func call(stream bool) chatcall.Call {
	return chatcall.Call{
		Form: wire.FormGemini, Model: "gemini-3-flash", Stream: stream, IdempotencyKey: "att_1",
		Body:   rawjson.Pieces{[]byte(` {"contents":[ ],  "odd" : "\u00e9" } `)},
		Header: http.Header{"Anthropic-Beta": {"flag"}},
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		model  string
		stream bool
		uri    string
	}{
		"whole":       {"gemini-3-flash", false, "/v1/models/gemini-3-flash:generateContent"},
		"stream":      {"gemini-3-flash", true, "/v1/models/gemini-3-flash:streamGenerateContent?alt=sse"},
		"with folder": {"tunedModels/mine-1", false, "/v1/tunedModels/mine-1:generateContent"},
		"odd name":    {"a b?c=%2Fd", false, "/v1/models/a%20b%3Fc=%252Fd:generateContent"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reply, accept := fakeprovider.GeminiAnswer("hi", 3, 1), "application/json"
			if tt.stream {
				reply, accept = fakeprovider.GeminiStream(3, 1, "hi"), "text/event-stream"
			}
			p := fakeprovider.New(t, reply)
			c := call(tt.stream)
			c.Model = tt.model
			answer, err := open(t, p).Chat(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			data, err := io.ReadAll(answer.Body)
			if err != nil || !strings.Contains(string(data), `"text":"hi"`) {
				t.Errorf("%v: %s", err, data)
			}
			if answer.Stream != tt.stream || !strings.HasPrefix(answer.ContentType, accept) {
				t.Errorf("answer.Stream = %t, ContentType = %q", answer.Stream, answer.ContentType)
			}
			got := p.Requests()[0]
			if got.Method != http.MethodPost || got.URI != tt.uri || string(got.Body) != string(c.Body.Bytes()) {
				t.Errorf("%s %s %s", got.Method, got.URI, got.Body)
			}
			for name, value := range map[string]string{"X-Goog-Api-Key": key, "Accept": accept, "Content-Type": "application/json",
				"Anthropic-Beta": "", "Authorization": ""} {
				if got.Header.Get(name) != value {
					t.Errorf("header %s = %q, want %q", name, got.Header.Get(name), value)
				}
			}
		})
	}
}

// TestOutcomes tests the failures for Google's errors. Package upstream tests every error format.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reply  fakeprovider.Reply
		code   fault.Code
		health upstream.Health
		passed int
		wait   time.Duration
	}{
		"argument": {reply: fakeprovider.GeminiError(400, "INVALID_ARGUMENT", "too long"), code: "400", passed: 400},
		"in an array": {reply: fakeprovider.Reply{Status: 400, Body: "[" + fakeprovider.GeminiErrorObject(400, "INVALID_ARGUMENT", "x") + "\n]"},
			code: "400", passed: 400},
		"key": {reply: fakeprovider.GeminiError(400, "INVALID_ARGUMENT", "x", fakeprovider.GeminiReason("API_KEY_INVALID")),
			code: fault.UpstreamUnavailable, health: upstream.HealthCredential},
		"key blocked": {reply: fakeprovider.GeminiError(400, "INVALID_ARGUMENT", "x", fakeprovider.GeminiReason("API_KEY_SERVICE_BLOCKED")),
			code: fault.UpstreamUnavailable, health: upstream.HealthCredential},
		"billing": {reply: fakeprovider.GeminiError(400, "FAILED_PRECONDITION", "x"), code: fault.UpstreamUnavailable,
			health: upstream.HealthCredential},
		"leaked": {reply: fakeprovider.GeminiError(403, "PERMISSION_DENIED", "x"), code: fault.UpstreamUnavailable,
			health: upstream.HealthCredential},
		"model": {reply: fakeprovider.GeminiError(404, "NOT_FOUND", "x"), code: fault.UpstreamUnavailable, health: upstream.HealthModel},
		"overload": {reply: fakeprovider.GeminiError(503, "UNAVAILABLE", "The model is overloaded."), code: fault.UpstreamBusy,
			health: upstream.HealthCool},
		"internal": {reply: fakeprovider.GeminiError(500, "INTERNAL", "x"), code: fault.UpstreamUnavailable, health: upstream.HealthFail},
		"deadline": {reply: fakeprovider.GeminiError(504, "DEADLINE_EXCEEDED", "x"), code: fault.UpstreamTimeout, health: upstream.HealthFail},
		"exhausted": {reply: fakeprovider.GeminiError(429, "RESOURCE_EXHAUSTED", "x", fakeprovider.GeminiRetry("3.5s")),
			code: fault.UpstreamBusy, health: upstream.HealthCool, wait: 3500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := fakeprovider.New(t, tt.reply, tt.reply)
			a := open(t, p)
			_, err := a.Chat(t.Context(), call(true))
			_, errCount := a.CountTokens(t.Context(), call(false))
			for _, err := range []error{err, errCount} {
				f := conformance.ChatFailure(t, err)
				if f.Code != tt.code || f.Health != tt.health || f.RetryAfter != tt.wait {
					t.Errorf("code %s, health %s, wait %s", f.Code, f.Health, f.RetryAfter)
				}
				if (f.Rejection != nil) != (tt.passed != 0) || f.Rejection != nil && f.Rejection.Status() != tt.passed {
					t.Errorf("passed on: %+v", f.Rejection)
				}
			}
		})
	}
}

func TestCountTokens(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ body, sent string }{
		"request": {` {"contents":[]} `, `{"generateContentRequest":{"model":"models/gemini-3-flash","contents":[]}}`},
		"empty":   {`{ }`, `{"generateContentRequest":{"model":"models/gemini-3-flash" }}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := fakeprovider.New(t, fakeprovider.Reply{Body: `{"totalTokens":31,"promptTokensDetails":[]}`})
			c := call(true)
			c.Body = rawjson.Pieces{[]byte(tt.body)}
			n, err := open(t, p).CountTokens(t.Context(), c)
			if err != nil || n != 31 {
				t.Errorf("%d, %v", n, err)
			}
			got := p.Requests()[0]
			if got.URI != "/v1/models/gemini-3-flash:countTokens" || string(got.Body) != tt.sent {
				t.Errorf("%s %s", got.URI, got.Body)
			}
		})
	}
	for _, body := range []string{`{}`, `{"totalTokens":"many"}`, `{"totalTokens":-1}`, `[]`,
		`{"totalTokens":1,"x":"` + strings.Repeat("x", 70<<10) + `"}`} {
		p := fakeprovider.New(t, fakeprovider.Reply{Body: body})
		if n, err := open(t, p).CountTokens(t.Context(), call(false)); err == nil {
			t.Errorf("%.40s: %d", body, n)
		}
	}
}

func TestRefusesBeforeSending(t *testing.T) {
	t.Parallel()
	a := open(t, fakeprovider.New(t))
	for _, model := range []string{"", "../files", "models/..", "models//x", "./x"} {
		c := call(false)
		c.Model = model
		_, err := a.Chat(t.Context(), c)
		if f := conformance.ChatFailure(t, err); f.Health != upstream.HealthModel {
			t.Errorf("%q: %v, health %s", model, f, f.Health)
		}
	}
	c := call(false)
	c.Form = wire.FormChat
	_, errChat := a.Chat(t.Context(), c)
	_, errCount := a.CountTokens(t.Context(), c)
	for _, err := range []error{errChat, errCount} {
		if f := conformance.ChatFailure(t, err); f.Code != fault.UpstreamUnavailable {
			t.Errorf("another form: %v", f)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, target := range []upstream.Target{
		{Line: "main", BaseURL: "ftp://host"},
		{Line: "main", Options: map[string]any{"x": 1}},
	} {
		if _, err := gemini.New(target, nil); err == nil || !strings.Contains(err.Error(), "line main") {
			t.Errorf("%+v: %v", target, err)
		}
	}
}
