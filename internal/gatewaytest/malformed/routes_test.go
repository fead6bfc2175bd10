// Package malformed owns the flood of malformed requests: valid requests of
// every route, spoiled by a seeded generator and sent over real connections.
// Invariants: a request is the same whenever seed and number are; every route
// that the product has is asked.
package malformed

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/admin"
	"tollgate/internal/api"
)

// plainRoutes are those that stand in no table: the process's own.
func plainRoutes() []string {
	return []string{"GET /healthz", "GET /readyz", "GET /metrics", "GET /media/{id}"}
}

// allRoutes are all that the product answers, as its own tables say.
func allRoutes() []string { return slices.Concat(api.Routes(), admin.Routes(), plainRoutes()) }

// drawn is allRoutes, those that run models more often: most can be wrong there.
func drawn() []string {
	all := allRoutes()
	for _, route := range api.Routes() {
		if strings.HasPrefix(route, "POST ") {
			all = append(all, slices.Repeat([]string{route}, 5)...)
		}
	}
	return all
}

// sample is a request as a route takes it.
type sample struct {
	body        string
	contentType string // empty: JSON
	also        []int  // statuses of good answers beside 200, 201 and 202
}

// TestEveryRouteHasASample wants a good request of every route that takes one:
// without it a new route would be asked for nothing.
func TestEveryRouteHasASample(t *testing.T) {
	t.Parallel()
	known := samples("")
	for _, route := range allRoutes() {
		method, _, _ := strings.Cut(route, " ")
		if _, ok := known[route]; !ok && method != http.MethodGet && method != http.MethodDelete {
			t.Errorf("%s has no good request: add one to samples", route)
		}
		delete(known, route)
	}
	for route := range known {
		t.Errorf("samples has %s, which is no route any more", route)
	}
}
