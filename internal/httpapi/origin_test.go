package httpapi

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestOrigins checks the CORS headers for requests and preflights of allowed and other pages.
func TestOrigins(t *testing.T) {
	t.Parallel()
	routes := []Route{{Pattern: "POST /v1/x", Handle: func(x *Exchange) error { _, err := x.Write([]byte("ok")); return err }}}
	const page, other = "https://app.example.com", "https://other.example.com"
	for _, c := range []struct {
		name, method, path, origin, requestMethod string
		origins                                   Origins
		status                                    int
		allowed, vary                             string
	}{
		{"none set", "POST", "/v1/x", page, "", nil, 200, "", ""},
		{"none set, preflight", "OPTIONS", "/v1/x", page, "POST", nil, 405, "", ""},
		{"listed", "POST", "/v1/x", page, "", Origins{other, page}, 200, page, "Origin"},
		{"listed, preflight", "OPTIONS", "/v1/x", page, "POST", Origins{page}, 204, page, "Origin"},
		{"not listed", "POST", "/v1/x", other, "", Origins{page}, 200, "", "Origin"},
		{"not listed, preflight", "OPTIONS", "/v1/x", other, "POST", Origins{page}, 405, "", "Origin"},
		{"an allowed origin as a prefix", "POST", "/v1/x", page + ".evil.example", "", Origins{page}, 200, "", "Origin"},
		{"no origin", "POST", "/v1/x", "", "", Origins{page}, 200, "", "Origin"},
		{"all", "POST", "/v1/x", page, "", Origins{"*"}, 200, "*", ""},
		{"all, a page without an origin", "POST", "/v1/x", "null", "", Origins{"*"}, 200, "*", ""},
		{"all, preflight", "OPTIONS", "/v1/x", page, "POST", Origins{"*"}, 204, "*", ""},
		{"an error", "POST", "/v1/nothing", page, "", Origins{page}, 404, page, "Origin"},
		{"OPTIONS without a requested method", "OPTIONS", "/v1/x", page, "", Origins{"*"}, 405, "*", ""},
	} {
		r := httptest.NewRequest(c.method, c.path, nil)
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		if c.requestMethod != "" {
			r.Header.Set("Access-Control-Request-Method", c.requestMethod)
			r.Header.Set("Access-Control-Request-Headers", "authorization,x-stainless-os")
		}
		w := httptest.NewRecorder()
		New(Options{Log: slog.New(slog.DiscardHandler), Origins: c.origins}, routes).ServeHTTP(w, r)
		h := w.Result().Header
		if w.Code != c.status || h.Get("Access-Control-Allow-Origin") != c.allowed || h.Get("Vary") != c.vary {
			t.Errorf("%s: status %d, origin %q, vary %q, want %d, %q, %q", c.name, w.Code, h.Get("Access-Control-Allow-Origin"),
				h.Get("Vary"), c.status, c.allowed, c.vary)
		}
		if h.Get("Access-Control-Allow-Credentials") != "" || h.Get("X-Request-Id") == "" {
			t.Errorf("%s: headers %v, want a request id and no credentials", c.name, h)
		}
		preflight := c.status == http.StatusNoContent
		if got := h.Get("Access-Control-Allow-Headers"); preflight != (got == "authorization,x-stainless-os") {
			t.Errorf("%s: allowed headers %q, want the requested ones only for a preflight", c.name, got)
		}
		if exposed := h.Get("Access-Control-Expose-Headers"); (exposed == exposedHeaders) != (c.allowed != "" && !preflight) {
			t.Errorf("%s: exposed headers %q, want %q only for an allowed page", c.name, exposed, exposedHeaders)
		}
	}
}
