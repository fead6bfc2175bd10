package operatorpages

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"tollgate/internal/catalog"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// catalogPage is the current catalog with its history.
type catalogPage struct {
	Revision int64
	Applied  ui.Moment
	By       ui.Words // the operator of the current revision
	Models   ui.DataTable
	Warnings []string
	Sandbox  []string  // ids of open sandbox models in a catalog with lines of real providers
	Retire   ui.Button // retires the sandbox models
	History  ui.DataTable

	Scheduled ui.DataTable
	Pager     ui.Pager
	YAML      string
	Edit      ui.Link
	Empty     *ui.EmptyState
}

// catalogEditPage is the editor of the catalog.
type catalogEditPage struct {
	Base     int64
	Faults   []ui.Link // each fault links to its line of the text
	Numbered []numberedLine
	Conflict *ui.Notice // set if another catalog was applied after Base
	Changes  []string
	Warnings []string
	Diff     ui.Diff
	NextText string // the checked catalog
	Form     ui.PostForm
	Examples ui.Snippets // example catalogs
	Checked  bool
	FromForm []ui.Link // pages of the lines that the form for providers can change
}

// numberedLine is a line of a rejected text. Wrong marks a line with a fault.
type numberedLine struct {
	N     int
	Text  string
	Wrong bool
}

// revisionPage is a former catalog.
type revisionPage struct {
	Number   int64
	Current  bool
	Changes  []string // the changes of a rollback to this revision
	YAML     string
	RollBack ui.Confirm
}

const historyRows = 20

func (c *console) showCatalog(v *page.Visit) (page.Responder, error) {
	var content catalogPage
	if err := v.View(func(tx *store.Tx) error {
		content = catalogPage{}
		doc, revision, err := catalog.CurrentTx(tx)
		if errors.Is(err, catalog.ErrNoRevision) {
			content.Empty = &ui.EmptyState{Title: "No catalog yet",
				Text: "The catalog lists the models you sell, their prices, and the lines to your providers.",
				Link: &ui.Link{Href: page.Base + providersPath + "/new", Text: "Add a provider", Button: true, Main: true}}
			return nil
		}
		if err != nil {
			return err
		}
		before, _ := strconv.ParseInt(v.Query("after"), 10, 64) // 0, for the newest, if after is missing or invalid
		history, more, err := catalog.HistoryTx(tx, before, historyRows)
		if err != nil {
			return err
		}
		actors, err := appliedByTx(tx, history, revision)
		if err != nil {
			return err
		}
		if content.Scheduled, err = scheduledTableTx(tx); err != nil {
			return err
		}
		content.Revision, content.YAML, content.Models = revision, string(doc.YAML()), catalogModels(doc, c.Catalog.Current())
		content.By, content.History = show.ActorName(actors[revisionText(revision)]), historyTable(history, revision, actors)
		for _, w := range doc.CostWarnings() {
			content.Warnings = append(content.Warnings, w.Message)
		}
		content.Sandbox = c.Catalog.Current().OpenSandboxModels()
		content.Edit = ui.Link{Href: page.Base + "/operator/catalog/edit", Text: "Edit", Button: true, Main: true}
		content.Retire = ui.Button{Action: page.Base + "/operator/catalog/sandbox/retire", Label: "Retire the sandbox models"}
		content.Pager = v.Pager("/operator/catalog", more, page.Last(history, func(r catalog.Revision) string { return revisionText(r.Number) }))
		if len(history) > 0 && before == 0 {
			content.Applied.MS = history[0].AppliedMS
		}
		return nil
	}); err != nil {
		return nil, err
	}
	return page.FullPage{Name: "catalog", Title: "Catalog", Main: content}.WithNotice(v, map[string]ui.Words{
		"scheduled": "Scheduled. Cancel the change below if you change your mind.",
		"cancelled": "Cancelled. The catalog will not change at that time.",
		"applied":   "Applied. New requests use this catalog; running requests finish with the previous one.",
		"same":      "This is the current catalog, so nothing was applied.",
		"switched":  "The state was changed in a new revision.",
	}), nil
}

// revisionText formats the number of a revision for addresses and the log.
func revisionText(revision int64) string { return strconv.FormatInt(revision, 10) }

// appliedByTx returns the operators who applied the revisions of a history and the current revision. The keys
// are texts of revision numbers.
func appliedByTx(tx *store.Tx, history []catalog.Revision, current int64) (map[string]operator.Actor, error) {
	numbers := []string{revisionText(current)}
	for _, r := range history {
		numbers = append(numbers, revisionText(r.Number))
	}
	return operator.LastActorsTx(tx, operator.CatalogApply, numbers)
}

func catalogModels(doc *catalog.Document, snapshot *catalog.Snapshot) ui.DataTable {
	t := ui.DataTable{Caption: "Models", Columns: []ui.Column{{Title: "Model"}, {Title: "Kind"}, {Title: "State"}, {Title: "Price"},
		{Title: "Lines"}, {Title: "Change"}}}
	for i := range doc.Models {
		m := &doc.Models[i]
		var lines []string
		for _, l := range snapshot.Lines(m.ID) {
			lines = append(lines, l.ID)
		}
		var lineCell any = ui.Text{Text: ui.JoinAnd(lines)}
		switch {
		case len(lines) == 0 && m.State == catalog.StateOpen: // requests for the model fail
			lineCell = ui.Badge{Tone: ui.Bad, Label: "none"}
		case len(lines) == 0:
			lineCell = ui.Text{Text: "none", Muted: true}
		}
		t.Rows = append(t.Rows, ui.DataRow{Cells: []any{m.ID, show.KindName(m.Kind), show.ModelBadges(snapshot, m),
			show.ShortPrice(m, 0), lineCell,
			stateButtons(m)}})
	}
	return t
}

// stateButtons returns the buttons for the other states of a model. The first button opens the model, or puts
// an open model into maintenance.
func stateButtons(m *catalog.Model) ui.ButtonMenu {
	menu := ui.ButtonMenu{Label: "Other", About: ui.Sayf("states of %s", m.ID)}
	for _, state := range []catalog.ModelState{catalog.StateOpen, catalog.StateMaintenance, catalog.StateComingSoon, catalog.StateRetired} {
		if state == m.State {
			continue
		}
		button := ui.Button{Action: page.Base + "/operator/catalog/models/" + url.PathEscape(m.ID) + "/" + string(state),
			Label: show.StateLabel(string(state)), About: ui.Data(m.ID)}
		if menu.First.Action == "" {
			menu.First = button
		} else {
			menu.Others = append(menu.Others, button)
		}
	}
	return menu
}

func historyTable(history []catalog.Revision, current int64, actors map[string]operator.Actor) ui.DataTable {
	t := ui.DataTable{Caption: "History", Columns: []ui.Column{{Title: "Revision"}, {Title: "Applied"}, {Title: "By"}, {Title: "Changes"}}}
	for _, r := range history {
		name := ui.Sayf("Revision %s", revisionText(r.Number))
		if r.Number == current {
			name = ui.Sayf("Revision %s, current", revisionText(r.Number))
		}
		t.Rows = append(t.Rows, ui.DataRow{Href: page.Base + "/operator/catalog/revisions/" + revisionText(r.Number),
			Cells: []any{name, ui.Moment{MS: r.AppliedMS}, ui.OrDash(show.ActorName(actors[revisionText(r.Number)])),
				ui.Text{Text: ui.OrDash(firstChanges(r.Changes)), Lines: true}}})
	}
	return t
}

// firstChanges returns the first changes of a list, one per line.
func firstChanges(all []string) ui.Words {
	const shown = 5
	text := strings.Join(all[:min(len(all), shown)], "\n")
	if n := len(all) - shown; n > 0 {
		return ui.Sayf("%s\nand %s more", text, n)
	}
	return ui.Data(text)
}

func catalogForm(text string, base int64) ui.PostForm {
	return ui.PostForm{Action: page.Base + "/operator/catalog/edit", Submit: "Check", Cancel: page.Base + "/operator/catalog",
		Fields: []ui.FormField{
			{Name: "yaml", Label: "Catalog", Kind: ui.Area, Value: text, Code: true, Required: true,
				Hint: "YAML or JSON. Credentials are references such as ${EXAMPLE_API_KEY}. Checked before it is applied."},
			{Name: "base", Kind: ui.Hidden, Value: revisionText(base)},
			{Name: "sure", Kind: ui.Hidden},
		}}
}

func (c *console) editCatalog(v *page.Visit) (page.Responder, error) {
	doc, base, err := c.currentDocument(v)
	if err != nil {
		return nil, err
	}
	text := ""
	if base > 0 {
		text = string(doc.YAML())
	}
	content := catalogEditPage{Base: base, Form: catalogForm(text, base), Examples: examples()}
	for number, line := range strings.Split(text, "\n") {
		id, ok := strings.CutPrefix(line, "  - id: ")
		if i := slices.IndexFunc(doc.Lines, func(l catalog.LineSpec) bool { return l.ID == id && l.Margin != nil }); ok && i >= 0 {
			content.FromForm = append(content.FromForm, ui.Link{Href: page.Base + providersPath + "/" + url.PathEscape(id),
				Text: ui.Sayf("%s (line %s)", id, strconv.Itoa(number+1))})
		}
	}
	return page.FullPage{Name: "catalogedit", Title: "Edit the catalog", Main: content}, nil
}

// maxCatalog is the maximum size of a catalog in bytes. The operator API has the same limit.
const maxCatalog = 4 << 20

// putCatalog checks a catalog and previews its changes. If the operator has confirmed the preview, putCatalog
// applies the catalog instead. It reports a conflict if another catalog was applied after the base of the text.
func (c *console) putCatalog(v *page.Visit) (page.Responder, error) {
	form := catalogForm("", 0)
	if err := v.ReadLongForm(&form, maxCatalog); err != nil {
		return nil, err
	}
	base, err := strconv.ParseInt(form.Field("base").Value, 10, 64)
	if err != nil {
		return nil, fault.New(fault.InvalidRequest, "This form is incomplete. Reload the page and send it again.")
	}
	text, sure := form.Field("yaml").Value, form.Field("sure").Value != ""
	form.Field("sure").Value = ""
	content := catalogEditPage{Base: base, Form: form, Examples: examples()}
	doc, warnings, err := catalog.Parse([]byte(text), c.Providers)
	var faults catalog.Faults
	switch {
	case errors.As(err, &faults):
		content.showFaults(text, faults)
		return page.FullPage{Name: "catalogedit", Title: "The catalog has errors", Main: content, Status: http.StatusUnprocessableEntity}, nil
	case err != nil:
		return nil, err
	}
	for _, w := range warnings {
		content.Warnings = append(content.Warnings, w.String())
	}
	if sure {
		applied, err := c.apply(v, doc, base)
		switch {
		case errors.Is(err, operator.ErrApplied): // shown as a conflict below
		case err == nil && applied.Revision == base:
			return page.To("/operator/catalog", "same"), nil
		default:
			return page.To("/operator/catalog", "applied"), err
		}
	}
	var moreWarnings []string
	if err := v.View(func(tx *store.Tx) (err error) {
		moreWarnings, err = c.warningsTx(tx, doc)
		return errors.Join(err, content.compareTx(tx, doc))
	}); err != nil {
		return nil, err
	}
	content.Warnings = append(content.Warnings, moreWarnings...)
	status := 0
	if content.Conflict != nil {
		status = http.StatusConflict
	}
	return page.FullPage{Name: "catalogedit", Title: "What the catalog changes", Main: content, Status: status}, nil
}

func (c *console) apply(v *page.Visit, doc *catalog.Document, base int64) (catalog.ApplyResult, error) {
	applied, err := page.Write(v, func(tx *store.Tx) (catalog.ApplyResult, error) {
		return operator.ApplyOnTx(tx, show.Actor(v), doc, base)
	})
	if err == nil {
		c.refreshNow(v, "the new catalog", c.Catalog.Refresh)
	}
	return applied, err
}

// showFaults shows the faults of a text, and the lines of the text around each fault.
func (p *catalogEditPage) showFaults(text string, faults catalog.Faults) {
	wrong := map[int]bool{}
	for _, f := range faults {
		words := f.String()
		href := "#f-yaml"
		if f.Line > 0 {
			words = "line " + strconv.Itoa(f.Line) + ": " + words
			href = "#line-" + strconv.Itoa(f.Line)
			wrong[f.Line] = true
		}
		p.Faults = append(p.Faults, ui.Link{Href: href, Text: ui.Data(words)})
	}
	for i, line := range strings.Split(text, "\n") {
		near := false
		for n := i - 1; n <= i+3; n++ {
			near = near || wrong[n]
		}
		if near {
			p.Numbered = append(p.Numbered, numberedLine{N: i + 1, Text: strings.TrimRight(line, "\r"), Wrong: wrong[i+1]})
		}
	}
}

// compareTx previews a document's changes to the current catalog. If the current catalog is not the
// base of the text, compareTx sets p.Conflict.
func (p *catalogEditPage) compareTx(tx *store.Tx, doc *catalog.Document) error {
	preview, err := catalog.PreviewTx(tx, doc)
	if err != nil {
		return err
	}
	old := ""
	if preview.Revision > 0 {
		current, _, err := catalog.CurrentTx(tx)
		if err != nil {
			return err
		}
		old = string(current.YAML())
	}
	p.NextText = string(doc.YAML())
	p.Checked, p.Changes, p.Diff = true, preview.Changes, ui.DiffOf(old, p.NextText)
	if preview.Revision != p.Base {
		p.Conflict = &ui.Notice{Tone: ui.Warn, Title: "Nothing was applied.", Focus: true,
			Text: ui.Sayf("Somebody has applied revision %s in the meantime. The changes below are from that revision to your text, "+
				"including changes that your text would undo. Edit your text, or apply it.", revisionText(preview.Revision))}
		p.Base = preview.Revision
	}
	p.Form.Field("base").Value = revisionText(p.Base)
	return nil
}

// Apply returns the form to apply the checked catalog.
func (p catalogEditPage) Apply() ui.PostForm {
	f := p.Form
	f.Fields = append([]ui.FormField(nil), f.Fields...)
	for i := range f.Fields {
		f.Fields[i].Kind = ui.Hidden
	}
	f.Field("sure").Value = "yes"
	f.Submit = ui.Sayf("Apply as revision %s", revisionText(p.Base+1))
	return f
}

func revisionOf(v *page.Visit) (doc *catalog.Document, number int64, preview catalog.ApplyResult, err error) {
	if number, err = strconv.ParseInt(v.PathID(), 10, 64); err != nil {
		return nil, 0, preview, noRevision()
	}
	err = v.View(func(tx *store.Tx) (err error) {
		if doc, err = catalog.RevisionTx(tx, number); err != nil {
			return err
		}
		preview, err = catalog.PreviewTx(tx, doc)
		return err
	})
	if errors.Is(err, catalog.ErrNoRevision) {
		err = noRevision()
	}
	return doc, number, preview, err
}

func noRevision() error {
	return fault.New(fault.NotFound, "There is no such revision. The catalog's page lists all of them.")
}

func (c *console) showRevision(v *page.Visit) (page.Responder, error) {
	doc, number, preview, err := revisionOf(v)
	if err != nil {
		return nil, err
	}
	content := revisionPage{Number: number, Current: number == preview.Revision, Changes: preview.Changes, YAML: string(doc.YAML())}
	moreWarnings, err := page.Read(v, func(tx *store.Tx) ([]string, error) { return c.warningsTx(tx, doc) })
	if err != nil {
		return nil, err
	}
	text := []ui.Words{"The rollback creates a new revision with these changes:"}
	for _, change := range preview.Changes[:min(len(preview.Changes), 12)] {
		text = append(text, ui.Data(change))
	}
	if n := len(preview.Changes) - 12; n > 0 {
		text = append(text, ui.Sayf("and %s more", n))
	}
	for _, warning := range moreWarnings {
		text = append(text, ui.Data(warning))
	}
	content.RollBack = v.Confirm(ui.Confirm{ID: "rollback", Button: "Roll back to this", Title: ui.Sayf("Roll back to revision %s?",
		v.PathID()),
		Action: page.Base + "/operator/catalog/revisions/" + v.PathID() + "/apply",
		Text:   text,
		Fields: []ui.FormField{{Name: "base", Kind: ui.Hidden, Value: revisionText(preview.Revision)}}})
	return page.FullPage{Name: "revision", Title: ui.Sayf("Revision %s", v.PathID()), Main: content}, nil
}

// warningsTx returns warnings about lines that this node cannot use, and about models in use that the document
// removes.
func (c *console) warningsTx(tx *store.Tx, doc *catalog.Document) (all []string, err error) {
	for _, w := range c.Catalog.NodeWarnings(doc) {
		all = append(all, w.String())
	}
	removals, err := operator.RemovalWarningsTx(tx, doc)
	return append(all, removals...), err
}

func (c *console) rollBack(v *page.Visit) (page.Responder, error) {
	form := ui.PostForm{Fields: []ui.FormField{{Name: "base", Label: "Revision"}}}
	if err := v.ReadForm(&form); err != nil {
		return nil, err
	}
	doc, _, preview, err := revisionOf(v)
	if err != nil {
		return nil, err
	}
	base, err := strconv.ParseInt(form.Field("base").Value, 10, 64)
	if err != nil {
		base = preview.Revision + 1 // not the number of any revision
	}
	// An old revision must pass the same checks as a new text, because the rules may have changed.
	doc, _, err = catalog.Parse(doc.YAML(), c.Providers)
	if err == nil {
		_, err = c.apply(v, doc, base)
	}
	var faults catalog.Faults
	switch {
	case errors.Is(err, operator.ErrApplied):
		return nil, fault.New(fault.InvalidRequest, "Somebody has applied another catalog in the meantime, so nothing was changed. "+
			"Look at the revision again before you roll back.")
	case errors.As(err, &faults):
		return nil, fault.New(fault.InvalidCatalog, "This revision does not pass the current checks, so nothing was changed: %s", faults[0])
	case err != nil:
		return nil, err
	}
	return page.To("/operator/catalog", "applied"), nil
}

// switchModel returns the handler that sets the state of the model in the path.
func (c *console) switchModel(state catalog.ModelState) func(v *page.Visit) (page.Responder, error) {
	return func(v *page.Visit) (page.Responder, error) { return c.setStates(v, state, v.PathID()) }
}

// retireSandbox retires the open sandbox models in a catalog with lines of real providers.
func (c *console) retireSandbox(v *page.Visit) (page.Responder, error) {
	return c.setStates(v, catalog.StateRetired, c.Catalog.Current().OpenSandboxModels()...)
}

// setStates sets the state of models and redirects to the catalog page.
func (c *console) setStates(v *page.Visit, state catalog.ModelState, models ...string) (page.Responder, error) {
	if err := v.NoFields(); err != nil {
		return nil, err
	}
	err := v.Update(func(tx *store.Tx) error {
		_, err := operator.SwitchTx(tx, show.Actor(v), state, models...)
		return err
	})
	if errors.Is(err, operator.ErrApplied) || errors.Is(err, catalog.ErrNoRevision) {
		return nil, fault.New(fault.InvalidRequest, "The catalog has just been changed. Look at it, and try again.")
	}
	if err != nil {
		return nil, err
	}
	c.refreshNow(v, "the new catalog", c.Catalog.Refresh)
	return page.To("/operator/catalog", "switched"), nil
}
