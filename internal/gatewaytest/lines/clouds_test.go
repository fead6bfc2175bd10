package lines

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/fakecloud"
	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
)

// newSignedProvider returns a provider that rejects requests without a valid signature.
func newSignedProvider(t testing.TB, signer fakecloud.Signer) *fakeprovider.Server {
	p := fakeprovider.New(t)
	p.Always(func(r fakeprovider.Request) fakeprovider.Reply {
		target, err := url.Parse(p.URL())
		if err != nil {
			return fakeprovider.Error(500, "", "", err.Error())
		}
		target.Path = r.Path
		request := &http.Request{Method: r.Method, URL: target, Host: target.Host, Header: r.Header, ContentLength: int64(len(r.Body))}
		if err := signer.Verify(request, r.Body, time.Now()); err != nil {
			return fakeprovider.Error(403, "", "", err.Error())
		}
		return working()
	})
	return p
}

// cloudScene plays a line without a token. The line gets no request and shows the reason, and
// requests go to the next line. The next token returns the line to service.
func cloudScene(t testing.TB) scene.Scenario {
	tokens := fakecloud.NewPlainTokens(t)
	tokens.Refuse(401, `{"error":"invalid_client","error_description":"the account is gone"}`)
	account := filepath.Join(t.TempDir(), "account.json")
	if err := os.WriteFile(account, []byte(tokens.ServiceAccount(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	vertex := fakeprovider.New(t)
	vertex.Always(func(r fakeprovider.Request) fakeprovider.Reply {
		if r.Header.Get("Authorization") != "Bearer "+tokens.Current() {
			return fakeprovider.Error(401, "", "", "a bad token: "+r.Header.Get("Authorization"))
		}
		return fakeprovider.GeminiAnswer("fine", 1000, 500)
	})
	bedrock := newSignedProvider(t, fakecloud.Signer{AccessKeyID: "AKIAEXAMPLE", SecretAccessKey: scene.Credential, Region: "eu-west-1",
		Service: "bedrock"})
	return scene.Scenario{
		Name:   "clouds",
		Models: []map[string]any{scene.ChatModel("clouds", nil)},
		Lines: []map[string]any{
			scene.ChatLine("clouds-vertex", vertex.URL(), map[string]any{"provider": "vertex", "forms": []string{"gemini"},
				"api_key": "${file:" + account + "}", "options": map[string]any{"auth": "service_account", "project": "p"}}, "clouds"),
			scene.ChatLine("clouds-bedrock", bedrock.URL(), map[string]any{"provider": "bedrock", "forms": []string{"chat"},
				"priority": 2,
				"options":  map[string]any{"auth": "sigv4", "region": "eu-west-1", "access_key_id": "AKIAEXAMPLE"}}, "clouds"),
		},
		Play: func(t *testing.T, g *scene.Gateway) {
			c := newClient(t, g)
			a := c.expect("clouds", "")
			if r := g.Receipt(t, c.account, a.ID); r.Line != "clouds-bedrock" || len(r.Attempts) != 2 {
				t.Errorf("receipt %+v; want an answer from the second line", r)
			}
			if s := g.Lines.Becomes(t, "clouds-vertex", "credentials_out"); !strings.Contains(s.Cause, "the account is gone") {
				t.Errorf("line: %s", s)
			}
			c.expect("clouds", "")
			if n := len(vertex.Requests()); n != 0 || len(tokens.Forms()) > 2 { // one for the request and one for the probe
				t.Errorf("%d requests to the provider without a token, %d requests for a token", n, len(tokens.Forms()))
			}

			tokens.Refuse(0, "")
			g.Process.Admin("POST", "/lines/clouds-vertex/resume", map[string]any{}, nil)
			for range 3 {
				a = c.expect("clouds", "")
				if r := g.Receipt(t, c.account, a.ID); r.Line != "clouds-vertex" || len(r.Attempts) != 1 {
					t.Errorf("receipt %+v; want an answer from the first line", r)
				}
			}
			if n := len(tokens.Forms()); n > 3 {
				t.Errorf("%d requests for tokens, want at most 3", n)
			}

			tokens.Revoke()
			c.expect("clouds", "")
			s := g.Lines.Becomes(t, "clouds-vertex", "credentials_out")
			if strings.Contains(s.Cause, "cloud-token") || !strings.Contains(s.Cause, "[redacted]") {
				t.Errorf("line: %s", s)
			}
			c.checkSettled(6)
		},
	}
}

// TestClouds plays lines with temporary credentials.
func TestClouds(t *testing.T) {
	eachScene(t, scene.Binary(t), func(t testing.TB) []scene.Scenario { return []scene.Scenario{cloudScene(t)} })
}
