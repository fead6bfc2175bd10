package catalog

import (
	"fmt"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tollgate/internal/catalog/secret"
	"tollgate/internal/catalog/tree"
	"tollgate/internal/money"
	"tollgate/internal/wire"
	"tollgate/internal/wire/field"
)

// jsonNumber matches a plain scalar with a number.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// lines reads all lines into doc and returns the IDs of the models with an enabled line. modelsByID
// has the valid models. pathsByID has the paths of all models, also of invalid models.
func (r *reader) lines(t *table, doc *Document, modelsByID map[string]*Model, pathsByID map[string]string) map[string]bool {
	withLine := map[string]bool{}
	linePaths := map[string]string{}
	for path, n := range t.items("lines", MaxLines) {
		lineTable := r.table(path, n)
		if lineTable == nil {
			continue
		}
		l := r.line(lineTable, modelsByID, pathsByID)
		if firstPath, exists := linePaths[l.ID]; exists && l.ID != "" {
			lineTable.fault("id", "%s is already the id of %s", quote(l.ID), firstPath)
		} else {
			linePaths[l.ID] = path
		}
		if l.Enabled {
			for id := range l.Models {
				withLine[id] = true
			}
		}
		doc.Lines = append(doc.Lines, l)
	}
	return withLine
}

// line reads one line.
func (r *reader) line(t *table, modelsByID map[string]*Model, pathsByID map[string]string) LineSpec {
	l := LineSpec{}
	l.ID = t.required("id", 64, "")
	if l.ID != "" && !lineID.MatchString(l.ID) {
		t.fault("id", "must begin with a letter or digit and contain only letters, digits and . _ -")
	}
	l.Provider = t.required("provider", 64, ": one of "+join(slices.Sorted(maps.Keys(r.providers))))
	provider, supported := r.providers[l.Provider]
	if l.Provider != "" && !supported && !r.lenient {
		t.fault("provider", "%s is not a provider of this version. The providers are %s", quote(l.Provider),
			join(slices.Sorted(maps.Keys(r.providers))))
	}
	l.BaseURL = t.text("base_url", maxURL)
	r.checkBaseURL(t, l.BaseURL, supported && provider.NeedsBaseURL && !r.lenient)
	l.APIKey = t.text("api_key", secret.MaxReference)
	if t.get("api_key") != nil && !secret.IsReference(l.APIKey) {
		t.fault("api_key", notReference)
		l.APIKey = ""
	}
	l.APIKeys = r.keys(t)
	l.Models = r.lineModels(t, l.Provider, provider, supported, modelsByID, pathsByID)
	forms := provider.AllForms()
	description := fmt.Sprintf("a form that provider %s has: %s", l.Provider, join(forms))
	if !supported {
		forms, description = append(slices.Clone(modelForms), wire.FormInteractions), "a form"
	}
	l.Forms = choices(t, "forms", forms, description)
	if t.emptyList("forms") {
		t.fault("forms", "must name at least one form. Leave the key out for all forms of the provider")
	} else if t.get("forms") == nil && provider.NeedsForms && !r.lenient && hasChatModel(&l, modelsByID) {
		t.fault("forms", "is required for chat models of provider %s, because its models differ in their forms: one or more of %s",
			l.Provider, join(provider.Forms))
	}
	l.Priority = int(t.count("priority", 0, maxRank, defaultPriority))
	l.Weight = int(t.count("weight", 1, maxRank, defaultWeight))
	l.MaxConcurrent = int(t.count("max_concurrent", 0, maxRank, 0))
	l.MaxInputs = t.count("max_inputs", 1, maxRank, 0)
	if times := t.child("timeouts"); times != nil {
		l.Timeouts = Timeouts{times.duration("first_token"), times.duration("idle"), times.duration("total")}
		times.close()
	}
	l.LimitField = r.limitField(t)
	l.IgnoresLimit = t.boolean("ignores_limit", false)
	l.Headers = r.headers(t, provider)
	l.Options = r.options(t, provider, supported)
	r.checkKey(t, &l, provider, supported)
	storing := storingForm(&l, provider.Forms, modelsByID)
	l.Set = r.fixedFields(t, &l, provider, modelsByID, storing)
	l.Omit = r.omittedFields(t, &l, provider, modelsByID, storing)
	l.Pass = r.passFields(t)
	l.Costs = r.costs(t, &l, modelsByID)
	if n := t.get("margin"); n != nil {
		if margin, ok := decimal(r, t.pathOf("margin"), n, money.ParseFactor); ok {
			l.Margin = &margin
		}
	}
	l.ErrorSentences = r.sentences(t)
	l.Enabled = t.boolean("enabled", true)
	t.close()
	return l
}

// hasChatModel reports whether a line has chat models.
func hasChatModel(l *LineSpec, modelsByID map[string]*Model) bool {
	for id := range l.Models {
		if m := modelsByID[id]; m != nil && m.Kind == KindChat {
			return true
		}
	}
	return false
}

// notReference is the fault of a key that is not a reference. The message does not repeat the value,
// because the value is probably a secret.
const notReference = "must refer to an environment variable, ${NAME}, to a file, ${file:PATH}, or to a stored secret, ${secret:NAME}. " +
	"The catalog never contains a key itself"

// keys reads the references in api_keys, in the order of use.
func (r *reader) keys(t *table) []string {
	keys := t.words("api_keys", secret.MaxKeys, func(path string, n *tree.Value) bool {
		ok := secret.IsReference(n.Text)
		if !ok {
			r.fault(path, n, notReference)
		}
		return ok
	})
	switch {
	case t.get("api_keys") != nil && t.get("api_key") != nil:
		t.fault("api_keys", "cannot be combined with api_key: remove one of the two")
	case t.emptyList("api_keys"):
		t.fault("api_keys", "must name at least one key")
	}
	return keys
}

// checkKey reports a missing or unused credential of a line.
func (r *reader) checkKey(t *table, l *LineSpec, provider Provider, supported bool) {
	name := "api_key"
	if t.get("api_keys") != nil {
		name = "api_keys"
	}
	hasKey := t.get(name) != nil
	switch {
	case !supported || r.lenient:
	case !hasKey && provider.requiresKey(l.Options):
		t.fault("api_key", "is required for provider %s: a reference to an environment variable, ${NAME}, to a file, ${file:PATH}, "+
			"or to a stored secret, ${secret:NAME}", l.Provider)
	case hasKey && provider.NeedsKey && !provider.requiresKey(l.Options):
		t.fault(name, "cannot be combined with these options, which already determine the credential of the line: remove one of the two")
	}
}

// limitField reads limit_field. A value of a later version is left out of a stored revision.
func (r *reader) limitField(t *table) LimitField {
	fields := LimitFields()
	switch {
	case t.get("limit_field") == nil:
		return ""
	case r.lenient && !slices.Contains(fields, LimitField(t.text("limit_field", 64))):
		r.leaveOut(t.pathOf("limit_field"), "is unknown to this version of the gateway and was left out")
		return ""
	}
	return choice(t, "limit_field", "", fields...)
}

// passFields reads the fields that are sent to a line although they may cost more or are
// undocumented.
func (r *reader) passFields(t *table) []string {
	return t.words("pass", maxList, func(path string, n *tree.Value) bool {
		switch name := n.Text; {
		case name != PassAll && !fieldName.MatchString(name):
			r.fault(path, n, `must be the name of a field, or "*" for all fields`)
		case isOwned(name):
			r.reportUnknown(path, n, "is a field that only the gateway sets")
		case isRejected(name):
			r.reportUnknown(path, n, "is a field that the gateway never sends: it refers to data at the provider "+
				"that all your customers would share")
		default:
			return true
		}
		return false
	})
}

// isOwned reports whether the gateway itself reads or replaces a field in some form.
func isOwned(name string) bool {
	return slices.ContainsFunc(field.Forms(), func(form string) bool {
		f := field.Form(form).Find([]byte(name))
		return f != nil && f.Documented && f.Class == field.Owned
	})
}

// isRejected reports whether requests with a field are rejected in every form.
func isRejected(name string) bool {
	for _, form := range field.Forms() {
		f := field.Form(form).Find([]byte(name))
		if f == nil || f.Class < field.Later {
			return false
		}
	}
	return true
}

// checkBaseURL reports an invalid base address.
func (r *reader) checkBaseURL(t *table, raw string, required bool) {
	if t.get("base_url") == nil {
		if required {
			t.fault("base_url", "is required for this provider: the address of its API, to which the gateway appends the paths")
		}
		return
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "":
		t.fault("base_url", "must be an http or https address such as https://api.example.com/v1")
	case u.User != nil:
		t.fault("base_url", "must not contain a user or password: use api_key")
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		t.fault("base_url", "must not have a query or fragment, because the gateway appends paths to it")
	case u.Port() != "":
		if port, err := strconv.Atoi(u.Port()); err != nil || port < 1 || port > 65535 {
			t.fault("base_url", "must have a port from 1 to 65535")
		}
	}
}

// lineModels reads the map from IDs in the catalog to IDs at the provider.
func (r *reader) lineModels(t *table, providerName string, provider Provider, supported bool, modelsByID map[string]*Model,
	pathsByID map[string]string) map[string]string {
	out := map[string]string{}
	n := t.get("models")
	if n == nil || (n.Kind == tree.TableKind && len(n.Fields) == 0) {
		t.fault("models", "is required: the models of the line, as {id in this catalog: id at the provider}")
		return out
	}
	models := r.table(t.pathOf("models"), n)
	if models == nil {
		return out
	}
	models.each(MaxModels, func(id, path string, value *tree.Value) {
		providerID := r.textAt(path, value, maxVendorID)
		if isEmpty(value) {
			r.fault(path, value, "must be the provider's id of the model")
		}
		m := modelsByID[id]
		switch _, exists := pathsByID[id]; {
		case m != nil:
			if supported && !slices.Contains(provider.Kinds, m.Kind) {
				if r.lenient || m.Kind == "" { // a missing kind is reported at the model
					return
				}
				r.fault(path, value, "is a model of kind %s, which provider %s does not support", m.Kind, providerName)
			}
		case r.lenient:
			r.leaveOut(path, "belongs to a model that was left out, so it was left out too")
			return
		case !exists:
			r.fault(path, value, "is not a model of this catalog")
		}
		out[id] = providerID
	})
	return out
}

// sentences reads the regular expressions that mark an answer as a failure.
func (r *reader) sentences(t *table) []string {
	var out []string
	for path, n := range t.items("error_sentences", maxSentences) {
		s := r.textAt(path, n, maxSentence)
		if _, err := regexp.Compile(s); err != nil {
			r.fault(path, n, "is not a regular expression: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		} else if isEmpty(n) {
			r.fault(path, n, "must not be empty: it would match every answer")
		} else if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// options reads the options of the adapter and lets the adapter check them.
func (r *reader) options(t *table, provider Provider, supported bool) map[string]any {
	n := t.get("options")
	if n == nil {
		return nil
	}
	if t.child("options") == nil {
		return nil
	}
	faultsBefore := len(r.faults)
	out, _ := r.anyValue(t.pathOf("options"), n).(map[string]any)
	if len(r.faults) > faultsBefore || len(out) == 0 {
		return nil
	}
	if supported && !r.lenient {
		if provider.CheckOptions == nil {
			t.fault("options", "must be left out, because the provider has no options")
		} else if err := provider.CheckOptions(out); err != nil {
			r.optionFault(t, n, err.Error())
		}
	}
	return out
}

// optionFault reports an adapter's error about its options. If the message begins with the name of
// an option (`delay: must be a duration`), the fault has the path of the option.
func (r *reader) optionFault(t *table, options *tree.Value, message string) {
	if name, rest, ok := strings.Cut(message, ": "); ok && options.Get(name) != nil {
		r.fault(t.pathOf("options")+"."+tree.PathKey(name), options.Get(name), "%s", rest)
		return
	}
	t.fault("options", "%s", message)
}

// anyValue reads a text, a boolean, a number (int64 if whole, otherwise float64), a list or a
// mapping. Null is left out.
func (r *reader) anyValue(path string, n *tree.Value) any {
	switch n.Kind {
	case tree.QuotedKind:
		return n.Text
	case tree.PlainKind:
		switch {
		case n.Text == "true" || n.Text == "false":
			return n.Text == "true"
		case jsonNumber.MatchString(n.Text):
			return r.number(path, n)
		}
		return n.Text
	case tree.ListKind:
		if len(n.Items) > maxOptions {
			r.fault(path, n, "must not have more than %d entries", maxOptions)
			return nil
		}
		out := make([]any, 0, len(n.Items))
		for i, item := range n.Items {
			itemPath := fmt.Sprintf("%s[%d]", path, i)
			if item.Kind == tree.NullKind {
				r.fault(itemPath, item, "must not be null")
				continue
			}
			out = append(out, r.anyValue(itemPath, item))
		}
		return out
	case tree.TableKind:
		out := map[string]any{}
		t := r.table(path, n)
		t.each(maxOptions, func(key, path string, value *tree.Value) {
			if !valueName.MatchString(key) {
				r.fault(path, value, "is not the name of an option")
			} else if value.Kind != tree.NullKind {
				out[key] = r.anyValue(path, value)
			}
		})
		return out
	}
	return nil
}

// number reads a number. A whole number in any notation is an int64, so a printed document reads
// back the same.
func (r *reader) number(path string, n *tree.Value) any {
	if v, err := strconv.ParseInt(n.Text, 10, 64); err == nil {
		return v
	}
	v, err := strconv.ParseFloat(n.Text, 64)
	if err != nil || math.Abs(v) > 1e15 {
		r.fault(path, n, "must be a number between -1e15 and 1e15")
		return nil
	}
	if v == math.Trunc(v) {
		return int64(v)
	}
	return v
}
