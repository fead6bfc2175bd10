package fakecloud

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// AWSKeys serves AWS credentials by the protocols of the instance (IMDSv2), the container and STS.
// It is safe for concurrent use.
type AWSKeys struct {
	// URL is the server's address.
	URL string
	// Role is the accepted ARN for STS, and the name of the instance's role.
	Role string
	// Token is the token of the container, and the web identity.
	Token string

	mu        sync.Mutex
	key       string
	secret    string
	life      time.Duration
	refuse    bool
	protocols []string // of all requests, in order
}

const imdsToken = "session-of-the-instance"

// NewAWSKeys starts a server for the rest of the test. Its credentials are valid for an hour.
func NewAWSKeys(t testing.TB, key, secret string) *AWSKeys {
	t.Helper()
	a := &AWSKeys{Role: "arn:aws:iam::123456789012:role/media", Token: "token-of-the-pod", key: key, secret: secret, life: time.Hour}
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /latest/api/token", a.session)
	mux.HandleFunc("GET /latest/meta-data/iam/security-credentials/{role...}", a.instance)
	mux.HandleFunc("GET /container", a.container)
	mux.HandleFunc("POST /", a.sts)
	server := httptest.NewServer(mux)
	a.URL = server.URL
	t.Cleanup(server.Close)
	return a
}

// Give sets the credentials and their lifetime.
func (a *AWSKeys) Give(key, secret string, life time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.key, a.secret, a.life = key, secret, life
}

// Refuse sets whether each request is answered with 500.
func (a *AWSKeys) Refuse(refuse bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refuse = refuse
}

// Protocols returns the protocols of all requests in order.
func (a *AWSKeys) Protocols() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.protocols...)
}

// take records a request and returns the credentials in the container's format. It returns false
// after it has answered with an error because of Refuse.
func (a *AWSKeys) take(w http.ResponseWriter, protocol string) (map[string]string, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refuse {
		http.Error(w, `{"code":"InternalError","message":"away"}`, http.StatusInternalServerError)
		return nil, false
	}
	a.protocols = append(a.protocols, protocol)
	return map[string]string{"AccessKeyId": a.key, "SecretAccessKey": a.secret, "Token": "",
		"Expiration": time.Now().Add(a.life).UTC().Format(time.RFC3339)}, true
}

func (a *AWSKeys) session(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-aws-ec2-metadata-token-ttl-seconds") == "" {
		http.Error(w, "no ttl", http.StatusBadRequest)
		return
	}
	w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "21600")
	fmt.Fprint(w, imdsToken)
}

func (a *AWSKeys) instance(w http.ResponseWriter, r *http.Request) {
	name := a.Role[strings.LastIndexByte(a.Role, '/')+1:]
	switch {
	case r.Header.Get("X-aws-ec2-metadata-token") != imdsToken:
		http.Error(w, "no session", http.StatusUnauthorized)
	case r.PathValue("role") == "":
		fmt.Fprint(w, name)
	case r.PathValue("role") != name:
		http.NotFound(w, r)
	default:
		if keys, ok := a.take(w, "instance"); ok {
			keys["Code"], keys["Type"] = "Success", "AWS-HMAC"
			_ = json.NewEncoder(w).Encode(keys)
		}
	}
}

func (a *AWSKeys) container(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != a.Token {
		http.Error(w, `{"code":"Denied","message":"wrong token"}`, http.StatusForbidden)
		return
	}
	if keys, ok := a.take(w, "container"); ok {
		_ = json.NewEncoder(w).Encode(keys)
	}
}

func (a *AWSKeys) sts(w http.ResponseWriter, r *http.Request) {
	action := r.FormValue("Action")
	web := action == "AssumeRoleWithWebIdentity" && r.FormValue("WebIdentityToken") == a.Token
	signed := action == "AssumeRole" && strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	if (!web && !signed) || r.FormValue("RoleArn") != a.Role || r.FormValue("RoleSessionName") == "" {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>`)
		return
	}
	keys, ok := a.take(w, action)
	if !ok {
		return
	}
	w.Header().Set("Content-Type", "text/xml")
	fmt.Fprintf(w, `<%[1]sResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><%[1]sResult><Credentials>
		<AccessKeyId>%[2]s</AccessKeyId><SecretAccessKey>%[3]s</SecretAccessKey><SessionToken></SessionToken><Expiration>%[4]s</Expiration>
		</Credentials></%[1]sResult></%[1]sResponse>`, action, keys["AccessKeyId"], keys["SecretAccessKey"], keys["Expiration"])
}
