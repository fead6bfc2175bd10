package console_test

import (
	"math"
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/console"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/ledger/ledgertest"
	"tollgate/internal/store"
)

// TestEveryPageAtTheEndOfCounters opens every page while every counter of the database is at
// its end.
func TestEveryPageAtTheEndOfCounters(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		rows, visitors := expected(), visitorsOf(s)
		paths := map[string]string{}
		for _, route := range console.Routes() {
			if method, path, _ := strings.Cut(route, " "); method == http.MethodGet && !strings.Contains(path, "/static/") {
				paths[route] = thing(s, path, "owner")
			}
		}
		for _, limit := range []int64{store.MaxSum, math.MaxInt64} {
			ledgertest.SetCounters(t, s.DB, limit)
			for route, path := range paths {
				name, want := "owner", rows[route].owner
				if strings.HasPrefix(path, "/console/operator") {
					name, want = "operator", rows[route].operator
				}
				b := visitors.enter(s, name)
				if got := b.Get(path); got.Code != want {
					t.Errorf("%s at %d: %d, want %d: %s", route, limit, got.Code, want, got.Body)
				}
			}
		}
	})
}
