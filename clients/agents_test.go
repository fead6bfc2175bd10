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

// colour and size are the contents of two files. The model cannot know them, so an agent has to
// read the files.
const colour, size = "cerulean", "seven-litre"

// TestAgents runs unmodified coding agents through the gateway on a thinking model. The model reads
// two files at once, writes a third, and reports the tools' results. The agents are large
// downloads, so only `make agents` runs this test.
func TestAgents(t *testing.T) {
	if os.Getenv("TOLLGATE_TEST_AGENTS") != "yes" {
		t.Log("coding agents are tried by `make agents`")
		return
	}
	programs := filepath.Join(packages(t, "agents"), "node_modules")
	agents := []agent{claude(programs), codex(programs, "worker"), codex(programs, "gpt-5.5"), geminiCLI(programs), aider(t)}
	if runtime.GOOS == "linux" && runtime.GOARCH == "amd64" {
		agents = append(agents, opencode(programs, "chat"), opencode(programs, "responses"), opencode(programs, "messages"), cline(programs))
	} else {
		t.Log("opencode and Cline are tried on Linux on amd64 alone: they were NOT tried")
	}
	for _, agent := range agents {
		for _, line := range []string{"messages", "responses", "chat", "gemini"} {
			t.Run(agent.name+" on "+line, func(t *testing.T) { agent.play(t, line) })
		}
	}
}

// packages returns the folder of a set that scripts/packages has downloaded.
func packages(t *testing.T, set string) string {
	t.Helper()
	path, err := filepath.Abs("../build/packages/" + set)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(path, "ready")); err != nil {
		t.Fatalf("`scripts/packages %s` downloads what is needed: %v", set, err)
	}
	return path
}

// agent is a coding agent on the command line.
type agent struct {
	name   string
	model  string                          // model id; "worker" if empty
	reads  func(file string) call          // call of the tool that reads a file
	writes func(file, content string) call // call of the tool that writes a file
	// says returns the model's answer for agents without tool calls, which read the files' contents
	// and changes from the text of the answer.
	says func(file, content, then string) string
	// command starts the agent in a folder, with the task and a model of a gateway.
	command func(ctx context.Context, folder, gateway, key, model, task string) *exec.Cmd
	// keeps names the forms of lines where the agent returns the model's thoughts.
	keeps []string
}

// claude uses messages.
func claude(programs string) agent {
	return agent{
		name: "claude-code", keeps: []string{"messages", "responses", "gemini"},
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

// codex uses responses. For models that it knows, it sends tool types that other forms lack.
func codex(programs, model string) agent {
	shell := func(command string) call { return call{"exec_command", `{"cmd":` + quote(command) + `}`} }
	return agent{
		name: "codex with " + model, model: model, keeps: []string{"responses", "gemini"},
		reads:  func(file string) call { return shell("cat " + file) },
		writes: func(file, content string) call { return shell("printf %s '" + content + "' > " + file) },
		command: func(ctx context.Context, folder, gateway, key, model, task string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, filepath.Join(programs, ".bin/codex"), "exec", "--skip-git-repo-check",
				"--sandbox", "danger-full-access", // The machine may be a container already, and the test chooses the commands.
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

// opencode uses all three forms, each through its own package.
func opencode(programs, form string) agent {
	speaks := map[string]struct {
		by, path string
		keeps    []string
	}{
		"chat":      {"@ai-sdk/openai-compatible", "/v1", nil},
		"responses": {"@ai-sdk/openai", "/v1", []string{"responses", "gemini"}},
		"messages":  {"@ai-sdk/anthropic", "/native/v1", []string{"messages", "responses", "gemini"}},
	}[form]
	return agent{
		name: "opencode-" + form, keeps: speaks.keeps,
		reads: func(file string) call { return call{"read", `{"filePath":` + quote(file) + `}`} },
		writes: func(file, content string) call {
			return call{"write", `{"filePath":` + quote(file) + `,"content":` + quote(content) + `}`}
		},
		command: func(ctx context.Context, _, gateway, key, model, task string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, filepath.Join(programs, "opencode-ai/bin/opencode"), "run", "--auto",
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

// geminiCLI uses the Gemini form. It chooses the key by a setting.
func geminiCLI(programs string) agent {
	return agent{
		name: "gemini-cli", keeps: []string{"responses", "gemini"},
		reads: func(file string) call { return call{"read_file", `{"file_path":` + quote(file) + `}`} },
		writes: func(file, content string) call {
			return call{"write_file", `{"file_path":` + quote(file) + `,"content":` + quote(content) + `}`}
		},
		command: func(ctx context.Context, _, gateway, key, model, task string) *exec.Cmd {
			const both = `mkdir "$HOME/.gemini" && ` +
				`echo '{"security":{"auth":{"selectedType":"gemini-api-key"}}}' >"$HOME/.gemini/settings.json" && ` +
				`exec "$1" --model "$2" --approval-mode yolo --skip-trust --prompt "$3"`
			cmd := exec.CommandContext(ctx, "sh", "-c", both, "sh", filepath.Join(programs, ".bin/gemini"), model, task)
			cmd.Env = []string{"GOOGLE_GEMINI_BASE_URL=" + gateway, "GEMINI_API_KEY=" + key, "GEMINI_CLI_NO_RELAUNCH=true"}
			return cmd
		},
	}
}

// cline uses chat completions. It stores provider settings, and would leave a background process
// for later sessions.
func cline(programs string) agent {
	return agent{
		name:  "cline",
		reads: func(file string) call { return call{"read_files", `{"files":[{"path":` + quote(file) + `}]}`} },
		writes: func(file, content string) call {
			return call{"editor", `{"path":` + quote(file) + `,"new_text":` + quote(content) + `}`}
		},
		command: func(ctx context.Context, _, gateway, key, model, task string) *exec.Cmd {
			const both = `"$1" auth --provider openai-compatible --baseurl "$2" --apikey "$3" --modelid "$4" && exec "$1" "$5"`
			cmd := exec.CommandContext(ctx, "sh", "-c", both, "sh",
				filepath.Join(programs, "cline/bin/cline"), gateway+"/v1", key, model, task)
			cmd.Env = []string{"CLINE_SESSION_BACKEND_MODE=local"}
			return cmd
		},
	}
}

// aider uses chat completions without tools: it sends files with the prompt, and writes the files
// of the answer.
func aider(t *testing.T) agent {
	t.Helper()
	python, err := pythonSet("aider")
	if err != nil {
		t.Fatal(err)
	}
	return agent{
		name: "aider",
		says: func(file, content, then string) string {
			return filepath.Base(file) + "\n```\n" + content + "\n```\n\n" + then
		},
		command: func(ctx context.Context, _, gateway, key, model, task string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, filepath.Join(filepath.Dir(python), "aider"), "--yes-always", "--no-git", "--no-check-update",
				"--analytics-disable", "--model", "openai/"+model, "--message", task, "colour.txt", "size.txt")
			cmd.Env = []string{"OPENAI_API_BASE=" + gateway + "/v1", "OPENAI_API_KEY=" + key, "LITELLM_LOCAL_MODEL_COST_MAP=True", "TERM=dumb"}
			return cmd
		},
	}
}

// play runs the agent's task on a line of a form: read two files at once, write a third, report it.
func (a agent) play(t *testing.T, line string) {
	folder, home := t.TempDir(), t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	p := newProvider(t, func(r providerRequest) turn {
		has := func(s string) bool { return bytes.Contains(r.body, []byte(s)) }
		const told = "The kettle is " + colour + " and " + size + "."
		switch {
		case a.says != nil && has(colour) && has(size):
			return turn{text: a.says(in("kettle.txt"), colour+" "+size, told), thought: "Both are known."}
		case !has(`"tools":[`):
			return turn{text: "A kettle"} // a small task, such as a title
		case has(colour + " " + size):
			return turn{text: told, thought: "It is written."}
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
	const nowhere = "http://127.0.0.1:9" // no request may leave this machine
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
		t.Errorf("%s printed: %s\n%s", a.name, &stdout, &stderr)
	}
	if content, err := os.ReadFile(in("kettle.txt")); err != nil || strings.TrimSpace(string(content)) != colour+" "+size {
		t.Errorf("%s wrote %q, %v", a.name, content, err)
	}
	kept := slices.ContainsFunc(p.recordedRequests(), func(r providerRequest) bool { return bytes.Contains(r.body, []byte(sealed)) })
	if kept != slices.Contains(a.keeps, line) {
		t.Errorf("%s sent the thinking back: %t", a.name, kept)
	}
}
