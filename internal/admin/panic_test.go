package admin

import (
	"strings"
	"testing"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestPanic checks that a panic is answered with a 503 in the error format of the API and logged
// once as an error, with request, endpoint and stack.
func TestPanic(t *testing.T) {
	t.Parallel()
	c := newOperator(t, storetest.Open(t, storetest.SQLite(t), store.Options{}), func(o *Options) { o.DB = nil })
	r := c.do("GET", "/accounts/x", "")
	r.wantFault("service_unavailable", "")
	log := c.log.String()
	for _, part := range []string{"level=ERROR", "request panicked", r.header.Get("X-Request-Id"), Base + "/accounts/{id}", "nil pointer",
		"once.go"} {
		if part == "" || !strings.Contains(log, part) {
			t.Errorf("no %q in the log: %s", part, log)
		}
	}
	if strings.Count(log, "\n") != 1 || strings.Contains(log, token) {
		t.Errorf("the log says %s", log)
	}
}
