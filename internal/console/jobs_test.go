package console_test

import (
	"net/http"
	"strings"
	"testing"

	gateway "tollgate/internal/gatewaytest/scene"
)

// TestJobs follows jobs through the gallery and their own pages.
func TestJobs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		b := s.signedIn("ada@example.com")
		want(t, b.get("/console/jobs"), http.StatusOK, "No jobs yet", "All 0")
		boat := s.job("ada", "a boat <b>&")
		s.job("bob", "a secret")
		page := b.get("/console/jobs")
		want(t, page, http.StatusOK, "a boat &lt;b&gt;&amp;", "All 1", "Waiting 1", "next in its queue", `data-live="/console/jobs/live"`)
		if strings.Contains(page.Body.String(), "secret") || strings.Contains(page.Body.String(), "data-final") {
			t.Errorf("another's job, or nothing moves: %s", page.Body)
		}
		live := b.get("/console/jobs/live")
		want(t, live, http.StatusOK, "a boat", "1 job waiting, 0 running")
		b.headers["If-None-Match"] = live.Header().Get("ETag")
		want(t, b.get("/console/jobs/live"), http.StatusNotModified)
		delete(b.headers, "If-None-Match")

		refused := s.job("ada", "fail:render_failed")
		s.run()
		gateway.Eventually(t, "both jobs end", func() bool {
			return strings.Contains(b.get("/console/jobs/live").Body.String(), "data-final")
		})
		want(t, b.get("/console/jobs?status=succeeded"), http.StatusOK, "Done 1", "Failed 1",
			`alt="a boat`, `<img src="http://console.example/media/`)
		want(t, b.get("/console/jobs?status=failed&kind=image"), http.StatusOK, "/console/jobs/"+refused, "Clear filters")
		want(t, b.get("/console/jobs?kind=video"), http.StatusOK, "No such jobs")
		want(t, b.get("/console/jobs/"+boat), http.StatusOK, "a boat &lt;b&gt;&amp;",
			"Charged", "$0.03", "It works until", "sandbox-image", "Made")
		want(t, b.get("/console/jobs/"+boat+"/live"), http.StatusOK, "data-final", "The job is done")
		want(t, b.get("/console/jobs/"+refused), http.StatusOK, "Code: ", "$0<")
	})
}
