package vertex_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tollgate/internal/gatewaytest/fakecloud"
	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/credential"
	"tollgate/internal/upstream/vertex"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "vertex-credential-0123456789"

func call(form wire.Form, stream bool) chatcall.Call {
	c := chatcall.Call{Form: form, Stream: stream, Model: "gemini-3-flash", IdempotencyKey: "att_1",
		Body:   rawjson.Pieces{[]byte(` {"contents":[ ],  "odd" : "\u00e9" } `)},
		Header: http.Header{"Anthropic-Beta": {"flag"}, "X-Client": {"secret"}}}
	if form == wire.FormMessages {
		c.Model = "claude-sonnet-4-5@20250929"
		c.Body = rawjson.Pieces{[]byte(`{"model":"claude-sonnet-4-5@20250929", "max_tokens": 9,"odd" : "\u00e9" }`)}
	}
	return c
}

// line is a line with its fake provider and token issuer.
type line struct {
	*vertex.Adapter
	provider    *fakeprovider.Server
	tokens      *fakecloud.Tokens
	keeper      *credential.Keeper
	clockOffset time.Duration // added to the time of keeper
}

// open opens a line with a fake provider as its base address. The provider answers every call with
// a valid token.
func open(t *testing.T, key func(*fakecloud.Tokens) string, options map[string]any) *line {
	t.Helper()
	l := &line{provider: fakeprovider.New(t), tokens: fakecloud.NewPlainTokens(t)}
	l.provider.Always(func(r fakeprovider.Request) fakeprovider.Reply {
		if options["auth"] != nil && r.Header.Get("Authorization") != "Bearer "+l.tokens.Current() {
			return fakeprovider.JSON(401, "["+fakeprovider.GeminiErrorObject(401, "UNAUTHENTICATED", "Request had invalid credentials: "+
				r.Header.Get("Authorization"))+"]")
		}
		switch {
		case strings.HasSuffix(r.Path, ":countTokens"):
			return fakeprovider.JSON(200, `{"totalTokens":31}`)
		case strings.Contains(r.Path, "/count-tokens:"):
			return fakeprovider.NativeCount(32)
		case strings.Contains(r.Path, "/anthropic/"):
			return fakeprovider.Good("messages", strings.HasSuffix(r.Path, ":streamRawPredict"))
		}
		return fakeprovider.Good("gemini", r.IsStream())
	})
	transport := conformance.Transport(t)
	l.keeper = &credential.Keeper{Now: func() time.Time { return time.Now().Add(l.clockOffset) }}
	t.Cleanup(l.keeper.Close)
	a, err := vertex.New(upstream.Target{Line: "main", Provider: vertex.Provider, BaseURL: l.provider.URL(), Key: key(l.tokens),
		Options: options},
		transport, l.keeper)
	if err != nil {
		t.Fatal(err)
	}
	l.Adapter = a
	return l
}

func always(text string) func(*fakecloud.Tokens) string {
	return func(*fakecloud.Tokens) string { return text }
}

// ask makes a call and reads the answer.
func (l *line) ask(t *testing.T, c chatcall.Call) error { return conformance.Ask(t, l, c) }

// TestRequests tests the address of a call and the converted parts of its body.
func TestRequests(t *testing.T) {
	t.Parallel()
	const claude = `{ "max_tokens": 9,"odd" : "\u00e9","anthropic_version":"vertex-2023-10-16" }`
	project := map[string]any{"project": "a-project", "location": "europe-west1"}
	for name, tt := range map[string]struct {
		options   map[string]any
		form      wire.Form
		stream    bool
		uri, body string
	}{
		"express": {nil, wire.FormGemini, false, "/v1/publishers/google/models/gemini-3-flash:generateContent",
			string(call(wire.FormGemini, false).Body.Bytes())},
		"gemini": {project, wire.FormGemini, true,
			"/v1/projects/a-project/locations/europe-west1/publishers/google/models/gemini-3-flash:streamGenerateContent?alt=sse",
			string(call(wire.FormGemini, true).Body.Bytes())},
		"claude": {project, wire.FormMessages, false,
			"/v1/projects/a-project/locations/europe-west1/publishers/anthropic/models/claude-sonnet-4-5@20250929:rawPredict", claude},
		"claude, streamed": {map[string]any{"project": "a-project"}, wire.FormMessages, true,
			"/v1/projects/a-project/locations/global/publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict", claude},
	} {
		l := open(t, always(key), tt.options)
		if err := l.ask(t, call(tt.form, tt.stream)); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r := l.provider.Requests()[0]
		if r.URI != tt.uri || string(r.Body) != tt.body || r.Header.Get("X-Goog-Api-Key") != key || r.Header.Get("X-Client") != "" {
			t.Errorf("%s: %s %s %v", name, r.URI, r.Body, r.Header)
		}
		if flag := r.Header.Get("Anthropic-Beta"); (flag == "flag") != (tt.form == wire.FormMessages) {
			t.Errorf("%s: flags %q", name, flag)
		}
	}
}

// TestIDsOfCalls tests that only the IDs of function calls and results are removed, because Vertex
// AI does not know them. Members with the same name elsewhere stay.
func TestIDsOfCalls(t *testing.T) {
	t.Parallel()
	l := open(t, always(key), nil)
	c := call(wire.FormGemini, false)
	const body = `{"contents":[{"role":"model","parts":[{"text":"\"id\""},{"functionCall":{ID1"name":"f","args":{"id":7}},"odd":1}]},` +
		`{"role":"user","parts":[{"functionResponse":{"name":"f"ID2,"response":{"id":8}}}]}],` +
		`"tools":[{"functionDeclarations":[{"name":"f"}]}]}`
	c.Body = rawjson.Pieces{[]byte(strings.NewReplacer("ID1", `"id":"c1",`, "ID2", `,"id":"c1"`).Replace(body))}
	if err := l.ask(t, c); err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer("ID1", "", "ID2", "").Replace(body)
	if got := string(l.provider.Requests()[0].Body); got != want {
		t.Errorf("sent %s\nwant %s", got, want)
	}
}

// TestCountTokens checks the token counts of both publishers.
func TestCountTokens(t *testing.T) {
	t.Parallel()
	l := open(t, always(key), nil)
	c := call(wire.FormGemini, false)
	c.Body = rawjson.Pieces{[]byte(`{"contents":[{"parts":[]}],"safetySettings":[],"systemInstruction":{"parts":[]}}`)}
	if n, err := l.CountTokens(t.Context(), c); n != 31 || err != nil {
		t.Errorf("gemini: %d, %v", n, err)
	}
	if n, err := l.CountTokens(t.Context(), call(wire.FormMessages, false)); n != 32 || err != nil {
		t.Errorf("claude: %d, %v", n, err)
	}
	requests := l.provider.Requests()
	if got := string(requests[0].Body); got != `{"contents":[{"parts":[]}],"systemInstruction":{"parts":[]}}` {
		t.Errorf("gemini: %s", got)
	}
	if requests[1].URI != "/v1/publishers/anthropic/models/count-tokens:rawPredict" ||
		!strings.Contains(string(requests[1].Body), `"model":"claude-sonnet-4-5@20250929"`) {
		t.Errorf("claude: %s %s", requests[1].URI, requests[1].Body)
	}
}

// TestServiceAccount tests that a service account's token is renewed after a rejection, and that no
// failure contains the token.
func TestServiceAccount(t *testing.T) {
	t.Parallel()
	l := open(t, func(o *fakecloud.Tokens) string { return o.ServiceAccount(t) }, map[string]any{"auth": "service_account",
		"project": "p"})
	for _, form := range []wire.Form{wire.FormGemini, wire.FormMessages} {
		if err := l.ask(t, call(form, false)); err != nil {
			t.Fatal(err)
		}
	}
	requests := l.tokens.Forms()
	if len(requests) != 1 || requests[0].Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" ||
		strings.Count(requests[0].Get("assertion"), ".") != 2 {
		t.Errorf("requests %v", requests)
	}
	l.tokens.Revoke()
	l.clockOffset = 2 * time.Minute
	if err := l.ask(t, call(wire.FormGemini, true)); err != nil {
		t.Errorf("call after a token was revoked: %v", err)
	}
	token := l.tokens.Current()
	l.tokens.Revoke()
	f := conformance.ChatFailure(t, l.ask(t, call(wire.FormGemini, true)))
	if f.Health != upstream.HealthCredential || f.Final() || strings.Contains(f.Error(), token) || len(l.provider.Requests()) != 5 {
		t.Errorf("the provider rejects a renewed token: %v, health %s, %d calls", f, f.Health, len(l.provider.Requests()))
	}
	l.clockOffset = 2 * time.Hour
	l.tokens.Refuse(400, `{"error":"invalid_grant","error_description":"Invalid JWT"}`)
	if f := conformance.ChatFailure(t, l.ask(t, call(wire.FormGemini, true))); f.Health != upstream.HealthCredential || f.Final() {
		t.Errorf("the issuer rejects the account: %v, health %s", f, f.Health)
	}
	l.tokens.Refuse(503, `{}`)
	if f := conformance.ChatFailure(t, l.ask(t, call(wire.FormGemini, true))); f.Health != upstream.HealthFail {
		t.Errorf("the issuer fails: %v, health %s", f, f.Health)
	}
}

// TestWorkloadIdentity tests the exchange of the subject token from the file.
func TestWorkloadIdentity(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("subject-of-the-cluster"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := open(t, func(o *fakecloud.Tokens) string { return o.ExternalAccount(t, file) }, map[string]any{"auth": "workload_identity",
		"project": "p"})
	if err := l.ask(t, call(wire.FormGemini, false)); err != nil {
		t.Fatal(err)
	}
	if requests := l.tokens.Forms(); len(requests) != 1 || requests[0].Get("subject_token") != "subject-of-the-cluster" {
		t.Errorf("requests %v", requests)
	}
}

// TestMetadata tests a token from the metadata host.
func TestMetadata(t *testing.T) {
	host := fakecloud.NewPlainTokens(t)
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(host.URL, "http://"))
	l := open(t, always(""), map[string]any{"auth": "metadata", "project": "p"})
	l.tokens = host
	if err := l.ask(t, call(wire.FormMessages, true)); err != nil {
		t.Fatal(err)
	}
	if requests := host.Forms(); len(requests) != 1 || requests[0].Get("scopes") != "https://www.googleapis.com/auth/cloud-platform" {
		t.Errorf("requests %v", requests)
	}
	host.Refuse(404, "no account")
	l.clockOffset = 2 * time.Hour
	if f := conformance.ChatFailure(t, l.ask(t, call(wire.FormMessages, true))); f.Health != upstream.HealthCredential || f.Final() {
		t.Errorf("a machine without a service account: %v, health %s", f, f.Health)
	}
}

// TestMetadataThatStalls tests that a metadata host that never responds blocks neither calls nor the
// end of the process.
func TestMetadataThatStalls(t *testing.T) {
	requests := make(chan struct{}, 1)
	host := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		requests <- struct{}{}
		<-r.Context().Done()
	}))
	defer host.Close()
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(host.URL, "http://"))
	l := open(t, always(""), map[string]any{"auth": "metadata", "project": "p"})
	failed := make(chan error, 1)
	go func() { failed <- l.ask(t, call(wire.FormGemini, false)) }()
	<-requests
	l.keeper.Close()
	if f := conformance.ChatFailure(t, <-failed); f.Health != upstream.HealthFail {
		t.Errorf("%v, health %s", f, f.Health)
	}
}

// TestAccountsOfAnotherType tests that a credential of another type than the option auth is rejected,
// and that no credential can run a program.
func TestAccountsOfAnotherType(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ auth, text string }{
		"no JSON":      {"service_account", "private-key-0123456789"},
		"another type": {"service_account", `{"type":"external_account","token_url":"http://127.0.0.1:1/"}`},
		"user":         {"workload_identity", `{"type":"authorized_user","refresh_token":"private-key-0123456789"}`},
		"a program": {"workload_identity",
			`{"type":"external_account","credential_source":{"executable":{"command":"/bin/true"}}}`},
		"half an account": {"service_account", `{"type":"service_account","private_key":"private-key-0123456789"}`},
	} {
		l := open(t, always(tt.text), map[string]any{"auth": tt.auth, "project": "p"})
		f := conformance.ChatFailure(t, l.ask(t, call(wire.FormGemini, false)))
		if f.Health == upstream.HealthNone || f.Final() || strings.Contains(f.Error(), "private-key") || len(l.provider.Requests()) != 0 {
			t.Errorf("%s: %v, health %s", name, f, f.Health)
		}
	}
}

// TestAddresses checks that the location decides the host of a line without a base_url.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for location, want := range map[string]string{
		"": "aiplatform.googleapis.com", "global": "aiplatform.googleapis.com", "us": "aiplatform.us.rep.googleapis.com",
		"eu": "aiplatform.eu.rep.googleapis.com", "europe-west4": "europe-west4-aiplatform.googleapis.com",
	} {
		options := map[string]any{"project": "p"}
		if location != "" {
			options["location"] = location
		}
		host := ""
		transport := roundTripper(func(r *http.Request) (*http.Response, error) {
			host = r.URL.Host
			return nil, errors.New("no network")
		})
		a, err := vertex.New(upstream.Target{Line: "main", BaseURL: vertex.Info().DefaultBaseURL, Key: key, Options: options},
			transport, &credential.Keeper{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Chat(t.Context(), call(wire.FormGemini, false)); err == nil || host != want {
			t.Errorf("%s: %s, want %s", location, host, want)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestBadNames tests that an invalid model name takes the model out of use on the line.
func TestBadNames(t *testing.T) {
	t.Parallel()
	l := open(t, always(key), nil)
	for _, model := range []string{"", ".", "..", "a/b", "a?b", "a#b", "a%2fb"} {
		c := call(wire.FormGemini, false)
		c.Model = model
		if f := conformance.ChatFailure(t, l.ask(t, c)); f.Health != upstream.HealthModel {
			t.Errorf("%q: %v, health %s", model, f, f.Health)
		}
	}
}

// TestOptions checks that errors name the option.
func TestOptions(t *testing.T) {
	t.Parallel()
	info := vertex.Info()
	conformance.CheckInvalidOptions(t, info, map[string]map[string]any{
		"auth: must be one of":                                    {"auth": "oauth"},
		"project: is required":                                    {"auth": "metadata"},
		"project: must contain":                                   {"project": "a/../b"},
		"location: requires":                                      {"location": "eu"},
		"location: must contain only":                             {"location": "..", "project": "p"},
		"key: unknown option. The options of provider vertex are": {"key": "v1"},
	})
	if !info.Keyless(map[string]any{"auth": "metadata"}) || info.Keyless(nil) {
		t.Error("Keyless: want true for metadata, false without options")
	}
}
