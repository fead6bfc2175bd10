package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// differing returns the names of digests that are not equal and that both have.
func differing(t *testing.T, a, b map[string]string) []string {
	t.Helper()
	digests := func(env map[string]string) map[string]string {
		s, err := settingsFrom("", env, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s.digests()
	}
	first, second := digests(a), digests(b)
	return slices.Sorted(func(yield func(string) bool) {
		for name, digest := range first {
			if other, ok := second[name]; ok && other != digest && !yield(name) {
				return
			}
		}
	})
}

// TestDigests compares settings of two nodes. Addresses, paths and limits of a machine may differ, and secrets
// are compared by a key outside the database.
func TestDigests(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	secretKey := func(letter string) string { return strings.Repeat(letter, 43) + "=" } // 32 bytes in base64
	const smtp = "TOLLGATE_SMTP_PASSWORD"
	type env = map[string]string
	for _, c := range []struct {
		name string
		a, b env
		want string // without the marks of keys
	}{
		{"equal", env{}, env{}, ""},
		{"own", env{"TOLLGATE_LISTEN": "127.0.0.1:1", "TOLLGATE_LOG_LEVEL": "debug", "TOLLGATE_MEDIA": "file:a", "TOLLGATE_ADMIN_TOKEN": "token"},
			env{"TOLLGATE_LISTEN": "127.0.0.1:2", "TOLLGATE_DATABASE": "postgres://b@h/d", "TOLLGATE_MEDIA": "file:b"}, ""},
		{"default", env{"TOLLGATE_LOW_BALANCE": "5"}, env{}, ""},
		{"values", env{"TOLLGATE_LOW_BALANCE": "10", "TOLLGATE_MEDIA": "s3://a"}, env{"TOLLGATE_INVOICE_SELLER_NAME": "Shop"},
			"invoice_seller_name low_balance media"},
		{"equal files", env{"TOLLGATE_TERMS_FILE": write("a.md", "# Terms")}, env{"TOLLGATE_TERMS_FILE": write("b.md", "# Terms")}, ""},
		{"files", env{"TOLLGATE_TERMS_FILE": write("c.md", "# Terms"), "TOLLGATE_PRIVACY_FILE": write("d.txt", "a")},
			env{"TOLLGATE_TERMS_FILE": write("e.md", "# New terms"), "TOLLGATE_PRIVACY_FILE": write("f.txt", "b")}, "privacy_file terms_file"},
		{"secret without a key", env{smtp: "a"}, env{smtp: "b"}, ""},
		{"set secret without a key", env{smtp: "a"}, env{}, "smtp_password"},
		{"secret", env{smtp: "a", "TOLLGATE_SECRET_KEY": secretKey("A")},
			env{smtp: "b", "TOLLGATE_SECRET_KEY": secretKey("A")}, "smtp_password"},
		{"equal secret in a file", env{smtp: "a", "TOLLGATE_SECRET_KEY": secretKey("A")},
			env{smtp + "_FILE": write("password", "a\n"), "TOLLGATE_SECRET_KEY_FILE": write("key", secretKey("A"))}, ""},
		{"another key", env{smtp: "a", "TOLLGATE_SECRET_KEY": secretKey("A")},
			env{smtp: "b", "TOLLGATE_SECRET_KEY": secretKey("E")}, "secret_key"},
		{"key of one node", env{smtp: "a", "TOLLGATE_SECRET_KEY": secretKey("A")}, env{smtp: "b"}, "secret_key"},
	} {
		names := differing(t, c.a, c.b)
		for i := range names {
			names[i], _, _ = strings.Cut(names[i], "@")
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s: different are %q, want %q", c.name, got, c.want)
		}
	}
}

// TestDocumentOfLocalSettings checks the list of settings that may differ between nodes.
func TestDocumentOfLocalSettings(t *testing.T) {
	t.Parallel()
	var local []string
	for _, s := range new(Settings).plain() {
		if s.Local {
			local = append(local, s.Key)
		}
	}
	slices.Sort(local)
	document, err := os.ReadFile("../../docs/operator.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := "- These settings may differ: `" + strings.Join(local, "`, `") + "`.\n"; !strings.Contains(string(document), want) {
		t.Errorf("docs/operator.md does not have the line %q", want)
	}
}

// TestDigestsHideSecrets checks digests of secrets without a key and under two keys.
func TestDigestsHideSecrets(t *testing.T) {
	t.Parallel()
	digests := func(env map[string]string) map[string]string {
		s, err := settingsFrom("", env, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s.digests()
	}
	secrets := map[string]string{"TOLLGATE_SMTP_PASSWORD": "hunter2", "TOLLGATE_ALERT_URL": "https://alert.example/hunter2"}
	plain := digests(secrets)
	if plain["smtp_password"] != "set" || plain["alert_url"] != "set" || plain["epay_key"] != "unset" {
		t.Errorf("without secret_key: %v", plain)
	}
	secrets["TOLLGATE_SECRET_KEY"] = strings.Repeat("A", 43) + "="
	one := digests(secrets)
	secrets["TOLLGATE_SECRET_KEY"] = strings.Repeat("E", 43) + "="
	two := digests(secrets)
	values := func(digests map[string]string) (keyed []string) {
		for name, digest := range digests {
			if strings.Contains(name, "@") {
				keyed = append(keyed, digest)
			}
		}
		return keyed
	}
	a, b := values(one), values(two)
	if len(a) != 2 || len(b) != 2 || slices.ContainsFunc(a, func(d string) bool { return slices.Contains(b, d) }) {
		t.Errorf("two keys: %v and %v, want two digests each, all different", one, two)
	}
	for name, digest := range plain {
		if s, _ := settingOf(name); s.Secret && name != "secret_key" && !slices.Contains([]string{"set", "unset"}, digest) {
			t.Errorf("%s has the digest %s without a key", name, digest)
		}
	}
}
