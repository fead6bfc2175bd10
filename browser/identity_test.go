package browser

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// identityProvider builds zitadel's example of an OpenID provider, with a login page of its own.
var identityProvider = sync.OnceValues(func() (string, error) {
	path, err := filepath.Abs("../build/browser/idp")
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-o", path, "github.com/zitadel/oidc/v3/example/server")
	build.Dir = "../tools/idp"
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the identity provider: %w\n%s", err, out)
	}
	return path, nil
})

// freePort returns a port on which nobody listens.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// startIdentityProvider runs an OpenID provider until the test ends, and returns its issuer. It sends
// browsers back to one address.
func startIdentityProvider(t *testing.T, redirectURI string) (issuer string) {
	t.Helper()
	program, err := identityProvider()
	if err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	serve := exec.Command(program)
	serve.Env = append(os.Environ(), "PORT="+port, "REDIRECT_URI="+redirectURI)
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = serve.Process.Kill()
		_ = serve.Wait()
	})
	issuer = "http://localhost:" + port + "/"
	eventually(t, "the identity provider does not listen", func() bool {
		resp, err := http.Get(issuer + ".well-known/openid-configuration")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return true
	})
	return issuer
}

// TestSignInWithProvider follows a customer with an OpenID provider: a new account, the settings, the
// confirmation by a sign-in anew, and a sign-in with another browser.
func TestSignInWithProvider(t *testing.T) {
	t.Parallel()
	for _, d := range displays {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			port := freePort(t)
			public := "http://127.0.0.1:" + port
			issuer := startIdentityProvider(t, public+"/console/sign-in/with/corp/callback")
			g := start(t, "TOLLGATE_LISTEN=127.0.0.1:"+port, "TOLLGATE_PUBLIC_URL="+public, "TOLLGATE_PRIVATE_NETWORKS=127.0.0.0/8,::1/128",
				"TOLLGATE_SMTP_SERVER=127.0.0.1:1", "TOLLGATE_SMTP_SECURITY=none", "TOLLGATE_MAIL_FROM=ai@example.com", "TOLLGATE_SIGN_UP=open",
				`TOLLGATE_SIGN_IN_WITH=[{name: corp, title: Corp, issuer: "`+issuer+`", client_id: web, client_secret: secret}, `+
					`{name: github, title: GitHub, kind: github, client_id: a, client_secret: b}]`)
			b := open(t, g, d.theme, d.width)
			b.visit("/console/sign-up", "sign-up-providers")
			b.visit("/console/sign-in", "sign-in-providers")
			b.identify("/console/sign-in/with/corp", issuer)
			b.waitForText("Create an account")
			b.checkPage("new-account")
			b.press("main button.main")
			b.waitFor(`location.pathname === "/console"`)
			b.visit("/console/settings", "settings-linked")
			b.open("/console/settings/confirm?next=/console/settings/factor")
			b.checkPage("confirm")
			b.identify("/console/settings/confirm/corp", issuer)
			b.waitForText("Set up")
			b.checkPage("factor-confirmed")
			other := open(t, g, d.theme, d.width)
			other.open("/console/sign-in?next=/console/keys")
			other.identify("/console/sign-in/with/corp", issuer)
			other.waitFor(`location.pathname === "/console/keys"`)
			other.open("/console/sign-in/with/corp/callback?error=access_denied&state=forged")
			other.expect("422")
			other.checkPage("provider-refused")
		})
	}
}
