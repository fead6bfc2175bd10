package guides

import (
	"strings"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/scene"
)

// block is a console block.
func block(lines ...string) string {
	return "```console\n" + strings.Join(lines, "\n") + "\n```\n"
}

// rightGuides are guides that go as they say.
var rightGuides = map[string]string{
	"output":        block("$ printf 'one\\ntwo three\\n'", "one", "two three"),
	"any text":      block("$ echo one two three", "one … three"),
	"any lines":     block("$ seq 9", "1", "…", "8", "9"),
	"no lines":      block("$ seq 2", "1", "…", "2"),
	"no output":     block("$ true"),
	"variable":      block("$ A=1") + block("$ echo $A", "1"),
	"continuation":  block(`$ echo one \`, "    two", "one two"),
	"here document": block("$ cat <<END", "> one", ">", "> two", "> END", "one", "", "two"),
	"file":          "```text notes/a.txt\nhello\n```\n" + block("$ cat notes/a.txt", "hello"),
	"list":          "1. A step\n   ```console\n   $ echo one\n   one\n   ```\n",
	"json":          block(`$ echo '{"a": "b c", "d":[1,2]}'`) + "```json\n{\n  \"a\": \"b c\",\n  \"d\": [1, …]\n}\n```\n",
	"signs":         block(`$ echo 'Hello!"' "a # b" a#b "\!" ${!HOME*} [!a]; true & wait $!; ! false`, `Hello!" a # b a#b \! HOME [!a]`),
	"hidden":        "<!-- run: A=$(echo 7)\nB=8 -->\n" + block("$ echo $A $B", "7 8"),
	"fails":         "<!-- exit: 3 -->\n" + block("$ echo no; (exit 3)", "no"),
	"hidden json":   "<!-- run: echo '{\"a\": 1}' -->\n```json\n{\"a\":1}\n```\n",
	"not run":       "<!-- not run: no machine has it -->\n" + block("$ halt"),
	"terminal":      block("$ test -t 0 -a -t 1 -a -t 2 && stty size", "… 120"),
	"goes on": "<!-- goes on -->\n" + block("$ echo ready; tail -f /dev/null", "ready") +
		"<!-- run: kill $!; wait $! || true -->\n" + block("$ jobs -r"),
	"in the background": block("$ { echo ready; echo more; } &", "ready", "…") + block("$ wait"),
	"waits":             block("$ { until test -e go; do :; done; echo ready; } & touch go &", "ready"),
	"seen":              block("$ echo 'key: 7'", "key: …") + "<!-- run: KEY=$(sed 's/key: //' \"$SEEN\") -->\n" + block("$ echo $KEY", "7"),
	"home":              block("$ ls -A ~ .", ".:", "", "…/home:"),
	"colours":           block(`$ printf '\033[1mbold\033[0m\n'`, "bold"),
	"with": "<!-- run: KEY='a b' -->\n<!-- with: sk-…=$KEY 2030-01-01=… -->\n" +
		block(`$ echo "sk-… (1+1)" 2031-12-31 'sk-…'`, "a b (1+1) 2031-12-31 a b") + "```text a.txt\nkey: sk-…\n```\n" +
		block("$ cat a.txt; date -u +%F", "key: a b", "2030-01-01") + block(`$ echo '"a"'`) + "```json\n\"sk-…\"\n```\n",
	"width": "<!-- with: 7ms=… -->\n" + block(`$ printf '%8s  a\n' 12345ms`, "     7ms  a"),
	"function": "<!-- run: last() { tail -n 1 \"$SEEN\"; } -->\n<!-- with: 71=$(last) -->\n" +
		block("$ echo 8", "8", "$ echo a71", "a71", "$ echo b71", "ba71"),
	"types": "<!-- types: some words -->\n" +
		block("$ read -r -s -p 'What: ' LINE; test -t 0", "What:", "$ echo \"($LINE)\"", "(some words)"),
	"gateway": block("$ tollgate version", "tollgate …", "…"),
}

// wrongGuides are guides that do not go as they say, with what is told of them.
var wrongGuides = map[string]struct{ text, says string }{
	"other output":      {block("$ echo one", "two"), "guide.md:2: $ echo one\nnot there: two\n--- wanted\ntwo\n--- got\none"},
	"further output":    {block("$ seq 2", "1"), "it prints more than is wanted"},
	"further text":      {block("$ echo one two", "one"), "not there: one"},
	"unshown output":    {block("$ echo one"), "it prints more than is wanted"},
	"missing output":    {block("$ true", "one"), "not there: one"},
	"missing line":      {block("$ seq 2", "1", "2", "3"), "not there: 3"},
	"text around any":   {block("$ echo one two", "one … three"), "not there: one … three"},
	"lines around any":  {block("$ seq 9", "…", "3", "…", "2", "…"), "not there: 2"},
	"exit":              {block("$ false"), "exit code 1, not 0"},
	"no exit":           {"<!-- exit: 1 -->\n" + block("$ true"), "exit code 0, not 1"},
	"hidden":            {"<!-- run: echo why; false -->\n", "exit code 1, not 0\n--- wanted\n(exit code 0)\n--- got\nwhy"},
	"json":              {block(`$ echo '{"a": 1}'`) + "```json\n{\"a\": 2}\n```\n", "the answer differs"},
	"json, hidden":      {"<!-- run: echo 1 -->\n```json\n2\n```\n", "the answer differs"},
	"json in a string":  {block(`$ echo '{"a": "b c"}'`) + "```json\n{\"a\": \"bc\"}\n```\n", "the answer differs"},
	"the shell ends":    {block("$ exit 0"), "the shell ended"},
	"misspelt comment":  {"<!-- not runs: a reason -->\n", "guide.md:1: a comment is one of"},
	"with nothing":      {"<!-- with: sk-…= -->\n", "guide.md:1: with wants TEXT=$VARIABLE"},
	"with other output": {"<!-- run: KEY=a -->\n<!-- with: sk-…=$KEY -->\n" + block("$ echo sk-… one", "sk-… two"), "not there: … two"},
	"with, other text":  {"<!-- with: 7ms=… -->\n" + block("$ echo 7ms b", "7ms a"), "not there: … a"},
	"types nothing":     {"<!-- types: -->\n", "guide.md:1: types wants a line"},
	"no reason":         {"<!-- not run: -->\n" + block("$ true"), "guide.md:1: say why"},
	"block of no kind":  {"```sh\ntrue\n```\n", "guide.md:1: a block is console"},
	"open block":        {"```console\n$ true\n", "guide.md:1: the block has no end"},
	"open comment":      {"<!-- run: true\n", "guide.md:1: the comment has no end"},
	"no command":        {block("one"), "guide.md:2: output before a command"},
	"empty":             {"```console\n```\n", "guide.md:1: a console block without a command"},
	"json of nothing":   {"```json\n{}\n```\n", "guide.md:1: a json block stands behind a command"},
	"file elsewhere":    {"```text ../a\none\n```\n", "guide.md:1: ../a is not in the guide's folder"},
	"package of no set": {block("$ npm install openai"), "npm: openai is in none of the sets that the guide names"},
	"other use of npm":  {block("$ npm init -y"), "npm: guides have 'npm install [-g] NAME...' alone"},
	"second of two":     {block("$ true", "$ false"), "guide.md:3: $ false"},
	"history":           {block(`$ echo "Hello!\"`), "guide.md:2: a terminal takes what follows ! for its history"},
	"comment":           {block("$ true # and so on"), "guide.md:2: not every shell takes a comment"},
	"comment, not run":  {"<!-- not run: a reason -->\n" + block("$ true # and so on"), "guide.md:3: not every shell takes a comment"},
	"exit of the first": {"<!-- exit: 1 -->\n" + block("$ false", "$ false"), "guide.md:3: $ false\nexit code 1, not 0"},
}

// TestRunnerKeepsToTheGuide: what goes as a guide says passes, all else is told.
func TestRunnerKeepsToTheGuide(t *testing.T) {
	t.Parallel()
	r := runner{scene.Binary(t), namespaces(), commandTime}
	for name, text := range rightGuides {
		t.Run("right/"+name, func(t *testing.T) {
			t.Parallel()
			if err := r.run(t, "guide.md", text); err != nil {
				t.Error(err)
			}
		})
	}
	for name, c := range wrongGuides {
		t.Run("wrong/"+name, func(t *testing.T) {
			t.Parallel()
			err := r.run(t, "guide.md", c.text)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("told: %v; want %q", err, c.says)
			}
		})
	}
}

// TestCommandsEndInTime: one that hangs, and one that does not print what is waited for.
func TestCommandsEndInTime(t *testing.T) {
	t.Parallel()
	r := runner{scene.Binary(t), namespaces(), time.Second}
	for text, says := range map[string]string{
		block("$ tail -f /dev/null"):                                  "it has not ended after 1s",
		"<!-- goes on -->\n" + block("$ false", "ready"):              "--- wanted\nready\n--- got\n\n",
		"<!-- goes on -->\n" + block("$ echo one two three", "ready"): "--- wanted\nready\n--- got\none two three\n",
	} {
		if err := r.run(t, "guide.md", text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("told: %v; want %q", err, says)
		}
	}
}

// TestPortsAreRewrittenWithoutANetwork: two gateways on the same ports run side by side
// where the machine gives guides no network of their own.
func TestPortsAreRewrittenWithoutANetwork(t *testing.T) {
	t.Parallel()
	r := runner{scene.Binary(t), isolation{}, commandTime}
	if !equipped(t, guide{}) { // curl
		return
	}
	text := "<!-- goes on -->\n" + block("$ tollgate serve --no-demo", "…", "listening on http://127.0.0.1:8080") +
		"<!-- goes on -->\n" + block("$ tollgate serve --no-demo --database sqlite:b.db --listen :9090", "…",
		"listening on http://127.0.0.1:9090") +
		block("$ curl -sS http://127.0.0.1:8080/readyz http://localhost:9090/readyz", "…")
	for _, name := range []string{"one", "other"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := r.run(t, "guide.md", text); err != nil {
				t.Error(err)
			}
		})
	}
}
