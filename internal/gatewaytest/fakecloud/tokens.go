// Package fakecloud owns fake token servers: Entra ID, Google, AWS, and the metadata servers of
// these clouds. It also verifies AWS signatures.
//
// Invariants:
//   - A token is valid until the next one is issued or the test revokes it.
//   - Unknown requests for tokens are rejected.
//   - Signatures are computed from their specification, without the cloud's library.
package fakecloud

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// Tokens is a server that issues tokens. It is safe for concurrent use.
type Tokens struct {
	// URL is the server's address.
	URL string

	server *httptest.Server

	mu        sync.Mutex
	issued    []string     // the tokens, in the order of their issue
	forms     []url.Values // the forms of all requests
	errStatus int          // if not 0, the status of all answers
	errBody   string
}

// NewTokens starts a token server with TLS, which Entra ID requires. The server runs until the end
// of the test.
func NewTokens(t testing.TB) *Tokens {
	s := &Tokens{}
	s.server = httptest.NewTLSServer(http.HandlerFunc(s.serve))
	s.URL = s.server.URL
	t.Cleanup(s.close)
	return s
}

// NewPlainTokens is like NewTokens, but without TLS, like the metadata servers of the clouds.
func NewPlainTokens(t testing.TB) *Tokens {
	s := &Tokens{}
	s.server = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = s.server.URL
	t.Cleanup(s.close)
	return s
}

func (s *Tokens) close() {
	s.server.CloseClientConnections()
	s.server.Close()
}

// Trust makes a transport trust the server's certificate.
func (s *Tokens) Trust(transport *http.Transport) {
	transport.TLSClientConfig = s.server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
}

// Refuse makes the server answer all further requests with an error. If status is 0, the server
// issues tokens again.
func (s *Tokens) Refuse(status int, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errStatus, s.errBody = status, body
}

// Current returns the valid token, or "" before the first one.
func (s *Tokens) Current() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.issued) == 0 {
		return ""
	}
	return s.issued[len(s.issued)-1]
}

// Revoke makes the current token invalid.
func (s *Tokens) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issued = append(s.issued, "revoked")
}

// Forms returns the forms of all requests.
func (s *Tokens) Forms() []url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]url.Values(nil), s.forms...)
}

func (s *Tokens) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if strings.HasSuffix(r.URL.Path, "/.well-known/openid-configuration") {
		tenant := s.URL + "/" + strings.Split(r.URL.Path, "/")[1]
		_ = json.NewEncoder(w).Encode(map[string]any{ // the caller may be gone
			"authorization_endpoint": tenant + "/oauth2/v2.0/authorize", "token_endpoint": tenant + "/oauth2/v2.0/token",
			"issuer": tenant + "/v2.0",
		})
		return
	}
	_ = r.ParseForm() // an unreadable form is rejected below
	known := r.Method == http.MethodPost && r.Form.Get("grant_type") != "" && strings.HasSuffix(r.URL.Path, "/token")
	if r.Method == http.MethodGet { // a request to a metadata server
		known = r.Header.Get("Metadata-Flavor") == "Google" || r.Header.Get("X-Identity-Header") != ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forms = append(s.forms, r.Form)
	switch {
	case !known:
		w.WriteHeader(http.StatusNotFound)
	case s.errStatus != 0:
		w.WriteHeader(s.errStatus)
		_, _ = w.Write([]byte(s.errBody))
	default:
		token := fmt.Sprintf("cloud-token-%d-0123456789", len(s.issued)+1)
		s.issued = append(s.issued, token)
		_ = json.NewEncoder(w).Encode(map[string]any{
			"token_type": "Bearer", "access_token": token, "expires_in": 3600, "ext_expires_in": 3600, "expires_on": "4102444800",
			"issued_token_type": "urn:ietf:params:oauth:token-type:access_token", "resource": r.Form.Get("resource"),
		})
	}
}

// ServiceAccount returns the JSON of a Google service account for this server.
func (s *Tokens) ServiceAccount(t testing.TB) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	account, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "a-project", "private_key_id": "1", "private_key": string(text),
		"client_email": "gateway@a-project.iam.gserviceaccount.com", "token_uri": s.URL + "/token",
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(account)
}

// ExternalAccount returns the JSON of a workload identity. Its subject token is in file and is
// exchanged at this server.
func (s *Tokens) ExternalAccount(t testing.TB, file string) string {
	t.Helper()
	account, err := json.Marshal(map[string]any{
		"type": "external_account", "subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_url": s.URL + "/v1/token",
		"audience":          "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q",
		"credential_source": map[string]string{"file": file},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(account)
}
