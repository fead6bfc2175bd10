package httpapi

import (
	"net/http"
	"slices"
)

// Origins are the web pages that may call a surface from a browser, by their origin
// (`https://app.example.com`); `*` allows all pages. An empty list allows none. No page may ever
// send a browser's own credentials; pages call with a key.
type Origins []string

// exposedHeaders are the headers of an answer that a page may read.
const exposedHeaders = "X-Request-Id, Request-Id, Retry-After, X-Should-Retry, Idempotent-Replayed, X-Tollgate-Line, X-Tollgate-Ignored, " +
	"Location, Preference-Applied"

// admit adds the CORS headers to an answer. It reports whether the request was a preflight and has been
// answered.
func (o Origins) admit(x *Exchange) (answered bool) {
	origin := x.Request.Header.Get("Origin")
	if len(o) == 0 {
		return false
	}
	h := x.Header()
	all := slices.Contains(o, "*")
	if !all {
		h.Add("Vary", "Origin") // a cache may not show one page's answer to another
	}
	if origin == "" || !all && !slices.Contains(o, origin) {
		return false
	}
	if all {
		origin = "*"
	}
	h.Set("Access-Control-Allow-Origin", origin)
	method := x.Request.Header.Get("Access-Control-Request-Method")
	if x.Request.Method != http.MethodOptions || method == "" {
		h.Set("Access-Control-Expose-Headers", exposedHeaders)
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST")
	// All requested headers are allowed, because clients send various headers and none can do harm.
	if headers := x.Request.Header.Get("Access-Control-Request-Headers"); headers != "" {
		h.Set("Access-Control-Allow-Headers", headers)
	}
	h.Set("Access-Control-Max-Age", "7200")
	x.WriteHeader(http.StatusNoContent)
	return true
}
