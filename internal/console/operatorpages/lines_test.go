package operatorpages_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/console"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/line"
	"tollgate/internal/line/health"
	"tollgate/internal/operator"
)

// TestDrainAndResumeLine checks that an operator can drain a line and resume it.
func TestDrainAndResumeLine(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Operator()
		b.Get("/console/operator/lines").Want(t, http.StatusOK, "sandbox", "in service", "Drain")
		b.Get("/console/operator/lines/sandbox?confirm=drain-sandbox").Want(t, http.StatusOK, "No node sends new requests", "On each node")
		b.Post("/console/operator/lines/sandbox/drain").Want(t, http.StatusSeeOther, "done=drained")
		b.Get("/console/operator/lines/sandbox?done=drained").Want(t, http.StatusOK, "drained", "Resume")
		b.Post("/console/operator/lines/sandbox/resume").Want(t, http.StatusSeeOther)
		b.Get("/console/operator/lines/sandbox").Want(t, http.StatusOK, "in service")
		b.Get("/console/operator/lines/none").Want(t, http.StatusNotFound)
		b.Post("/console/operator/lines/none/drain").Want(t, http.StatusNotFound)
		if rows := logged(t, s, operator.LineDrain, 1); rows[0].After["state"] != "drained" {
			t.Errorf("the log has %+v, want the state drained", rows)
		}
	})
}

// fixedReport suppresses the node's reports, so that the report written by a test stays.
type fixedReport struct{ operator.LineControl }

func (fixedReport) Report(context.Context) error { return nil }

// browserWithStates returns an operator's browser that sees the given states of lines.
func browserWithStates(t *testing.T, s *consoletest.Scene, states map[string]string) *consoletest.Browser {
	t.Helper()
	return browserWithReport(t, s, func(l *line.Status) {
		if state := states[l.Line]; state != "" {
			l.State = state
		}
	})
}

// browserWithReport returns an operator's browser that sees the node's report as changed by edit.
func browserWithReport(t *testing.T, s *consoletest.Scene, edit func(*line.Status)) *consoletest.Browser {
	t.Helper()
	b := s.Operator()
	statuses := s.Options.Lines.Statuses()
	for i := range statuses {
		edit(&statuses[i])
	}
	raw, err := json.Marshal(statuses)
	if err != nil {
		t.Fatal(err)
	}
	b.Get("/console/operator/lines") // writes the report
	s.Exec(`UPDATE line_report SET states = $1`, string(raw))
	b.Handler = s.Console(func(o *console.Options) { o.Lines = fixedReport{o.Lines} })
	return b
}

// TestLineOutOfService checks that a line out of service can be resumed, and can be drained to
// prevent probes from returning it to service. A line disabled in the catalog can be neither
// resumed nor drained.
func TestLineOutOfService(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		const path = "/console/operator/lines/sandbox"
		b := browserWithStates(t, s, map[string]string{"sandbox": health.StateCircuitOpen, "sandbox-studio": "disabled"})
		for _, page := range []string{"/console/operator/lines", path} {
			b.Get(page).Want(t, http.StatusOK, "circuit open", `action="`+path+`/drain"`, `action="`+path+`/resume"`,
				"No other line in use has sandbox-chat, ")
		}
		for _, page := range []string{"/console/operator/lines", path + "-studio"} {
			b.Get(page).Without(t, path+"-studio/drain", path+"-studio/resume")
		}
		b.Get("/console/operator/live/lines").Want(t, http.StatusOK, "circuit open", `data-announce="1 line out of use."`)
		b = browserWithStates(t, s, map[string]string{"sandbox": "drained"})
		if body := b.Get(path).Body.String(); strings.Contains(body, path+"/drain") || !strings.Contains(body, path+"/resume") {
			t.Errorf("the page of a drained line has a button to drain or none to resume: %s", body)
		}
	})
}

// TestModelsOfALine checks that a line's page shows the state of each model, with its cause and
// times.
func TestModelsOfALine(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := browserWithReport(t, s, func(l *line.Status) {
			if l.Line == "sandbox" {
				l.ModelsOut = []health.PartOut{{Model: "sandbox-chat", Cause: "404: it was retired", Since: 1_800_000_000, Until: 1_800_000_300}}
			}
		})
		b.Get("/console/operator/lines/sandbox").Want(t, http.StatusOK, "sandbox-chat", "model out", "404: it was retired", "2027-01-15",
			"in service")
	})
}
