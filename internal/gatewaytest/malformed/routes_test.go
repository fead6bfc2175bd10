// Package malformed owns the test with malformed requests. A seeded generator changes valid
// requests for every route, and the test sends them over real connections. Invariants: seed and
// number determine a request; every route of the product gets requests.
package malformed

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/admin"
	"tollgate/internal/api"
)

// plainRoutes returns the routes that are in no route table.
func plainRoutes() []string {
	return []string{"GET /healthz", "GET /readyz", "GET /metrics", "GET /media/{id}"}
}

// allRoutes returns all routes of the product.
func allRoutes() []string { return slices.Concat(api.Routes(), admin.Routes(), plainRoutes()) }

// weightedRoutes returns allRoutes, with additional copies of the POST routes for clients, because
// they have the most possible errors.
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
	also        []int  // other expected statuses besides 200, 201 and 202
}

// TestEveryRouteHasASample checks that every route with a body has a valid request, so that the tests
// include new routes.
func TestEveryRouteHasASample(t *testing.T) {
	t.Parallel()
	known := samples("")
	for _, route := range allRoutes() {
		method, _, _ := strings.Cut(route, " ")
		if _, ok := known[route]; !ok && method != http.MethodGet && method != http.MethodDelete {
			t.Errorf("%s has no valid request: add one to samples", route)
		}
		delete(known, route)
	}
	for route := range known {
		t.Errorf("samples has %s, but there is no such route", route)
	}
}
