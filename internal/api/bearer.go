package api

import (
	"net/http"
	"strings"
)

// bearer returns the key that a /v1 request carries: what follows `Bearer` in
// its Authorization header. Anything else, an x-api-key header too, is no key
// (interface.md, Authentication): then it returns "".
func bearer(h http.Header) string {
	scheme, secret, found := strings.Cut(strings.TrimSpace(h.Get("Authorization")), " ")
	if !found || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(secret)
}
