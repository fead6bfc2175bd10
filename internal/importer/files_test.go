package importer

import (
	"os"
	"path/filepath"
	"testing"
)

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
		t.Errorf("wrote %+v; the dry run returned %+v", first, dry)
	}
	for path, mode := range map[string]os.FileMode{secrets: 0o700, filepath.Join(secrets, "openai-main-1.key"): 0o600, catalog: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	if raw, err := os.ReadFile(filepath.Join(secrets, "openai-main-1.key")); err != nil || string(raw) != "sk-upstream-main-7d2f\n" {
		t.Errorf("the credential is %q, %v", raw, err)
	}
	if temporary, err := filepath.Glob(filepath.Join(secrets, ".*")); err != nil || len(temporary) > 0 {
		t.Errorf("temporary files: %v, %v", temporary, err)
	}
	if err := os.WriteFile(catalog, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(first[0].Path); err != nil { // as after an interrupted import
		t.Fatal(err)
	}
	for i, f := range write(false) {
		if f.Kept != (i > 0) {
			t.Errorf("second import: %+v", f)
		}
	}
	if raw, err := os.ReadFile(catalog); err != nil || string(raw) != "mine" {
		t.Errorf("the catalog is %q now, %v", raw, err)
	}
}
