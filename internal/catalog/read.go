package catalog

import (
	"errors"
	"fmt"
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
// faults. The warnings name probably unintended settings of a valid document. providers are the
// adapters available to lines.
func Parse(raw []byte, providers map[string]Provider) (*Document, []Warning, error) {
	root, err := readTree(raw)
	if err != nil {
		return nil, nil, err
	}
	r := reader{providers: providers}
	doc := r.document(root)
	if len(r.faults) > 0 {
		return nil, nil, r.faults.shown()
	}
	if len(doc.canonical()) > maxDocument { // aliases may stand for more than the text shows
		return nil, nil, tooLarge()
	}
	return doc, r.warnings, nil
}

// load reads a stored revision. It may come from a newer version of the program (during a deploy
// across several nodes), so load leaves out everything unknown to this version instead of rejecting
// the document: keys, forms, models of an unknown kind. A model in an unknown state is under
// maintenance here, and a line with an unknown provider is out of service (see NewSnapshot). The
// warnings name everything left out.
func load(raw []byte) (*Document, []Warning, error) {
	root, err := readTree(raw)
	if err != nil {
		return nil, nil, err
	}
	r := reader{lenient: true}
	doc := r.document(root)
	if len(r.faults) > 0 {
		return nil, nil, r.faults.shown()
	}
	return doc, r.warnings, nil
}

// readTree reads a text. Its errors are Faults.
func readTree(raw []byte) (*tree.Value, error) {
	if len(raw) > maxDocument {
		return nil, tooLarge()
	}
	root, err := tree.Read(raw)
	if unreadable := (*tree.SyntaxError)(nil); errors.As(err, &unreadable) {
		at := unreadable.At
		return nil, Faults{{Path: at.String(), Message: unreadable.Message, Line: at.Line, Column: at.Column}}
	}
	return root, err
}

func tooLarge() Faults {
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
		f.Line, f.Column = n.At.Line, n.At.Column
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

// leaveOut records a warning about a part of a stored revision unknown to this version.
func (r *reader) leaveOut(path, format string, args ...any) {
	r.warnings = append(r.warnings, Warning{Path: path, Message: fmt.Sprintf(format, args...)})
}

// table reads a mapping. Each known key is read with get, and close reports all other keys.
type table struct {
	*reader
	path  string
	node  *tree.Value
	known map[string]bool
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
	return &table{reader: r, path: path, node: n, known: map[string]bool{}}
}

// at is the path of a key in t.
func (t *table) at(key string) string {
	if t.path == "" {
		return key
	}
	return t.path + "." + tree.PathKey(key)
}

// get returns the value of a key, nil when it is absent or null.
func (t *table) get(key string) *tree.Value {
	t.known[key] = true
	return t.node.Get(key)
}

// fault reports something at a key of t.
func (t *table) fault(key, format string, args ...any) {
	n := t.node.Get(key)
	if n == nil {
		n = t.node
	}
	t.reader.fault(t.at(key), n, format, args...)
}

// misplaced reports existing keys not allowed in this mapping.
func (t *table) misplaced(why string, keys ...string) {
	for _, key := range keys {
		if t.get(key) != nil && !t.lenient {
			t.fault(key, "%s", why)
		}
	}
}

// close reports repeated and unknown keys.
func (t *table) close() {
	seen := make(map[string]bool, len(t.node.Fields))
	for _, f := range t.node.Fields {
		at := &tree.Value{At: f.At}
		switch {
		case seen[f.Name]:
			t.reader.fault(t.at(f.Name), at, "is given twice")
		case !t.known[f.Name] && t.lenient:
			t.leaveOut(t.at(f.Name), "is not known to this version and was left out")
		case !t.known[f.Name]:
			t.reader.fault(t.at(f.Name), at, "is not a key that is known here")
		}
		seen[f.Name] = true
	}
}

// each visits the entries of a mapping with free keys in order. Repeated keys
// are faults.
func (t *table) each(limit int, visit func(key, path string, value *tree.Value)) {
	if len(t.node.Fields) > limit {
		t.reader.fault(t.path, t.node, "must not have more than %d entries", limit)
		return
	}
	for _, f := range t.node.Fields {
		if t.known[f.Name] {
			t.reader.fault(t.at(f.Name), &tree.Value{At: f.At}, "is given twice")
			continue
		}
		t.known[f.Name] = true
		visit(f.Name, t.at(f.Name), f.Value)
	}
}

// list returns the elements of a list, none when the key is absent.
func (t *table) list(key string, limit int) []*tree.Value {
	n := t.get(key)
	if n == nil {
		return nil
	}
	if n.Kind != tree.ListKind {
		t.fault(key, "must be a list, not %s", n.Kind)
		return nil
	}
	if len(n.Items) > limit {
		t.fault(key, "must not have more than %d entries", limit)
		return nil
	}
	return n.Items
}

// scalar returns the text of a single value.
func (r *reader) scalar(path string, n *tree.Value) (string, bool) {
	if n.Kind == tree.PlainKind || n.Kind == tree.QuotedKind {
		return n.Text, true
	}
	r.fault(path, n, "must be a single value, not %s", n.Kind)
	return "", false
}

// text reads a text of at most limit bytes without control characters.
func (t *table) text(key string, limit int) string {
	n := t.get(key)
	if n == nil {
		return ""
	}
	return t.textAt(t.at(key), n, limit)
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
		r.fault(path, n, "must not hold control characters")
		return ""
	}
	return s
}

// required returns the text of a required key.
func (t *table) required(key string, limit int, why string) string {
	if t.get(key) == nil {
		t.fault(key, "is required%s", why)
		return ""
	}
	s := t.text(key, limit)
	if n := t.get(key); s == "" && (n.Kind == tree.PlainKind || n.Kind == tree.QuotedKind) && n.Text == "" {
		t.fault(key, "must not be empty")
	}
	return s
}

// count reads a whole number from low to high; absent is fallback.
func (t *table) count(key string, low, high, fallback int64) int64 {
	n := t.get(key)
	if n == nil {
		return fallback
	}
	v, ok := t.countAt(t.at(key), n, low, high)
	if !ok {
		return fallback
	}
	return v
}

// digits is a whole number as YAML, JSON and people write it alike; other
// spellings of YAML (0x10, 1_000, 010) are refused rather than guessed.
var digits = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

func (r *reader) countAt(path string, n *tree.Value, low, high int64) (int64, bool) {
	if n.Kind != tree.PlainKind || !digits.MatchString(n.Text) {
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

// duration reads a positive Go duration; absent is 0.
func (t *table) duration(key string) time.Duration {
	n := t.get(key)
	if n == nil {
		return 0
	}
	s, ok := t.scalar(t.at(key), n)
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		t.fault(key, "must be a duration such as 60s, 2m or 1h30m")
	case d <= 0:
		t.fault(key, "must be longer than nothing")
	case d > maxTimeout:
		t.fault(key, "must not be longer than %s", spell(maxTimeout))
	default:
		return d
	}
	return 0
}

// price reads US dollars, exact.
func (r *reader) price(path string, n *tree.Value) (money.Price, bool) {
	return exact(r, path, n, money.ParsePrice)
}

// factor reads a multiplier, exact.
func (r *reader) factor(path string, n *tree.Value) (money.Factor, bool) {
	return exact(r, path, n, money.ParseFactor)
}

// exact reads a number as it is written.
func exact[T any](r *reader, path string, n *tree.Value, parse func(string) (T, error)) (T, bool) {
	var none T
	s, ok := r.scalar(path, n)
	if !ok {
		return none, false
	}
	v, err := parse(s)
	if err != nil {
		if negative(s) {
			r.fault(path, n, "must not be negative")
		} else {
			r.fault(path, n, "%v", err)
		}
		return none, false
	}
	return v, true
}

// negative reports whether a text is a number below zero.
func negative(s string) bool {
	v, err := strconv.ParseFloat(s, 64)
	return err == nil && v < 0
}

// choice reads one of a few words; absent is fallback.
func choice[T ~string](t *table, key string, fallback T, words ...T) T {
	n := t.get(key)
	if n == nil {
		if fallback == "" {
			t.fault(key, "is required: one of %s", join(words))
		}
		return fallback
	}
	if n.Kind == tree.PlainKind || n.Kind == tree.QuotedKind {
		if w := T(n.Text); slices.Contains(words, w) {
			return w
		}
	}
	t.fault(key, "must be one of %s", join(words))
	return fallback
}

// names reads a list of different words matching a pattern.
func (t *table) names(key string, pattern *regexp.Regexp, what string) []string {
	var out []string
	for i, n := range t.list(key, maxList) {
		path := fmt.Sprintf("%s[%d]", t.at(key), i)
		s := n.Text // empty for a list or mapping, and then no pattern matches
		switch {
		case !pattern.MatchString(s):
			t.reader.fault(path, n, "must be %s", what)
		case slices.Contains(out, s):
			t.reader.fault(path, n, "is given twice")
		default:
			out = append(out, s)
		}
	}
	return out
}

// quote shows an operator's own text in a message, shortened.
func quote(s string) string {
	if len(s) > 60 {
		s = strings.ToValidUTF8(s[:60], "") + "…"
	}
	return strconv.Quote(s)
}
