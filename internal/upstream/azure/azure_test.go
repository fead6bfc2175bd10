package azure_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakecloud"
	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/azure"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/credential"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "azure-credential-0123456789"

func call(form wire.Form, stream bool) chatcall.Call {
	return chatcall.Call{
		Form: form, Stream: stream, Model: "deployment", IdempotencyKey: "att_1",
		Body:   rawjson.Pieces{[]byte(`{"model":"deployment",  "odd" : "\u00e9" }`)},
		Header: http.Header{"Anthropic-Beta": {"flag"}, "X-Client": {"secret"}},
	}
}

func picture() jobcall.Task {
	return jobcall.Task{Kind: upstream.KindImage, Model: "gpt-image-2", Prompt: "a fox", Count: 1, Tier: "1K", Ratio: "1:1",
		Width: 1024, Height: 1024, Key: "sub_1", AcquireRead: freely}
}

func clip() jobcall.Task {
	return jobcall.Task{Kind: upstream.KindVideo, Model: "sora-2", Prompt: "a fox runs", Count: 1, Tier: "720p", Ratio: "16:9",
		Width: 1280, Height: 720, Seconds: 8, Key: "sub_1", AcquireRead: freely}
}

func freely(context.Context) (func(), error) { return func() {}, nil }

// line is a line with its fake provider and token issuer.
type line struct {
	*azure.Adapter
	provider *fakeprovider.Server
	tokens   *fakecloud.Tokens
	later    time.Duration // offset of the clock
}

// open opens a line with a fake provider as its base address. The provider answers every call with
// a valid token.
func open(t *testing.T, key string, options map[string]any) *line {
	t.Helper()
	l := &line{provider: fakeprovider.New(t), tokens: fakecloud.NewTokens(t)}
	l.provider.Always(func(r fakeprovider.Request) fakeprovider.Reply {
		if options != nil && r.Header.Get("Authorization") != "Bearer "+l.tokens.Current() {
			return fakeprovider.JSON(401, `{"statusCode":401,"message":"Access token is missing, invalid or expired: `+
				r.Header.Get("Authorization")+`"}`)
		}
		return fakeprovider.Good(formOf(r), r.IsStream())
	})
	transport := conformance.Transport(t, l.tokens.Trust)
	keeper := &credential.Keeper{Now: func() time.Time { return time.Now().Add(l.later) }}
	t.Cleanup(keeper.Close)
	if options != nil {
		options["authority"] = l.tokens.URL
	}
	a, err := azure.New(upstream.Target{Line: "main", Provider: azure.Provider, BaseURL: strings.TrimSuffix(l.provider.URL(), "/v1"),
		Key:     key,
		Options: options}, transport, keeper)
	if err != nil {
		t.Fatal(err)
	}
	l.Adapter = a
	return l
}

func formOf(r fakeprovider.Request) string {
	switch {
	case strings.HasSuffix(r.Path, "/responses"):
		return "responses"
	case strings.HasSuffix(r.Path, "/messages"):
		return "messages"
	}
	return "chat"
}

// ask makes a call and reads the answer.
func (l *line) ask(t *testing.T, form wire.Form) error {
	return conformance.Ask(t, l, call(form, false))
}

// TestKey tests that each surface of a resource gets the key in its own header.
func TestKey(t *testing.T) {
	t.Parallel()
	for form, want := range map[wire.Form]struct{ path, header string }{
		wire.FormChat:      {"/openai/v1/chat/completions", "Api-Key"},
		wire.FormResponses: {"/openai/v1/responses", "Api-Key"},
		wire.FormMessages:  {"/anthropic/v1/messages", "X-Api-Key"},
	} {
		l := open(t, key, nil)
		if err := l.ask(t, form); err != nil {
			t.Errorf("%s: %v", form, err)
			continue
		}
		r := l.provider.Requests()[0]
		if r.URI != want.path || r.Header.Get(want.header) != key || r.Header.Get("Authorization") != "" ||
			string(r.Body) != string(call(form, false).Body.Bytes()) {
			t.Errorf("%s: %s %v %s", form, r.URI, r.Header, r.Body)
		}
		if r.Header.Get("X-Client") != "" || (r.Header.Get("Anthropic-Beta") == "flag") != (form == wire.FormMessages) {
			t.Errorf("%s: a client's header: %v", form, r.Header)
		}
	}
}

// TestClientSecret checks that the first call requests a token, and that the token serves all
// surfaces and calls.
func TestClientSecret(t *testing.T) {
	t.Parallel()
	l := open(t, "entra-secret-0123456789", map[string]any{"auth": "client_secret", "tenant": "a-tenant", "client_id": "a-client"})
	if n := len(l.tokens.Forms()); n != 0 {
		t.Errorf("%d tokens before a call", n)
	}
	for _, form := range []wire.Form{wire.FormChat, wire.FormResponses, wire.FormMessages, wire.FormChat} {
		if err := l.ask(t, form); err != nil {
			t.Errorf("%s: %v", form, err)
		}
	}
	requests := l.tokens.Forms()
	if len(requests) != 1 || requests[0].Get("client_id") != "a-client" || requests[0].Get("client_secret") != "entra-secret-0123456789" ||
		requests[0].Get("grant_type") != "client_credentials" || !strings.Contains(requests[0].Get("scope"),
		"https://cognitiveservices.azure.com/.default") {
		t.Errorf("requests %v", requests)
	}
	for _, r := range l.provider.Requests() {
		if r.Header.Get("Api-Key") != "" || r.Header.Get("X-Api-Key") != "" {
			t.Errorf("a key was sent: %v", r.Header)
		}
	}
}

// TestWorkloadIdentity tests that the content of the token file replaces a secret.
func TestWorkloadIdentity(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("assertion-of-the-cluster"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := open(t, "", map[string]any{"auth": "workload_identity", "tenant": "a-tenant", "client_id": "a-client", "token_file": file,
		"scope": "https://ai.azure.com/.default"})
	if err := l.ask(t, wire.FormChat); err != nil {
		t.Fatal(err)
	}
	if request := l.tokens.Forms()[0]; request.Get("client_assertion") != "assertion-of-the-cluster" ||
		!strings.Contains(request.Get("scope"), "https://ai.azure.com/.default") {
		t.Errorf("request %v", request)
	}
}

// TestManagedIdentity tests a token from the host, in the format of App Service.
func TestManagedIdentity(t *testing.T) {
	host := fakecloud.NewPlainTokens(t)
	t.Setenv("IDENTITY_ENDPOINT", host.URL+"/msi/token")
	t.Setenv("IDENTITY_HEADER", "a-header")
	l := open(t, "", map[string]any{"auth": "managed_identity", "client_id": "11111111-2222-3333-4444-555555555555"})
	l.tokens = host
	if err := l.ask(t, wire.FormChat); err != nil {
		t.Fatal(err)
	}
	if requests := host.Forms(); len(requests) != 1 || requests[0].Get("resource") != "https://cognitiveservices.azure.com" ||
		requests[0].Get("client_id") != "11111111-2222-3333-4444-555555555555" {
		t.Errorf("requests %v", requests)
	}
}

// TestRefusedToken tests that a rejected token is renewed once; another rejection is a failure of
// the line's credential. Failures contain neither token.
func TestRefusedToken(t *testing.T) {
	t.Parallel()
	l := open(t, "entra-secret-0123456789", map[string]any{"auth": "client_secret", "tenant": "a-tenant", "client_id": "a-client"})
	if err := l.ask(t, wire.FormChat); err != nil {
		t.Fatal(err)
	}
	l.tokens.Revoke()
	l.later = 2 * time.Minute
	if err := l.ask(t, wire.FormChat); err != nil {
		t.Errorf("a revoked token: %v", err)
	}
	if n := len(l.provider.Requests()); n != 3 {
		t.Errorf("%d calls, want 3", n)
	}
	token := l.tokens.Current()
	l.tokens.Revoke()
	f := conformance.ChatFailure(t, l.ask(t, wire.FormMessages))
	if f.Health != upstream.HealthCredential || f.Final() || len(l.provider.Requests()) != 4 {
		t.Errorf("a rejected new token: %v, health %s, %d calls", f, f.Health, len(l.provider.Requests()))
	}
	if strings.Contains(f.Error(), token) || !strings.Contains(f.Error(), "[redacted]") {
		t.Errorf("the failure has the secret: %v", f)
	}
}

// TestNoToken tests that a failed token request is the line's failure and makes no call to the
// provider.
func TestNoToken(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status int
		body   string
		want   upstream.Health
	}{
		"a bad secret": {401,
			`{"error":"invalid_client","error_description":"AADSTS7000215: entra-secret-0123456789 is not right","error_codes":[7000215]}`,
			upstream.HealthCredential},
		"away": {503, `{"error":"temporarily_unavailable"}`, upstream.HealthFail},
		"busy": {429, `{"error":"temporarily_unavailable"}`, upstream.HealthFail},
	} {
		l := open(t, "entra-secret-0123456789", map[string]any{"auth": "client_secret", "tenant": "a-tenant", "client_id": "a-client"})
		l.tokens.Refuse(tt.status, tt.body)
		f := conformance.ChatFailure(t, l.ask(t, wire.FormChat))
		if f.Code != fault.UpstreamUnavailable || f.Health != tt.want || f.Final() || f.Unproven || len(l.provider.Requests()) != 0 {
			t.Errorf("%s: %v, health %s", name, f, f.Health)
		}
		if strings.Contains(f.Error(), "entra-secret") || strings.Contains(f.Fault().Message(), "AADSTS") {
			t.Errorf("%s: the failure has the secret: %v; %s", name, f, f.Fault().Message())
		}
		_, err := l.Submit(t.Context(), picture())
		var job *upstream.JobFailure
		if !errors.As(err, &job) || job.Lost || job.Next != upstream.NextLine {
			t.Errorf("%s: a job: %+v", name, err)
		}
		l.tokens.Refuse(0, "")
		if err := l.ask(t, wire.FormChat); err != nil {
			t.Errorf("%s: afterwards: %v", name, err)
		}
	}
}

// TestMissingFile tests that a file missing on the node is the line's failure too.
func TestMissingFile(t *testing.T) {
	t.Parallel()
	l := open(t, "", map[string]any{"auth": "workload_identity", "tenant": "a-tenant", "client_id": "a-client",
		"token_file": "/nowhere/to/be/read"})
	if f := conformance.ChatFailure(t, l.ask(t, wire.FormChat)); f.Code != fault.UpstreamUnavailable || !strings.Contains(f.Error(),
		"/nowhere/to/be/read") {
		t.Errorf("%v", f)
	}
}

// TestOptions checks that errors name the option.
func TestOptions(t *testing.T) {
	t.Parallel()
	info := azure.Info()
	conformance.CheckInvalidOptions(t, info, map[string]map[string]any{
		"auth: must be one of":        {"auth": "password"},
		"tenant: is required":         {"auth": "client_secret", "client_id": "x"},
		"client_id: is required":      {"auth": "client_secret", "tenant": "x"},
		"tenant: must contain only":   {"auth": "client_secret", "tenant": "a/b", "client_id": "x"},
		"authority: must be an https": {"authority": "http://login.example"},
		"scope: must be text":         {"scope": int64(3)},
		"version: unknown option. The options of provider azure are api_version, auth, authority, client_id, scope, tenant": {"version": "v1"},
		"api_version: must contain only": {"api_version": "a&b"},
	})
	for name, keyless := range map[string]bool{"api_key": false, "client_secret": false, "workload_identity": true,
		"managed_identity": true} {
		if info.Keyless(map[string]any{"auth": name}) != keyless {
			t.Errorf("%s", name)
		}
	}
}
