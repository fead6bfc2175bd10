package catalog

import (
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

// Snapshot is one revision as a node serves from it: indexed, with the node's
// credentials. It is immutable; requests keep the one that they began with.
type Snapshot struct {
	Revision int64 // 0: no catalog yet
	Reading  int64 // how often its secrets have changed on this node since then

	doc    *Document
	models []*Model
	byID   map[string]*Model
	lines  []*Line
	serve  map[string][]*Line // model id -> enabled lines, lowest priority first
	real   bool               // an enabled line has another provider than the sandbox
}

// Line is a line as a node can use it. BaseURL and Forms are never empty where
// the provider has a default; Models holds only models that the provider can
// serve.
type Line struct {
	LineSpec
	// Out says why the line cannot be used on this node at all; empty when it
	// can. It names variables, never values.
	Out string

	origin    string // see Origin
	host      vendor.Host
	vendor    *field.Vendor  // of the host; nil if none is known
	secret    func() secrets // a function, so that printing a line cannot show it
	fixed     map[string]json.RawMessage
	omits     []string
	sentences []*regexp.Regexp
}

// secrets are what a node knows of a line and shows to nobody but its provider.
type secrets struct {
	keys    []secret.LineKey
	header  http.Header
	resolve []string // what of the header stood elsewhere
}

// Keys returns the line's credentials in the order in which they are used, also
// those that this node does not have; none of a line that needs none. Callers must
// not change the slice.
func (l *Line) Keys() []secret.LineKey { return l.secret().keys }

// Header returns what goes with every call, references resolved. Callers must
// not change it.
func (l *Line) Header() http.Header { return l.secret().header }

// Secrets returns what must be shown to nobody but the line's provider.
func (l *Line) Secrets() []string {
	s := l.secret()
	all := make([]string, 0, len(s.keys)+len(s.resolve))
	for _, k := range s.keys {
		all = append(all, k.Value())
	}
	return append(all, s.resolve...)
}

// Fixed returns the top-level fields that the line gets with the same values in
// every request, as JSON. Callers must not change the map.
func (l *Line) Fixed() map[string]json.RawMessage { return l.fixed }

// Omits returns the top-level fields that the line never gets. Callers must not
// change the slice.
func (l *Line) Omits() []string { return l.omits }

// Speaks reports whether the line takes a form natively.
func (l *Line) Speaks(form wire.Form) bool { return slices.Contains(l.Forms, form) }

// FormsFor are the forms in which the line can be asked what a client asks in
// its: that one first if the line has it, then those that it can be put into.
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

// formFor is the first of FormsFor; empty: there is none.
func (l *Line) formFor(client wire.Form) (first wire.Form) {
	l.FormsFor(client)(func(form wire.Form) bool {
		first = form
		return false
	})
	return first
}

// Times returns the line's timeouts for a model, defaults filled in.
func (l *Line) Times(m *Model) Timeouts { return l.Timeouts.Defaults(m.Reasoning) }

// ReadsLimit returns the field of chat completions in which the line reads the
// limit on output tokens of a model; empty: the one that the client sent. Only
// OpenAI and Azure are known to obey both, and to take the newer alone for
// models that think; most others ignore what they do not know.
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

// Takes reports whether the line may get a request of a client's form with the
// given routing fields: none, or those that it passes. Only requests of its own
// forms have them: no translation keeps them.
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

// LeavesOut returns those of the fields that the line does not get: its vendor
// does not document them, and the line does not pass them. extra are fields that
// the form of the request does not document.
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
	for _, s := range l.sentences {
		if s.MatchString(text) {
			return true
		}
	}
	return false
}

// NewSnapshot makes the snapshot of a document. lookup reads the environment
// of this node. Nothing fails: a line that cannot be used here says why in
// Out.
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

// reread makes the snapshot anew, with what its references stand for now. A line that
// has its secrets, and could not be given them again, keeps them: lost are those.
// changed are the lines that others were found for; without any, the snapshot need not
// be replaced.
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

// servable keeps the models that a provider of this version can serve.
func (s *Snapshot) servable(models map[string]string, p Provider) map[string]string {
	out := make(map[string]string, len(models))
	for id, vendor := range models {
		if m := s.byID[id]; m != nil && slices.Contains(p.Kinds, m.Kind) {
			out[id] = vendor
		}
	}
	return out
}

// newLine resolves what a line leaves to its provider and its node.
func newLine(spec LineSpec, providers map[string]Provider, lookup func(string) (string, bool)) *Line {
	l := &Line{LineSpec: spec, secret: func() secrets { return secrets{} }}
	provider, ok := providers[spec.Provider]
	if !ok {
		l.Out = fmt.Sprintf("provider %s is not known to this version", spec.Provider)
		return l
	}
	if l.BaseURL == "" {
		l.BaseURL = provider.DefaultBaseURL
	}
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
	case provider.keyed(spec.Options):
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

// references are what stands for the line's keys, in the order of their use.
func (l *LineSpec) references() []string {
	if l.APIKey != "" {
		return []string{l.APIKey}
	}
	return l.APIKeys
}

// oldestKey is the reference of the key that was there before others; empty: the line
// has none.
func (l *LineSpec) oldestKey() string {
	all := l.references()
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// Unusable warns of the enabled lines of a document that could not be used on this
// node, or would lack one of their keys, since a variable is not set or a file cannot
// be read. It also warns of sandbox models beside real lines.
func Unusable(doc *Document, providers map[string]Provider, lookup func(string) (string, bool)) (warnings []Warning) {
	for i, spec := range doc.Lines {
		l := newLine(spec, providers, lookup)
		if !l.Enabled {
			continue
		}
		if l.Out != "" {
			warnings = append(warnings, Warning{fmt.Sprintf("lines[%d]", i), fmt.Sprintf("%s, so line %s is out of service here", l.Out, l.ID)})
		}
		for j, k := range l.Keys() {
			if k.Why != "" {
				warnings = append(warnings, Warning{fmt.Sprintf("lines[%d].api_keys[%d]", i, j),
					fmt.Sprintf("%s, so line %s goes without this key here", k.Why, l.ID)})
			}
		}
	}
	if open := NewSnapshot(0, doc, providers, lookup).OpenSandbox(); len(open) > 0 {
		warnings = append(warnings, Warning{"models", fmt.Sprintf("sandbox models stay beside real lines (%d, such as %s) for test accounts "+
			"and keys that name them: set their state to retired, or remove them, to switch them off", len(open), open[0])})
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

// Lines returns the enabled lines of a model, lowest priority first and in the
// order of the document among equals; those that are out of service on this
// node are included and say so. Callers must not change the slice.
func (s *Snapshot) Lines(model string) []*Line { return s.serve[model] }

// HeldLimit returns the limit on output tokens that a hold for the model may go
// by: the client's (0: none), raised to the smallest that a line which may be
// asked gets, but max_output_tokens where such a line obeys no limit. form is the
// client's.
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

// Origin tells the account that the line has at its provider from others, without
// its credential.
func (l *Line) Origin() string { return l.origin }

// CheckRouting refuses routing fields that no line of the model passes together:
// what the client chooses by them has no price here. The error is a 400
// invalid_request with the field at fault.
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
		"Model %s is not offered with `%s`, which chooses what has no price here. Leave it out.", m.ID, at)
}

// NobodyTakes returns the first of the fields that every line of the model would
// leave out, or "". extra are fields that the form of the request does not
// document.
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
