package catalog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// cloudLine is a catalog with one line of the cloud.
func cloudLine(more string) string {
	return "models: [" + chatModel + "]\nlines: [{id: l, provider: cloud, forms: [chat], models: {a: b}, " + more + "}]"
}

// TestKeysOfFiles: a credential may stand in a file of the node, of several
// lines too, and what cannot be read is named and never shown.
func TestKeysOfFiles(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "account.json")
	for text, want := range map[string]string{
		" {\n\"type\": \"x\"\n}\n": "", "": "the file " + file + " is empty on this node", " \n": "the file " + file +
			" is empty on this node",
		strings.Repeat("k", (64<<10)+1): "the file " + file + " has more than 65536 bytes, so it is no secret",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		doc := mustParse(t, cloudLine(`api_key: "${file:`+file+`}"`))
		l := NewSnapshot(1, doc, testProviders(), environment(nil)).Lines("a")[0]
		if l.Out != want || want == "" && l.Key() != strings.TrimSpace(text) {
			t.Errorf("%.20q: out %q, key %q; want %q", text, l.Out, l.Key(), want)
		}
	}
	doc := mustParse(t, cloudLine(`api_key: "${file:/nowhere/to/be/read}"`))
	if l := NewSnapshot(1, doc, testProviders(),
		environment(nil)).Lines("a")[0]; l.Out != "the file /nowhere/to/be/read cannot be read on this node" {
		t.Errorf("out %q", l.Out)
	}
	if again, _, err := Parse(doc.YAML(), testProviders()); err != nil || !Equal(doc, again) {
		t.Errorf("printed and read again: %v", err)
	}
}

// TestKeylessLines: options that stand for a credential spare the key.
func TestKeylessLines(t *testing.T) {
	t.Parallel()
	doc := mustParse(t, cloudLine("options: {auth: host}"))
	if l := NewSnapshot(1, doc, testProviders(), environment(nil)).Lines("a")[0]; l.Out != "" || l.Key() != "" {
		t.Errorf("out %q, key %q", l.Out, l.Key())
	}
}

// TestFormsAreForChat: a line of pictures alone needs none.
func TestFormsAreForChat(t *testing.T) {
	t.Parallel()
	mustParse(t, `models: [{id: a, kind: image, price: {1K: 1}}]
lines: [{id: l, provider: cloud, models: {a: b}, api_key: "${KEY}"}]`)
}
