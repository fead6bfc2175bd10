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
	"tollgate/internal/console/part"
	"tollgate/internal/console/show"
	"tollgate/internal/fault"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// catalogPage is the current catalog with its history.
type catalogPage struct {
	Revision int64
	Applied  part.Moment
	By       string // the operator of the current revision
	Models   part.DataTable
	Warnings []string
	Sandbox  []string // open sandbox models beside lines of real providers
	Retire   part.Act // retires them
	History  part.DataTable
	Pager    part.Pager
	YAML     string
	Empty    *part.Empty
}

// catalogEditPage is the editor of the catalog.
type catalogEditPage struct {
	Base     int64
	Faults   []part.Link // by line
	Numbered []numberedLine
	Moved    *part.Notice // somebody applied another one meanwhile
	Changes  []string
	Warnings []string
	Diff     part.Diff
	Form     part.Inputs
	Examples part.Snippets // of catalogs
	Checked  bool
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
	RollBack part.Confirm
}

const historyRows = 20

func (c *console) showCatalog(v *page.Visit) (page.Outgoing, error) {
	var shown catalogPage
	if err := v.View(func(tx *store.Tx) error {
		doc, revision, err := catalog.CurrentTx(tx)
		if errors.Is(err, catalog.ErrNoRevision) {
			shown.Empty = &part.Empty{Title: "No catalog yet",
				Text: "The catalog lists the models you sell, their prices, and the lines to your providers.",
				Link: &part.Link{Href: page.Base + "/operator/catalog/edit", Text: "Write the catalog", Button: true, Main: true}}
			return nil
		}
		if err != nil {
			return err
		}
		before, _ := strconv.ParseInt(v.Query("after"), 10, 64) // if after is not a number, the list begins with the newest
		history, more, err := catalog.HistoryTx(tx, before, historyRows)
		if err != nil {
			return err
		}
		by, err := appliedByTx(tx, history, revision)
		if err != nil {
			return err
		}
		shown.Revision, shown.YAML, shown.Models = revision, string(doc.YAML()), catalogModels(doc, c.Catalog.Current())
		shown.By, shown.History = show.Who(by[numbered(revision)]), historyTable(history, revision, by)
		for _, w := range doc.BelowCost() {
			shown.Warnings = append(shown.Warnings, w.Message)
		}
		shown.Sandbox = c.Catalog.Current().OpenSandbox()
		shown.Retire = part.Act{Action: page.Base + "/operator/catalog/sandbox/retire", Word: "Retire the sandbox models"}
		shown.Pager = v.Pager("/operator/catalog", more, page.Last(history, func(r catalog.Revision) string { return numbered(r.Number) }))
		if len(history) > 0 && before == 0 {
			shown.Applied.MS = history[0].AppliedMS
		}
		return nil
	}); err != nil {
		return nil, err
	}
	return page.Whole{Name: "catalog", Title: "Catalog", Main: shown}.Done(v, map[string]string{
		"applied":  "Applied. New requests use this catalog; running requests finish with the previous one.",
		"same":     "This is the current catalog, so nothing was applied.",
		"switched": "The state is changed, as a new revision.",
	}), nil
}

// numbered formats the number of a revision for addresses and the log.
func numbered(revision int64) string { return strconv.FormatInt(revision, 10) }

// appliedByTx returns the operators of the listed revisions and of the current one.
func appliedByTx(tx *store.Tx, history []catalog.Revision, current int64) (map[string]operator.Actor, error) {
	numbers := []string{numbered(current)}
	for _, r := range history {
		numbers = append(numbers, numbered(r.Number))
	}
	return operator.DoneByTx(tx, operator.CatalogApply, numbers)
}

func catalogModels(doc *catalog.Document, now *catalog.Snapshot) part.DataTable {
	t := part.DataTable{Caption: "Models", Columns: []part.Column{{Title: "Model"}, {Title: "Kind"}, {Title: "State"}, {Title: "Price"},
		{Title: "Lines"}, {Title: "Change"}}}
	for i := range doc.Models {
		m := &doc.Models[i]
		var lines []string
		for _, l := range now.Lines(m.ID) {
			lines = append(lines, l.ID)
		}
		var from any = part.Text{Text: part.Words(lines)}
		switch {
		case len(lines) == 0 && m.State == catalog.StateOpen: // its users get errors
			from = part.Badge{Tone: part.Bad, Word: "none"}
		case len(lines) == 0:
			from = part.Text{Text: "none", Muted: true}
		}
		t.Rows = append(t.Rows, part.DataRow{Cells: []any{m.ID, string(m.Kind), show.ModelStanding(now, m), show.ShortPrice(m, 0), from,
			switches(m)}})
	}
	return t
}

// switches returns the buttons for the other states of a model. The usual one is open, or for an
// open model maintenance.
func switches(m *catalog.Model) part.Acts {
	acts := part.Acts{Word: "Other", About: "states of " + m.ID}
	for _, state := range []catalog.ModelState{catalog.StateOpen, catalog.StateMaintenance, catalog.StateComingSoon, catalog.StateRetired} {
		if state == m.State {
			continue
		}
		act := part.Act{Action: page.Base + "/operator/catalog/models/" + url.PathEscape(m.ID) + "/" + string(state),
			Word: show.StateWords(string(state)), About: m.ID}
		if acts.Usual.Action == "" {
			acts.Usual = act
		} else {
			acts.Others = append(acts.Others, act)
		}
	}
	return acts
}

func historyTable(history []catalog.Revision, current int64, by map[string]operator.Actor) part.DataTable {
	t := part.DataTable{Caption: "History", Columns: []part.Column{{Title: "Revision"}, {Title: "Applied"}, {Title: "By"}, {Title: "Changes"}}}
	for _, r := range history {
		changes := strings.Join(r.Changes[:min(len(r.Changes), 5)], "\n")
		if n := len(r.Changes) - 5; n > 0 {
			changes += "\nand " + strconv.Itoa(n) + " more"
		}
		name := "Revision " + numbered(r.Number)
		if r.Number == current {
			name += ", current"
		}
		t.Rows = append(t.Rows, part.DataRow{Href: page.Base + "/operator/catalog/revisions/" + numbered(r.Number),
			Cells: []any{name, part.Moment{MS: r.AppliedMS}, part.Dashed(show.Who(by[numbered(r.Number)])),
				part.Text{Text: part.Dashed(changes), Lines: true}}})
	}
	return t
}

func catalogForm(text string, base int64) part.Inputs {
	return part.Inputs{Action: page.Base + "/operator/catalog/edit", Submit: "Check", Cancel: page.Base + "/operator/catalog",
		Fields: []part.FormField{
			{Name: "yaml", Label: "Catalog", Kind: part.Area, Value: text, Code: true, Required: true,
				Hint: "YAML or JSON. Credentials are references such as ${EXAMPLE_API_KEY}. Checked before it is applied."},
			{Name: "base", Kind: part.Unshown, Value: numbered(base)},
			{Name: "sure", Kind: part.Unshown},
		}}
}

func (c *console) editCatalog(v *page.Visit) (page.Outgoing, error) {
	var text string
	var base int64
	if err := v.View(func(tx *store.Tx) error {
		doc, revision, err := catalog.CurrentTx(tx)
		if errors.Is(err, catalog.ErrNoRevision) {
			return nil
		}
		if err != nil {
			return err
		}
		text, base = string(doc.YAML()), revision
		return nil
	}); err != nil {
		return nil, err
	}
	return page.Whole{Name: "catalogedit", Title: "Edit the catalog", Main: catalogEditPage{Base: base, Form: catalogForm(text, base),
		Examples: examples()}}, nil
}

// maxCatalog bounds a catalog as the operator API does.
const maxCatalog = 4 << 20

// putCatalog checks a catalog and previews its changes. If the operator has confirmed the preview,
// putCatalog applies the catalog, unless another one was applied meanwhile.
func (c *console) putCatalog(v *page.Visit) (page.Outgoing, error) {
	form := catalogForm("", 0)
	if err := v.ReadLong(&form, maxCatalog); err != nil {
		return nil, err
	}
	base, err := strconv.ParseInt(form.Field("base").Value, 10, 64)
	if err != nil {
		return nil, fault.New(fault.InvalidRequest, "This form is incomplete. Reload the page and send it again.")
	}
	text, sure := form.Field("yaml").Value, form.Field("sure").Value != ""
	form.Field("sure").Value = ""
	shown := catalogEditPage{Base: base, Form: form, Examples: examples()}
	doc, warnings, err := catalog.Parse([]byte(text), c.Providers)
	var faults catalog.Faults
	switch {
	case errors.As(err, &faults):
		shown.refuse(text, faults)
		return page.Whole{Name: "catalogedit", Title: "The catalog has errors", Main: shown, Status: http.StatusUnprocessableEntity}, nil
	case err != nil:
		return nil, err
	}
	for _, w := range warnings {
		shown.Warnings = append(shown.Warnings, w.String())
	}
	if sure {
		applied, err := c.apply(v, doc, base)
		if !errors.Is(err, operator.ErrApplied) {
			if err != nil {
				return nil, err
			}
			if applied.Revision == base {
				return page.To("/operator/catalog", "same"), nil
			}
			return page.To("/operator/catalog", "applied"), nil
		}
	}
	if err := v.View(func(tx *store.Tx) error {
		unwise, err := c.unwiseTx(tx, doc)
		shown.Warnings = append(shown.Warnings, unwise...)
		return errors.Join(err, shown.compareTx(tx, doc))
	}); err != nil {
		return nil, err
	}
	status := 0
	if shown.Moved != nil {
		status = http.StatusConflict
	}
	return page.Whole{Name: "catalogedit", Title: "What the catalog changes", Main: shown, Status: status}, nil
}

func (c *console) apply(v *page.Visit, doc *catalog.Document, base int64) (applied catalog.Applied, err error) {
	err = v.Update(func(tx *store.Tx) (err error) {
		applied, err = operator.ApplyOnTx(tx, show.By(v), doc, base)
		return err
	})
	if err == nil {
		c.soon(v, "the new catalog", c.Catalog.Refresh)
	}
	return applied, err
}

// refuse shows the faults of a text, each with its line.
func (p *catalogEditPage) refuse(text string, faults catalog.Faults) {
	wrong := map[int]bool{}
	for _, f := range faults {
		words := f.String()
		href := "#f-yaml"
		if f.Line > 0 {
			words = "line " + strconv.Itoa(f.Line) + ": " + words
			href = "#line-" + strconv.Itoa(f.Line)
			wrong[f.Line] = true
		}
		p.Faults = append(p.Faults, part.Link{Href: href, Text: words})
	}
	for i, line := range strings.Split(text, "\n") {
		near := false
		for at := i - 1; at <= i+3; at++ {
			near = near || wrong[at]
		}
		if near {
			p.Numbered = append(p.Numbered, numberedLine{N: i + 1, Text: strings.TrimRight(line, "\r"), Wrong: wrong[i+1]})
		}
	}
}

// compareTx previews a document's changes to the current catalog. If the current catalog is not the
// base of the text, compareTx sets p.Moved.
func (p *catalogEditPage) compareTx(tx *store.Tx, doc *catalog.Document) error {
	preview, err := catalog.PreviewTx(tx, doc)
	if err != nil {
		return err
	}
	before := ""
	if preview.Revision > 0 {
		current, _, err := catalog.CurrentTx(tx)
		if err != nil {
			return err
		}
		before = string(current.YAML())
	}
	p.Checked, p.Changes, p.Diff = true, preview.Changes, part.DiffOf(before, string(doc.YAML()))
	if preview.Revision != p.Base {
		p.Moved = &part.Notice{Tone: part.Warn, Title: "Nothing was applied.", Focus: true,
			Text: "Somebody has applied revision " + numbered(preview.Revision) +
				" meanwhile. Below is what your text would change in that, " +
				"what it would take back of it too. Edit it, or apply it on top."}
		p.Base = preview.Revision
	}
	p.Form.Field("base").Value = numbered(p.Base)
	return nil
}

// Apply returns the form to apply the checked catalog.
func (p catalogEditPage) Apply() part.Inputs {
	f := p.Form
	f.Fields = append([]part.FormField(nil), f.Fields...)
	for i := range f.Fields {
		f.Fields[i].Kind = part.Unshown
	}
	f.Field("sure").Value = "yes"
	f.Submit = "Apply as revision " + numbered(p.Base+1)
	return f
}

func revisionOf(v *page.Visit) (doc *catalog.Document, number int64, preview catalog.Applied, err error) {
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

func (c *console) showRevision(v *page.Visit) (page.Outgoing, error) {
	doc, number, preview, err := revisionOf(v)
	if err != nil {
		return nil, err
	}
	shown := revisionPage{Number: number, Current: number == preview.Revision, Changes: preview.Changes, YAML: string(doc.YAML())}
	var unwise []string
	if err := v.View(func(tx *store.Tx) (err error) {
		unwise, err = c.unwiseTx(tx, doc)
		return err
	}); err != nil {
		return nil, err
	}
	text := preview.Changes
	if len(text) > 12 {
		text = append(append([]string(nil), text[:12]...), "and "+strconv.Itoa(len(preview.Changes)-12)+" more")
	}
	shown.RollBack = v.Confirm(part.Confirm{ID: "rollback", Button: "Roll back to this", Title: "Roll back to revision " + v.PathID() + "?",
		Action: page.Base + "/operator/catalog/revisions/" + v.PathID() + "/apply",
		Text:   slices.Concat([]string{"It becomes a new revision. It changes:"}, text, unwise),
		Fields: []part.FormField{{Name: "base", Kind: part.Unshown, Value: numbered(preview.Revision)}}})
	return page.Whole{Name: "revision", Title: "Revision " + v.PathID(), Main: shown}, nil
}

// unwiseTx returns warnings for the lines unusable on this node and for the loss of models in use.
func (c *console) unwiseTx(tx *store.Tx, doc *catalog.Document) (all []string, err error) {
	for _, w := range c.Catalog.Unusable(doc) {
		all = append(all, w.String())
	}
	loss, err := operator.LossTx(tx, doc)
	return append(all, loss...), err
}

func (c *console) rollBack(v *page.Visit) (page.Outgoing, error) {
	form := part.Inputs{Fields: []part.FormField{{Name: "base", Label: "Revision"}}}
	if err := v.Read(&form); err != nil {
		return nil, err
	}
	doc, _, preview, err := revisionOf(v)
	if err != nil {
		return nil, err
	}
	base, err := strconv.ParseInt(form.Field("base").Value, 10, 64)
	if err != nil {
		base = preview.Revision + 1 // no revision
	}
	// An old revision passes the same checks as a new text, because the rules may have changed
	// since.
	doc, _, err = catalog.Parse(doc.YAML(), c.Providers)
	if err == nil {
		_, err = c.apply(v, doc, base)
	}
	var faults catalog.Faults
	switch {
	case errors.Is(err, operator.ErrApplied):
		return nil, fault.New(fault.InvalidRequest, "Somebody has applied another catalog meanwhile, so nothing was changed. "+
			"Look at the revision again before you roll back.")
	case errors.As(err, &faults):
		return nil, fault.New(fault.InvalidCatalog, "This revision does not pass today's checks, so nothing was changed: %s", faults[0])
	case err != nil:
		return nil, err
	}
	return page.To("/operator/catalog", "applied"), nil
}

// switchModel sets the state of a model, at one click.
func (c *console) switchModel(state catalog.ModelState) func(v *page.Visit) (page.Outgoing, error) {
	return func(v *page.Visit) (page.Outgoing, error) { return c.switchTo(v, state, v.PathID()) }
}

// retireSandbox retires the open sandbox models beside lines of real providers.
func (c *console) retireSandbox(v *page.Visit) (page.Outgoing, error) {
	return c.switchTo(v, catalog.StateRetired, c.Catalog.Current().OpenSandbox()...)
}

// switchTo sets the state of models and leads back to the catalog.
func (c *console) switchTo(v *page.Visit, state catalog.ModelState, models ...string) (page.Outgoing, error) {
	if err := v.Blank(); err != nil {
		return nil, err
	}
	err := v.Update(func(tx *store.Tx) error {
		_, err := operator.SwitchTx(tx, show.By(v), state, models...)
		return err
	})
	if errors.Is(err, operator.ErrApplied) || errors.Is(err, catalog.ErrNoRevision) {
		return nil, fault.New(fault.InvalidRequest, "The catalog has just been changed. Look at it, and try again.")
	}
	if err != nil {
		return nil, err
	}
	c.soon(v, "the new catalog", c.Catalog.Refresh)
	return page.To("/operator/catalog", "switched"), nil
}
