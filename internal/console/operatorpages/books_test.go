package operatorpages_test

import (
	"net/http"
	"testing"

	"tollgate/internal/console/consoletest"
	"tollgate/internal/operator"
)

func TestAuditRunsInTheBackground(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Operator()
		b.Get("/console/operator/books").Want(t, http.StatusOK, "Not run yet")
		b.Post("/console/operator/books/run").Want(t, http.StatusSeeOther, "done=begun")
		b.Post("/console/operator/books/run").Want(t, http.StatusSeeOther, "done=runs")
		b.Get("/console/operator/books").Want(t, http.StatusOK, "being checked", `data-live="/console/operator/live/books" data-announce`)
		row := logged(s, operator.AuditRun)[0]
		if err := s.Options.Audits.Step(t.Context(), row.Object); err != nil {
			t.Fatal(err)
		}
		b.Get("/console/operator/books").Want(t, http.StatusOK, "agree", "Accounts", "operator")
		b.Get("/console/operator/live/books").Want(t, http.StatusOK, "data-final", `data-announce="The books: agree."`)
	})
}
