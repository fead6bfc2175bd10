package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"tollgate/internal/catalog/secret"
	"tollgate/internal/catalog/tree"
	"tollgate/internal/catalog/vendor"
	"tollgate/internal/wire"
)

// Valid headers. Never changed.
var (
	headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$")
	// reference matches a reference in a header's value.
	reference = regexp.MustCompile(`\$\{(?:[A-Za-z_][A-Za-z0-9_]{0,127}|file:[^${}]{1,1000}|secret:[A-Za-z0-9][A-Za-z0-9._-]{0,63})\}`)
)

// reservedHeaders returns the headers that a line must not set, because they belong to one
// connection or the gateway writes them.
func reservedHeaders() []string {
	return []string{
		"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect",
		"Host", "Content-Length", "Content-Type", "Content-Encoding", "Accept", "Accept-Encoding", "Idempotency-Key",
		"Authorization", "Proxy-Authenticate", "Proxy-Authorization",
	}
}

// secretHeaders returns vendors' headers for credentials. Their values must be references.
func secretHeaders() []string {
	return []string{"Api-Key", "X-Api-Key", "X-Goog-Api-Key", "X-Auth-Token", "Cookie", "Ocp-Apim-Subscription-Key"}
}

// headers reads the headers sent with every call of a line. No message repeats a value, which may
// be a secret.
func (r *reader) headers(t *table, provider Provider) map[string]string {
	entries := t.child("headers")
	if entries == nil {
		return nil
	}
	out := map[string]string{}
	entries.each(maxHeaders, func(name, path string, value *tree.Value) {
		text, key := r.textAt(path, value, maxHeaderValue), http.CanonicalHeaderKey(name)
		_, duplicate := out[key]
		switch literal := reference.ReplaceAllString(text, ""); {
		case !headerName.MatchString(name):
			r.fault(path, value, "is not the name of a header")
		case duplicate:
			r.fault(path, value, "is given twice")
		case slices.Contains(reservedHeaders(), key) || slices.Contains(provider.KeyHeaders, key):
			r.fault(path, value, "is a header that the gateway writes itself. Use api_key for a credential")
		case isEmpty(value):
			r.fault(path, value, "must not be empty")
		case strings.Contains(literal, "${") && !r.lenient:
			r.fault(path, value, "must refer to an environment variable, ${NAME}, to a file, ${file:PATH}, or to a stored secret, ${secret:NAME}")
		case literal == text && slices.Contains(secretHeaders(), key) && text != "":
			r.fault(path, value, "must refer to an environment variable, ${NAME}, to a file, ${file:PATH}, or to a stored secret, ${secret:NAME}. "+
				"The catalog never contains a credential itself")
		case text != "":
			out[key] = text
		}
	})
	return out
}

// resolveHeaders returns a line's headers on this node, and the values of their references. If a
// value is missing, reason says why, without any value.
func resolveHeaders(headers map[string]string, lookup func(string) (string, bool)) (header http.Header, secrets []string, reason string) {
	header = http.Header{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value := reference.ReplaceAllStringFunc(headers[name], func(ref string) string {
			text, problem := resolveReference(ref[2:len(ref)-1], lookup)
			if problem != "" && reason == "" {
				reason = fmt.Sprintf("header %s: %s", name, problem)
			}
			secrets = append(secrets, text)
			return text
		})
		header[name] = []string{value}
		if reason == "" && strings.Contains(reference.ReplaceAllString(headers[name], ""), "${") {
			reason = fmt.Sprintf("header %s: its value has a format unknown to this version of the gateway", name)
		}
	}
	return header, secrets, reason
}

// resolveReference returns the value of a reference in a header on this node. If the value is
// missing or invalid, reason says why.
func resolveReference(name string, lookup func(string) (string, bool)) (value, reason string) {
	value, reason = secret.Resolve(name, lookup)
	if reason == "" && (len(value) > maxHeaderValue ||
		strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f })) {
		source := "the variable " + name
		if path, isFile := strings.CutPrefix(name, "file:"); isFile {
			source = "the file " + path
		} else if stored := secret.StoredName("${" + name + "}"); stored != "" {
			source = "the secret " + stored
		}
		return "", source + " has characters that a header cannot have, or is too long"
	}
	return value, reason
}

// fixedFields reads the fields with the same value in every request to a line.
func (r *reader) fixedFields(t *table, l *LineSpec, provider Provider, modelsByID map[string]*Model, storing wire.Form) map[string]any {
	entries := t.child("set")
	if entries == nil {
		return nil
	}
	reserved := []string{"stream_options", "store"}
	if storing != "" {
		reserved = append(reserved, "background", "previous_interaction_id")
	}
	out := map[string]any{}
	entries.each(maxOptions, func(name, path string, value *tree.Value) {
		switch {
		case !r.overridable(name, path, value, reserved...):
		case value.Kind == tree.NullKind:
			r.fault(path, value, "must not be null. List a field in omit to never send it")
		case r.fitsProvider(name, path, value, l, provider, modelsByID, false):
			out[name] = r.anyValue(path, value)
		}
	})
	return out
}

// overridable reports whether a line may set or omit a field. If not, it reports a fault. reserved
// are further fields that only the gateway sets.
func (r *reader) overridable(name, path string, n *tree.Value, reserved ...string) bool {
	matches := func(reservedName string) bool { return strings.EqualFold(reservedName, name) }
	switch {
	case !fieldName.MatchString(name):
		r.fault(path, n, "is not the name of a field")
	case !slices.ContainsFunc(wire.OwnFields(), matches) && !slices.ContainsFunc(reserved, matches):
		return true
	default:
		r.reportUnknown(path, n, "is a field that only the gateway sets")
	}
	return false
}

// fitsProvider reports whether the provider can send a field, or omit it if omit is true, for each
// image and video model of the line. If not, it reports a fault.
func (r *reader) fitsProvider(name, path string, n *tree.Value, l *LineSpec, provider Provider, modelsByID map[string]*Model,
	omit bool) bool {
	if provider.CheckField == nil || r.lenient {
		return true
	}
	for _, id := range slices.Sorted(maps.Keys(l.Models)) {
		if m := modelsByID[id]; m != nil && m.Kind.IsJob() {
			if err := provider.CheckField(l, m, name, omit); err != nil {
				r.fault(path, n, "%s", err)
				return false
			}
		}
	}
	return true
}

// omittedFields reads the fields that are never sent to a line. An empty list replaces the default
// of the host, so no field is omitted.
func (r *reader) omittedFields(t *table, l *LineSpec, provider Provider, modelsByID map[string]*Model, storing wire.Form) []string {
	if t.get("omit") == nil {
		return nil
	}
	names := t.words("omit", maxList, func(path string, n *tree.Value) bool {
		name := n.Text
		if !r.overridable(name, path, n) {
			return false
		}
		if _, isSet := l.Set[name]; isSet {
			r.fault(path, n, "is also in set: remove it from one of the two")
			return false
		}
		if strings.EqualFold(name, "store") && storing != "" {
			r.fault(path, n, "must not be omitted on lines with the form %s, because the provider would store the answers", storing)
			return false
		}
		return r.fitsProvider(name, path, n, l, provider, modelsByID, true)
	})
	if names == nil {
		return []string{}
	}
	return names
}

// storingForm returns the form of a line's chat models if the provider stores answers in this form
// unless `store` is false, or "".
func storingForm(l *LineSpec, defaultForms []wire.Form, modelsByID map[string]*Model) wire.Form {
	forms := l.Forms
	if forms == nil {
		forms = defaultForms
	}
	if !hasChatModel(l, modelsByID) {
		return ""
	}
	for _, form := range []wire.Form{wire.FormResponses, wire.FormInteractions} {
		if slices.Contains(forms, form) {
			return form
		}
	}
	return ""
}

// omittedFields returns the fields that are never sent to a line. By default, these are the fields
// that the host rejects.
func omittedFields(spec *LineSpec, host vendor.Host) []string {
	if spec.Omit == nil && host.RejectsStreamOptions() {
		return []string{"stream_options"}
	}
	return spec.Omit
}

// marshalFields returns the fixed fields of a line as JSON.
func marshalFields(set map[string]any) map[string]json.RawMessage {
	out := make(map[string]json.RawMessage, len(set))
	for name, value := range set {
		out[name], _ = json.Marshal(value) // cannot fail: values come from reader.anyValue
	}
	return out
}
