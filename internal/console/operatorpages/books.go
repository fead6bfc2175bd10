package operatorpages

import (
	"maps"
	"slices"
	"strings"

	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// booksFragment shows the results of audits. It is updated while an audit runs.
type booksFragment struct {
	Address      string   // address of its updates
	Announcement ui.Words // read out by screen readers after a change
	Running      bool
	State        ui.Badge
	Run          ui.Button
	Last         *ui.Facts
	Checked      ui.Facts
	Differences  ui.DataTable
	Omitted      int64 // number of differences left out of Differences
	Unproved     int   // number of sums too large to compare
	Audits       ui.DataTable
	Empty        *ui.EmptyState
}

const shownAudits = 20

func booksLabel(o operator.AuditOutcome) ui.Words {
	switch {
	case o.EndedMS == 0:
		return "audit running"
	case o.Fault != "":
		return "unknown"
	case o.Findings.OK:
		return "agree"
	}
	return ui.Plural(len(o.Findings.Differences)+int(o.Findings.Omitted), "%s difference", "%s differences")
}

func booksBadge(o operator.AuditOutcome) ui.Badge {
	b := ui.Badge{Label: booksLabel(o), Tone: ui.Bad}
	switch {
	case o.EndedMS == 0:
		b.Tone = ui.Info
	case o.Fault != "":
		b.Tone = ui.Warn
	case o.Findings.OK:
		b.Tone = ui.OK
	}
	return b
}

func (c *console) books(v *page.Visit) (page.Responder, error) {
	fragment, err := c.booksFragment(v)
	return page.FullPage{Name: "books", Title: "Books", Main: fragment}.WithNotice(v, map[string]ui.Words{
		"begun": "The audit has started. The service keeps running, and the result appears here.",
		"runs":  "An audit is already running on this node. Its result appears here.",
	}), err
}

func (c *console) liveBooks(v *page.Visit) (page.Responder, error) {
	fragment, err := c.booksFragment(v)
	return page.Fragment{Name: "booksnow", Main: fragment}, err
}

func (c *console) booksFragment(v *page.Visit) (booksFragment, error) {
	runs, err := page.Read(v, func(tx *store.Tx) ([]operator.AuditOutcome, error) { return operator.AuditsTx(tx, shownAudits) })
	if err != nil {
		return booksFragment{}, err
	}
	content := booksFragment{Address: page.Base + "/operator/live/books",
		Run: ui.Button{Action: page.Base + "/operator/books/run", Label: "Run an audit now"}}
	if len(runs) == 0 {
		content.Empty = &ui.EmptyState{Title: "Not run yet",
			Text: "An audit recomputes every balance, reservation and total from the recorded movements. The service keeps running."}
	} else {
		content.Running, content.Announcement = runs[0].EndedMS == 0, ui.Sayf("The books: %s.", booksLabel(runs[0]))
		if runs[0].EndedMS > 0 && runs[0].Findings.OK {
			content.Announcement = "The books agree."
		}
		content.lastRun(runs[0])
	}
	content.Audits = ui.DataTable{Caption: "Audits", Columns: []ui.Column{{Title: "Started"}, {Title: "Books"},
		{Title: "Duration", Right: true}, {Title: "Started by"}}}
	for _, o := range runs {
		duration := any(ui.Text{Text: "–", Muted: true})
		if o.EndedMS > 0 {
			duration = ui.Duration{MS: o.EndedMS - o.BeganMS}
		}
		content.Audits.Rows = append(content.Audits.Rows, ui.DataRow{Cells: []any{ui.Moment{MS: o.BeganMS}, booksBadge(o), duration, o.Name}})
	}
	return content, nil
}

func (p *booksFragment) lastRun(o operator.AuditOutcome) {
	p.State, p.Omitted, p.Unproved = booksBadge(o), o.Findings.Omitted, len(o.Findings.Unproved)
	facts := ui.Facts{{Name: "Started", Value: ui.Moment{MS: o.BeganMS}}}
	switch {
	case o.EndedMS == 0:
		facts = append(facts, ui.Fact{Name: "State",
			Value: ui.Words("Running. If its node ends, the audit continues after the next start, or on another node.")})
	case o.Fault != "":
		facts = append(facts, ui.Fact{Name: "No result", Value: ui.Text{Text: ui.Data(o.Fault)}})
	default:
		facts = append(facts, ui.Fact{Name: "Ended", Value: ui.Moment{MS: o.EndedMS}})
	}
	p.Last = &facts
	for _, table := range slices.Sorted(maps.Keys(o.Findings.Checked)) {
		p.Checked = append(p.Checked, ui.Fact{Name: ui.Title(show.StateLabel(table)), Value: ui.Count{N: o.Findings.Checked[table]}})
	}
	p.Differences = ui.DataTable{Caption: "Differences", Columns: []ui.Column{{Title: "What"}, {Title: "Recorded", Right: true},
		{Title: "Computed", Right: true}, {Title: "Concerns"}}}
	for _, d := range o.Findings.Differences {
		ids := strings.Join(slices.DeleteFunc([]string{d.Account, d.Key, d.Model, d.Request}, func(s string) bool { return s == "" }), " ")
		p.Differences.Rows = append(p.Differences.Rows, ui.DataRow{Cells: []any{d.What, ui.Text{Text: ui.Data(d.Recorded)},
			ui.Text{Text: ui.Data(d.Computed)},
			ui.Text{Text: ui.Data(ids), Mono: true}}})
	}
}

func (c *console) runAudit(v *page.Visit) (page.Responder, error) {
	started, err := c.Audits.Begin(v.Context(), show.Actor(v))
	done := "begun"
	if !started {
		done = "runs"
	}
	return page.To("/operator/books", done), err
}
