package catalog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"regexp"
	"slices"

	"tollgate/internal/catalog/secret"
	"tollgate/internal/catalog/vendor"
	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/field"
	"tollgate/internal/wire/kind/registry"
	"tollgate/internal/wire/translate"
)

// Snapshot is a revision with indexes and the credentials of a node. It is immutable. A request
// keeps its snapshot to the end.
type Snapshot struct {
	Revision       int64 // zero before the first catalog
	SecretsVersion int64 // how often the revision's secrets have changed on this node

	doc          *Document
	models       []*Model
	byID         map[string]*Model
	lines        []*Line
	linesByModel map[string][]*Line // model id -> enabled lines, lowest priority first
	hasRealLine  bool               // an enabled line is not a sandbox line
}

// Line is a LineSpec with the values of its provider and of a node. BaseURL and Forms are never
// empty if the provider has a default. Models only has models supported by the provider.
type Line struct {
	LineSpec
	// UnusableReason says why the line is out of service on this node. It names variables, never
	// values. It is empty for a usable line.
	UnusableReason string

	origin        string // see Origin
	host          vendor.Host
	vendor        *field.Vendor      // of the host; nil if unknown
	secrets       func() lineSecrets // a function, to keep secrets out of a printed line
	fixedFields   map[string]json.RawMessage
	omittedFields []string
	sentences     []*regexp.Regexp
}

// lineSecrets are the values of a line on a node that only the line's provider may see.
type lineSecrets struct {
	keys         []secret.LineKey
	header       http.Header
	headerValues []string // resolved values of references in the header
}

// Keys returns the line's credentials in the order of use, including credentials missing on this
// node. Callers must not change the slice.
func (l *Line) Keys() []secret.LineKey { return l.secrets().keys }

// Header returns the headers of every call, with references resolved. Callers must not change the
// header.
func (l *Line) Header() http.Header { return l.secrets().header }

// Secrets returns the values that only the line's provider may see.
func (l *Line) Secrets() []string {
	s := l.secrets()
	all := make([]string, 0, len(s.keys)+len(s.headerValues))
	for _, k := range s.keys {
		all = append(all, k.Value())
	}
	return append(all, s.headerValues...)
}

// FixedFields returns, as JSON, the top-level fields with the same value in every request to the
// line. Callers must not change the map.
func (l *Line) FixedFields() map[string]json.RawMessage { return l.fixedFields }

// OmittedFields returns the top-level fields that are never sent to the line. Callers must not
// change the slice.
func (l *Line) OmittedFields() []string { return l.omittedFields }

// Supports reports whether the provider accepts a form without translation. The form of a kind is
// supported for all models of the line with this kind.
func (l *Line) Supports(form wire.Form) bool {
	return slices.Contains(l.Forms, form) || registry.Find(form) != nil
}

// FormsFor returns the forms in which the line can serve a client's form: first the client's form,
// if the line supports it, then the forms with a translation.
func (l *Line) FormsFor(client wire.Form) iter.Seq[wire.Form] {
	return func(yield func(wire.Form) bool) {
		if l.Supports(client) && !yield(client) {
			return
		}
		for _, form := range l.Forms {
			if translate.Translates(client, form) && !yield(form) {
				return
			}
		}
	}
}

// formFor returns the first of FormsFor, or "" if FormsFor is empty.
func (l *Line) formFor(client wire.Form) wire.Form {
	for form := range l.FormsFor(client) {
		return form
	}
	return ""
}

// TimeoutsFor returns the line's timeouts for a model, with defaults filled in.
func (l *Line) TimeoutsFor(m *Model) Timeouts { return l.Timeouts.WithDefaults(m.Reasoning) }

// LimitFieldFor returns the field of chat completions in which the line expects the limit on a
// model's output tokens. If empty, the client's field is used. Only OpenAI and Azure are known to
// accept both fields, and only the newer field for models with reasoning. Most others ignore
// unknown fields.
func (l *Line) LimitFieldFor(m *Model) LimitField {
	switch {
	case l.LimitField != "":
		return l.LimitField
	case !l.host.AcceptsBothLimits():
		return LimitMaxTokens
	case m.Reasoning:
		return LimitMaxCompletionTokens
	}
	return ""
}

// AcceptsRouting reports whether the line may get a request in a client's form with the given
// routing fields. The line must pass them all and support the form, because translations drop
// routing fields.
func (l *Line) AcceptsRouting(form wire.Form, routing []string) bool {
	if len(routing) == 0 {
		return true
	}
	return l.Supports(form) && !slices.ContainsFunc(routing, func(name string) bool { return !l.passesField(name) })
}

// PassAll in LineSpec.Pass stands for every field.
const PassAll = "*"

// passesField reports whether the operator allows a field on the line.
func (l *Line) passesField(name string) bool {
	return slices.Contains(l.Pass, name) || slices.Contains(l.Pass, PassAll)
}

// DroppedFields returns the fields in extra that are not sent to the line for a model, because neither
// the line's vendor documents them nor the line passes them. extra are the fields not documented for
// the form of the request.
func (l *Line) DroppedFields(m *Model, extra []string) (fields []string) {
	if len(extra) == 0 {
		return nil
	}
	documents := l.vendor.Documents
	if d := m.Kind.Definition(); d != nil {
		documents = func(name string) bool { return d.Documents(l.vendor, name) }
	}
	for _, name := range extra {
		if !documents(name) && !l.passesField(name) {
			fields = append(fields, name)
		}
	}
	return fields
}

// IsErrorSentence reports whether the text of an answer matches one of the line's error sentences.
// Such an answer is a failure of the line.
func (l *Line) IsErrorSentence(text string) bool {
	return slices.ContainsFunc(l.sentences, func(s *regexp.Regexp) bool { return s.MatchString(text) })
}

// NewSnapshot returns the snapshot of a document. lookup reads the environment of this node.
// NewSnapshot never fails. A line that is unusable on this node has an UnusableReason.
func NewSnapshot(revision int64, doc *Document, providers map[string]Provider, lookup func(string) (string, bool)) *Snapshot {
	s := &Snapshot{Revision: revision, doc: doc, byID: map[string]*Model{}, linesByModel: map[string][]*Line{}}
	for i := range doc.Models {
		m := &doc.Models[i]
		s.models = append(s.models, m)
		s.byID[m.ID] = m
	}
	for _, spec := range doc.Lines {
		l := newLine(spec, providers, lookup)
		if p, ok := providers[spec.Provider]; ok {
			l.Models = s.supportedModels(spec.Models, p)
		}
		s.lines = append(s.lines, l)
		if !l.Enabled {
			continue
		}
		s.hasRealLine = s.hasRealLine || !l.IsSandbox()
		for id := range l.Models {
			s.linesByModel[id] = append(s.linesByModel[id], l)
		}
	}
	for _, lines := range s.linesByModel {
		slices.SortStableFunc(lines, func(a, b *Line) int { return a.Priority - b.Priority })
	}
	return s
}

// reloadSecrets returns a copy of s with the current values of the lines' references. unreadable
// are the lines with an unreadable value; these keep their former secrets. A deleted stored
// secret is not kept. changed are the lines with other secrets than before. If changed is empty, the
// snapshot need not be replaced.
func (s *Snapshot) reloadSecrets(providers map[string]Provider, lookup func(string) (string, bool)) (next *Snapshot,
	changed, unreadable []Warning) {
	next = NewSnapshot(s.Revision, s.doc, providers, lookup)
	next.SecretsVersion = s.SecretsVersion + 1
	for i, l := range next.lines {
		old := s.lines[i]
		switch {
		case old.UnusableReason == "" && l.UnusableReason != "" && len(l.storedSecrets()) == 0:
			unreadable = append(unreadable, Warning{l.ID, l.UnusableReason})
			l.secrets, l.UnusableReason = old.secrets, ""
		default:
			for _, reason := range secret.KeepUnreadable(old.Keys(), l.Keys()) {
				unreadable = append(unreadable, Warning{l.ID, reason})
			}
			if old.UnusableReason != l.UnusableReason || !slices.Equal(old.Secrets(), l.Secrets()) {
				changed = append(changed, Warning{l.ID, l.UnusableReason})
			}
		}
	}
	return next, changed, unreadable
}

// supportedModels returns the models that the provider supports in this version.
func (s *Snapshot) supportedModels(models map[string]string, p Provider) map[string]string {
	out := make(map[string]string, len(models))
	for id, providerID := range models {
		if m := s.byID[id]; m != nil && slices.Contains(p.Kinds, m.Kind) {
			out[id] = providerID
		}
	}
	return out
}

// newLine returns a line with the values from its provider and this node.
func newLine(spec LineSpec, providers map[string]Provider, lookup func(string) (string, bool)) *Line {
	l := &Line{LineSpec: spec, secrets: func() lineSecrets { return lineSecrets{} }}
	provider, ok := providers[spec.Provider]
	if !ok {
		l.UnusableReason = fmt.Sprintf("provider %s is unknown to this version of the gateway", spec.Provider)
		return l
	}
	l.BaseURL = cmp.Or(l.BaseURL, provider.DefaultBaseURL)
	l.origin = l.Provider + "\n" + l.BaseURL + "\n" + spec.oldestKey()
	l.host = vendor.HostOf(l.BaseURL)
	l.vendor = l.host.Vendor()
	l.Forms = slices.DeleteFunc(slices.Clone(spec.Forms), func(f wire.Form) bool { return !slices.Contains(provider.AllForms(), f) })
	if len(l.Forms) == 0 {
		l.Forms = slices.Clone(provider.Forms)
	}
	for i, sentence := range spec.ErrorSentences {
		re, err := regexp.Compile(sentence)
		if err != nil {
			l.UnusableReason = fmt.Sprintf("error_sentences[%d] is not a regular expression", i)
			return l
		}
		l.sentences = append(l.sentences, re)
	}
	l.fixedFields, l.omittedFields = marshalFields(spec.Set), omittedFields(&spec, l.host)
	var resolved lineSecrets
	switch {
	case spec.oldestKey() != "":
		if resolved.keys, l.UnusableReason = secret.Keys(spec.references(), lookup); l.UnusableReason != "" {
			return l
		}
	case provider.requiresKey(spec.Options):
		l.UnusableReason = "the line has no api_key"
	case l.BaseURL == "" && provider.NeedsBaseURL:
		l.UnusableReason = "the line has no base_url"
	}
	if l.UnusableReason == "" {
		resolved.header, resolved.headerValues, l.UnusableReason = resolveHeaders(spec.Headers, lookup)
		l.secrets = func() lineSecrets { return resolved }
	}
	return l
}

// references returns the references of the line's keys, in the order of use.
func (l *LineSpec) references() []string {
	if l.APIKey != "" {
		return []string{l.APIKey}
	}
	return l.APIKeys
}

// LinesWithSecret returns the IDs of the lines that refer to a stored secret, in the order of the
// document. The result is never nil.
func (d *Document) LinesWithSecret(name string) []string {
	ids := []string{}
	for i := range d.Lines {
		if slices.Contains(d.Lines[i].storedSecrets(), name) {
			ids = append(ids, d.Lines[i].ID)
		}
	}
	return ids
}

// storedSecrets returns the names of the stored secrets that the line refers to.
func (l *LineSpec) storedSecrets() (names []string) {
	references := slices.Clone(l.references())
	for _, value := range l.Headers {
		references = append(references, reference.FindAllString(value, -1)...)
	}
	for _, r := range references {
		if name := secret.StoredName(r); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// oldestKey returns the reference of the line's oldest key, or "" for a line without keys.
func (l *LineSpec) oldestKey() string {
	all := l.references()
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// NodeWarnings returns a warning for each enabled line that is out of service on this node, and for
// each key missing on this node. It also warns of open sandbox models beside real lines.
func NodeWarnings(doc *Document, providers map[string]Provider, lookup func(string) (string, bool)) (warnings []Warning) {
	for i, spec := range doc.Lines {
		l := newLine(spec, providers, lookup)
		if !l.Enabled {
			continue
		}
		if l.UnusableReason != "" {
			warnings = append(warnings, Warning{fmt.Sprintf("lines[%d]", i),
				fmt.Sprintf("%s, so line %s is out of service", l.UnusableReason, l.ID)})
		}
		for j, k := range l.Keys() {
			if k.MissingReason != "" {
				warnings = append(warnings, Warning{fmt.Sprintf("lines[%d].api_keys[%d]", i, j),
					fmt.Sprintf("%s, so line %s does not use this key", k.MissingReason, l.ID)})
			}
		}
	}
	if models := NewSnapshot(0, doc, providers, lookup).OpenSandboxModels(); len(models) > 0 {
		warnings = append(warnings, Warning{"models", fmt.Sprintf("sandbox models (%d, such as %s) are still open, "+
			"although the catalog has real lines. "+
			"Test accounts, and keys with these models among their allowed models, can use them. To switch them off, "+
			"set their state to retired or remove them", len(models), models[0])})
	}
	return warnings
}

// Model returns the model with an ID, in any state.
func (s *Snapshot) Model(id string) (*Model, bool) {
	m, ok := s.byID[id]
	return m, ok
}

// Models returns all models in the order of the document, including retired models. Callers must
// not change the slice.
func (s *Snapshot) Models() []*Model { return s.models }

// Lines returns the enabled lines of a model, sorted by priority, lowest first, and then by the
// order of the document. It includes lines out of service on this node (see Line.UnusableReason).
// Callers must not change the slice.
func (s *Snapshot) Lines(model string) []*Line { return s.linesByModel[model] }

// HasAccounts reports whether a model's lines belong to several accounts at providers (Line.Origin).
func (s *Snapshot) HasAccounts(model string) bool {
	lines := s.linesByModel[model]
	return slices.ContainsFunc(lines, func(l *Line) bool { return l.origin != lines[0].origin })
}

// HoldLimit returns the limit on output tokens for a hold. It is max_output_tokens if any of the
// model's lines ignores limits. Otherwise it is the client's limit (0 without one), raised to the
// largest minimum of the lines. form is the client's form.
func (s *Snapshot) HoldLimit(m *Model, form wire.Form, limit int64) int64 {
	for _, l := range s.linesByModel[m.ID] {
		if l.IgnoresLimit {
			return m.MaxOutputTokens
		}
		if limit > 0 {
			limit = max(limit, translate.LeastLimit(form, l.formFor(form)))
		}
	}
	return limit
}

// Host returns the host of the line's base address.
func (l *Line) Host() vendor.Host { return l.host }

// Origin returns a text that identifies the line's account at its provider, without the credential.
func (l *Line) Origin() string { return l.origin }

// CheckRouting returns an error if no line of the model accepts all the routing fields, because the
// values of these fields have no price. The error is a 400 invalid_request with the field as param.
func (s *Snapshot) CheckRouting(m *Model, form wire.Form, routing []string) error {
	lines := s.linesByModel[m.ID]
	if len(routing) == 0 || slices.ContainsFunc(lines, func(l *Line) bool { return l.AcceptsRouting(form, routing) }) {
		return nil
	}
	field := routing[0]
	for _, name := range routing {
		if !slices.ContainsFunc(lines, func(l *Line) bool { return l.AcceptsRouting(form, []string{name}) }) {
			field = name
			break
		}
	}
	return fault.At(fault.InvalidRequest, field,
		"Model %s is not offered with `%s`, because its choice has no price. Leave `%s` out.", m.ID, field, field)
}

// FieldDroppedByAll returns the first field in extra that every line of the model drops, or "".
// extra are the fields not documented for the form of the request.
func (s *Snapshot) FieldDroppedByAll(m *Model, extra []string) string {
	for _, name := range extra {
		if !slices.ContainsFunc(s.linesByModel[m.ID], func(l *Line) bool { return len(l.DroppedFields(m, []string{name})) == 0 }) {
			return name
		}
	}
	return ""
}

// AllLines returns all lines in the order of the document, including disabled lines. Callers must
// not change the slice.
func (s *Snapshot) AllLines() []*Line { return s.lines }
