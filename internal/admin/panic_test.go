package admin

import (
	"strings"
	"testing"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestPanicIsA503 checks that a panic is answered with a 503 in the error format of the API and logged
// once as an error, with request, endpoint and stack.
func TestPanicIsA503(t *testing.T) {
	t.Parallel()
	c := newCaller(t, storetest.Open(t, storetest.SQLite(t), store.Options{}), func(o *Options) { o.DB = nil })
	r := c.do("GET", "/accounts/x", "")
	r.wantFault("service_unavailable", "")
	log := c.log.String()
	for _, part := range []string{"level=ERROR", "request panicked", r.header.Get("X-Request-Id"), Base + "/accounts/{id}", "nil pointer",
		"once.go"} {
		if part == "" || !strings.Contains(log, part) {
			t.Errorf("the log is %s, want it to contain %q", log, part)
		}
	}
	if strings.Count(log, "\n") != 1 || strings.Contains(log, token) {
		t.Errorf("the log is %s, want one line without the token", log)
	}
}
