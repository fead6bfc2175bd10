package operatorpages

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"tollgate/internal/catalog"
	"tollgate/internal/console/page"
	"tollgate/internal/console/part"
	"tollgate/internal/console/show"
	"tollgate/internal/fault"
	"tollgate/internal/line"
	"tollgate/internal/line/health"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// linesPage lists the lines.
type linesPage struct {
	Now  linesPart
	Live part.Live
}

// linesPart is the live part of the page: all of it.
type linesPart struct {
	Address string // address of its updates
	Said    string // announcement for the reader after a change
	Table   part.DataTable
	Empty   *part.Empty
	Nodes   string
}

// linePage is one line.
type linePage struct {
	Name    string
	State   part.Badge
	Why     *part.Notice
	Acts    part.Group
	Stats   part.FigureRow
	Facts   part.Facts
	Nodes   part.DataTable
	Models  part.DataTable
	Keys    part.DataTable
	Margins part.DataTable
}

// takesCalls reports whether a line in a state gets requests.
func takesCalls(state string) bool {
	return state == health.StateInService || state == health.StateHalfOpen || state == health.StateCooling
}

// outOf reports whether a line is out of service without an operator's decision.
func outOf(s line.Status) bool {
	return s.State == health.StateCircuitOpen || s.State == health.StateCredentialsOut || s.State == "out_of_service"
}

func lineBadge(state string) part.Badge {
	b := part.Badge{Tone: part.Bad, Word: show.StateWords(state)}
	switch state {
	case health.StateInService:
		b.Tone = part.OK
	case health.StateHalfOpen, health.StateCooling:
		b.Tone = part.Warn
	case "drained", "disabled":
		b.Tone = part.Plain
	}
	return b
}

// whyOut returns the cause of a line's state and the time of the next probe.
func whyOut(s line.Status) string {
	why := s.Cause
	if s.State == health.StateInService && why != "" {
		why = "last failure: " + why
	}
	if s.CoolingUntil > 0 {
		why = strings.TrimSuffix(why, ".") + ". Next probe " + part.UTC(s.CoolingUntil*1000) + "."
	}
	return strings.TrimPrefix(why, ". ")
}

// linesTable lists lines; acts, if there are any, stand in a column of their own.
func linesTable(lines []line.Joined, act func(line.Joined) any) part.DataTable {
	t := part.DataTable{Caption: "Lines", Columns: []part.Column{{Title: "Line"}, {Title: "State"}, {Title: "Why"},
		{Title: "In flight", Right: true, Fold: true}, {Title: "Success", Right: true, Fold: true},
		{Title: "First byte", Right: true, Fold: true}, {Title: "Parts out", Fold: true}}}
	if act != nil {
		t.Columns = append(t.Columns, part.Column{Title: "Change"})
	}
	for _, l := range lines {
		row := part.DataRow{Href: page.Base + "/operator/lines/" + url.PathEscape(l.Line),
			Cells: []any{l.Line, lineBadge(l.State), part.Text{Text: part.Dashed(whyOut(l.Status)), Muted: true}}}
		row.Cells = append(append(row.Cells, lineFigures(l.Status)...), partsOut(l.Status))
		if act != nil {
			row.Cells = append(row.Cells, act(l))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// lineFigures returns the calls in flight, the success rate and the time to the first byte.
func lineFigures(s line.Status) []any {
	flight := part.Thousands(s.InFlight)
	if s.MaxConcurrent > 0 {
		flight += "/" + strconv.Itoa(s.MaxConcurrent)
	}
	success, first := any(part.Text{Text: "–", Muted: true}), any(part.Text{Text: "–", Muted: true})
	if s.SuccessRate != nil {
		success = part.Text{Text: part.Percent(int64(*s.SuccessRate*1000+0.5), 1000)}
	}
	if s.FirstByteMS != nil {
		first = part.Took{MS: *s.FirstByteMS}
	}
	return []any{part.Text{Text: flight}, success, first}
}

// partsOut lists the models and forms of a line without requests.
func partsOut(s line.Status) part.Text {
	var out []string
	for _, p := range slices.Concat(s.ModelsOut, s.FormsOut, s.ModelsCooling) {
		name := p.Model
		if p.Form != "" {
			name += " as " + string(p.Form)
		}
		out = append(out, name)
	}
	if len(out) == 0 {
		return part.Text{Text: "none", Muted: true}
	}
	return part.Text{Text: part.Words(out)}
}

// lines reads how all lines are on all nodes, this node's word a fresh one.
func (c *console) lines(v *page.Visit) (list []line.Joined, nodes int, err error) {
	if err := c.Lines.Report(v.Context()); err != nil {
		c.Log.Warn("console: this node's lines could not be reported", "error", err)
	}
	err = v.View(func(tx *store.Tx) error {
		reports, err := line.ReportsTx(tx)
		list, nodes = line.Join(reports), len(reports)
		return err
	})
	return list, nodes, err
}

func (c *console) listLines(v *page.Visit) (page.Outgoing, error) {
	now, err := c.linesNow(v)
	if err != nil {
		return nil, err
	}
	return page.Whole{Name: "lines", Title: "Lines", Main: linesPage{Now: now}}.Done(v, lineWords()), nil
}

// liveLines returns the live part of the page.
func (c *console) liveLines(v *page.Visit) (page.Outgoing, error) {
	now, err := c.linesNow(v)
	if err != nil {
		return nil, err
	}
	return page.Fragment{Name: "linesnow", Main: now}, nil
}

func (c *console) linesNow(v *page.Visit) (linesPart, error) {
	list, nodes, err := c.lines(v)
	if err != nil {
		return linesPart{}, err
	}
	shown := linesPart{Address: page.Base + "/operator/live/lines", Nodes: part.Plural(nodes, "node") + " reported.",
		Table: linesTable(list, func(l line.Joined) any { return c.lineActs(v, l, list) })}
	out := 0
	for _, l := range list {
		if outOf(l.Status) {
			out++
		}
	}
	shown.Said = "No line is out of use by itself."
	if out > 0 {
		shown.Said = part.Plural(out, "line") + " out of use."
	}
	if len(list) == 0 {
		shown.Empty = &part.Empty{Title: "No lines yet", Text: "A line connects models to a provider. Lines are part of the catalog.",
			Link: &part.Link{Href: page.Base + "/operator/catalog/edit", Text: "Edit the catalog", Button: true, Main: true}}
	}
	return shown, nil
}

func lineWords() map[string]string {
	return map[string]string{
		"drained": "The line is drained on all nodes: what runs on it ends, and nothing new begins.",
		"resumed": "The line is back in use on all nodes, and what was held against it is forgotten.",
	}
}

// lineActs returns the buttons for a line. An operator can resume a line out of service, or drain
// it to keep it out. A line disabled in the catalog has no buttons.
func (c *console) lineActs(v *page.Visit, l line.Joined, all []line.Joined) (acts part.Group) {
	path := page.Base + "/operator/lines/" + url.PathEscape(l.Line)
	if l.State == "disabled" {
		return nil
	}
	if l.State != health.StateInService {
		acts = append(acts, part.Act{Action: path + "/resume", Word: "Resume", About: l.Line})
	}
	if l.State != "drained" {
		drain := part.Confirm{ID: "drain-" + l.Line, Button: "Drain", Title: "Drain the line " + l.Line + "?", Action: path + "/drain",
			Text: []string{"No node begins anything new on it until you resume it. What runs on it ends as usual."}}
		if alone := c.servedAlone(l.Line, all); len(alone) > 0 {
			drain.Text = append(drain.Text, "No other line in use has "+part.Words(alone)+
				": requests for it fail until then, and nobody is charged.")
		}
		acts = append(acts, v.Confirm(drain))
	}
	return acts
}

// servedAlone returns the models of a line without another usable line.
func (c *console) servedAlone(id string, all []line.Joined) (models []string) {
	usable := map[string]bool{}
	for _, l := range all {
		usable[l.Line] = l.Line != id && takesCalls(l.State)
	}
	now := c.Catalog.Current()
	for _, m := range now.Models() {
		lines := now.Lines(m.ID)
		has := func(l *catalog.Line) bool { return l.ID == id }
		if slices.ContainsFunc(lines, has) && !slices.ContainsFunc(lines, func(l *catalog.Line) bool { return usable[l.ID] }) {
			models = append(models, m.ID)
		}
	}
	return models
}

func (c *console) showLine(v *page.Visit) (page.Outgoing, error) {
	list, _, err := c.lines(v)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(list, func(l line.Joined) bool { return l.Line == v.PathID() })
	if at < 0 {
		return nil, fault.New(fault.NotFound, "No node has a line of this name. The catalog lists the lines.")
	}
	l := list[at]
	shown := linePage{Name: l.Line, State: lineBadge(l.State), Margins: marginTable(list[at : at+1]), Nodes: nodesTable(l),
		Models: modelsTable(l), Keys: lineKeysTable(l), Acts: c.lineActs(v, l, list)}
	if outOf(l.Status) {
		shown.Why = &part.Notice{Tone: part.Bad, Title: "It is out.", Text: whyOut(l.Status)}
	}
	figures := lineFigures(l.Status)
	shown.Stats = part.FigureRow{{Label: "In flight", Value: figures[0]}, {Label: "Success, recent", Value: figures[1],
		Note: part.Text{Text: "of " + part.Plural(l.Attempts, "attempt")}}, {Label: "First byte, median", Value: figures[2]}}
	shown.Facts = part.Facts{{Name: "Provider", Value: l.Provider}}
	for _, spec := range c.Catalog.Current().AllLines() {
		if spec.ID == l.Line {
			shown.Facts = append(shown.Facts, specFacts(spec)...)
		}
	}
	shown.Facts = append(shown.Facts, part.Fact{Name: "Last failure", Value: part.Dashed(l.Cause)},
		part.Fact{Name: "Log", Value: part.Link{Href: page.Base + "/operator/requests?line=" + url.QueryEscape(l.Line), Text: "its requests"}})
	return page.Whole{Name: "line", Title: "Line " + l.Line, Main: shown}.Done(v, lineWords()), nil
}

// specFacts returns a line's settings in the catalog, without its credential.
func specFacts(l *catalog.Line) part.Facts {
	var models []string
	for ours, theirs := range l.Models {
		models = append(models, ours+" as "+theirs)
	}
	slices.Sort(models)
	facts := part.Facts{{Name: "Models", Value: part.Words(models)},
		{Name: "Priority, weight", Value: strconv.Itoa(l.Priority) + ", " + strconv.Itoa(l.Weight)}}
	if l.BaseURL != "" {
		facts = append(part.Facts{{Name: "Address", Value: part.Text{Text: l.BaseURL, Mono: true}}}, facts...)
	}
	return facts
}

func nodesTable(l line.Joined) part.DataTable {
	t := part.DataTable{Caption: "On each node", Columns: []part.Column{{Title: "Node"}, {Title: "Machine"}, {Title: "State"}, {Title: "Why"},
		{Title: "In flight", Right: true}, {Title: "Success", Right: true}, {Title: "First byte", Right: true}, {Title: "Said"}}}
	for _, n := range l.Nodes {
		cells := []any{part.Ident{ID: n.Node, Cut: true}, part.Dashed(n.Host),
			lineBadge(n.State), part.Text{Text: part.Dashed(whyOut(n.Status)), Muted: true}}
		t.Rows = append(t.Rows, part.DataRow{Cells: append(append(cells, lineFigures(n.Status)...), part.Moment{MS: n.At * 1000})})
	}
	return t
}

// modelsTable shows the states of a line's models.
func modelsTable(l line.Joined) part.DataTable {
	t := part.DataTable{Caption: "The models of the line",
		Columns: []part.Column{{Title: "Model"}, {Title: "Form"}, {Title: "State"}, {Title: "Why"},
			{Title: "Since"}, {Title: "Until"}}}
	for _, s := range l.ModelStates {
		form := string(s.Form)
		if s.Tools {
			form += " with tools"
		}
		t.Rows = append(t.Rows, part.DataRow{Cells: []any{s.Model, part.Dashed(form), lineBadge(s.State),
			part.Text{Text: part.Dashed(s.Cause), Muted: true}, momentOr(s.Since), momentOr(s.Until)}})
	}
	return t
}

// lineKeysTable shows the keys of a line with several, never one itself.
func lineKeysTable(l line.Joined) part.DataTable {
	t := part.DataTable{Caption: "Keys, in the order of their use",
		Columns: []part.Column{{Title: "Key"}, {Title: "Ends in"}, {Title: "State"}, {Title: "Why"}, {Title: "Since"}, {Title: "Until"}}}
	for _, k := range l.Keys {
		t.Rows = append(t.Rows, part.DataRow{Cells: []any{part.Text{Text: k.Reference, Mono: true}, part.Dashed(k.Hint),
			strings.ReplaceAll(k.State, "_", " "), part.Text{Text: part.Dashed(k.Cause), Muted: true},
			momentOr(k.Since), momentOr(k.Until)}})
	}
	return t
}

// momentOr returns a time in Unix seconds, or a dash for zero.
func momentOr(at int64) any {
	if at == 0 {
		return part.Text{Text: "–", Muted: true}
	}
	return part.Moment{MS: at * 1000}
}

func (c *console) drainLine(v *page.Visit) (page.Outgoing, error) {
	return c.decideLine(v, operator.DrainTx, "drained")
}
func (c *console) resumeLine(v *page.Visit) (page.Outgoing, error) {
	return c.decideLine(v, operator.ResumeTx, "resumed")
}

func (c *console) decideLine(
	v *page.Visit, decide func(*store.Tx, operator.Actor, catalog.LineSpec) (line.Status, error), done string,
) (page.Outgoing, error) {
	var spec catalog.LineSpec
	if err := v.View(func(tx *store.Tx) (err error) {
		spec, err = operator.LineTx(tx, v.PathID())
		return err
	}); err != nil {
		return nil, err
	}
	if err := v.Update(func(tx *store.Tx) error {
		_, err := decide(tx, show.By(v), spec)
		return err
	}); err != nil {
		return nil, err
	}
	c.soon(v, "the decision about a line", c.Lines.Refresh)
	return page.To("/operator/lines/"+url.PathEscape(spec.ID), done), nil
}
