package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tollgate/internal/catalog/secret"
)

// TestLinesCannotReadSettings checks that no reference of a line reads a variable or file of this service's
// settings, under any name, and that other variables and files are readable.
func TestLinesCannotReadSettings(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	token, key, database := write("token", strings.Repeat("t", 40)), write("key", "sk-provider"), write("a.db", "rows")
	write(tokenFile, strings.Repeat("u", 40))
	write(secretKeyFile, "secret")
	config := write("tollgate.yaml", "admin_token_file: "+token+"\ndatabase: sqlite:"+database+"\n")
	for link, target := range map[string]string{"soft": token, "process": "/proc/self/environ"} {
		if err := os.Symlink(target, filepath.Join(folder, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(token, filepath.Join(folder, "hard")); err != nil {
		t.Fatal(err)
	}
	environ := map[string]string{"TOLLGATE_ALERT_URL": "https://alert.example/secret", "TOLLGATE_KEY_A": "sk-a", "PROVIDER_KEY": "sk-b"}
	s, err := ReadSettings(Sources{Environ: environ, File: config})
	if err != nil {
		t.Fatal(err)
	}
	lookup := s.lineLookup(func(name string) (string, bool) { value, ok := environ[name]; return value, ok })
	for name, want := range map[string]string{
		"PROVIDER_KEY": "sk-b", "TOLLGATE_KEY_A": "sk-a", "file:" + key: "sk-provider", "TOLLGATE_ALERT_URL": "", "file:" + token: "",
		"file:" + config: "", "file:" + database: "", "file:" + folder + "/x/../" + tokenFile: "", "file:" + folder + "/" + tokenFile: "",
		"file:" + folder + "/" + secretKeyFile: "", "file:" + folder + "/soft": "", "file:" + folder + "/hard": "",
		"file:" + folder + "/process": "", "file:/proc/self/environ": "",
	} {
		got, reason := secret.Resolve(name, lookup)
		if got != want || (reason == "") != (want != "") {
			t.Errorf("%s: got %q and the reason %q, want %q", name, got, reason, want)
		}
	}
}
