package operatorpages

import (
	"maps"
	"slices"
	"strings"

	"tollgate/internal/console/page"
	"tollgate/internal/console/part"
	"tollgate/internal/console/show"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// booksPage shows whether the books agree.
type booksPage struct {
	Now  booksPart
	Live part.Live
}

// booksPart is the live part of the page during an audit.
type booksPart struct {
	Address     string // address of its updates
	Said        string // announcement for the reader after a change
	Moving      bool
	State       part.Badge
	Run         part.Act
	Last        *part.Facts
	Checked     part.Facts
	Differences part.DataTable
	Omitted     int64
	Unproved    int
	Runs        part.DataTable
	Empty       *part.Empty
}

const shownAudits = 20

// booksWords summarizes the result of an audit.
func booksWords(o operator.AuditOutcome) string {
	switch {
	case o.EndedMS == 0:
		return "being checked"
	case o.Fault != "":
		return "not known"
	case o.Findings.OK:
		return "agree"
	}
	return part.Plural(len(o.Findings.Differences)+int(o.Findings.Omitted), "difference")
}

func booksBadge(o operator.AuditOutcome) part.Badge {
	b := part.Badge{Word: booksWords(o), Tone: part.Bad}
	switch {
	case o.EndedMS == 0:
		b.Tone = part.Info
	case o.Fault != "":
		b.Tone = part.Warn
	case o.Findings.OK:
		b.Tone = part.OK
	}
	return b
}

func (c *console) books(v *page.Visit) (page.Outgoing, error) {
	now, err := c.booksNow(v)
	if err != nil {
		return nil, err
	}
	return page.Whole{Name: "books", Title: "Books", Main: booksPage{Now: now}}.Done(v, map[string]string{
		"begun": "An audit runs now, beside the service. Its result appears here.",
		"runs":  "An audit runs already on this node; its result appears here.",
	}), nil
}

// liveBooks returns the live part of the page.
func (c *console) liveBooks(v *page.Visit) (page.Outgoing, error) {
	now, err := c.booksNow(v)
	if err != nil {
		return nil, err
	}
	return page.Fragment{Name: "booksnow", Main: now}, nil
}

func (c *console) booksNow(v *page.Visit) (booksPart, error) {
	var runs []operator.AuditOutcome
	if err := v.View(func(tx *store.Tx) (err error) {
		runs, err = operator.AuditsTx(tx, shownAudits)
		return err
	}); err != nil {
		return booksPart{}, err
	}
	shown := booksPart{Address: page.Base + "/operator/live/books",
		Run: part.Act{Action: page.Base + "/operator/books/run", Word: "Run an audit now"}}
	if len(runs) == 0 {
		shown.Empty = &part.Empty{Title: "Not run yet",
			Text: "An audit recomputes every balance, reservation and total from the recorded movements. The service keeps running."}
	} else {
		shown.Moving, shown.Said = runs[0].EndedMS == 0, "The books: "+booksWords(runs[0])+"."
		shown.lastRun(runs[0])
	}
	shown.Runs = part.DataTable{Caption: "Audits", Columns: []part.Column{{Title: "Began"}, {Title: "Books"}, {Title: "Took", Right: true},
		{Title: "Asked for by"}}}
	for _, o := range runs {
		took := any(part.Text{Text: "–", Muted: true})
		if o.EndedMS > 0 {
			took = part.Took{MS: o.EndedMS - o.BeganMS}
		}
		shown.Runs.Rows = append(shown.Runs.Rows, part.DataRow{Cells: []any{part.Moment{MS: o.BeganMS}, booksBadge(o), took, o.Name}})
	}
	return shown, nil
}

func (p *booksPart) lastRun(o operator.AuditOutcome) {
	p.State, p.Omitted, p.Unproved = booksBadge(o), o.Findings.Omitted, len(o.Findings.Unproved)
	facts := part.Facts{{Name: "Began", Value: part.Moment{MS: o.BeganMS}}}
	switch {
	case o.EndedMS == 0:
		facts = append(facts, part.Fact{Name: "State", Value: "It runs, or its node has died since. Run another if this does not end."})
	case o.Fault != "":
		facts = append(facts, part.Fact{Name: "No result", Value: part.Text{Text: o.Fault}})
	default:
		facts = append(facts, part.Fact{Name: "Ended", Value: part.Moment{MS: o.EndedMS}})
	}
	p.Last = &facts
	for _, what := range slices.Sorted(maps.Keys(o.Findings.Checked)) {
		p.Checked = append(p.Checked, part.Fact{Name: part.Title(show.StateWords(what)), Value: part.Count{N: o.Findings.Checked[what]}})
	}
	p.Differences = part.DataTable{Caption: "Differences", Columns: []part.Column{{Title: "What"}, {Title: "Recorded", Right: true},
		{Title: "Computed", Right: true}, {Title: "Of"}}}
	for _, d := range o.Findings.Differences {
		of := strings.Join(slices.DeleteFunc([]string{d.Account, d.Key, d.Model, d.Request}, func(s string) bool { return s == "" }), " ")
		p.Differences.Rows = append(p.Differences.Rows, part.DataRow{Cells: []any{d.What, part.Text{Text: d.Recorded},
			part.Text{Text: d.Computed},
			part.Text{Text: of, Mono: true}}})
	}
}

func (c *console) runAudit(v *page.Visit) (page.Outgoing, error) {
	begun, err := c.Audits.Begin(v.Context(), show.By(v))
	if err != nil {
		return nil, err
	}
	if !begun {
		return page.To("/operator/books", "runs"), nil
	}
	return page.To("/operator/books", "begun"), nil
}
