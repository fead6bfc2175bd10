package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSecretsInFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	got, err := settingsFrom("database_file: "+file("database", "postgres://u:hunter2@h/d\n"),
		map[string]string{"TOLLGATE_ADMIN_TOKEN_FILE": file("token", " hunter2\n")},
		map[string]string{"alert_url_file": file("alert", "https://alerts.example.com/hunter2")})
	if err != nil {
		t.Fatal(err)
	}
	if got.Database != "postgres://u:hunter2@h/d" || got.AdminToken != "hunter2" || got.AlertURL != "https://alerts.example.com/hunter2" ||
		got.AdminTokenFile != filepath.Join(dir, "token") {
		t.Errorf("%+v", got)
	}
	for _, c := range []struct {
		file string
		env  map[string]string
		want string
	}{
		{"admin_token: hunter2", map[string]string{"TOLLGATE_ADMIN_TOKEN_FILE": file("a", "b")}, "admin_token is set too (tollgate.yaml:1:1)"},
		{"database_file: " + file("empty", "\n"), nil, "database_file (tollgate.yaml:1:1): must name a file that holds something"},
		{"admin_token_file: " + file("spaces", "hunter2 hunter2"), nil, "what the file holds must be visible"},
		{"alert_url_file: " + filepath.Join(dir, "gone"), nil, "gone: no such file"},
	} {
		_, err := settingsFrom(c.file, c.env, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

func TestMisspeltVariables(t *testing.T) {
	t.Parallel()
	for name, meant := range map[string]string{
		"TOLLGATE_PUBLC_URL": "TOLLGATE_PUBLIC_URL", "TOLLGATE_LSITEN": "TOLLGATE_LISTEN", "TOLLGATE_DATABSE": "TOLLGATE_DATABASE",
		"TOLLGATE_PUBLICURL": "TOLLGATE_PUBLIC_URL", "TOLLGATE_ADMIN_TOKENS": "TOLLGATE_ADMIN_TOKEN", "TOLLGATE_CONFG": "TOLLGATE_CONFIG",
		// Others' variables, a setting's own, and what is no setting's at all.
		"TOLLGATE_TEST_POSTGRES": "", "TOLLGATE_SERVICE_HOST": "", "TOLLGATE_PORT_8080_TCP_ADDR": "", "TOLLGATE_PORT": "", "TOLLGATE_API_KEY": "",
		"TOLLGATE_OPENAI_KEY": "", "TOLLGATE_SOAK_MINUTES": "", "TOLLGATE_LISTEN": "", "TOLLGATE_MEDIA_KEY": "", "PUBLC_URL": "",
		"TOLLGATE_TORTURE": "", "TOLLGATE_HOME": "", "TOLLGATE_BIN": "", "TOLLGATE_URL": "", "TOLLGATE_KEY": "",
	} {
		_, err := ReadSettings(Sources{Names: []string{"HOME", name}, Lookup: func(asked string) (string, bool) {
			if asked != name {
				return "", false
			}
			return "127.0.0.1:1", true
		}})
		said, want := "", ""
		if err != nil {
			said = err.Error()
		}
		if meant != "" {
			want = name + ": unknown; did you mean " + meant + "?"
		}
		if said != want {
			t.Errorf("%s: %v, want %q", name, err, meant)
		}
	}
}
