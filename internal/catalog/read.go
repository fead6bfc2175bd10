package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"tollgate/internal/catalog/tree"
	"tollgate/internal/money"
)

// Parse reads and validates a catalog from an operator, YAML or JSON. The error is Faults with all
// faults. The warnings are about valid but probably unintended settings. providers are the adapters
// available to lines.
func Parse(raw []byte, providers map[string]Provider) (*Document, []Warning, error) {
	root, err := readTree(raw)
	if err != nil {
		return nil, nil, err
	}
	r := reader{providers: providers}
	doc := r.document(root)
	if len(r.faults) > 0 {
		return nil, nil, r.faults.sortAndLimit()
	}
	if len(doc.canonical()) > maxDocument { // aliases may make the document larger than the text
		return nil, nil, tooLargeFault()
	}
	return doc, r.warnings, nil
}

// load reads a stored revision. During a deploy across several nodes, the revision may come from a
// newer version of the program. So load leaves out all keys, forms and kinds of models unknown to
// this version instead of rejecting the document. A model in an unknown state is under maintenance
// here, and a line with an unknown provider is out of service (see NewSnapshot). The warnings name
// everything left out.
func load(raw []byte) (*Document, []Warning, error) {
	root, err := readTree(raw)
	if err != nil {
		return nil, nil, err
	}
	r := reader{lenient: true}
	doc := r.document(root)
	if len(r.faults) > 0 {
		return nil, nil, r.faults.sortAndLimit()
	}
	return doc, r.warnings, nil
}

// readTree reads a text as a tree. Its errors are Faults.
func readTree(raw []byte) (*tree.Value, error) {
	if len(raw) > maxDocument {
		return nil, tooLargeFault()
	}
	root, err := tree.Read(raw)
	if syntax := (*tree.SyntaxError)(nil); errors.As(err, &syntax) {
		pos := syntax.Pos
		return nil, Faults{{Path: pos.String(), Message: syntax.Message, Line: pos.Line, Column: pos.Column}}
	}
	return root, err
}

func tooLargeFault() Faults {
	return Faults{{Path: "document", Message: fmt.Sprintf("must not be larger than %d MiB", maxDocument>>20)}}
}

// reader converts a tree to a document and collects the faults.
type reader struct {
	providers map[string]Provider
	lenient   bool
	faults    Faults
	warnings  []Warning
}

func (r *reader) fault(path string, n *tree.Value, format string, args ...any) {
	f := Fault{Path: path, Message: fmt.Sprintf(format, args...)}
	if n != nil {
		f.Line, f.Column = n.Pos.Line, n.Pos.Column
	}
	r.faults = append(r.faults, f)
}

// warn records a warning about a probably unintended setting. There are no such warnings for a
// stored revision.
func (r *reader) warn(path, format string, args ...any) {
	if !r.lenient {
		r.warnings = append(r.warnings, Warning{Path: path, Message: fmt.Sprintf(format, args...)})
	}
}

// leaveOut records a warning about a part of a stored revision that this version does not know.
func (r *reader) leaveOut(path, message string) {
	r.warnings = append(r.warnings, Warning{Path: path, Message: message})
}

// reportUnknown reports a part of a document that this version does not accept. In an uploaded
// document, the part is a fault. In a stored revision, it is left out with a warning.
func (r *reader) reportUnknown(path string, n *tree.Value, format string, args ...any) {
	if r.lenient {
		r.leaveOut(path, "is unknown to this version of the gateway and was left out")
	} else {
		r.fault(path, n, format, args...)
	}
}

// table reads a mapping. get reads a known key, and close reports all other keys.
type table struct {
	*reader
	path      string
	node      *tree.Value
	knownKeys map[string]bool
}

// table opens a mapping. If n is not a mapping, table reports a fault and returns nil.
func (r *reader) table(path string, n *tree.Value) *table {
	if n == nil || n.Kind != tree.TableKind {
		if n == nil {
			n = &tree.Value{}
		}
		r.fault(path, n, "must be a mapping of keys to values, not %s", n.Kind)
		return nil
	}
	return &table{reader: r, path: path, node: n, knownKeys: map[string]bool{}}
}

// child opens the mapping at a key. If the key is absent or not a mapping, child returns nil.
func (t *table) child(key string) *table {
	n := t.get(key)
	if n == nil {
		return nil
	}
	return t.table(t.pathOf(key), n)
}

// pathOf returns the path of a key in t.
func (t *table) pathOf(key string) string {
	if t.path == "" {
		return tree.PathKey(key)
	}
	return t.path + "." + tree.PathKey(key)
}

// get returns the value of a key, or nil if the key is absent or null.
func (t *table) get(key string) *tree.Value {
	t.knownKeys[key] = true
	return t.node.Get(key)
}

// fault reports a fault at a key of t.
func (t *table) fault(key, format string, args ...any) {
	t.reader.fault(t.pathOf(key), cmp.Or(t.node.Get(key), t.node), format, args...)
}

// close reports repeated and unknown keys.
func (t *table) close() {
	seen := make(map[string]bool, len(t.node.Fields))
	for _, f := range t.node.Fields {
		n := &tree.Value{Pos: f.Pos}
		switch {
		case seen[f.Name]:
			t.reader.fault(t.pathOf(f.Name), n, "is given twice")
		case !t.knownKeys[f.Name]:
			t.reportUnknown(t.pathOf(f.Name), n, "is not a known key")
		}
		seen[f.Name] = true
	}
}

// each visits the entries of a mapping with any keys, in order. Repeated keys are faults.
func (t *table) each(limit int, visit func(key, path string, value *tree.Value)) {
	if len(t.node.Fields) > limit {
		t.reader.fault(t.path, t.node, "must not have more than %d entries", limit)
		return
	}
	for _, f := range t.node.Fields {
		if t.knownKeys[f.Name] {
			t.reader.fault(t.pathOf(f.Name), &tree.Value{Pos: f.Pos}, "is given twice")
			continue
		}
		t.knownKeys[f.Name] = true
		visit(f.Name, t.pathOf(f.Name), f.Value)
	}
}

// items iterates over the entries of a list with their paths. If the key is absent, there are no
// entries.
func (t *table) items(key string, limit int) iter.Seq2[string, *tree.Value] {
	n := t.get(key)
	switch {
	case n == nil:
		n = &tree.Value{}
	case n.Kind != tree.ListKind:
		t.fault(key, "must be a list, not %s", n.Kind)
	case len(n.Items) > limit:
		t.fault(key, "must not have more than %d entries", limit)
		n = &tree.Value{}
	}
	return func(yield func(string, *tree.Value) bool) {
		for i, item := range n.Items {
			if !yield(fmt.Sprintf("%s[%d]", t.pathOf(key), i), item) {
				return
			}
		}
	}
}

// words reads a list of different words. valid must report a fault and return false for an invalid
// word, including the empty text of a list or mapping.
func (t *table) words(key string, limit int, valid func(path string, n *tree.Value) bool) (words []string) {
	for path, n := range t.items(key, limit) {
		switch {
		case !valid(path, n):
		case slices.Contains(words, n.Text):
			t.reader.fault(path, n, "is given twice")
		default:
			words = append(words, n.Text)
		}
	}
	return words
}

// emptyList reports whether a key has an empty list.
func (t *table) emptyList(key string) bool {
	n := t.get(key)
	return n != nil && n.Kind == tree.ListKind && len(n.Items) == 0
}

// scalar returns the text of a single value.
func (r *reader) scalar(path string, n *tree.Value) (string, bool) {
	if n.Kind == tree.PlainKind || n.Kind == tree.QuotedKind {
		return n.Text, true
	}
	r.fault(path, n, "must be a single value, not %s", n.Kind)
	return "", false
}

// isEmpty reports whether a value is the empty text.
func isEmpty(n *tree.Value) bool {
	return (n.Kind == tree.PlainKind || n.Kind == tree.QuotedKind) && n.Text == ""
}

// text reads a text of at most limit bytes without control characters.
func (t *table) text(key string, limit int) string {
	n := t.get(key)
	if n == nil {
		return ""
	}
	return t.textAt(t.pathOf(key), n, limit)
}

func (r *reader) textAt(path string, n *tree.Value, limit int) string {
	s, ok := r.scalar(path, n)
	if !ok {
		return ""
	}
	if len(s) > limit {
		r.fault(path, n, "must not be longer than %d bytes", limit)
		return ""
	}
	if strings.ContainsFunc(s, unicode.IsControl) {
		r.fault(path, n, "must not contain control characters")
		return ""
	}
	return s
}

// required returns the text of a required key. explanation explains the key for the fault of a
// missing key.
func (t *table) required(key string, limit int, explanation string) string {
	if t.get(key) == nil {
		t.fault(key, "is required%s", explanation)
		return ""
	}
	if isEmpty(t.get(key)) {
		t.fault(key, "must not be empty")
	}
	return t.text(key, limit)
}

// count reads a whole number from low to high, or returns fallback if the key is absent.
func (t *table) count(key string, low, high, fallback int64) int64 {
	if n := t.get(key); n != nil {
		if v, ok := t.countAt(t.pathOf(key), n, low, high); ok {
			return v
		}
	}
	return fallback
}

// integer matches a whole number in decimal. Other notations of YAML (0x10, 1_000, 010) are
// rejected rather than guessed.
var integer = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

func (r *reader) countAt(path string, n *tree.Value, low, high int64) (int64, bool) {
	if n.Kind != tree.PlainKind || !integer.MatchString(n.Text) {
		r.fault(path, n, "must be a whole number from %d to %d", low, high)
		return 0, false
	}
	v, err := strconv.ParseInt(n.Text, 10, 64)
	switch {
	case strings.HasPrefix(n.Text, "-") && low >= 0 && n.Text != "-0":
		r.fault(path, n, "must not be negative")
	case err != nil || v < low || v > high:
		r.fault(path, n, "must be a whole number from %d to %d", low, high)
	default:
		return v, true
	}
	return 0, false
}

// boolean reads true or false.
func (t *table) boolean(key string, fallback bool) bool {
	n := t.get(key)
	if n == nil {
		return fallback
	}
	if n.Kind == tree.PlainKind {
		switch n.Text {
		case "true", "True", "TRUE":
			return true
		case "false", "False", "FALSE":
			return false
		}
	}
	t.fault(key, "must be true or false")
	return fallback
}

// duration reads a positive Go duration, or returns 0 if the key is absent.
func (t *table) duration(key string) time.Duration {
	n := t.get(key)
	if n == nil {
		return 0
	}
	s, ok := t.scalar(t.pathOf(key), n)
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		t.fault(key, "must be a duration such as 60s, 2m or 1h30m")
	case d <= 0:
		t.fault(key, "must be longer than zero")
	case d > maxTimeout:
		t.fault(key, "must not be longer than %s", formatDuration(maxTimeout))
	default:
		return d
	}
	return 0
}

// price reads an exact amount of US dollars.
func (r *reader) price(path string, n *tree.Value) (money.Price, bool) {
	return decimal(r, path, n, money.ParsePrice)
}

// decimal reads a decimal number with parse, which must not round.
func decimal[T any](r *reader, path string, n *tree.Value, parse func(string) (T, error)) (v T, ok bool) {
	s, ok := r.scalar(path, n)
	if !ok {
		return v, false
	}
	v, err := parse(s)
	if number, notNumber := strconv.ParseFloat(s, 64); err != nil && notNumber == nil && number < 0 {
		r.fault(path, n, "must not be negative")
	} else if err != nil {
		r.fault(path, n, "%v", err)
	}
	return v, err == nil
}

// prices reads a mapping from names to prices. description describes the valid names for faults.
func (t *table) prices(limit int, name *regexp.Regexp, description string, add func(name string, price money.Price)) {
	t.each(limit, func(key, path string, value *tree.Value) {
		if !name.MatchString(key) {
			t.reader.fault(path, value, "is not %s", description)
		} else if price, ok := t.price(path, value); ok {
			add(key, price)
		}
	})
}

// choice reads one of words, or returns fallback if the key is absent. If fallback is empty, the
// key is required.
func choice[T ~string](t *table, key string, fallback T, words ...T) T {
	n := t.get(key)
	if n == nil {
		if fallback == "" {
			t.fault(key, "is required: one of %s", join(words))
		}
		return fallback
	}
	if w := T(n.Text); slices.Contains(words, w) { // a list or mapping has no text
		return w
	}
	t.fault(key, "must be one of %s", join(words))
	return fallback
}

// names reads a list of different words that match a pattern. description describes the pattern for
// faults.
func (t *table) names(key string, pattern *regexp.Regexp, description string) []string {
	return t.words(key, maxList, func(path string, n *tree.Value) bool {
		ok := pattern.MatchString(n.Text)
		if !ok {
			t.reader.fault(path, n, "must be %s", description)
		}
		return ok
	})
}

// choices reads a list of different values out of allowed. description describes the allowed values
// for faults.
func choices[T ~string](t *table, key string, allowed []T, description string) (values []T) {
	for _, word := range t.words(key, maxList, func(path string, n *tree.Value) bool {
		ok := slices.Contains(allowed, T(n.Text))
		if !ok {
			t.reportUnknown(path, n, "must be %s", description)
		}
		return ok
	}) {
		values = append(values, T(word))
	}
	return values
}

// oneOf is choices with a list of the allowed words as the description.
func oneOf(t *table, key string, allowed []string) []string {
	return choices(t, key, allowed, "one of "+join(allowed))
}

// quote quotes an operator's text for a message, and shortens a long text.
func quote(s string) string {
	if len(s) > 60 {
		s = strings.ToValidUTF8(s[:60], "") + "…"
	}
	return strconv.Quote(s)
}
