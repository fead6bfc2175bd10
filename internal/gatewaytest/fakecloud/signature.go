package fakecloud

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Signer is an access key with its secret and scope.
type Signer struct {
	AccessKeyID, SecretAccessKey string
	SessionToken                 string // "" if the key has no session
	Region, Service              string
}

// maxSkew is the maximal difference between a signature's time and the current time.
const maxSkew = 5 * time.Minute

// Verify checks the AWS Signature Version 4 of a request.
func (s Signer) Verify(r *http.Request, body []byte, now time.Time) error {
	rest, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	if !ok {
		return fmt.Errorf("no signature: %.40q", r.Header.Get("Authorization"))
	}
	parts := map[string]string{}
	for part := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		parts[name] = value
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil || now.Sub(at).Abs() > maxSkew {
		return fmt.Errorf("signed at %q, but the time is %s", r.Header.Get("X-Amz-Date"), now)
	}
	day := at.Format("20060102")
	scope := strings.Join([]string{day, s.Region, s.Service, "aws4_request"}, "/")
	if want := s.AccessKeyID + "/" + scope; parts["Credential"] != want {
		return fmt.Errorf("credential %s, want %s", parts["Credential"], want)
	}
	if got := r.Header.Get("X-Amz-Security-Token"); got != s.SessionToken {
		return fmt.Errorf("session token %q, want %q", got, s.SessionToken)
	}
	signed := strings.Split(parts["SignedHeaders"], ";")
	for _, name := range []string{"host", "x-amz-date", "x-amz-security-token"} {
		if !slices.Contains(signed, name) && (name == "host" || r.Header.Get(name) != "") {
			return fmt.Errorf("%s is not signed", name)
		}
	}
	canonical := strings.Join([]string{
		r.Method, canonicalPath(r.URL), r.URL.Query().Encode(), canonicalHeaders(r, signed), strings.Join(signed, ";"), hash(string(body)),
	}, "\n")
	key := []byte("AWS4" + s.SecretAccessKey)
	for _, part := range []string{day, s.Region, s.Service, "aws4_request"} {
		key = sum(key, part)
	}
	text := strings.Join([]string{"AWS4-HMAC-SHA256", r.Header.Get("X-Amz-Date"), scope, hash(canonical)}, "\n")
	if want := hex.EncodeToString(sum(key, text)); parts["Signature"] != want {
		return fmt.Errorf("signature %s, want %s of\n%s", parts["Signature"], want, canonical)
	}
	return nil
}

// canonicalPath returns the path with each segment escaped a second time.
func canonicalPath(u *url.URL) string {
	segments := strings.Split(u.EscapedPath(), "/")
	for i, s := range segments {
		segments[i] = strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
	}
	return strings.Join(segments, "/")
}

// canonicalHeaders returns the signed headers, one per line.
func canonicalHeaders(r *http.Request, signed []string) string {
	var b strings.Builder
	for _, name := range signed {
		value := strings.Join(r.Header.Values(name), ",")
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = fmt.Sprint(r.ContentLength)
		}
		b.WriteString(name + ":" + strings.Join(strings.Fields(value), " ") + "\n")
	}
	return b.String()
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func sum(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}
