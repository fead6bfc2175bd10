package userpages_test

import (
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/console/consoletest"
	gateway "tollgate/internal/gatewaytest/scene"
)

// TestJobs checks that the gallery and a job's page show waiting, successful and failed jobs.
func TestJobs(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.SignedIn("ada@example.com")
		b.Get("/console/jobs").Want(t, http.StatusOK, "No jobs yet", "All 0")
		boat := s.Job("ada", "a boat <b>&")
		s.Job("bob", "a secret")
		page := b.Get("/console/jobs")
		page.Want(t, http.StatusOK, "a boat &lt;b&gt;&amp;", "All 1", "Waiting 1", "next in its queue", `data-live="/console/jobs/live"`)
		page.Without(t, "secret", "data-final")
		live := b.Get("/console/jobs/live")
		live.Want(t, http.StatusOK, "a boat", "1 job waiting, 0 running")
		b.Headers["If-None-Match"] = live.Header().Get("ETag")
		b.Get("/console/jobs/live").Want(t, http.StatusNotModified)
		delete(b.Headers, "If-None-Match")

		failed := s.Job("ada", "fail:render_failed")
		s.Run()
		gateway.Eventually(t, "both jobs end", func() bool {
			return strings.Contains(b.Get("/console/jobs/live").Body.String(), "data-final")
		})
		b.Get("/console/jobs?status=succeeded").Want(t, http.StatusOK, "Done 1", "Failed 1",
			`alt="a boat`, `<img src="http://console.example/media/`)
		b.Get("/console/jobs?status=failed&kind=image").Want(t, http.StatusOK, "/console/jobs/"+failed,
			`href="/console/jobs?kind=image&amp;status=failed" aria-current="page">Images<`)
		b.Get("/console/jobs?kind=video").Want(t, http.StatusOK, "No such jobs")
		const notice = "Nobody has fetched 1 result."
		b.Get("/console/jobs").Want(t, http.StatusOK, notice, "wait for pictures", "Not fetched 1", "not fetched</span>")
		b.Get("/console/jobs?status=unfetched").Want(t, http.StatusOK, notice, "a boat", `href="/console/keys"`)
		b.Get("/console/jobs/"+boat).Want(t, http.StatusOK, "a boat &lt;b&gt;&amp;",
			"Charged", "$0.03", "Works until", "sandbox-image", "Generated")
		b.Get("/console/jobs/"+boat+"/live").Want(t, http.StatusOK, "data-final", "The job is done", `href="/console/requests/req_`)
		b.Get("/console/jobs/"+failed).Want(t, http.StatusOK, "It failed.", "<dt>Code</dt>", "upstream_error", "$0<", "The job has failed")
		gateway.Eventually(t, "the visit of the result's page counts", func() bool {
			return !strings.Contains(b.Get("/console/jobs").Body.String(), "fetched")
		})
		b.Get("/console/jobs?status=unfetched").Want(t, http.StatusOK, "No such jobs", "Not fetched 0")
	})
}
