package guides

import (
	"strings"
	"testing"
	"time"
)

// block returns a console block.
func block(lines ...string) string {
	return "```console\n" + strings.Join(lines, "\n") + "\n```\n"
}

const (
	sampleID    = "acct_01m84x8k5ye9nm422fe2y6fm98"
	testTimeout = 20 * time.Second
)

// passing has documents that must pass.
var passing = map[string]string{
	"output":        block("$ printf 'one\\ntwo three\\n'", "one", "two three"),
	"any text":      block("$ echo one two three", "one … three"),
	"any lines":     block("$ seq 9", "1", "…", "8", "9"),
	"no lines":      block("$ seq 2", "1", "…", "2"),
	"no output":     block("$ A=1") + block("$ echo $A", "1"),
	"continuation":  block(`$ echo one \`, "    two", "one two"),
	"here document": block("$ cat <<END", "> one", ">", "> two", "> END", "one", "", "two"),
	"file":          "```text notes/a.txt\nhello\n```\n" + block("$ cat notes/a.txt", "hello"),
	"list":          "1. A step\n   ```console\n   $ echo one\n   one\n   ```\n",
	"json":          block(`$ echo '{"a": "b c", "d":[1,2]}'`) + "```json\n{\n  \"a\": \"b c\",\n  \"d\": [1, …]\n}\n```\n",
	"signs":         block(`$ echo 'Hello!"' "a # b" a#b "\!" ${!HOME*} [!a]; true & wait $!; ! false`, `Hello!" a # b a#b \! HOME [!a]`),
	"not run":       "<!-- not run: no test machine has it -->\n" + block("$ halt"),
	"terminal":      block("$ test -t 0 -a -t 1 -a -t 2 && stty size", "… 120"),
	"background":    block("$ { echo ready; tail -f /dev/null; } &", "ready") + block("$ kill $!; wait $! || true"),
	"late output":   block("$ { until test -e go; do :; done; echo ready; } & touch go &", "ready"),
	"later file":    block("$ { until test -e go; do :; done; echo hello >a; } &", "$ touch go", "$ cat a", "hello"),
	"home":          block("$ ls -A ~ .", ".:", "", "…/home:"),
	"colors":        block(`$ printf '\033[1mbold\033[0m\n'`, "bold"),
	"key": block("$ echo 'key  sk-abcdefghijklmnopqrstuvwx'", "key  sk-…", "$ test sk-… = sk-abcdefghijklmnopqrstuvwx") +
		"```text a.txt\nsk-…\n```\n" + block("$ grep -c abcdef a.txt", "1"),
	"id": block("$ printf 'acct_%026d  10ms  1' 1", sampleID+"  7ms  1", "$ printf 'acct_%026d b' 2", "acct_… b",
		`$ test "`+sampleID+`" = "$(printf 'acct_%026d' 1)" -a acct_… = "$(printf 'acct_%026d' 2)"`),
	"time":     block("$ date -u '+%F %T'", "2026-11-23 19:14:24"),
	"password": block("$ read -r -s -p 'Password: ' LINE; test -t 0", "Password:", "$ echo \"($LINE)\"", "("+password+")"),
	"gateway": block("$ tollgate serve --no-demo", "…", "listening on http://127.0.0.1:8080") +
		block("$ tollgate version", "tollgate …", "…"),
}

// failing has documents with a mistake, and a part of the expected error.
var failing = map[string]struct{ text, want string }{
	"other output":           {block("$ echo one", "two"), "guide.md:2: $ echo one\nmissing: two\n--- want\ntwo\n--- got\none"},
	"more lines":             {block("$ seq 2", "1"), "the output has more lines"},
	"more text":              {block("$ echo one two", "one"), "missing: one"},
	"output not shown":       {block("$ echo one"), "the output has more lines"},
	"no output":              {block("$ true", "one"), "missing: one"},
	"missing line":           {block("$ seq 2", "1", "2", "3"), "missing: 3"},
	"text around any":        {block("$ echo one two", "one … three"), "missing: one … three"},
	"lines around any":       {block("$ seq 9", "…", "3", "…", "2", "…"), "missing: 2"},
	"exit code":              {block("$ false"), "exit code 1"},
	"other id":               {block("$ printf acct_%026d 1", sampleID, "$ printf acct_%026d 2", sampleID), "missing: acct_"},
	"json":                   {block(`$ echo '{"a": 1}'`) + "```json\n{\"a\": 2}\n```\n", "the JSON differs"},
	"json in a string":       {block(`$ echo '{"a": "b c"}'`) + "```json\n{\"a\": \"bc\"}\n```\n", "the JSON differs"},
	"end of the shell":       {block("$ exit 0"), "the shell ended"},
	"other comment":          {"<!-- run: true -->\n", "guide.md:1: the only comment"},
	"no reason":              {"<!-- not run: -->\n" + block("$ true"), "guide.md:1: the only comment"},
	"unknown block":          {"```sh\ntrue\n```\n", "guide.md:3: a block is console"},
	"open block":             {"```console\n$ true\n", "guide.md: the last block has no end"},
	"no command":             {block("one"), "guide.md:2: output before a command"},
	"empty":                  {"```console\n```\n", "guide.md:2: a block is console"},
	"json without a command": {"```json\n{}\n```\n", "guide.md:3: a block is console"},
	"file elsewhere":         {"```text ../a\none\n```\n", "guide.md:3: a block is console"},
	"unknown package":        {block("$ npm install no-such-package"), "npm: no set of packages has no-such-package"},
	"other use of npm":       {block("$ npm init -y"), "npm: guides may use 'npm install [-g] NAME...' only"},
	"second of two":          {block("$ true", "$ false"), "guide.md:3: $ false"},
	"history":                {block(`$ echo "Hello!\"`), "guide.md:2: an interactive shell replaces !"},
	"comment":                {block("$ true # and so on"), "guide.md:2: some interactive shells have no comments"},
	"comment, not run":       {"<!-- not run: a reason -->\n" + block("$ true # and so on"), "guide.md:3: some interactive shells"},
}

func runText(t *testing.T, text, script string, timeout time.Duration) error {
	t.Helper()
	sections, _ := readScript("guide.sh", script)
	steps, _, err := parse("guide.md", text, sections)
	if err != nil {
		return err
	}
	return run(t, steps, timeout)
}

func TestRunner(t *testing.T) {
	for name, text := range passing {
		t.Run("passing/"+name, func(t *testing.T) {
			if namespaces() != 0 {
				t.Parallel()
			}
			if err := runText(t, text, "", testTimeout); err != nil {
				t.Error(err)
			}
		})
	}
	for name, c := range failing {
		t.Run("failing/"+name, func(t *testing.T) {
			t.Parallel()
			if err := runText(t, c.text, "", testTimeout); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// TestSections checks the order of sections and steps, and the exit codes in sections.
func TestSections(t *testing.T) {
	t.Parallel()
	text := "# Guide\n" + block("$ echo $A", "1", "$ echo $A", "2") + "```json\n{\"a\":1}\n```\n"
	script := "### # Guide\nA=1\n### $ echo $A\n### $ echo $A\nA=2\n### {\"a\"\necho '{\"a\": 1}'\n### (end)\n"
	for script, want := range map[string]string{
		script:                                   "",
		script + "false\ntrue\n":                 "guide.sh:8: $ false\ntrue\n",
		script + "### $ echo $B\n":               "guide.sh:9: no further line of guide.md begins with \"$ echo $B\"",
		strings.Replace(script, "A=2", "A=3", 1): "missing: 2",
	} {
		err := runText(t, text, script, testTimeout)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestCommandsTimeOut(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		block("$ tail -f /dev/null"):             "the command has not ended after 1s",
		block("$ echo one two three &", "ready"): "--- want\nready\n--- got\none two three\n",
		block("$ cat a", "one"):                  "exit code 1",
	} {
		if err := runText(t, text, "", time.Second); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
