// Package fakeidentity owns fakes of identity providers: OpenID Connect and GitHub.
//
// Invariants: a fake is as strict as its original; a code works once, for the client,
// address and verifier of its request; the state of a fake is behind one lock.
package fakeidentity

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// The client at each fake.
const (
	ClientID     = "tollgate-client"
	ClientSecret = "a-client-secret-0123456789"
)

// Object is a JSON object.
type Object = map[string]any

// request has the parameters of a browser's visit.
type request struct{ redirectURI, challenge, nonce, maxAge string }

// Provider is a fake with one person, always signed in. Set the fields before the browser arrives.
type Provider struct {
	URL string
	// Claims are those of the person. At GitHub, sub is the id, and email and email_verified are those of
	// the primary address.
	Claims Object
	// UserInfo has additional claims for the userinfo endpoint.
	UserInfo Object
	// Edit changes the claims of an ID token before it is signed.
	Edit func(Object)
	// Forge signs ID tokens with an unpublished key.
	Forge bool
	// Algorithm, if not empty, is the algorithm in the head of ID tokens: none, without a signature, or
	// HS256, signed with the published key or with ClientSecret if BySecret is true.
	Algorithm string
	BySecret  bool
	// Serve, if not nil, may answer a request. If Serve returns false, the fake answers.
	Serve func(w http.ResponseWriter, r *http.Request) bool

	t        testing.TB
	github   bool
	mu       sync.Mutex
	codes    map[string]request
	tokens   map[string]bool
	key      *rsa.PrivateKey
	requests map[string]int // by path
}

// New starts a provider of OpenID Connect. Its person has the sub person-1 and the verified email
// cleo@example.com.
func New(t testing.TB) *Provider {
	p := start(t, Object{"sub": "person-1", "email": "cleo@example.com", "email_verified": true})
	return p
}

// NewGitHub starts a GitHub Enterprise Server with the same person. The id is 4711.
func NewGitHub(t testing.TB) *Provider {
	p := start(t, Object{"sub": 4711, "email": "cleo@example.com", "email_verified": true})
	p.github = true
	return p
}

func start(t testing.TB, person Object) *Provider {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &Provider{t: t, Claims: person, codes: map[string]request{}, tokens: map[string]bool{}, key: key, requests: map[string]int{}}
	server := httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

// Requests returns the number of requests for a path.
func (p *Provider) Requests(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests[path]
}

func (p *Provider) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.requests[r.URL.Path]++
	p.mu.Unlock()
	if p.Serve != nil && p.Serve(w, r) {
		return
	}
	switch path := strings.TrimPrefix(r.URL.Path, "/login/oauth"); {
	case path == "/authorize":
		p.authorize(w, r)
	case path == "/token" && !p.github, path == "/access_token" && p.github:
		p.token(w, r)
	case r.URL.Path == "/.well-known/openid-configuration" && !p.github:
		answer(w, http.StatusOK, Object{"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token",
			"jwks_uri": p.URL + "/keys", "userinfo_endpoint": p.URL + "/userinfo", "id_token_signing_alg_values_supported": []string{"RS256"},
			"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
			"authorization_response_iss_parameter_supported": true})
	case r.URL.Path == "/keys" && !p.github:
		answer(w, http.StatusOK, Object{"keys": []Object{{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "1", "n": encode(p.key.N.Bytes()),
			"e": encode(big.NewInt(int64(p.key.E)).Bytes())}}})
	case !p.hasToken(r):
		answer(w, http.StatusUnauthorized, Object{"message": "Requires authentication"})
	case r.URL.Path == "/userinfo" && !p.github:
		info := Object{"sub": p.Claims["sub"]}
		maps.Copy(info, p.UserInfo)
		answer(w, http.StatusOK, info)
	case r.URL.Path == "/api/v3/user" && p.github:
		answer(w, http.StatusOK, Object{"login": "cleo", "id": p.Claims["sub"], "email": nil})
	case r.URL.Path == "/api/v3/user/emails" && p.github:
		answer(w, http.StatusOK, []Object{{"email": "other@example.com", "primary": false, "verified": true},
			{"email": p.Claims["email"], "primary": true, "verified": p.Claims["email_verified"]}})
	default:
		http.NotFound(w, r)
	}
}

// authorize sends the browser back with a code. The person is always signed in and always agrees.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	back, err := url.Parse(q.Get("redirect_uri"))
	scopes := strings.Fields(q.Get("scope"))
	switch {
	case err != nil || back.Host == "" || q.Get("client_id") != ClientID:
		http.Error(w, "unknown client or redirect_uri", http.StatusBadRequest)
		return
	case q.Get("response_type") != "code", q.Get("state") == "", q.Get("code_challenge_method") != "S256", q.Get("code_challenge") == "",
		!p.github && (q.Get("nonce") == "" || len(scopes) == 0 || scopes[0] != "openid"):
		http.Error(w, "invalid request: "+q.Encode(), http.StatusBadRequest)
		return
	}
	code := rand.Text()
	p.mu.Lock()
	p.codes[code] = request{redirectURI: q.Get("redirect_uri"), challenge: q.Get("code_challenge"), nonce: q.Get("nonce"),
		maxAge: q.Get("max_age")}
	p.mu.Unlock()
	answer := url.Values{"code": {code}, "state": {q.Get("state")}}
	if !p.github {
		answer.Set("iss", p.URL)
	}
	back.RawQuery = answer.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

// token exchanges a code.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	if p.github {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	p.mu.Lock()
	visit, known := p.codes[r.PostFormValue("code")]
	delete(p.codes, r.PostFormValue("code"))
	p.mu.Unlock()
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	switch {
	case id != ClientID || secret != ClientSecret:
		answer(w, http.StatusUnauthorized, Object{"error": "invalid_client"})
	case r.PostFormValue("grant_type") != "authorization_code", !known, visit.redirectURI != r.PostFormValue("redirect_uri"),
		visit.challenge != encode(sum[:]):
		status, code := http.StatusBadRequest, "invalid_grant"
		if p.github { // reports errors with the status of a success
			status, code = http.StatusOK, "bad_verification_code"
		}
		answer(w, status, Object{"error": code})
	default:
		access := rand.Text()
		p.mu.Lock()
		p.tokens["Bearer "+access] = true
		p.mu.Unlock()
		out := Object{"access_token": access, "token_type": "bearer"}
		if !p.github {
			out["id_token"] = p.idToken(visit)
		}
		answer(w, http.StatusOK, out)
	}
}

func (p *Provider) hasToken(r *http.Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tokens[r.Header.Get("Authorization")]
}

// idToken returns the signed ID token for a browser's visit.
func (p *Provider) idToken(visit request) string {
	now := time.Now
	all := Object{"iss": p.URL, "aud": ClientID, "nonce": visit.nonce, "iat": now().Unix(), "exp": now().Add(time.Minute).Unix()}
	if visit.maxAge != "" {
		all["auth_time"] = now().Unix()
	}
	maps.Copy(all, p.Claims)
	if p.Edit != nil {
		p.Edit(all)
	}
	key := p.key
	if p.Forge {
		other, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		key = other
	}
	if p.Algorithm != "" {
		return p.unsafeToken(all)
	}
	signed := encode([]byte(`{"alg":"RS256","kid":"1"}`)) + "." + encode(marshal(all))
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
	if err != nil {
		panic(err)
	}
	return signed + "." + encode(signature)
}

// unsafeToken returns an ID token with Algorithm, made without a private key.
func (p *Provider) unsafeToken(all Object) string {
	signed := encode([]byte(`{"alg":"`+p.Algorithm+`","kid":"1"}`)) + "." + encode(marshal(all))
	if p.Algorithm == "none" {
		return signed + "."
	}
	key := x509.MarshalPKCS1PublicKey(&p.key.PublicKey)
	if p.BySecret {
		key = []byte(ClientSecret)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(signed))
	return signed + "." + encode(mac.Sum(nil))
}

// Visit opens an address of the provider like a browser, and returns the path and query of the provider's
// redirect.
func (p *Provider) Visit(address string) (callback string) {
	p.t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get(address)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	back, err := resp.Location()
	if err != nil {
		p.t.Fatalf("the provider answers %s without an address, want a redirect: %s", resp.Status, address)
	}
	return back.RequestURI()
}

func encode(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }

func marshal(value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return raw
}

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(marshal(value))
}
