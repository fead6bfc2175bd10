package console

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tollgate/internal/console/part"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// booksPage says whether the books agree.
type booksPage struct {
	State       part.Badge
	Run         part.Act
	Last        *part.Facts
	Checked     part.Facts
	Differences part.DataTable
	Omitted     int64
	Runs        part.DataTable
	Empty       *part.Empty
}

// logPage is the log of what operators did.
type logPage struct {
	Filters part.Filters
	Table   part.DataTable
	Empty   *part.Empty
	Pager   part.Pager
}

const shownAudits = 20

// booksWords says in short what an audit came to.
func booksWords(o operator.AuditOutcome) string {
	switch {
	case o.EndedMS == 0:
		return "being checked"
	case o.Fault != "":
		return "not known"
	case o.Findings.OK:
		return "agree"
	}
	return plural(len(o.Findings.Differences)+int(o.Findings.Omitted), "difference")
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

func (c *console) books(v *visit) (answer, error) {
	var runs []operator.AuditOutcome
	if err := v.view(func(tx *store.Tx) (err error) {
		runs, err = operator.AuditsTx(tx, shownAudits)
		return err
	}); err != nil {
		return nil, err
	}
	shown := booksPage{Run: part.Act{Action: Base + "/operator/books/run", Word: "Run an audit now"}}
	if len(runs) == 0 {
		shown.Empty = &part.Empty{Title: "Not run yet",
			Text: "An audit recomputes every balance, hold and total from the recorded movements, in one snapshot beside the running service."}
	} else {
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
	return page{name: "books", title: "Books", main: shown}.done(v, map[string]string{
		"begun": "An audit runs now, beside the service. Its result appears here; reload to see it.",
		"runs":  "An audit runs already on this node; its result appears here.",
	}), nil
}

func (p *booksPage) lastRun(o operator.AuditOutcome) {
	p.State, p.Omitted = booksBadge(o), o.Findings.Omitted
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
		p.Checked = append(p.Checked, part.Fact{Name: title(stateWords(what)), Value: part.Count{N: o.Findings.Checked[what]}})
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

func (c *console) runAudit(v *visit) (answer, error) {
	if err := v.blank(); err != nil {
		return nil, err
	}
	begun, err := c.Audits.Begin(v.ctx, v.by())
	if err != nil {
		return nil, err
	}
	if !begun {
		return to("/operator/books", "runs"), nil
	}
	return to("/operator/books", "begun"), nil
}

func (c *console) operatorLog(v *visit) (answer, error) {
	const path = "/operator/log"
	var shown logPage
	act := part.FormField{Name: "act", Label: "Act", Kind: part.Choice, Options: []part.Option{{Value: "", Label: "all"}}}
	for _, one := range operator.Acts() {
		act.Options = append(act.Options, part.Option{Value: one, Label: actWords(one), On: one == v.query("act")})
	}
	filters, chosen := v.requestFilters(path, "object", "account")
	filters.Fields = append([]part.FormField{act}, filters.Fields...)
	if v.query("act") != "" {
		filters.Clear, chosen = Base+path, true
	}
	shown.Filters = filters
	if err := v.view(func(tx *store.Tx) error {
		list, more, err := operator.LogTx(tx, operator.LogFilter{Act: v.query("act"), Object: v.query("object"), Account: v.query("account"),
			After: v.query("after"), Limit: pageRows})
		shown.Table = logTable(list)
		shown.Pager = v.pager(path, more, lastOf(list, func(e operator.LogRow) string { return e.ID }))
		return err
	}); err != nil {
		return nil, err
	}
	if len(shown.Table.Rows) == 0 {
		shown.Empty = &part.Empty{Title: "Nothing was done yet",
			Text: "What operators do stands here, from the console, the operator API and the shell."}
		if chosen {
			shown.Empty = &part.Empty{Title: "Nothing matches these filters", Link: &part.Link{Href: Base + path, Text: "Clear filters",
				Button: true}}
		}
	}
	return page{name: "operatorlog", title: "Log", main: shown}, nil
}

// actWords are those of an act: account.credit is "credit account".
func actWords(act string) string {
	what, does, _ := strings.Cut(act, ".")
	return does + " " + what
}

func logTable(list []operator.LogRow) part.DataTable {
	t := part.DataTable{Caption: "What operators did",
		Columns: []part.Column{{Title: "When"}, {Title: "Who"}, {Title: "Act"}, {Title: "Object"},
			{Title: "Before and after"}}}
	for _, e := range list {
		who := e.Name
		if who == "" {
			who = map[operator.Way]string{operator.Console: "operator's token", operator.Token: "operator API", operator.Shell: "shell"}[e.Way]
		}
		if e.Address != "" {
			who += ", " + e.Address
		}
		t.Rows = append(t.Rows, part.DataRow{Cells: []any{part.Moment{MS: e.AtMS}, part.Text{Text: who}, actWords(e.Act),
			part.Ident{ID: e.Object, Href: objectHref(e)}, part.Text{Text: dashed(changeWords(e.Before, e.After)), Lines: true}}})
	}
	return t
}

// objectHref is the page of what an act was done to; empty: it has none.
func objectHref(e operator.LogRow) string {
	what, _, _ := strings.Cut(e.Act, ".")
	switch what {
	case "account", "webhook":
		return Base + "/operator/accounts/" + e.Object
	case "user", "key":
		return Base + "/operator/accounts/" + e.Account
	case "job":
		return Base + "/operator/jobs/" + e.Object
	case "line":
		return Base + "/operator/lines/" + e.Object
	case "catalog":
		return Base + "/operator/catalog/revisions/" + e.Object
	}
	return ""
}

// changeWords says what an act changed, a line each.
func changeWords(before, after operator.Details) string {
	names := slices.Sorted(maps.Keys(before))
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, there := before[name]; !there {
			names = append(names, name)
		}
	}
	var lines []string
	for _, name := range names {
		was, had := before[name]
		is, has := after[name]
		switch {
		case had && has:
			lines = append(lines, fmt.Sprintf("%s: %s → %s", name, worded(was), worded(is)))
		case had:
			lines = append(lines, fmt.Sprintf("%s: %s → none", name, worded(was)))
		default:
			lines = append(lines, fmt.Sprintf("%s: %s", name, worded(is)))
		}
	}
	return strings.Join(lines, "\n")
}

// worded writes a value of the log for people.
func worded(value any) string {
	switch v := value.(type) {
	case string:
		if v == "" {
			return "none"
		}
		return v
	case []any:
		all := make([]string, len(v))
		for i, one := range v {
			all[i] = worded(one)
		}
		if len(all) == 0 {
			return "none"
		}
		return strings.Join(all, ", ")
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(raw)
}
