package operatorpages

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"tollgate/internal/catalog"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/line"
	"tollgate/internal/line/health"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// linesFragment lists the lines. It is updated every ten seconds.
type linesFragment struct {
	Address      string   // address of its updates
	Announcement ui.Words // read out by screen readers after a change
	Table        ui.DataTable
	Empty        *ui.EmptyState
	Nodes        ui.Words
}

// linePage shows one line.
type linePage struct {
	Name    string
	State   ui.Badge
	Why     *ui.Notice
	Acts    ui.Group
	Stats   ui.FigureRow
	Facts   ui.Facts
	Nodes   ui.DataTable
	Models  ui.DataTable
	Keys    ui.DataTable
	Margins ui.DataTable
}

// takesCalls reports whether a line in a state gets requests.
func takesCalls(state string) bool {
	return state == health.StateInService || state == health.StateHalfOpen || state == health.StateCooling
}

// isOut reports whether a line is out of service although no operator has drained it.
func isOut(s line.Status) bool {
	return s.State == health.StateCircuitOpen || s.State == health.StateCredentialsOut || s.State == "out_of_service"
}

func lineBadge(state string) ui.Badge {
	b := ui.Badge{Tone: ui.Bad, Label: show.StateLabel(state)}
	switch state {
	case health.StateInService:
		b.Tone = ui.OK
	case health.StateHalfOpen, health.StateCooling:
		b.Tone = ui.Warn
	case "drained", "disabled":
		b.Tone = ui.Plain
	}
	return b
}

// outReason describes the cause of a line's state and the time of the next probe.
func outReason(s line.Status) ui.Words {
	cause := ui.Data(s.Cause)
	if s.State == health.StateInService && cause != "" {
		cause = ui.Sayf("last failure: %s", s.Cause)
	}
	if s.CoolingUntil > 0 {
		if s.Cause == "" {
			return ui.Sayf("Next probe %s.", ui.UTC(s.CoolingUntil*1000))
		}
		return ui.Sayf("%s. Next probe %s.", strings.TrimSuffix(cause.String(), "."), ui.UTC(s.CoolingUntil*1000))
	}
	return cause
}

// linesTable lists lines. If act is not nil, the last column has the buttons for each line.
func linesTable(lines []line.CombinedStatus, act func(line.CombinedStatus) any) ui.DataTable {
	t := ui.DataTable{Caption: "Lines", Columns: []ui.Column{{Title: "Line"}, {Title: "State"}, {Title: "Why"},
		{Title: "In flight", Right: true, Fold: true}, {Title: "Success", Right: true, Fold: true},
		{Title: "First byte", Right: true, Fold: true}, {Title: "Models out", Fold: true}}}
	if act != nil {
		t.Columns = append(t.Columns, ui.Column{Title: "Change"})
	}
	for _, l := range lines {
		row := ui.DataRow{Href: page.Base + "/operator/lines/" + url.PathEscape(l.Line),
			Cells: []any{l.Line, lineBadge(l.State), ui.Text{Text: ui.OrDash(outReason(l.Status)), Muted: true}}}
		row.Cells = append(append(row.Cells, lineFigures(l.Status)...), unavailableModels(l.Status))
		if act != nil {
			row.Cells = append(row.Cells, act(l))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// lineFigures returns the cells for the calls in flight, the success rate and the time to the first byte.
func lineFigures(s line.Status) []any {
	inFlight := ui.Thousands(s.InFlight)
	if s.MaxConcurrent > 0 {
		inFlight += "/" + strconv.Itoa(s.MaxConcurrent)
	}
	success, first := any(ui.Text{Text: "–", Muted: true}), any(ui.Text{Text: "–", Muted: true})
	if s.SuccessRate != nil {
		success = ui.Text{Text: ui.Data(ui.Percent(int64(*s.SuccessRate*1000+0.5), 1000))}
	}
	if s.FirstByteMS != nil {
		first = ui.Duration{MS: *s.FirstByteMS}
	}
	return []any{ui.Text{Text: ui.Data(inFlight)}, success, first}
}

// unavailableModels lists the models and forms for which the line gets no requests.
func unavailableModels(s line.Status) ui.Text {
	var out []ui.Words
	for _, p := range slices.Concat(s.ModelsOut, s.FormsOut, s.ModelsCooling) {
		name := ui.Data(p.Model)
		if p.Form != "" {
			name = ui.Sayf("%s as %s", p.Model, p.Form)
		}
		out = append(out, name)
	}
	if len(out) == 0 {
		return ui.Text{Text: "none", Muted: true}
	}
	return ui.Text{Text: ui.JoinAnd(out)}
}

// lines returns the states of all lines, combined from the reports of all nodes. nodes is the number of these
// nodes. This node reports first.
func (c *console) lines(v *page.Visit) (list []line.CombinedStatus, nodes int, err error) {
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

func (c *console) listLines(v *page.Visit) (page.Responder, error) {
	now, err := c.linesNow(v)
	return page.FullPage{Name: "lines", Title: "Lines", Main: now}.WithNotice(v, lineNotices()), err
}

func (c *console) liveLines(v *page.Visit) (page.Responder, error) {
	now, err := c.linesNow(v)
	return page.Fragment{Name: "linesnow", Main: now}, err
}

func (c *console) linesNow(v *page.Visit) (linesFragment, error) {
	list, nodes, err := c.lines(v)
	if err != nil {
		return linesFragment{}, err
	}
	content := linesFragment{Address: page.Base + "/operator/live/lines",
		Nodes: ui.Sayf("%s reported.", ui.Plural(nodes, "%s node", "%s nodes")),
		Table: linesTable(list, func(l line.CombinedStatus) any { return c.lineActs(v, l, list) })}
	out := 0
	for _, l := range list {
		if isOut(l.Status) {
			out++
		}
	}
	content.Announcement = "No line is out of use by itself."
	if out > 0 {
		content.Announcement = ui.Sayf("%s out of use.", ui.Plural(out, "%s line", "%s lines"))
	}
	if len(list) == 0 {
		content.Empty = &ui.EmptyState{Title: "No lines yet", Text: "A line connects models to a provider. Lines are part of the catalog.",
			Link: &ui.Link{Href: page.Base + "/operator/catalog/edit", Text: "Edit the catalog", Button: true, Main: true}}
	}
	return content, nil
}

func lineNotices() map[string]ui.Words {
	return map[string]ui.Words{
		"drained": "The line is drained on all nodes. Running requests finish, and no new ones start.",
		"resumed": "The line is back in use on all nodes, and its failures are reset.",
	}
}

// lineActs returns the buttons for a line. A line out of service can be resumed, or drained to keep it out of
// service. A line disabled in the catalog has no buttons.
func (c *console) lineActs(v *page.Visit, l line.CombinedStatus, all []line.CombinedStatus) (acts ui.Group) {
	path := page.Base + "/operator/lines/" + url.PathEscape(l.Line)
	if l.State == "disabled" {
		return nil
	}
	if l.State != health.StateInService {
		acts = append(acts, ui.Button{Action: path + "/resume", Label: "Resume", About: ui.Data(l.Line)})
	}
	if l.State != "drained" {
		drain := ui.Confirm{ID: "drain-" + l.Line, Button: "Drain", Title: ui.Sayf("Drain the line %s?", l.Line), Action: path + "/drain",
			Text: []ui.Words{"No node sends new requests to it until you resume it. Running requests finish."}}
		if unserved := c.onlyServedBy(l.Line, all); len(unserved) > 0 {
			drain.Text = append(drain.Text,
				ui.Sayf("No other line in use has %s: requests for it fail until then, and nobody is charged.", ui.JoinAnd(unserved)))
		}
		acts = append(acts, v.Confirm(drain))
	}
	return acts
}

// onlyServedBy returns the models of a line that no other line can serve now. all are the states of all lines.
func (c *console) onlyServedBy(id string, all []line.CombinedStatus) (models []string) {
	usable := map[string]bool{}
	for _, l := range all {
		usable[l.Line] = l.Line != id && takesCalls(l.State)
	}
	now := c.Catalog.Current()
	for _, m := range now.Models() {
		lines := now.Lines(m.ID)
		isThis := func(l *catalog.Line) bool { return l.ID == id }
		if slices.ContainsFunc(lines, isThis) && !slices.ContainsFunc(lines, func(l *catalog.Line) bool { return usable[l.ID] }) {
			models = append(models, m.ID)
		}
	}
	return models
}

func (c *console) showLine(v *page.Visit) (page.Responder, error) {
	list, _, err := c.lines(v)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(l line.CombinedStatus) bool { return l.Line == v.PathID() })
	if i < 0 {
		return nil, fault.New(fault.NotFound, "No node has a line of this name. The catalog lists the lines.")
	}
	l := list[i]
	content := linePage{Name: l.Line, State: lineBadge(l.State), Margins: marginTable(list[i : i+1]), Nodes: nodesTable(l),
		Models: modelsTable(l), Keys: lineKeysTable(l), Acts: c.lineActs(v, l, list)}
	if isOut(l.Status) {
		content.Why = &ui.Notice{Tone: ui.Bad, Title: "The line is out of service:", Text: outReason(l.Status)}
	}
	figures := lineFigures(l.Status)
	content.Stats = ui.FigureRow{{Label: "In flight", Value: figures[0]}, {Label: "Success, recent", Value: figures[1],
		Note: ui.Text{Text: ui.Sayf("of %s", ui.Plural(l.Attempts, "%s attempt", "%s attempts"))}},
		{Label: "First byte, median", Value: figures[2]}}
	content.Facts = ui.Facts{{Name: "Provider", Value: l.Provider}}
	for _, spec := range c.Catalog.Current().AllLines() {
		if spec.ID == l.Line {
			content.Facts = append(content.Facts, specFacts(spec)...)
		}
	}
	content.Facts = append(content.Facts, ui.Fact{Name: "Last failure", Value: ui.OrDash(l.Cause)},
		ui.Fact{Name: "Log", Value: ui.Link{Href: page.Base + "/operator/requests?line=" + url.QueryEscape(l.Line), Text: "its requests"}})
	return page.FullPage{Name: "line", Title: ui.Sayf("Line %s", l.Line), Main: content}.WithNotice(v, lineNotices()), nil
}

// specFacts returns a line's settings in the catalog, without its credential.
func specFacts(l *catalog.Line) ui.Facts {
	var models []ui.Words
	for _, model := range slices.Sorted(maps.Keys(l.Models)) {
		name := ui.Data(model)
		if providerName := l.Models[model]; providerName != model {
			name = ui.Sayf("%s as %s", model, providerName)
		}
		models = append(models, name)
	}
	facts := ui.Facts{{Name: "Models", Value: ui.JoinAnd(models)},
		{Name: "Priority, weight", Value: strconv.Itoa(l.Priority) + ", " + strconv.Itoa(l.Weight)}}
	if l.BaseURL != "" {
		facts = append(ui.Facts{{Name: "Address", Value: ui.Text{Text: ui.Data(l.BaseURL), Mono: true}}}, facts...)
	}
	return facts
}

func nodesTable(l line.CombinedStatus) ui.DataTable {
	t := ui.DataTable{Caption: "On each node", Columns: []ui.Column{{Title: "Node"}, {Title: "Machine"}, {Title: "State"}, {Title: "Why"},
		{Title: "In flight", Right: true}, {Title: "Success", Right: true}, {Title: "First byte", Right: true}, {Title: "Reported"}}}
	for _, n := range l.Nodes {
		cells := []any{ui.Ident{ID: n.Node, Cut: true}, ui.OrDash(n.Host),
			lineBadge(n.State), ui.Text{Text: ui.OrDash(outReason(n.Status)), Muted: true}}
		t.Rows = append(t.Rows, ui.DataRow{Cells: append(append(cells, lineFigures(n.Status)...), ui.Moment{MS: n.At * 1000})})
	}
	return t
}

func modelsTable(l line.CombinedStatus) ui.DataTable {
	t := ui.DataTable{Caption: "The models of the line",
		Columns: []ui.Column{{Title: "Model"}, {Title: "Form"}, {Title: "State"}, {Title: "Why"},
			{Title: "Since"}, {Title: "Until"}}}
	for _, s := range l.ModelStates {
		form := string(s.Form)
		if s.Tools {
			form += " with tools"
		}
		t.Rows = append(t.Rows, ui.DataRow{Cells: []any{s.Model, ui.OrDash(form), lineBadge(s.State),
			ui.Text{Text: ui.Data(ui.OrDash(s.Cause)), Muted: true}, momentOrDash(s.Since), momentOrDash(s.Until)}})
	}
	return t
}

// lineKeysTable lists the keys of a line with several keys, without their secrets.
func lineKeysTable(l line.CombinedStatus) ui.DataTable {
	t := ui.DataTable{Caption: "Keys, in the order of their use",
		Columns: []ui.Column{{Title: "Key"}, {Title: "Ends in"}, {Title: "State"}, {Title: "Why"}, {Title: "Since"}, {Title: "Until"}}}
	for _, k := range l.Keys {
		t.Rows = append(t.Rows, ui.DataRow{Cells: []any{ui.Text{Text: ui.Data(k.Reference), Mono: true}, ui.OrDash(k.Hint),
			show.StateLabel(k.State), ui.Text{Text: ui.Data(ui.OrDash(k.Cause)), Muted: true},
			momentOrDash(k.Since), momentOrDash(k.Until)}})
	}
	return t
}

// momentOrDash shows a time in Unix seconds, or a dash for zero.
func momentOrDash(seconds int64) any {
	if seconds == 0 {
		return ui.Text{Text: "–", Muted: true}
	}
	return ui.Moment{MS: seconds * 1000}
}

func (c *console) drainLine(v *page.Visit) (page.Responder, error) {
	return c.decideLine(v, operator.DrainTx, "drained")
}

func (c *console) resumeLine(v *page.Visit) (page.Responder, error) {
	return c.decideLine(v, operator.ResumeTx, "resumed")
}

func (c *console) decideLine(
	v *page.Visit, decide func(*store.Tx, operator.Actor, catalog.LineSpec) (line.Status, error), done string,
) (page.Responder, error) {
	spec, err := page.Read(v, func(tx *store.Tx) (catalog.LineSpec, error) { return operator.LineTx(tx, v.PathID()) })
	if err != nil {
		return nil, err
	}
	if err := v.Update(func(tx *store.Tx) error {
		_, err := decide(tx, show.Actor(v), spec)
		return err
	}); err != nil {
		return nil, err
	}
	c.refreshNow(v, "the decision about a line", c.Lines.Refresh)
	return page.To("/operator/lines/"+url.PathEscape(spec.ID), done), nil
}
