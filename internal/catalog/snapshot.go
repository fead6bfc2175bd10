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
	"tollgate/internal/wire/translate"
)

// Snapshot is one revision in use on a node: indexed, with the node's credentials. It is immutable.
// A request keeps its snapshot to the end.
type Snapshot struct {
	Revision int64 // zero before the first catalog
	Reading  int64 // how often its secrets have changed on this node since then

	doc    *Document
	models []*Model
	byID   map[string]*Model
	lines  []*Line
	serve  map[string][]*Line // model id -> enabled lines, lowest priority first
	real   bool               // an enabled line has another provider than the sandbox
}

// Line is a line on a node. BaseURL and Forms are never empty if the provider has a default. Models
// only holds models supported by the provider.
type Line struct {
	LineSpec
	// Out is the reason if the line is out of service on this node, otherwise empty. It names
	// variables, never values.
	Out string

	origin    string // see Origin
	host      vendor.Host
	vendor    *field.Vendor  // of the host; nil if none is known
	secret    func() secrets // a function, to keep secrets out of a printed line
	fixed     map[string]json.RawMessage
	omits     []string
	sentences []*regexp.Regexp
}

// secrets are a line's values on a node shown only to the line's provider.
type secrets struct {
	keys    []secret.LineKey
	header  http.Header
	resolve []string // resolved values of references in the header
}

// Keys returns the line's credentials in the order of use, including those missing on this node. It
// is empty for a line without credentials. Callers must not change the slice.
func (l *Line) Keys() []secret.LineKey { return l.secret().keys }

// Header returns the headers of every call, with references resolved. Callers must not change the
// header.
func (l *Line) Header() http.Header { return l.secret().header }

// Secrets returns the values to be shown only to the line's provider.
func (l *Line) Secrets() []string {
	s := l.secret()
	all := make([]string, 0, len(s.keys)+len(s.resolve))
	for _, k := range s.keys {
		all = append(all, k.Value())
	}
	return append(all, s.resolve...)
}

// FixedFields returns the top-level fields with the same values in every request to the line, as JSON.
// Callers must not change the map.
func (l *Line) FixedFields() map[string]json.RawMessage { return l.fixed }

// Omits returns the top-level fields never sent to the line. Callers must not change the slice.
func (l *Line) Omits() []string { return l.omits }

// Speaks reports whether the line takes a form natively.
func (l *Line) Speaks(form wire.Form) bool { return slices.Contains(l.Forms, form) }

// FormsFor returns the line's forms for a client's form: first the client's own form, if the line
// has it, then the forms with a translation.
func (l *Line) FormsFor(client wire.Form) iter.Seq[wire.Form] {
	return func(yield func(wire.Form) bool) {
		if l.Speaks(client) && !yield(client) {
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

// Times returns the line's timeouts for a model, defaults filled in.
func (l *Line) Times(m *Model) Timeouts { return l.Timeouts.Defaults(m.Reasoning) }

// ReadsLimit returns the line's field of chat completions for the limit on a model's output tokens.
// If empty, the client's field is used. Only OpenAI and Azure are known to accept both fields, and
// only the newer for models with reasoning. Most others ignore unknown fields.
func (l *Line) ReadsLimit(m *Model) LimitField {
	switch {
	case l.LimitField != "":
		return l.LimitField
	case !l.host.ObeysBothLimits():
		return LimitMaxTokens
	case m.Reasoning:
		return LimitMaxCompletionTokens
	}
	return ""
}

// Takes reports whether the line may get a request in a client's form with the given routing
// fields: there are none, or the line passes them all. Only requests in the line's own forms have
// routing fields, because translations drop them.
func (l *Line) Takes(form wire.Form, routing []string) bool {
	if len(routing) == 0 {
		return true
	}
	return l.Speaks(form) && !slices.ContainsFunc(routing, func(name string) bool { return !l.passes(name) })
}

// PassAll in LineSpec.Pass stands for every field.
const PassAll = "*"

// passes reports whether the operator lets the line have a field.
func (l *Line) passes(name string) bool {
	return slices.Contains(l.Pass, name) || slices.Contains(l.Pass, PassAll)
}

// LeavesOut returns the fields not sent to the line: neither documented by its vendor nor passed by
// the line. extra are the fields not documented for the form of the request.
func (l *Line) LeavesOut(extra []string) (out []string) {
	for _, name := range extra {
		if !l.vendor.Documents(name) && !l.passes(name) {
			out = append(out, name)
		}
	}
	return out
}

// IsErrorSentence reports whether the text of an answer is one of the line's
// error sentences: such an answer is a failure of the line.
func (l *Line) IsErrorSentence(text string) bool {
	return slices.ContainsFunc(l.sentences, func(s *regexp.Regexp) bool { return s.MatchString(text) })
}

// NewSnapshot returns the snapshot of a document. lookup reads the environment of this node.
// NewSnapshot never fails: a line unusable on this node has the reason in Out.
func NewSnapshot(revision int64, doc *Document, providers map[string]Provider, lookup func(string) (string, bool)) *Snapshot {
	s := &Snapshot{Revision: revision, doc: doc, byID: map[string]*Model{}, serve: map[string][]*Line{}}
	for i := range doc.Models {
		m := &doc.Models[i]
		s.models = append(s.models, m)
		s.byID[m.ID] = m
	}
	for _, spec := range doc.Lines {
		l := newLine(spec, providers, lookup)
		if p, ok := providers[spec.Provider]; ok {
			l.Models = s.servable(spec.Models, p)
		}
		s.lines = append(s.lines, l)
		if !l.Enabled {
			continue
		}
		s.real = s.real || !l.IsSandbox()
		for id := range l.Models {
			s.serve[id] = append(s.serve[id], l)
		}
	}
	for _, lines := range s.serve {
		slices.SortStableFunc(lines, func(a, b *Line) int { return a.Priority - b.Priority })
	}
	return s
}

// reread returns a new snapshot with the current values of its references. lost are the lines with
// an unreadable value; these keep their former secrets. changed are the lines with other secrets.
// If changed is empty, the snapshot need not be replaced.
func (s *Snapshot) reread(providers map[string]Provider, lookup func(string) (string, bool)) (anew *Snapshot, changed, lost []Warning) {
	anew = NewSnapshot(s.Revision, s.doc, providers, lookup)
	anew.Reading = s.Reading + 1
	for i, l := range anew.lines {
		old := s.lines[i]
		switch {
		case old.Out == "" && l.Out != "":
			lost = append(lost, Warning{l.ID, l.Out})
			l.secret, l.Out = old.secret, ""
		default:
			for _, why := range secret.Keep(old.Keys(), l.Keys()) {
				lost = append(lost, Warning{l.ID, why})
			}
			if old.Out != l.Out || !slices.Equal(old.Secrets(), l.Secrets()) {
				changed = append(changed, Warning{l.ID, l.Out})
			}
		}
	}
	return anew, changed, lost
}

// servable returns the models supported by this version's provider.
func (s *Snapshot) servable(models map[string]string, p Provider) map[string]string {
	out := make(map[string]string, len(models))
	for id, vendor := range models {
		if m := s.byID[id]; m != nil && slices.Contains(p.Kinds, m.Kind) {
			out[id] = vendor
		}
	}
	return out
}

// newLine fills in the values from a line's provider and node.
func newLine(spec LineSpec, providers map[string]Provider, lookup func(string) (string, bool)) *Line {
	l := &Line{LineSpec: spec, secret: func() secrets { return secrets{} }}
	provider, ok := providers[spec.Provider]
	if !ok {
		l.Out = fmt.Sprintf("provider %s is unknown to this version of the gateway", spec.Provider)
		return l
	}
	l.BaseURL = cmp.Or(l.BaseURL, provider.DefaultBaseURL)
	l.origin = l.Provider + "\n" + l.BaseURL + "\n" + spec.oldestKey()
	l.host = vendor.HostOf(l.BaseURL)
	l.vendor = l.host.Vendor()
	l.Forms = slices.DeleteFunc(slices.Clone(spec.Forms), func(f wire.Form) bool { return !slices.Contains(provider.Forms, f) })
	if len(l.Forms) == 0 {
		l.Forms = slices.Clone(provider.Forms)
	}
	for i, sentence := range spec.ErrorSentences {
		re, err := regexp.Compile(sentence)
		if err != nil {
			l.Out = fmt.Sprintf("error_sentences[%d] is not a regular expression", i)
			return l
		}
		l.sentences = append(l.sentences, re)
	}
	l.fixed, l.omits = values(spec.Set), omits(&spec, l.host)
	var own secrets
	switch {
	case spec.oldestKey() != "":
		if own.keys, l.Out = secret.Keys(spec.references(), lookup); l.Out != "" {
			return l
		}
	case provider.requiresKey(spec.Options):
		l.Out = "the line has no api_key"
	case l.BaseURL == "" && provider.NeedsBaseURL:
		l.Out = "the line has no base_url"
	}
	if l.Out == "" {
		own.header, own.resolve, l.Out = resolveHeaders(spec.Headers, lookup)
		l.secret = func() secrets { return own }
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

// oldestKey returns the reference of the line's oldest key, or "" for a line without keys.
func (l *LineSpec) oldestKey() string {
	all := l.references()
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// Unusable returns a warning for each enabled line out of service on this node, or with a missing
// key, because a variable is not set or a file is unreadable. It also warns of sandbox models
// beside real lines.
func Unusable(doc *Document, providers map[string]Provider, lookup func(string) (string, bool)) (warnings []Warning) {
	for i, spec := range doc.Lines {
		l := newLine(spec, providers, lookup)
		if !l.Enabled {
			continue
		}
		if l.Out != "" {
			warnings = append(warnings, Warning{fmt.Sprintf("lines[%d]", i), fmt.Sprintf("%s, so line %s is out of service", l.Out, l.ID)})
		}
		for j, k := range l.Keys() {
			if k.Why != "" {
				warnings = append(warnings, Warning{fmt.Sprintf("lines[%d].api_keys[%d]", i, j),
					fmt.Sprintf("%s, so line %s does not use this key", k.Why, l.ID)})
			}
		}
	}
	if open := NewSnapshot(0, doc, providers, lookup).OpenSandbox(); len(open) > 0 {
		warnings = append(warnings, Warning{"models", fmt.Sprintf("sandbox models (%d, such as %s) are still open, "+
			"although the catalog has real lines. "+
			"Test accounts, and keys with these models among their allowed models, can use them. To switch them off, "+
			"set their state to retired or remove them", len(open), open[0])})
	}
	return warnings
}

// Model returns the model with an id, in whatever state it is.
func (s *Snapshot) Model(id string) (*Model, bool) {
	m, ok := s.byID[id]
	return m, ok
}

// Models returns all models in the order of the document, the retired ones
// included. Callers must not change the slice.
func (s *Snapshot) Models() []*Model { return s.models }

// Lines returns the enabled lines of a model, by priority, lowest first, and then by the order of
// the document. It includes lines out of service on this node (see Line.Out). Callers must not
// change the slice.
func (s *Snapshot) Lines(model string) []*Line { return s.serve[model] }

// HeldLimit returns the limit on output tokens for a hold: the client's (0 without one), raised to
// the largest minimum of the model's lines. If any of the lines ignores limits, it is
// max_output_tokens. form is the client's.
func (s *Snapshot) HeldLimit(m *Model, form wire.Form, limit int64) int64 {
	for _, l := range s.serve[m.ID] {
		if l.IgnoresLimit {
			return m.MaxOutputTokens
		}
		if limit > 0 {
			limit = max(limit, translate.LeastLimit(form, l.formFor(form)))
		}
	}
	return limit
}

// Host is the host of the line's base address.
func (l *Line) Host() vendor.Host { return l.host }

// Origin identifies the line's account at its provider, without the credential.
func (l *Line) Origin() string { return l.origin }

// CheckRouting returns an error if no line of the model passes all the routing fields, because the
// client's choice has no price here. The error is a 400 invalid_request with the field as param.
func (s *Snapshot) CheckRouting(m *Model, form wire.Form, routing []string) error {
	lines := s.serve[m.ID]
	if len(routing) == 0 || slices.ContainsFunc(lines, func(l *Line) bool { return l.Takes(form, routing) }) {
		return nil
	}
	at := routing[0]
	for _, name := range routing {
		if !slices.ContainsFunc(lines, func(l *Line) bool { return l.Takes(form, []string{name}) }) {
			at = name
			break
		}
	}
	return fault.At(fault.InvalidRequest, at,
		"Model %s is not offered with `%s`, because its choice has no price here. Leave `%s` out.", m.ID, at, at)
}

// NobodyTakes returns the first field left out by every line of the model, or "". extra are the
// fields not documented for the form of the request.
func (s *Snapshot) NobodyTakes(m *Model, extra []string) string {
	for _, name := range extra {
		one := []string{name}
		if !slices.ContainsFunc(s.serve[m.ID], func(l *Line) bool { return len(l.LeavesOut(one)) == 0 }) {
			return name
		}
	}
	return ""
}

// AllLines returns all lines in the order of the document, the disabled ones
// included. Callers must not change the slice.
func (s *Snapshot) AllLines() []*Line { return s.lines }
