package clients

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// colour and size stand in files that an agent has to read; the model cannot
// know them.
const colour, size = "cerulean", "seven-litre"

// TestAgents lets unmodified coding agents do a task through the gateway, on a
// model that thinks: it asks for two files to be read at once and for a third
// to be written, the agent does so, and the model tells what it was shown. It
// downloads the agents, so `make agents` alone runs it.
func TestAgents(t *testing.T) {
	if os.Getenv("TOLLGATE_TEST_AGENTS") != "yes" {
		t.Log("coding agents are tried by `make agents`")
		return
	}
	install := exec.Command("npm", "ci", "--no-audit", "--no-fund", "--prefer-offline")
	install.Dir = "agents"
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm: %v\n%s", err, out)
	}
	programs, err := filepath.Abs("agents/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	agents := []agent{claude(programs), codex(programs, "worker"), codex(programs, "gpt-5.5")}
	if runtime.GOOS == "linux" && runtime.GOARCH == "amd64" {
		agents = append(agents, opencode(programs, "chat"), opencode(programs, "responses"), opencode(programs, "messages"))
	} else {
		t.Log("opencode is tried on Linux on amd64 alone: it was NOT tried")
	}
	for _, agent := range agents {
		for _, line := range []string{"messages", "responses", "chat", "gemini"} {
			t.Run(agent.name+" on "+line, func(t *testing.T) { agent.play(t, line) })
		}
	}
}

// agent is a coding agent on the command line.
type agent struct {
	name   string
	model  string                          // its id; empty: worker
	reads  func(file string) call          // the tool by which it reads a file
	writes func(file, content string) call // and writes one
	// command starts it in a folder, with the task, on a model of a gateway.
	command func(ctx context.Context, folder, gateway, key, model, task string) *exec.Cmd
	// keeps names the forms of lines whose model gets back what it has thought.
	keeps []string
}

// claude speaks messages.
func claude(programs string) agent {
	return agent{
		name: "claude-code", keeps: []string{"messages", "responses"},
		reads: func(file string) call { return call{"Read", `{"file_path":` + quote(file) + `}`} },
		writes: func(file, content string) call {
			return call{"Write", `{"file_path":` + quote(file) + `,"content":` + quote(content) + `}`}
		},
		command: func(ctx context.Context, _, gateway, key, model, task string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, filepath.Join(programs, ".bin/claude"), "--print", "--permission-mode", "acceptEdits",
				"--model", model, task)
			cmd.Env = []string{
				"ANTHROPIC_BASE_URL=" + gateway + "/native", "ANTHROPIC_API_KEY=" + key,
				"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1", "DISABLE_AUTOUPDATER=1",
			}
			return cmd
		},
	}
}

// codex speaks responses. On models that it knows it brings tools of types that
// other forms have not.
func codex(programs, model string) agent {
	shell := func(command string) call { return call{"exec_command", `{"cmd":` + quote(command) + `}`} }
	return agent{
		name: "codex with " + model, model: model, keeps: []string{"responses"},
		reads:  func(file string) call { return shell("cat " + file) },
		writes: func(file, content string) call { return shell("printf %s '" + content + "' > " + file) },
		command: func(ctx context.Context, folder, gateway, key, model, task string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, filepath.Join(programs, ".bin/codex"), "exec", "--skip-git-repo-check",
				"--sandbox", "danger-full-access", // it may be in a container already; the commands are ours
				"--cd", folder,
				"--config", `model_provider="tollgate"`,
				"--config", `model_providers.tollgate={name="tollgate",base_url="`+gateway+`/v1",env_key="TOLLGATE_API_KEY",wire_api="responses"}`,
				"--config", `web_search="disabled"`,
				"--config", `analytics.enabled=false`, "--config", `check_for_update_on_startup=false`,
				"--model", model, task)
			cmd.Env = []string{"TOLLGATE_API_KEY=" + key}
			return cmd
		},
	}
}

// opencode speaks all three forms, each by a package of its own.
func opencode(programs, form string) agent {
	speaks := map[string]struct {
		by, path string
		keeps    []string
	}{
		"chat":      {"@ai-sdk/openai-compatible", "/v1", nil},
		"responses": {"@ai-sdk/openai", "/v1", []string{"responses"}},
		"messages":  {"@ai-sdk/anthropic", "/native/v1", []string{"messages", "responses"}},
	}[form]
	return agent{
		name: "opencode-" + form, keeps: speaks.keeps,
		reads: func(file string) call { return call{"read", `{"filePath":` + quote(file) + `}`} },
		writes: func(file, content string) call {
			return call{"write", `{"filePath":` + quote(file) + `,"content":` + quote(content) + `}`}
		},
		command: func(ctx context.Context, _, gateway, key, model, task string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, filepath.Join(programs, "opencode-linux-x64/bin/opencode"), "run", "--auto",
				"--model", "tollgate/"+model, task)
			cmd.Env = []string{
				`OPENCODE_CONFIG_CONTENT={"provider":{"tollgate":{"npm":"` + speaks.by + `","options":{"baseURL":` +
					quote(gateway+speaks.path) + `,"apiKey":` + quote(key) + `},"models":{` + quote(model) + `:{"reasoning":true}}}}}`,
				"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1",
			}
			return cmd
		},
	}
}

// play lets the agent do its task on a line of the given form: two files to be
// read at once, a third to be written, and a word on it.
func (a agent) play(t *testing.T, line string) {
	folder, home := t.TempDir(), t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	p := newProvider(t, func(r received) turn {
		has := func(s string) bool { return bytes.Contains(r.body, []byte(s)) }
		switch {
		case !has(`"tools":[`):
			return turn{text: "A kettle"} // a title, or the like
		case has(colour + " " + size):
			return turn{text: "The kettle is " + colour + " and " + size + ".", thought: "It is written."}
		case has(colour) && has(size):
			return turn{calls: []call{a.writes(in("kettle.txt"), colour+" "+size)}, thought: "Both are known."}
		}
		return turn{calls: []call{a.reads(in("colour.txt")), a.reads(in("size.txt"))}, thought: "Two files to read."}
	})
	model := cmp.Or(a.model, "worker")
	g := startOn(t, p.onlyLine(line, model, true))
	for name, content := range map[string]string{"colour.txt": colour, "size.txt": size} {
		if err := os.WriteFile(in(name), []byte(content+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	const task = "Read colour.txt and size.txt, write what they say into kettle.txt, and tell me."
	cmd := a.command(ctx, folder, g.url, g.key(t, g.account(t, "10"), nil), model, task)
	const nowhere = "http://127.0.0.1:9" // nothing may leave this machine
	cmd.Dir = folder
	cmd.Env = append(cmd.Env, "PATH="+os.Getenv("PATH"), "HOME="+home, "SHELL=/bin/sh",
		"HTTP_PROXY="+nowhere, "HTTPS_PROXY="+nowhere, "http_proxy="+nowhere, "https_proxy="+nowhere,
		"NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Errorf("%s: %v\n%s\n%s", a.name, err, &stdout, &stderr)
	}
	if !strings.Contains(stdout.String(), "The kettle is "+colour+" and "+size) {
		t.Errorf("%s said: %s\n%s", a.name, &stdout, &stderr)
	}
	if written, err := os.ReadFile(in("kettle.txt")); err != nil || strings.TrimSpace(string(written)) != colour+" "+size {
		t.Errorf("%s wrote %q, %v", a.name, written, err)
	}
	kept := slices.ContainsFunc(p.seen(), func(r received) bool { return bytes.Contains(r.body, []byte(sealed)) })
	if kept != slices.Contains(a.keeps, line) {
		t.Errorf("%s gave back what the model had thought: %t", a.name, kept)
	}
}
