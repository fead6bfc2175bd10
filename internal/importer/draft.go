package importer

import (
	"cmp"
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
)

// draft is an incomplete catalog.
type draft struct {
	*notes
	known   map[string]facts // from the file of --models
	secrets string           // folder for credentials
	models  map[string]*catalog.Model
	order   []string // of the models
	lines   []draftLine
	files   []Secret
	taken   map[string]bool // emails of sign-ins
}

// draftLine is an unchecked line.
type draftLine struct {
	entry
	spec       catalog.LineSpec
	credential string
}

func newDraft(n *notes, known map[string]facts, secrets string) *draft {
	if known == nil {
		known = map[string]facts{}
	}
	return &draft{notes: n, known: known, secrets: secrets, models: map[string]*catalog.Model{}, taken: map[string]bool{}}
}

func (d *draft) has(id string) bool { return d.models[id] != nil }

// addModel adds a chat model with its price, or remarks why it cannot be added.
func (d *draft) addModel(id string, r rates) {
	e := entry{"model", "", id}
	f := d.known[id]
	m, ok := chatModel(id, r, f)
	if len(d.order) == catalog.MaxModels {
		d.remark(e, "it is left out: a catalog has at most "+strconv.Itoa(catalog.MaxModels)+" models", "")
		return
	}
	if !ok {
		d.remark(e, "it is left out: its price is out of range", "add it to the catalog by hand")
		return
	}
	if err := checkDocument(&catalog.Document{Models: []catalog.Model{m}}, nil); err != nil {
		d.remark(e, "it is left out: "+oneLine(err.Error()), "add it to the catalog by hand, by another name")
		return
	}
	if f.context == 0 || f.output == 0 {
		d.remark(e, "its limits are assumed: context_window "+strconv.FormatInt(m.ContextWindow, 10)+", max_output_tokens "+
			strconv.FormatInt(m.MaxOutputTokens, 10), "write its own into the catalog: holds are bounded by them; --models has them for many")
	}
	d.models[id] = &m
	d.order = append(d.order, id)
}

// limitModels restricts a key to models. A key without any model is disabled.
func (n *notes) limitModels(k *OldKey, e entry, models []string) {
	why := "none of the models that it may use is here"
	if len(models) > 0 {
		list, err := account.ParseAllowedModels(models)
		if err == nil {
			k.Settings.AllowedModels = list
			return
		}
		why = "its list of models cannot be taken (" + oneLine(err.Error()) + ")"
	}
	k.Settings.Disabled = true
	n.remark(e, "its key is disabled: "+why, "set its models with `tollgate key change --allowed-models`, and enable it")
}

// checkDocument returns the joined faults of a document.
func checkDocument(doc *catalog.Document, providers map[string]catalog.Provider) error {
	_, _, err := catalog.Parse(doc.YAML(), providers)
	return err
}

// addLine adds a line with the models of the catalog and returns true. If the line is invalid, addLine
// remarks on the reason and returns false.
func (d *draft) addLine(l draftLine, providers map[string]catalog.Provider) bool {
	l.spec.ID = d.lineID(l.entry)
	if l.credential != "" {
		l.spec.APIKey = "${file:" + d.pathOf(l.spec.ID) + "}"
	}
	doc := &catalog.Document{Lines: []catalog.LineSpec{l.spec}}
	for _, id := range d.order {
		if _, serves := l.spec.Models[id]; serves {
			doc.Models = append(doc.Models, *d.models[id])
		}
	}
	err := checkDocument(doc, providers)
	if faults, ok := errors.AsType[catalog.Faults](err); ok && len(faults) > 0 {
		err = errors.New(faults[0].String())
	}
	switch {
	case err != nil:
		d.remark(l.entry, "it is left out: "+oneLine(err.Error()), "add a line for it to the catalog by hand")
		return false
	case len(d.lines) == catalog.MaxLines:
		d.remark(l.entry, "it is left out: a catalog has at most "+strconv.Itoa(catalog.MaxLines)+" lines", "")
		return false
	}
	d.lines = append(d.lines, l)
	if l.credential != "" {
		d.files = append(d.files, Secret{Path: d.pathOf(l.spec.ID), Value: l.credential})
	}
	return true
}

// pathOf returns the path of the file with a line's credential.
func (d *draft) pathOf(line string) string { return filepath.Join(d.secrets, line+".key") }

// notInID matches characters outside of line ids.
var notInID = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// lineID returns a unique id from a name and an identifier.
func (d *draft) lineID(e entry) string {
	name := strings.Trim(strings.ToLower(notInID.ReplaceAllString(e.name, "-")), "-._")
	name = cmp.Or(name, e.about)
	if len(name) > 40 {
		name = strings.TrimRight(name[:40], "-._")
	}
	id := name
	if e.id != "" {
		id += "-" + notInID.ReplaceAllString(e.id, "-")
	}
	for base, n := id, 2; slices.ContainsFunc(d.lines, func(l draftLine) bool { return l.spec.ID == id }); n++ {
		id = base + "-" + strconv.Itoa(n)
	}
	return id
}

// document returns the catalog, or nil if there are no lines. A model without an enabled line is
// under maintenance, so that callers get a clear error.
func (d *draft) document(providers map[string]catalog.Provider) (*catalog.Document, []Secret, error) {
	doc := &catalog.Document{}
	enabled, served := map[string]bool{}, map[string]bool{}
	for _, l := range d.lines {
		doc.Lines = append(doc.Lines, l.spec)
		for id := range l.spec.Models {
			served[id] = true
			enabled[id] = enabled[id] || l.spec.Enabled
		}
	}
	count := d.count("models")
	for _, id := range d.order {
		if !served[id] {
			continue
		}
		m := *d.models[id]
		if !enabled[id] {
			m.State = catalog.StateMaintenance
			d.remark(entry{"model", "", id}, "it is under maintenance: everything that serves it is switched off", "")
		}
		doc.Models = append(doc.Models, m)
		count.Made++
	}
	count.Left = count.Found - count.Made
	if len(doc.Lines) == 0 {
		return nil, nil, nil
	}
	parsed, _, err := catalog.Parse(doc.YAML(), providers)
	return parsed, d.files, err
}
