package clients

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// snippetCatalog has a model of each form and kind.
const snippetCatalog = `models:
  - {id: on-chat, kind: chat, forms: [chat], context_window: 128000, max_output_tokens: 4096, state: open, price: {input: 1, output: 1}}
  - {id: on-responses, kind: chat, forms: [responses], context_window: 128000, max_output_tokens: 4096, state: open,
     price: {input: 1, output: 1}}
  - {id: on-messages, kind: chat, forms: [messages], context_window: 128000, max_output_tokens: 4096, state: open,
     price: {input: 1, output: 1}}
  - {id: easel, kind: image, state: open, price: {1K: 0.03}}
  - {id: reel, kind: video, state: open, price: {720p: 0.05}, durations: [5]}
  - {id: vector, kind: embedding, state: open, price: {input: 1}}
  - {id: order, kind: rerank, state: open, price: {searches: 1}}
  - {id: judge, kind: moderation, state: open, price: {requests: 1}}
  - {id: voice, kind: speech, state: open, price: {characters: 1}}
  - {id: scribe, kind: transcription, state: open, price: {minutes: 1}}
lines:
  - {id: fine, provider: sandbox, models: {on-chat: a, on-responses: b, on-messages: c, easel: d, reel: e, vector: f, order: g, judge: h,
     voice: i, scribe: j}}
`

var (
	snippetTab  = regexp.MustCompile(`<label for="use-(\d+)">([^<]+)</label>`)
	snippetText = regexp.MustCompile(`(?s)<code id="use-(\d+)-text">(.*?)</code>`)
)

// TestConsoleSnippets runs the console's snippets of each model with a real key, and checks that each
// snippet prints the answer.
func TestConsoleSnippets(t *testing.T) {
	g := startOn(t, snippetCatalog)
	account := g.account(t, "10")
	key := g.key(t, account, nil)
	const email, password = "ada@example.com", "right horse"
	g.admin(t, "POST", "/accounts/"+account+"/users", map[string]any{"email": email, "password": password})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	answer, err := browser.PostForm(g.url+"/console/sign-in", url.Values{"email": {email}, "password": {password}})
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	const reply = "You said: Hello!"
	folders := map[string]string{} // by language
	for _, prints := range []struct {
		model         string
		program, curl string // parts of the output
		languages     int
	}{
		{"on-chat", reply, reply, 4}, {"on-responses", reply, reply, 4}, {"on-messages", reply, reply, 4},
		{"easel", ".png", `"status":"`, 4}, {"reel", ".mp4", `"status":"`, 4}, // curl does not poll the job
		{"vector", "2 vectors of 256 numbers", `"embedding":[`, 3}, {"order", "1 0.5774", `"index":1,"relevance_score":0.5774`, 3},
		{"judge", "flagged", `"flagged":true`, 3},
		{"voice", "", "", 3}, {"scribe", "A lighthouse in the fog.", `"text":"A lighthouse in the fog."`, 3}, // of the file that voice wrote
	} {
		model := prints.model
		answer, err := browser.Get(g.url + "/console/models?id=" + model)
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d, %v", model, answer.StatusCode, err)
		}
		names := map[string]string{}
		for _, m := range snippetTab.FindAllStringSubmatch(string(page), -1) {
			names[m[1]] = m[2]
		}
		ran, absent := 0, 0
		for _, m := range snippetText.FindAllStringSubmatch(string(page), -1) {
			text := strings.ReplaceAll(html.UnescapeString(m[2]), "sk-…", key)
			language := names[m[1]]
			if folders[language] == "" {
				folders[language] = t.TempDir()
			}
			run := snippetRun(t, language, text, folders[language])
			if run == nil {
				absent++
				continue
			}
			ran++
			out, err := run.CombinedOutput()
			want := prints.program
			if language == "curl" {
				want = prints.curl
			}
			if err != nil || !strings.Contains(string(out), want) {
				t.Errorf("%s in %s: %v: %s\n%s", model, language, err, out, text)
			}
		}
		if ran+absent < prints.languages || ran < 1 {
			t.Errorf("%s has %d snippets that run, and %d for programs that are not installed", model, ran, absent)
		}
	}
}

// snippetRun returns the command that runs a snippet in a folder for its files, or nil if the snippet is not a
// program or its language is not installed.
func snippetRun(t *testing.T, language, text, folder string) *exec.Cmd {
	t.Helper()
	file := func(name string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	switch language {
	case "curl":
		if slices.Contains(strings.Fields(os.Getenv("TOLLGATE_TEST_ABSENT")), "curl") {
			return nil
		}
		text, _, _ = strings.Cut(text, "\n# the answer has")
		run := exec.Command("bash", file("snippet.sh"))
		run.Dir = folder
		return run
	case "Go":
		return exec.Command("go", "run", file("main.go")) // uses the client libraries of this module
	case "Node":
		if os.Getenv("TOLLGATE_TEST_NODE") == "absent" {
			return nil
		}
		linkNodeClients(t, folder)
		run := exec.Command("node", file("snippet.mjs"))
		run.Dir = folder
		return run
	case "Python":
		if os.Getenv("TOLLGATE_TEST_PYTHON") != "yes" {
			return nil
		}
		python, err := pythonClients()
		if err != nil {
			t.Fatal(err)
		}
		run := exec.Command(python, file("snippet.py"))
		run.Dir = folder
		return run
	}
	return nil
}
