package catalog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// keyValues returns a line's credentials on a node, joined by spaces.
func keyValues(l *Line) string {
	var all []string
	for _, k := range l.Keys() {
		all = append(all, k.Value())
	}
	return strings.TrimSpace(strings.Join(all, " "))
}

// cloudLine returns a catalog with one line of provider cloud and further keys of the line.
func cloudLine(keys string) string {
	return "models: [" + chatModel + "]\nlines: [{id: l, provider: cloud, forms: [chat], models: {a: b}, " + keys + "}]"
}

// TestKeysInFiles checks credentials in files of the node, also with several lines, and that the
// reason for an unreadable file names the file.
func TestKeysInFiles(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "account.json")
	for text, want := range map[string]string{
		" {\n\"type\": \"x\"\n}\n": "", "": "the file " + file + " is empty on this node", " \n": "the file " + file +
			" is empty on this node",
		strings.Repeat("k", (64<<10)+1): "the file " + file + " has more than 65536 bytes, which is too long for a secret",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		doc := mustParse(t, cloudLine(`api_key: "${file:`+file+`}"`))
		l := NewSnapshot(1, doc, testProviders(), environment(nil)).Lines("a")[0]
		if l.UnusableReason != want || want == "" && keyValues(l) != strings.TrimSpace(text) {
			t.Errorf("file %.20q: reason %q, key %q, want reason %q", text, l.UnusableReason, keyValues(l), want)
		}
	}
	doc := mustParse(t, cloudLine(`api_key: "${file:/nowhere/to/be/read}"`))
	if l := NewSnapshot(1, doc, testProviders(),
		environment(nil)).Lines("a")[0]; l.UnusableReason != "the file /nowhere/to/be/read cannot be read on this node" {
		t.Errorf("missing file: reason %q, want one that names the file", l.UnusableReason)
	}
	if again, _, err := Parse(doc.YAML(), testProviders()); err != nil || !Equal(doc, again) {
		t.Errorf("the document does not read back: %v", err)
	}
}

// TestKeylessLines checks that a line with the options for another credential needs no key.
func TestKeylessLines(t *testing.T) {
	t.Parallel()
	doc := mustParse(t, cloudLine("options: {auth: host}"))
	if l := NewSnapshot(1, doc, testProviders(), environment(nil)).Lines("a")[0]; l.UnusableReason != "" || keyValues(l) != "" {
		t.Errorf("reason %q, key %q, want neither", l.UnusableReason, keyValues(l))
	}
}

// TestImageLinesNeedNoForms checks that a line with only image models needs no forms.
func TestImageLinesNeedNoForms(t *testing.T) {
	t.Parallel()
	mustParse(t, `models: [{id: a, kind: image, price: {1K: 1}}]
lines: [{id: l, provider: cloud, models: {a: b}, api_key: "${KEY}"}]`)
}

// TestSeveralKeys checks that a line has the keys present on the node, in order, is out of service
// only without any key, and has a warning for each missing key.
func TestSeveralKeys(t *testing.T) {
	t.Parallel()
	doc := mustParse(t, cloudLine(`api_keys: ["${NEW}", "${OLD}"]`))
	if again, _, err := Parse(doc.YAML(), testProviders()); err != nil || !Equal(doc, again) {
		t.Errorf("the document does not read back: %v", err)
	}
	for _, tt := range []struct {
		vars           map[string]string
		keys, reason   string
		warnings       string
		firstIsMissing bool
	}{
		{map[string]string{"NEW": "new-key", "OLD": "old-key"}, "new-key old-key", "", "", false},
		{map[string]string{"OLD": "old-key"}, "old-key", "",
			"lines[0].api_keys[0]: the variable NEW is not set on this node, so line l does not use this key", true},
		{nil, "", "the variable NEW is not set on this node, and the variable OLD is not set on this node",
			"lines[0]: the variable NEW is not set on this node, and the variable OLD is not set on this node, so line l is out of service",
			false},
	} {
		l := NewSnapshot(1, doc, testProviders(), environment(tt.vars)).Lines("a")[0]
		if keyValues(l) != tt.keys || l.UnusableReason != tt.reason {
			t.Errorf("%v: keys %q, reason %q, want %q, %q", tt.vars, keyValues(l), l.UnusableReason, tt.keys, tt.reason)
		}
		if tt.firstIsMissing && (l.Keys()[0].MissingReason == "" || l.Keys()[0].Fingerprint() != "" || l.Keys()[1].Fingerprint() == "") {
			t.Errorf("%v: keys %+v, want only the first to be missing", tt.vars, l.Keys())
		}
		var got []string
		for _, w := range NodeWarnings(doc, testProviders(), environment(tt.vars)) {
			got = append(got, w.String())
		}
		if strings.Join(got, "\n") != tt.warnings {
			t.Errorf("%v: got warnings %q, want %q", tt.vars, got, tt.warnings)
		}
	}
}

// TestReloadKeepsUnreadableKeys checks that an unreadable key keeps its value while other keys
// change.
func TestReloadKeepsUnreadableKeys(t *testing.T) {
	t.Parallel()
	doc := mustParse(t, cloudLine(`api_keys: ["${NEW}", "${OLD}"]`))
	before := NewSnapshot(1, doc, testProviders(), environment(map[string]string{"NEW": "new-key", "OLD": "old-key"}))
	next, changed, unreadable := before.reloadSecrets(testProviders(), environment(map[string]string{"NEW": "newer-key"}))
	if got := keyValues(next.Lines("a")[0]); got != "newer-key old-key" || len(changed) != 1 || len(unreadable) != 1 {
		t.Errorf("keys %q, changed %v, unreadable %v, want one of each", got, changed, unreadable)
	}
}

// TestOriginOfRotatedKeys checks that a line's origin stays the same while a new key precedes the
// old key.
func TestOriginOfRotatedKeys(t *testing.T) {
	t.Parallel()
	origin := func(keys string) string {
		return NewSnapshot(1, mustParse(t, cloudLine(keys)), testProviders(), environment(nil)).Lines("a")[0].Origin()
	}
	if before, after := origin(`api_key: "${OLD}"`), origin(`api_keys: ["${NEW}", "${OLD}"]`); before != after {
		t.Errorf("origin %q with two keys, want %q", after, before)
	}
}

// TestFaultsOfKeys checks that an invalid list of references is rejected without the references in
// the message.
func TestFaultsOfKeys(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]string{
		`api_keys: []`: "lines[0].api_keys: must name at least one key",
		`api_keys: ["${A}", "sk-literal"]`: "lines[0].api_keys[1]: must refer to an environment variable, ${NAME}, " +
			"to a file, ${file:PATH}, or to a stored secret, ${secret:NAME}. The catalog never contains a key itself",
		`api_keys: ["${A}", "${A}"]`:                       "lines[0].api_keys[1]: is given twice",
		`api_key: "${A}", api_keys: ["${B}"]`:              "lines[0].api_keys: cannot be combined with api_key: remove one of the two",
		`api_keys: ["${A}"], options: {auth: host}`:        "lines[0].api_keys: cannot be combined with these options",
		`api_keys: [` + strings.Repeat(`"${A}",`, 9) + `]`: "lines[0].api_keys: must not have more than 8 entries",
	} {
		_, _, err := Parse([]byte(cloudLine(keys)), testProviders())
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sk-literal") {
			t.Errorf("%s: error %v, want %s", keys, err, want)
		}
	}
}
