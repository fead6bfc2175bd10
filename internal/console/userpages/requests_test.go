package userpages_test

import (
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/console/consoletest"
)

func TestRequests(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.SignedIn("ada@example.com")
		b.Get("/console/requests").Want(t, http.StatusOK, "No requests yet", "/console/keys/new")
		b.Get("/console/requests?status=429").Want(t, http.StatusOK, "Nothing matches these filters", "Clear filters")
		good, poor := s.Request("ada", 200, ""), s.Request("ada", 402, "insufficient_quota")
		other := s.Request("bob", 200, "")
		list := b.Get("/console/requests")
		list.Want(t, http.StatusOK, good, poor, "402 insufficient_quota", "1,000 → 310", "$0.000875")
		filtered := b.Get("/console/requests?status=402&model=swift-1")
		filtered.Want(t, http.StatusOK, poor, `value="402" selected`, `value="swift-1" selected`)
		if strings.Contains(filtered.Body.String(), good) || strings.Contains(list.Body.String(), other) {
			t.Error("a request is listed that does not belong there")
		}
		page := b.Get("/console/requests/" + good)
		page.Want(t, http.StatusOK, "Held before it ran", "$0.0041", "Given back", "$0.003225", "$0.000875", "a provider failed",
			"upstream_timeout after 1 min 0 s", "a provider answered", "/v1/chat/completions")
		if strings.Contains(page.Body.String(), "secret") {
			t.Error("a user sees the line, or a provider's words")
		}
		b.Get("/console/requests/"+other).Want(t, http.StatusNotFound)
		b.Get("/console/requests?request="+good).Want(t, http.StatusSeeOther, "/console/requests/"+good)
		b.Get("/console/requests?request=..%2Fkeys").Want(t, http.StatusSeeOther, "/console/requests/..%2Fkeys")
		b.Get("/console/requests/..%2Fkeys").Want(t, http.StatusNotFound)
	})
}
