package operatorpages_test

import (
	"net/http"
	"testing"

	"tollgate/internal/console/consoletest"
	"tollgate/internal/operator"
)

func TestLinesAreDrainedAndResumed(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Operator()
		b.Get("/console/operator/lines").Want(t, http.StatusOK, "sandbox", "in service", "Drain")
		b.Get("/console/operator/lines/sandbox?confirm=drain-sandbox").Want(t, http.StatusOK, "No node begins anything new", "On each node")
		b.Post("/console/operator/lines/sandbox/drain").Want(t, http.StatusSeeOther, "done=drained")
		b.Get("/console/operator/lines/sandbox?done=drained").Want(t, http.StatusOK, "drained", "Resume")
		b.Post("/console/operator/lines/sandbox/resume").Want(t, http.StatusSeeOther)
		b.Get("/console/operator/lines/sandbox").Want(t, http.StatusOK, "in service")
		b.Get("/console/operator/lines/none").Want(t, http.StatusNotFound)
		b.Post("/console/operator/lines/none/drain").Want(t, http.StatusNotFound)
		if rows := logged(s, operator.LineDrain); len(rows) != 1 || rows[0].After["state"] != "drained" {
			t.Errorf("log %+v", rows)
		}
	})
}
