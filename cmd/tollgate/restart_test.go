package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCallable: a shell that is given what is shown in commands calls that name, whatever
// is in it; what people cannot copy is not shown.
func TestCallable(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"tollgate": "tollgate", "./build/tollgate": "./build/tollgate", "/opt/v1.2_3-a/tollgate": "/opt/v1.2_3-a/tollgate",
		"/my programs/tollgate": "'/my programs/tollgate'", "a;b": "'a;b'", "$(x)": "'$(x)'", "it's": `'it'\''s'`, "/ü/tollgate": "'/ü/tollgate'",
		"": "", "-tollgate": "", "a\x1b[2Jb": "", "a\u202eb": "", "a\nb": "", "a\xffb": "",
	} {
		if got := callable(name); got != want {
			t.Errorf("%q is called by %q, want %q", name, got, want)
		}
	}
}

// TestRestartCommand: the command that a first start shows has the flags that the service
// was started with, as a shell reads them, and no secret.
func TestRestartCommand(t *testing.T) {
	for _, c := range []struct {
		args   []string
		config string
		env    map[string]string
		want   string
	}{
		{nil, "", nil, "tollgate serve"},
		{[]string{"--listen", ":8081", "--no-demo"}, "", nil, "tollgate serve --listen=:8081 --no-demo"},
		{[]string{"--database=sqlite:it's mine.db"}, "", nil,
			"tollgate serve --database=…\n\nPut your own value in place of each …, which is a secret."},
		{[]string{"--media", "file:my files", "--webhook-retries="}, "", nil, "tollgate serve --media='file:my files' --webhook-retries=''"},
		{[]string{"--admin-token-file", "secrets/token"}, "a b.yaml", nil, "tollgate serve --config='a b.yaml' --admin-token-file=secrets/token"},
		{[]string{"--expose-line=false"}, "", nil, "tollgate serve --expose-line=false"},
		{[]string{"--public-url", "https://x.example/?a$(b)"}, "", nil, "tollgate serve --public-url='https://x.example/?a$(b)'"},
		{[]string{"--listen", ":1"}, "",
			map[string]string{"TOLLGATE_LISTEN": ":2", "TOLLGATE_ADMIN_TOKEN": "hidden", "TOLLGATE_CONFIG": "c.yaml"},
			"tollgate serve --listen=:1\n\nThe environment must have the same variables: TOLLGATE_CONFIG, TOLLGATE_ADMIN_TOKEN"},
	} {
		t.Run(c.want, func(t *testing.T) {
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			p := &process{flags: newSettingFlags(), config: c.config}
			parser, err := p.parser(new(commandLine))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parser.Parse(append([]string{"serve"}, c.args...)); err != nil {
				t.Fatal(err)
			}
			if got := p.restart("tollgate"); got != c.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

// TestFirstStartWithoutDemo: with --no-demo the first start shows the operator's token and
// nothing else, and the token of the file works for commands and after a restart.
func TestFirstStartWithoutDemo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir, "--no-demo")
	shown := s.out
	raw, err := os.ReadFile(filepath.Join(dir, "data/admin-token"))
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(string(raw))
	if status, answer := s.request("GET", "/admin/v1/accounts", token, ""); status != 200 {
		t.Errorf("%d %s", status, answer)
	}
	s.stop()
	if text := shown.String(); !strings.Contains(text, token) || strings.Contains(text, "sk-") || !strings.Contains(text, " --no-demo\n") {
		t.Errorf("shown: %s", text)
	}
	s = serve(t, dir, "--no-demo")
	if status, answer := s.request("GET", "/admin/v1/accounts", token, ""); status != 200 {
		t.Errorf("after a restart: %d %s", status, answer)
	}
	got := tollgate(t, dir, "job", "cancel", "job_x", "--listen", strings.TrimPrefix(s.base, "http://"))
	if got.code != 1 || !strings.Contains(got.errors, "job_x") {
		t.Errorf("a command that asks the service: %+v", got)
	}
	s.stop()
	if s.out.Len() != 0 {
		t.Errorf("a later start shows %q", s.out)
	}
}
