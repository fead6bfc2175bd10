package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/catalog"
	"tollgate/internal/store/storetest"
)

func TestSecretsInFiles(t *testing.T) {
	t.Parallel()
	token := file(t, "token", " hunter2\n")
	got, err := settingsFrom("database_file: "+file(t, "database", "postgres://u:hunter2@h/d\n"),
		map[string]string{"TOLLGATE_ADMIN_TOKEN_FILE": token},
		map[string]string{"alert_url_file": file(t, "alert", "https://alerts.example.com/hunter2")})
	if err != nil {
		t.Fatal(err)
	}
	if got.Database != "postgres://u:hunter2@h/d" || got.AdminToken != "hunter2" || got.AlertURL != "https://alerts.example.com/hunter2" ||
		got.AdminTokenFile != token {
		t.Errorf("%+v", got)
	}
	for _, c := range []struct {
		file string
		env  map[string]string
		want string
	}{
		{"admin_token: hunter2", map[string]string{"TOLLGATE_ADMIN_TOKEN_FILE": file(t, "a", "b")}, "admin_token is set too (tollgate.yaml:1:1)"},
		{"database_file: " + file(t, "empty", "\n"), nil, "database_file (tollgate.yaml:1:1): the file is empty"},
		{"admin_token_file: " + file(t, "spaces", "hunter2 hunter2"), nil, "the content of the file must be visible"},
		{"alert_url_file: " + filepath.Join(t.TempDir(), "gone"), nil, "gone: no such file"},
	} {
		_, err := settingsFrom(c.file, c.env, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

func TestMisspeltVariables(t *testing.T) {
	t.Parallel()
	for name, target := range map[string]string{
		"TOLLGATE_PUBLC_URL": "TOLLGATE_PUBLIC_URL", "TOLLGATE_LSITEN": "TOLLGATE_LISTEN", "TOLLGATE_DATABSE": "TOLLGATE_DATABASE",
		"TOLLGATE_PUBLICURL": "TOLLGATE_PUBLIC_URL", "TOLLGATE_ADMIN_TOKENS": "TOLLGATE_ADMIN_TOKEN", "TOLLGATE_CONFG": "TOLLGATE_CONFIG",
		// Variables of other programs, a setting's own, and one without the prefix.
		"TOLLGATE_TEST_POSTGRES": "", "TOLLGATE_SERVICE_HOST": "", "TOLLGATE_PORT_8080_TCP_ADDR": "", "TOLLGATE_PORT": "", "TOLLGATE_API_KEY": "",
		"TOLLGATE_OPENAI_KEY": "", "TOLLGATE_SOAK_MINUTES": "", "TOLLGATE_LISTEN": "", "TOLLGATE_MEDIA_KEY": "", "PUBLC_URL": "",
		"TOLLGATE_TORTURE": "", "TOLLGATE_HOME": "", "TOLLGATE_BIN": "", "TOLLGATE_URL": "", "TOLLGATE_KEY": "",
	} {
		_, err := ReadSettings(Sources{Environ: map[string]string{"HOME": "/root", name: "127.0.0.1:1"}})
		got, want := "", ""
		if err != nil {
			got = err.Error()
		}
		if target != "" {
			want = name + ": unknown; did you mean " + target + "?"
		}
		if got != want {
			t.Errorf("%s: %v, want %q", name, err, target)
		}
	}
}

// TestVariablesThatNothingReads checks that a variable with the prefix of settings is reported,
// with the most similar setting, unless a line refers to it or Kubernetes has set it.
func TestVariablesThatNothingReads(t *testing.T) {
	t.Parallel()
	set := map[string]string{
		"TOLLGATE_DATABASE_URL": "postgres://x", "TOLLGATE_METRICS": ":9", "TOLLGATE_TOKEN": "x", "TOLLGATE_EMPTY": "", "TOLLGATE_LISTEN": ":1",
		"TOLLGATE_KEY_A": "x", "TOLLGATE_KEY_B": "x", "TOLLGATE_TEAM": "x", "TOLLGATE_PORT": "tcp://10.0.0.1:8080", "OTHER": "x",
		"TOLLGATE_SERVICE_HOST": "10.0.0.1", "TOLLGATE_SERVICE_PORT_HTTP": "8080", "TOLLGATE_PORT_8080_TCP_ADDR": "10.0.0.1",
		"TOLLGATE_METRICS_PORT_9090_TCP": "tcp://10.0.0.1:9090",
	}
	s, err := ReadSettings(Sources{Environ: set})
	if err != nil {
		t.Fatal(err)
	}
	lines := []catalog.LineSpec{
		{APIKey: "${TOLLGATE_KEY_A}", Headers: map[string]string{"X-Team": "team ${TOLLGATE_TEAM}"}},
		{APIKeys: []string{"${file:/x}", "${TOLLGATE_KEY_B}"}},
	}
	want := []string{
		"TOLLGATE_DATABASE_URL is not a setting, and no line of the catalog refers to it; did you mean TOLLGATE_DATABASE?",
		"TOLLGATE_METRICS is not a setting, and no line of the catalog refers to it; did you mean TOLLGATE_METRICS_LISTEN?",
		"TOLLGATE_TOKEN is not a setting, and no line of the catalog refers to it",
	}
	if got := unreadVariables(s.Unknown, variables(), lines); !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	s, err = ReadSettings(Sources{Environ: map[string]string{"TOLLGATE_PORT": "8080"}})
	if err != nil || !slices.Equal(s.Unknown, []string{"TOLLGATE_PORT"}) {
		t.Errorf("%q %v", s.Unknown, err)
	}
}

// TestUnreadVariablesAreReported checks that the service logs unused variables and that apply warns
// of them.
func TestUnreadVariablesAreReported(t *testing.T) {
	t.Parallel()
	const words = "TOLLGATE_DATABASE_URL is not a setting, and no line of the catalog refers to it; did you mean TOLLGATE_DATABASE?"
	s := testSettings(t, storetest.SQLite(t), "")
	s.Unknown = []string{"TOLLGATE_DATABASE_URL"}
	p := serve(t, s)
	p.stop(t)
	if log := p.err.String(); !strings.Contains(log, "level=WARN") || !strings.Contains(log, words) {
		t.Errorf("the service logs %s", log)
	}
	var out, stderr strings.Builder
	how := Applying{DryRun: true, Lookup: os.LookupEnv, Streams: Streams{Out: &out, Err: &stderr}}
	err := Apply(t.Context(), s, "../catalog/sandbox.yaml", how)
	if err != nil || !strings.Contains(stderr.String(), "warning: "+words+"\n") {
		t.Errorf("apply prints %s%v", stderr.String(), err)
	}
}
