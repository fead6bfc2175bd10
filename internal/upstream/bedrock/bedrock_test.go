package bedrock_test

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tollgate/internal/gatewaytest/fakecloud"
	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/bedrock"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/credential"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "bedrock-credential-0123456789"

func call(form wire.Form, stream bool) chatcall.Call {
	return chatcall.Call{
		Form: form, Stream: stream, Model: "openai.gpt-6-sol", IdempotencyKey: "att_1",
		Body:   rawjson.Pieces{[]byte(`{"model":"openai.gpt-6-sol",  "odd" : "\u00e9" }`)},
		Header: http.Header{"Anthropic-Beta": {"flag"}, "X-Client": {"secret"}},
	}
}

// line is a line with its fake provider.
type line struct {
	*bedrock.Adapter
	provider *fakeprovider.Server
	later    time.Duration // offset of the clocks
}

// open opens a line with a fake provider as its base address. The provider answers every call with
// a valid signature of signer, or every call if signer is nil. The test may change signer.
func open(t *testing.T, key string, options map[string]any, signer *fakecloud.Signer) *line {
	t.Helper()
	l := &line{provider: fakeprovider.New(t)}
	base := strings.TrimSuffix(l.provider.URL(), "/v1")
	l.provider.Always(func(r fakeprovider.Request) fakeprovider.Reply {
		form := "chat"
		switch {
		case strings.HasSuffix(r.Path, "/responses"):
			form = "responses"
		case strings.HasSuffix(r.Path, "/messages"):
			form = "messages"
		case strings.HasSuffix(r.Path, "/count_tokens"):
			return fakeprovider.NativeCount(7)
		}
		if signer != nil {
			if err := signer.Verify(asReceived(t, base, r), r.Body, time.Now().Add(l.later)); err != nil {
				return fakeprovider.JSON(403,
					`{"message":"The request signature we calculated does not match: `+signer.SecretAccessKey+`"}`)
			}
		}
		return fakeprovider.Good(form, r.IsStream())
	})
	transport := conformance.Transport(t)
	keeper := &credential.Keeper{Now: func() time.Time { return time.Now().Add(l.later) }}
	t.Cleanup(keeper.Close)
	a, err := bedrock.New(upstream.Target{Line: "main", Provider: bedrock.Provider, BaseURL: base, Key: key, Options: options},
		transport, keeper)
	if err != nil {
		t.Fatal(err)
	}
	l.Adapter = a
	return l
}

// asReceived returns a request as received by the provider.
func asReceived(t *testing.T, base string, r fakeprovider.Request) *http.Request {
	u, err := url.Parse(base + r.URI)
	if err != nil {
		t.Error(err)
	}
	return &http.Request{Method: r.Method, URL: u, Host: u.Host, Header: r.Header, ContentLength: int64(len(r.Body))}
}

// ask makes a call and reads the answer.
func (l *line) ask(t *testing.T, form wire.Form, stream bool) error {
	t.Helper()
	c := call(form, stream)
	if stream {
		c.Body = rawjson.Pieces{[]byte(`{"model":"openai.gpt-6-sol","stream":true}`)}
	}
	return conformance.Ask(t, l, c)
}

var paths = map[wire.Form]string{
	wire.FormChat: "/openai/v1/chat/completions", wire.FormResponses: "/openai/v1/responses", wire.FormMessages: "/anthropic/v1/messages",
}

// TestRerank checks address, body, credential and signature of reranking.
func TestRerank(t *testing.T) {
	t.Parallel()
	signer := &fakecloud.Signer{AccessKeyID: "AKIAEXAMPLE", SecretAccessKey: key, Region: "eu-west-1", Service: "bedrock"}
	for model, want := range map[string]string{
		"cohere.rerank-v3-5:0": `{"query":"q","documents":["a"],"api_version":2}`,
		"amazon.rerank-v1:0":   `{"query":"q","documents":["a"]}`,
	} {
		for name, l := range map[string]*line{
			"key":       open(t, key, nil, nil),
			"signature": open(t, key, map[string]any{"auth": "sigv4", "region": "eu-west-1", "access_key_id": "AKIAEXAMPLE"}, signer),
		} {
			err := conformance.Ask(t, l, chatcall.Call{
				Form: "rerank", Path: "/rerank", Model: model,
				Body: rawjson.Pieces{[]byte(`{"model":"` + model + `","query":"q","documents":["a"]}`)},
			})
			if err != nil {
				t.Errorf("%s with a %s: %v", model, name, err)
				continue
			}
			got := l.provider.Requests()[0]
			if got.Path != "/model/"+model+"/invoke" || string(got.Body) != want || got.Header.Get("Authorization") == "" {
				t.Errorf("%s with a %s: the provider got %s at %s, want %s", model, name, got.Body, got.Path, want)
			}
		}
	}
}

// TestKey checks that a key of Bedrock is sent as a bearer token to each surface.
func TestKey(t *testing.T) {
	t.Parallel()
	for form, path := range paths {
		l := open(t, key, nil, nil)
		if err := l.ask(t, form, false); err != nil {
			t.Errorf("%s: %v", form, err)
			continue
		}
		r := l.provider.Requests()[0]
		if r.URI != path || r.Header.Get("Authorization") != "Bearer "+key || string(r.Body) != string(call(form, false).Body.Bytes()) ||
			r.Header.Get("X-Client") != "" {
			t.Errorf("%s: %s %v %s", form, r.URI, r.Header, r.Body)
		}
	}
}

// TestSignature checks the signatures with the line's own keys. The provider verifies them with a
// separate implementation.
func TestSignature(t *testing.T) {
	t.Parallel()
	signer := fakecloud.Signer{AccessKeyID: "AKIAEXAMPLE", SecretAccessKey: "secret-key-0123456789", Region: "eu-west-1",
		Service: "bedrock-mantle"}
	l := open(t, signer.SecretAccessKey, map[string]any{"auth": "sigv4", "region": "eu-west-1", "service": "bedrock-mantle",
		"access_key_id": signer.AccessKeyID}, &signer)
	for form := range paths {
		for _, stream := range []bool{false, true} {
			if err := l.ask(t, form, stream); err != nil {
				t.Errorf("%s: %v", form, err)
			}
		}
	}
	if n, err := l.CountTokens(t.Context(), call(wire.FormMessages, false)); n != 7 || err != nil {
		t.Errorf("%d tokens, %v", n, err)
	}
	for _, r := range l.provider.Requests() {
		if r.Header.Get("X-Api-Key") != "" || strings.Contains(r.Header.Get("Authorization"), signer.SecretAccessKey) {
			t.Errorf("a key was sent: %v", r.Header)
		}
	}
	signer.SecretAccessKey = "another-key-0123456789"
	if f := conformance.ChatFailure(t, l.ask(t, wire.FormChat, false)); f.Health != upstream.HealthCredential || f.Final() {
		t.Errorf("a bad signature: %v, health %s", f, f.Health)
	}
}

// TestChain checks that a line without keys signs with the keys of the SDK's chain, and reads
// rotated keys again after a rejection.
func TestChain(t *testing.T) {
	signer := fakecloud.Signer{AccessKeyID: "ASIAEXAMPLE", SecretAccessKey: "secret-key-0123456789", SessionToken: "session-0123456789",
		Region: "us-east-1", Service: "bedrock"}
	file := filepath.Join(t.TempDir(), "credentials")
	write := func() {
		t.Helper()
		text := "[gateway]\naws_access_key_id=" + signer.AccessKeyID + "\naws_secret_access_key=" + signer.SecretAccessKey +
			"\naws_session_token=" + signer.SessionToken + "\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write()
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE",
		"AWS_WEB_IDENTITY_TOKEN_FILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file)
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	l := open(t, "", map[string]any{"auth": "sigv4", "region": "us-east-1", "profile": "gateway"}, &signer)
	if err := l.ask(t, wire.FormChat, false); err != nil {
		t.Fatal(err)
	}
	old := signer.SecretAccessKey
	signer.SecretAccessKey, signer.SessionToken = "rotated-key-0123456789", "rotated-session-0123456789"
	write()
	l.later = 2 * time.Minute
	if err := l.ask(t, wire.FormMessages, false); err != nil {
		t.Errorf("after the rotation: %v", err)
	}
	if n := len(l.provider.Requests()); n != 3 {
		t.Errorf("%d calls, want 3", n)
	}
	if secrets := strings.Join(l.Secrets(), " "); !strings.Contains(secrets, old) || !strings.Contains(secrets, signer.SessionToken) {
		t.Errorf("secrets: %s", secrets)
	}
	signer.SessionToken = "nobody's"
	l.later = 4 * time.Minute
	f := conformance.ChatFailure(t, l.ask(t, wire.FormChat, false))
	if len(l.provider.Requests()) != 4 || f.Health != upstream.HealthCredential || strings.Contains(f.Error(), "rotated-key") {
		t.Errorf("the same keys again: %v, health %s, %d calls", f, f.Health, len(l.provider.Requests()))
	}
}

// TestNoKeys checks that a chain without keys is a failure of the line.
func TestNoKeys(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE",
		"AWS_WEB_IDENTITY_TOKEN_FILE"} {
		t.Setenv(name, "")
	}
	for _, name := range []string{"AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"} {
		t.Setenv(name, filepath.Join(t.TempDir(), "none"))
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	for _, options := range []map[string]any{
		{"auth": "sigv4", "region": "us-east-1"}, {"auth": "sigv4", "region": "us-east-1", "profile": "nobody"},
	} {
		l := open(t, "", options, nil)
		if f := conformance.ChatFailure(t, l.ask(t, wire.FormChat, false)); f.Health == upstream.HealthNone || f.Final() ||
			len(l.provider.Requests()) != 0 {
			t.Errorf("%v, health %s", f, f.Health)
		}
	}
}

// TestOptions checks that errors name the option.
func TestOptions(t *testing.T) {
	t.Parallel()
	info := bedrock.Info()
	conformance.CheckInvalidOptions(t, info, map[string]map[string]any{
		"auth: must be one of api_key, sigv4": {"auth": "iam"},
		"region: is required":                 {"auth": "sigv4"},
		"region: must contain only":           {"region": "us/east"},
		"profile: cannot be combined":         {"profile": "a", "access_key_id": "b"},
		"key: unknown option. The options of provider bedrock are access_key_id, auth, profile, region, service": {"key": "v1"},
	})
	if info.Keyless(map[string]any{"auth": "sigv4", "access_key_id": "a"}) || !info.Keyless(map[string]any{"auth": "sigv4"}) ||
		info.Keyless(nil) {
		t.Error("keyless")
	}
}
