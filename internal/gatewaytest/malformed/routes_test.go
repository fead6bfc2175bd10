// Package malformed owns the test with malformed requests: valid requests for every route, changed
// by a seeded generator and sent over real connections. Invariants: the seed and the number
// determine a request, and every route of the product gets requests.
package malformed

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/admin"
	"tollgate/internal/api"
)

// plainRoutes returns the routes of the process, outside all tables.
func plainRoutes() []string {
	return []string{"GET /healthz", "GET /readyz", "GET /metrics", "GET /media/{id}"}
}

// allRoutes returns all routes of the product.
func allRoutes() []string { return slices.Concat(api.Routes(), admin.Routes(), plainRoutes()) }

// weightedRoutes returns allRoutes, with routes that run models more often, because they have the
// most possible errors.
func weightedRoutes() []string {
	all := allRoutes()
	for _, route := range api.Routes() {
		if strings.HasPrefix(route, "POST ") {
			all = append(all, slices.Repeat([]string{route}, 5)...)
		}
	}
	return all
}

// sample is a valid request for a route.
type sample struct {
	body        string
	contentType string // JSON if empty
	also        []int  // good statuses besides 200, 201 and 202
}

// TestEveryRouteHasASample checks for a valid request for every route with a body, so that a new
// route is tested.
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
