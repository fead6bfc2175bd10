package importer

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFiles checks that files are private and atomic, that existing files stay, and that a dry run
// writes none.
func TestFiles(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	secrets, catalog := filepath.Join(folder, "new", "secrets"), filepath.Join(folder, "new", "imported.yaml")
	c := read(t, OneAPI, oldOneAPI(t), func(o *Options) { o.Secrets = secrets })
	write := func(dry bool) []OutputFile {
		t.Helper()
		files, err := c.WriteFiles(catalog, dry)
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	dry := write(true)
	if _, err := os.Stat(filepath.Join(folder, "new")); err == nil {
		t.Error("the dry run created a folder")
	}
	first := write(false)
	if len(first) != len(dry) || len(first) != len(c.Secrets)+1 || first[len(first)-1].Path != catalog {
		t.Errorf("wrote %+v, want the files of the dry run, %+v, and the catalog last", first, dry)
	}
	for path, mode := range map[string]os.FileMode{secrets: 0o700, filepath.Join(secrets, "openai-main-1.key"): 0o600, catalog: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: got %v, %v; want mode %v", path, info, err, mode)
		}
	}
	if raw, err := os.ReadFile(filepath.Join(secrets, "openai-main-1.key")); err != nil || string(raw) != "sk-upstream-main-7d2f\n" {
		t.Errorf("the credential is %q, %v; want sk-upstream-main-7d2f and a line end", raw, err)
	}
	if temporary, err := filepath.Glob(filepath.Join(secrets, ".*")); err != nil || len(temporary) > 0 {
		t.Errorf("temporary files: got %v, %v; want none", temporary, err)
	}
	if err := os.WriteFile(catalog, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(first[0].Path); err != nil { // as after an interrupted import
		t.Fatal(err)
	}
	for i, f := range write(false) {
		if f.Kept != (i > 0) {
			t.Errorf("second import, file %d: got %+v, want kept: %v", i, f, i > 0)
		}
	}
	if raw, err := os.ReadFile(catalog); err != nil || string(raw) != "mine" {
		t.Errorf("the catalog is %q, %v; want it unchanged", raw, err)
	}
}
