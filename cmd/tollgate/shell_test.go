package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/store/storetest"
)

// data returns the entries of a list command.
func data(t *testing.T, dir string, args ...string) []map[string]any {
	t.Helper()
	list, _ := must(t, dir, args...)["data"].([]any)
	rows := make([]map[string]any, len(list))
	for i := range list {
		rows[i], _ = list[i].(map[string]any)
	}
	return rows
}

// csvRows returns the rows of a command with --csv, as maps by column.
func csvRows(t *testing.T, dir string, args ...string) []map[string]string {
	t.Helper()
	got := tollgate(t, dir, append(args, "--csv")...)
	lines, err := csv.NewReader(strings.NewReader(got.out)).ReadAll()
	if err != nil || got.code != 0 || len(lines) == 0 {
		t.Fatalf("%v: %v: %+v", args, err, got)
	}
	rows := make([]map[string]string, len(lines)-1)
	for i, line := range lines[1:] {
		rows[i] = map[string]string{}
		for j, name := range lines[0] {
			rows[i][name] = line[j]
		}
	}
	return rows
}

// TestCreditOfAPayment repeats a credit with a reference.
func TestCreditOfAPayment(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		dir, db := t.TempDir(), "--database="+url
		id, _ := must(t, dir, "account", "create", "--name", "Acme", db)["id"].(string)
		for range 2 {
			if got := must(t, dir, "account", "credit", id, "5", "--reference", "pi_1", db); got["balance_usd"] != 5.0 {
				t.Errorf("credited with one reference: %v", got)
			}
		}
		if got := tollgate(t, dir, "account", "credit", id, "6", "--reference", "pi_1", db); got.code != 2 ||
			!strings.Contains(got.errors, "reference: This reference already belongs to a credit of 5 USD") {
			t.Errorf("another credit with the same reference: %+v", got)
		}
		if got := data(t, dir, "account", "entries", id, db)[0]; got["reference"] != "pi_1" {
			t.Errorf("entry %v", got)
		}
	})
}

func TestAccountAndUserCommands(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		dir, db := t.TempDir(), "--database="+url
		id, _ := must(t, dir, "account", "create", "--name", "Acme & Co", db)["id"].(string)
		for range 2 {
			if got := must(t, dir, "account", "credit", id, "5", "--idempotency-key", "once", db); got["balance_usd"] != 5.0 {
				t.Errorf("credited with one key: %v", got)
			}
		}
		if got := tollgate(t, dir, "account", "credit", id, "6", "--idempotency-key", "once", db); got.code != 2 ||
			!strings.Contains(got.errors, "--idempotency-key") {
			t.Errorf("another credit with the same key: %+v", got)
		}
		created := withInput(t, dir, "correct horse\n", "user", "create", id, "--email", "Ada@example.com", "--password", "-", "--operator", db)
		if created.code != 0 || !strings.Contains(created.out, "ada@example.com") {
			t.Fatalf("user create: %+v", created)
		}
		user, _ := data(t, dir, "user", "list", id, db)[0]["id"].(string)
		if got := must(t, dir, "user", "disable", user, db); got["disabled"] != true || got["operator"] != true {
			t.Errorf("disabled: %v", got)
		}
		must(t, dir, "user", "enable", user, db)
		if got := must(t, dir, "user", "change", user, "--no-operator", db); got["disabled"] != false || got["operator"] != false {
			t.Errorf("changed: %v", got)
		}
		if got := must(t, dir, "user", "change", user, "--no-second-factor", db); got["second_factor"] != false {
			t.Errorf("changed: %v", got)
		}
		if got := must(t, dir, "user", "link", user, db); got["kind"] != "reset" || got["user"] != user ||
			!strings.HasPrefix(fmt.Sprint(got["link"]), "http://127.0.0.1:0/console/link#") {
			t.Errorf("a link: %v", got)
		}
		invited := must(t, dir, "user", "create", id, "--email", "bob@example.com", "--public-url", "https://gate.example", db)
		if !strings.HasPrefix(fmt.Sprint(invited["link"]), "https://gate.example/console/link#") || invited["has_password"] != false {
			t.Errorf("invited: %v", invited)
		}
		must(t, dir, "user", "delete", fmt.Sprint(invited["id"]), db)
		for _, q := range []string{"acme", "ADA@", id} {
			if list := data(t, dir, "account", "list", "--q", q, db); len(list) != 1 || list[0]["id"] != id {
				t.Errorf("%q finds %v", q, list)
			}
		}
		must(t, dir, "user", "delete", user, db)
		if list := data(t, dir, "account", "list", "--q", "ada@", db); len(list) != 0 {
			t.Errorf("the search finds a deleted user: %v", list)
		}
		key := must(t, dir, "key", "create", id, db)
		if list := data(t, dir, "key", "list", "--hint", fmt.Sprint(key["hint"]), db); len(list) != 1 || list[0]["id"] != key["id"] {
			t.Errorf("found by the hint: %v", list)
		}
		rows := csvRows(t, dir, "account", "entries", id, db)
		if len(rows) != 1 || rows[0]["usd"] != "5" || rows[0]["kind"] != "credit" || !strings.HasSuffix(rows[0]["created"], "Z") {
			t.Errorf("entries as CSV: %v", rows)
		}
		must(t, dir, "account", "credit", id, "7", db)
		must(t, dir, "account", "credit", id, "-1", db)
		for args, want := range map[string]int{"": 3, "--limit 2": 2, "--kind credit": 3, "--kind charge": 0, "--since 2100-01-01": 0,
			"--until 2020-01-01": 0} {
			if rows := csvRows(t, dir, append([]string{"account", "entries", id, db}, strings.Fields(args)...)...); len(rows) != want {
				t.Errorf("entries %s as CSV: %v", args, rows)
			}
		}
		if got := tollgate(t, dir, "account", "entries", id, "--limit", "2", "--csv", db); !strings.Contains(got.errors,
			"there are more entries: continue with --after ent_") {
			t.Errorf("a part of a list as CSV: %+v", got)
		}
		if got := tollgate(t, dir, "account", "entries", id, "--kind", "gift", db); got.code != 2 || !strings.Contains(got.errors, "--kind: ") {
			t.Errorf("an unknown kind: %+v", got)
		}
		if got := tollgate(t, dir, "account", "entries", "acct_none", "--csv", db); got.code != 1 || got.out != "" {
			t.Errorf("entries of an unknown account: %+v", got)
		}
	})
}

func TestCodesCommands(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		dir, db := t.TempDir(), "--database="+url
		must(t, dir, "account", "create", "--name", "acme", db)
		codes := csvRows(t, dir, "codes", "create", "2.5", "--count", "2", "--expires", "48h", db)
		if len(codes) != 2 || codes[0]["code"] == "" || codes[0]["usd"] != "2.5" || codes[0]["expires"] <= codes[0]["created"] {
			t.Fatalf("codes: %v", codes)
		}
		must(t, dir, "codes", "void", codes[0]["id"], db)
		states := map[string]string{}
		for _, c := range csvRows(t, dir, "codes", "list", db) {
			states[c["id"]] = c["state"] + c["code"]
		}
		if len(states) != 2 || states[codes[0]["id"]] != "void" || states[codes[1]["id"]] != "unused" {
			t.Errorf("states: %v", states)
		}
	})
}

// TestRequestAndLineCommands shows the requests of a service and drains its line.
func TestRequestAndLineCommands(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		dir, db := t.TempDir(), "--database="+url
		applySandbox(t, dir, "{}", db)
		id, _ := must(t, dir, "account", "create", "--name", "acme", db)["id"].(string)
		must(t, dir, "account", "credit", id, "5", db)
		key := must(t, dir, "key", "create", id, db)
		secret, _ := key["key"].(string)
		s := serve(t, dir, db)
		if status, body := s.request("POST", "/v1/chat/completions", secret, question); status != 200 {
			t.Fatalf("chat: %d %s", status, body)
		}
		s.request("POST", "/v1/chat/completions", secret, `{"model":"none","messages":[]}`)
		good := csvRows(t, dir, "request", "list", "--key", fmt.Sprint(key["id"]), "--status", "200", "--since", "1h", db)
		if len(good) != 1 || good[0]["model"] != "swift-1" || good[0]["outcome"] != "billed" {
			t.Fatalf("requests: %v", good)
		}
		if all := data(t, dir, "request", "list", db); len(all) != 2 {
			t.Errorf("all requests: %v", all)
		}
		if none := data(t, dir, "request", "list", "--since", "2099-01-01", db); len(none) != 0 {
			t.Errorf("requests of the future: %v", none)
		}
		shown := must(t, dir, "request", "show", good[0]["id"], db)
		cost, err := strconv.ParseFloat(good[0]["cost_usd"], 64)
		if err != nil || shown["held_usd"] == nil || shown["price"] == nil || shown["usage_source"] == nil || shown["cost_usd"] != cost {
			t.Errorf("a request: %v", shown)
		}
		usage := csvRows(t, dir, "usage", "--group-by", "account,model", db)
		if len(usage) != 1 || usage[0]["account"] != id || usage[0]["cost_usd"] != good[0]["cost_usd"] {
			t.Errorf("usage: %v", usage)
		}
		if jobs := data(t, dir, "job", "list", db); len(jobs) != 0 {
			t.Errorf("jobs: %v", jobs)
		}
		var lines []map[string]any
		scene.Eventually(t, "the report of the node, some seconds after its start", func() bool {
			lines = data(t, dir, "line", "list", db)
			return len(lines) > 0
		})
		if len(lines) != 1 || lines[0]["state"] != "in_service" {
			t.Fatalf("lines: %v", lines)
		}
		line := fmt.Sprint(lines[0]["id"])
		if got := must(t, dir, "line", "drain", line, db); got["state"] != "drained" {
			t.Errorf("drained: %v", got)
		}
		if got := must(t, dir, "line", "resume", line, db); got["state"] != "in_service" {
			t.Errorf("resumed: %v", got)
		}
		s.stop()
	})
}

// TestJobCommands calls the running service.
func TestJobCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir, "--admin-token", "letmein")
	service := []string{"--admin-token", "letmein", "--listen", strings.TrimPrefix(s.base, "http://")}
	id, _ := data(t, dir, "account", "list")[0]["id"].(string)
	secret, _ := must(t, dir, "key", "create", id)["key"].(string)
	if status, body := s.request("POST", "/v1/images/generations", secret, `{"model":"sandbox-image","prompt":"a"}`); status != 202 {
		t.Fatalf("submission: %d %s", status, body)
	}
	job, _ := data(t, dir, "job", "list")[0]["id"].(string)
	canceled := tollgate(t, dir, append([]string{"job", "cancel", job}, service...)...)
	if canceled.code != 0 && !strings.Contains(canceled.errors, "has ended") {
		t.Errorf("cancel: %+v", canceled)
	}
	requeue := append([]string{"job", "requeue", job, "--force", "--idempotency-key", "anew"}, service...)
	first, second := must(t, dir, requeue...), must(t, dir, requeue...)
	if first["id"] == job || first["id"] != second["id"] {
		t.Errorf("requeue: %v, repeated: %v", first, second)
	}
	if got := must(t, dir, "job", "show", fmt.Sprint(first["id"])); got["account"] != id {
		t.Errorf("job: %v", got)
	}
	if jobs := csvRows(t, dir, "job", "list", "--account", id); len(jobs) != 2 {
		t.Errorf("jobs: %v", jobs)
	}
	wrong := tollgate(t, dir, "job", "cancel", job, "--admin-token", "other", "--listen", service[3])
	if wrong.code != 1 || !strings.Contains(wrong.errors, "invalid_api_key") {
		t.Errorf("with another token: %+v", wrong)
	}
	s.stop()
}

// TestHealth checks the health check of a container.
func TestHealth(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir)
	listen := strings.TrimPrefix(s.base, "http://")
	if got := tollgate(t, dir, "health", "--listen", listen); got.code != 0 || got.out+got.errors != "" {
		t.Errorf("while it runs: %+v", got)
	}
	s.stop()
	if got := tollgate(t, dir, "health", "--listen", listen); got.code != 1 || !strings.Contains(got.errors, listen+"; set --listen") {
		t.Errorf("after it has ended: %+v", got)
	}
	if got := tollgate(t, dir, "health", "--listen", "127.0.0.1:0"); got.code != 2 || !strings.Contains(got.errors, "listen") {
		t.Errorf("without a port: %+v", got)
	}
}

// TestHelp checks that help shows a command's own flags, and all settings for serve only.
func TestHelp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct {
		args          string
		want, notWant []string
	}{
		{"", []string{"serve", "account", "completion", "Run the service"}, []string{"--max-body", "account create", "  complete "}},
		{"account", []string{"account credit", "--csv"}, []string{"key create", "--max-body", "--database"}},
		{"account credit --help", []string{"--idempotency-key", "--note", "--database"}, []string{"--max-body", "--version", "account list"}},
		{"help account credit", []string{"--idempotency-key"}, []string{"--max-body"}},
		{"serve --help", []string{"--max-body", "--node-lease"}, []string{"--csv"}},
		{"help serve", []string{"--max-body"}, nil},
		{"help settings", []string{"max_body  (--max-body, TOLLGATE_MAX_BODY)", "default: 32MiB"}, nil},
		{"help", []string{"serve", "account"}, []string{"--max-body"}},
		{"--version", []string{"tollgate ", "commit"}, []string{"Usage"}},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			got := execute(t, dir, strings.Fields(c.args)...)
			if got.code != 0 || got.errors != "" {
				t.Errorf("%+v", got)
			}
			for _, text := range c.want {
				if !strings.Contains(got.out, text) {
					t.Errorf("lacks %q: %s", text, got.out)
				}
			}
			for _, text := range c.notWant {
				if strings.Contains(got.out, text) {
					t.Errorf("has %q: %s", text, got.out)
				}
			}
		})
	}
}

// TestCompletion checks the completions, and the script in a real bash.
func TestCompletion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	complete := func(words string) result {
		t.Helper()
		return tollgate(t, dir, append([]string{"complete", "--"}, strings.Split(words, " ")...)...)
	}
	check := func(words, want string) {
		t.Helper()
		got := complete(words)
		var candidates []string
		for line := range strings.Lines(got.out) {
			word, _, _ := strings.Cut(line, "\t")
			candidates = append(candidates, word)
		}
		if got.code != 0 || got.errors != "" || strings.Join(candidates, " ") != want {
			t.Errorf("%q completes to %+v, want %q", words, got, want)
		}
	}
	for words, want := range map[string]string{
		"acc":                          "account",
		"account cre":                  "create credit",
		"account credit acct_x --no":   "--note",
		"account --csv ent":            "entries",
		"--database x account ent":     "entries",
		"serve --max-b":                "--max-body",
		"account list --max-b":         "",
		"completion ":                  "bash zsh fish",
		"account create --name acc":    "",
		"frobnicate acc":               "account",
		"usage --group-by day --since": "--since",
		"account credit ":              "", // no database yet
	} {
		check(words, want)
	}
	applySandbox(t, dir, "{}")
	account, _ := must(t, dir, "account", "create", "--name", "Acme Works")["id"].(string)
	key, _ := must(t, dir, "key", "create", account, "--name", "backend")["id"].(string)
	for words, want := range map[string]string{
		"account credit ":                       account,
		"account credit " + account[:8]:         account,
		"account credit " + account + " ":       "",
		"account credit key_":                   "",
		"key create --name x ":                  account,
		"key disable ":                          key,
		"key disable " + key[:6]:                key,
		"line drain m":                          "main",
		"line drain ":                           "main",
		"--database sqlite:none.db line drain ": "",
		"request get ":                          "",
	} {
		check(words, want)
	}
	if got := complete("account credit "); got.out != account+"\tAcme Works\n" {
		t.Errorf("%+v", got)
	}
	if got := complete("line dr"); got.out != "drain\tTake a line out of service on all nodes until it is resumed.\n" {
		t.Errorf("%+v", got)
	}
	for _, shell := range []string{"zsh", "fish"} {
		if got := tollgate(t, dir, "completion", shell); got.code != 0 || !strings.Contains(got.out, "complete -- ") {
			t.Errorf("%s: %+v", shell, got)
		}
	}
	if got := completeInBash(t, dir, "account", "cre"); got != "create credit" {
		t.Errorf("bash completes to %q", got)
	}
}

// completeInBash returns the completions that bash gets from its script.
func completeInBash(t *testing.T, dir string, words ...string) string {
	t.Helper()
	if err := os.Symlink(command(t, dir).Path, filepath.Join(dir, "tollgate")); err != nil {
		t.Fatal(err)
	}
	script := `source <(tollgate completion bash); complete -p tollgate >/dev/null || exit 3
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _tollgate; printf '%s\n' "${COMPREPLY[@]}"`
	c := exec.Command("bash", append([]string{"--norc", "-c", script, "bash", "tollgate"}, words...)...)
	c.Env = append(os.Environ(), asCommand+"=1", "GORACE=atexit_sleep_ms=0", "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v: %s", words, err, out)
	}
	return strings.Join(strings.Fields(string(out)), " ")
}
