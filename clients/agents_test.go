package clients

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// secret stands in a file that an agent has to read; the model cannot know it.
const secret = "the kettle is blue"

// TestAgents lets unmodified coding agents do a turn through the gateway: the
// model asks for a file to be read, the agent reads it, and the model tells
// what it was shown. It downloads the agents, so `make agents` alone runs it.
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
	programs, err := filepath.Abs("agents/node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	for _, agent := range []agent{claude(programs), codex(programs)} {
		for _, line := range []string{"messages", "responses", "chat", "gemini"} {
			if line == agent.not {
				continue
			}
			t.Run(agent.name+" on "+line, func(t *testing.T) { agent.play(t, line) })
		}
	}
}

// agent is a coding agent on the command line.
type agent struct {
	name string
	not  string // the form of lines that its form is not put into
	call func(r received) turn
	// command starts it in a folder, with the task, on a model of a gateway.
	command func(ctx context.Context, folder, gateway, key, model, task string) *exec.Cmd
}

// claude speaks messages.
func claude(programs string) agent {
	return agent{
		name: "claude-code", not: "responses",
		call: func(r received) turn {
			file := filepath.Join(folderIn(r.body), "note.txt")
			return turn{tool: "Read", input: `{"file_path":` + quote(file) + `}`}
		},
		command: func(ctx context.Context, _, gateway, key, model, task string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, filepath.Join(programs, "claude"), "--print", "--model", model, task)
			cmd.Env = []string{
				"ANTHROPIC_BASE_URL=" + gateway + "/native", "ANTHROPIC_API_KEY=" + key,
				"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1", "DISABLE_AUTOUPDATER=1",
			}
			return cmd
		},
	}
}

// codex speaks responses.
func codex(programs string) agent {
	return agent{
		name: "codex",
		call: func(received) turn {
			return turn{tool: "exec_command", input: `{"cmd":"cat note.txt"}`}
		},
		command: func(ctx context.Context, folder, gateway, key, model, task string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, filepath.Join(programs, "codex"), "exec", "--skip-git-repo-check",
				"--sandbox", "danger-full-access", // it may be in a container already; the one command is ours
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

// folderIn finds the folder that an agent has told its model it works in.
func folderIn(body []byte) string {
	_, rest, _ := bytes.Cut(body, []byte("working directory: "))
	folder, _, _ := bytes.Cut(rest, []byte(`\n`))
	return string(folder)
}

// play lets the agent do its turn on a line of the given form.
func (a agent) play(t *testing.T, line string) {
	p := newProvider(t, func(r received) turn {
		switch {
		case bytes.Contains(r.body, []byte(secret)):
			return turn{text: "The note says that " + secret + "."}
		case !bytes.Contains(r.body, []byte(`"tools":[`)):
			return turn{text: "A note"} // a title, or the like
		}
		return a.call(r)
	})
	g := startOn(t, p.onlyLine(line))
	folder, home := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "note.txt"), []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := a.command(ctx, folder, g.url, g.key(t, g.account(t, "10"), nil), "worker", "What does note.txt say?")
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
	if !strings.Contains(stdout.String(), "The note says that "+secret) {
		t.Errorf("%s said: %s\n%s", a.name, &stdout, &stderr)
	}
	if n := len(p.seen()); n < 2 {
		t.Errorf("%d requests reached the provider", n)
	}
}
