package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestShellName checks that names are quoted for a shell, and that unprintable names
// become empty.
func TestShellName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"tollgate": "tollgate", "./build/tollgate": "./build/tollgate", "/opt/v1.2_3-a/tollgate": "/opt/v1.2_3-a/tollgate",
		"/my programs/tollgate": "'/my programs/tollgate'", "a;b": "'a;b'", "$(x)": "'$(x)'", "it's": `'it'\''s'`, "/ü/tollgate": "'/ü/tollgate'",
		"": "", "-tollgate": "", "a\x1b[2Jb": "", "a\u202eb": "", "a\nb": "", "a\xffb": "",
	} {
		if got := shellName(name); got != want {
			t.Errorf("shellName(%q) = %q, want %q", name, got, want)
		}
	}
}

// TestRestartCommand checks that the printed command has the given flags, quoted and without
// secrets.
func TestRestartCommand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args   []string
		config string
		env    map[string]string
		want   string
	}{
		{nil, "", nil, "tollgate serve"},
		{[]string{"--listen", ":8081", "--no-demo"}, "", nil, "tollgate serve --listen=:8081 --no-demo"},
		{[]string{"--database=sqlite:it's mine.db"}, "", nil, `tollgate serve --database='sqlite:it'\''s mine.db'`},
		{[]string{"--database=postgres://a:b@c/d"}, "", nil,
			"tollgate serve --database=…\n\nReplace each … with your own secret value."},
		{[]string{"--media", "file:my files", "--webhook-retries="}, "", nil, "tollgate serve --media='file:my files' --webhook-retries=''"},
		{[]string{"--admin-token-file", "secrets/token"}, "a b.yaml", nil, "tollgate serve --config='a b.yaml' --admin-token-file=secrets/token"},
		{[]string{"--expose-line=false"}, "", nil, "tollgate serve --expose-line=false"},
		{[]string{"--public-url", "https://x.example/?a$(b)"}, "", nil, "tollgate serve --public-url='https://x.example/?a$(b)'"},
		{[]string{"--listen", ":1"}, "",
			map[string]string{"TOLLGATE_LISTEN": ":2", "TOLLGATE_ADMIN_TOKEN": "hidden", "TOLLGATE_CONFIG": "c.yaml"},
			"tollgate serve --listen=:1\n\nSet the same environment variables: TOLLGATE_CONFIG, TOLLGATE_ADMIN_TOKEN"},
	} {
		t.Run(c.want, func(t *testing.T) {
			t.Parallel()
			p := &process{flags: newSettingFlags(), config: c.config, environ: c.env}
			parser, err := p.parser(new(commandLine))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parser.Parse(append([]string{"serve"}, c.args...)); err != nil {
				t.Fatal(err)
			}
			if got := p.restart("tollgate"); got != c.want {
				t.Errorf("restart = %q, want %q", got, c.want)
			}
		})
	}
}

// TestFirstStartWithoutDemo checks that the first start shows only the operator's token,
// and that the token in its file works for commands and after a restart.
func TestFirstStartWithoutDemo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir, "--no-demo")
	output := s.out
	raw, err := os.ReadFile(filepath.Join(dir, "data/admin-token"))
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(string(raw))
	if status, answer := s.request("GET", "/admin/v1/accounts", token, ""); status != 200 {
		t.Errorf("with the token in the file, the operator API answered %d %s, want 200", status, answer)
	}
	s.stop()
	if text := output.String(); !strings.Contains(text, token) || strings.Contains(text, "sk-") || !strings.Contains(text, " --no-demo\n") {
		t.Errorf("the output is %s, want the operator's token, no key and --no-demo", text)
	}
	s = serve(t, dir, "--no-demo")
	if status, answer := s.request("GET", "/admin/v1/accounts", token, ""); status != 200 {
		t.Errorf("after a restart, the operator API answered %d %s, want 200", status, answer)
	}
	got := tollgate(t, dir, "job", "cancel", "job_x", "--listen", strings.TrimPrefix(s.base, "http://"))
	if got.code != 1 || !strings.Contains(got.errors, "job_x") {
		t.Errorf("job cancel ended with %+v, want exit 1 because there is no job_x", got)
	}
	s.stop()
	if s.out.Len() != 0 {
		t.Errorf("a later start prints %q, want nothing", s.out)
	}
}
