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
func listEntries(t *testing.T, dir string, args ...string) []map[string]any {
	t.Helper()
	list, _ := must(t, dir, args...)["data"].([]any)
	rows := make([]map[string]any, len(list))
	for i := range list {
		rows[i], _ = list[i].(map[string]any)
	}
	return rows
}

// csvRows runs a command with --csv and returns its rows as maps by column.
func csvRows(t *testing.T, dir string, args ...string) []map[string]string {
	t.Helper()
	got := tollgate(t, dir, append(args, "--csv")...)
	lines, err := csv.NewReader(strings.NewReader(got.out)).ReadAll()
	if err != nil || got.code != 0 || len(lines) == 0 {
		t.Fatalf("%v --csv ended with %+v (%v), want CSV", args, got, err)
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

// TestCreditWithReference checks that a credit with a used reference moves nothing, or fails if
// its amount differs.
func TestCreditWithReference(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		dir, db := t.TempDir(), "--database="+url
		id, _ := must(t, dir, "account", "create", "--name", "Acme", db)["id"].(string)
		for range 2 {
			if got := must(t, dir, "account", "credit", id, "5", "--reference", "pi_1", db); got["balance_usd"] != 5.0 {
				t.Errorf("a credit with the reference pi_1 printed %v, want the balance 5", got)
			}
		}
		if got := tollgate(t, dir, "account", "credit", id, "6", "--reference", "pi_1", db); got.code != 2 ||
			!strings.Contains(got.errors, "reference: This reference already belongs to a credit of 5 USD") {
			t.Errorf("another amount with the same reference ended with %+v, want exit 2", got)
		}
		if got := listEntries(t, dir, "account", "entries", id, db)[0]; got["reference"] != "pi_1" {
			t.Errorf("the entry is %v, want the reference pi_1", got)
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
				t.Errorf("a credit with the same Idempotency-Key printed %v, want the balance 5", got)
			}
		}
		if got := tollgate(t, dir, "account", "credit", id, "6", "--idempotency-key", "once", db); got.code != 2 ||
			!strings.Contains(got.errors, "--idempotency-key") {
			t.Errorf("another amount with the same Idempotency-Key ended with %+v, want exit 2", got)
		}
		created := tollgateWithInput(t, dir, "correct horse\n", "user", "create", id, "--email", "Ada@example.com", "--password", "-",
			"--operator", db)
		if created.code != 0 || !strings.Contains(created.out, "ada@example.com") {
			t.Fatalf("user create ended with %+v, want the email in lower case", created)
		}
		user, _ := listEntries(t, dir, "user", "list", id, db)[0]["id"].(string)
		must(t, dir, "user", "create", id, "--email", "boss@example.com", "--role", "owner", db) // one owner must stay
		if got := must(t, dir, "user", "disable", user, db); got["disabled"] != true || got["operator"] != true {
			t.Errorf("user disable printed %v, want a disabled operator", got)
		}
		must(t, dir, "user", "enable", user, db)
		if got := must(t, dir, "user", "change", user, "--no-operator", db); got["disabled"] != false || got["operator"] != false {
			t.Errorf("user change --no-operator printed %v, want an enabled user, no operator", got)
		}
		for role, want := range map[string]any{"support": "support", "none": nil} {
			if got := must(t, dir, "user", "change", user, "--role", role, db); got["role"] != want {
				t.Errorf("user change --role %s printed %v, want the role %v", role, got, want)
			}
		}
		if got := must(t, dir, "user", "change", user, "--no-second-factor", db); got["second_factor"] != false {
			t.Errorf("user change --no-second-factor printed %v, want no second factor", got)
		}
		if got := must(t, dir, "user", "link", user, db); got["kind"] != "reset" || got["user"] != user ||
			!strings.HasPrefix(fmt.Sprint(got["link"]), "http://127.0.0.1:0/console/link#") {
			t.Errorf("user link printed %v, want a reset link of the user", got)
		}
		invited := must(t, dir, "user", "create", id, "--email", "bob@example.com", "--public-url", "https://gate.example", db)
		if !strings.HasPrefix(fmt.Sprint(invited["link"]), "https://gate.example/console/link#") || invited["has_password"] != false {
			t.Errorf("user create without a password printed %v, want a link at the public URL", invited)
		}
		must(t, dir, "user", "delete", fmt.Sprint(invited["id"]), db)
		for _, q := range []string{"acme", "ADA@", id} {
			if list := listEntries(t, dir, "account", "list", "--q", q, db); len(list) != 1 || list[0]["id"] != id {
				t.Errorf("the search for %q found %v, want account %s", q, list, id)
			}
		}
		must(t, dir, "user", "delete", user, db)
		if list := listEntries(t, dir, "account", "list", "--q", "ada@", db); len(list) != 0 {
			t.Errorf("the search for a deleted user found %v", list)
		}
		key := must(t, dir, "key", "create", id, db)
		if list := listEntries(t, dir, "key", "list", "--hint", fmt.Sprint(key["hint"]), db); len(list) != 1 || list[0]["id"] != key["id"] {
			t.Errorf("the search by hint found %v, want key %v", list, key["id"])
		}
		rows := csvRows(t, dir, "account", "entries", id, db)
		if len(rows) != 1 || rows[0]["usd"] != "5" || rows[0]["kind"] != "credit" || !strings.HasSuffix(rows[0]["created"], "Z") {
			t.Errorf("the entries as CSV are %v, want a credit of 5 USD", rows)
		}
		must(t, dir, "account", "credit", id, "7", db)
		must(t, dir, "account", "credit", id, "-1", db)
		for args, want := range map[string]int{"": 3, "--limit 2": 2, "--kind credit": 3, "--kind charge": 0, "--since 2100-01-01": 0,
			"--until 2020-01-01": 0} {
			if rows := csvRows(t, dir, append([]string{"account", "entries", id, db}, strings.Fields(args)...)...); len(rows) != want {
				t.Errorf("account entries %s --csv printed %v, want %d rows", args, rows, want)
			}
		}
		if got := tollgate(t, dir, "account", "entries", id, "--limit", "2", "--csv", db); !strings.Contains(got.errors,
			"there are more entries: continue with --after ent_") {
			t.Errorf("a page of entries as CSV ended with %+v, want a message about --after", got)
		}
		if got := tollgate(t, dir, "account", "entries", id, "--kind", "gift", db); got.code != 2 || !strings.Contains(got.errors, "--kind: ") {
			t.Errorf("an unknown kind ended with %+v, want exit 2 and --kind", got)
		}
		if got := tollgate(t, dir, "account", "entries", "acct_none", "--csv", db); got.code != 1 || got.out != "" {
			t.Errorf("the entries of an unknown account ended with %+v, want exit 1 without output", got)
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
			t.Fatalf("created the codes %v, want 2 of 2.5 USD that expire", codes)
		}
		must(t, dir, "codes", "void", codes[0]["id"], db)
		states := map[string]string{}
		for _, c := range csvRows(t, dir, "codes", "list", db) {
			states[c["id"]] = c["state"] + c["code"]
		}
		if len(states) != 2 || states[codes[0]["id"]] != "void" || states[codes[1]["id"]] != "unused" {
			t.Errorf("the states of the codes are %v, want void and unused, without the codes", states)
		}
	})
}

// TestRequestAndLineCommands checks the commands request, usage, job and line on the database of
// a running service.
func TestRequestAndLineCommands(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		dir, db := t.TempDir(), "--database="+url
		applySandboxCatalog(t, dir, "{}", db)
		id, _ := must(t, dir, "account", "create", "--name", "acme", db)["id"].(string)
		must(t, dir, "account", "credit", id, "5", db)
		key := must(t, dir, "key", "create", id, db)
		secret, _ := key["key"].(string)
		s := serve(t, dir, db)
		if status, body := s.request("POST", "/v1/chat/completions", secret, question); status != 200 {
			t.Fatalf("the chat request got %d %s, want 200", status, body)
		}
		s.request("POST", "/v1/chat/completions", secret, `{"model":"none","messages":[]}`)
		billed := csvRows(t, dir, "request", "list", "--key", fmt.Sprint(key["id"]), "--status", "200", "--since", "1h", db)
		if len(billed) != 1 || billed[0]["model"] != "swift-1" || billed[0]["outcome"] != "billed" {
			t.Fatalf("the requests with status 200 are %v, want one billed request to swift-1", billed)
		}
		if all := listEntries(t, dir, "request", "list", db); len(all) != 2 {
			t.Errorf("all requests are %v, want 2", all)
		}
		if none := listEntries(t, dir, "request", "list", "--since", "2099-01-01", db); len(none) != 0 {
			t.Errorf("the requests since 2099 are %v, want none", none)
		}
		request := must(t, dir, "request", "show", billed[0]["id"], db)
		cost, err := strconv.ParseFloat(billed[0]["cost_usd"], 64)
		if err != nil || request["held_usd"] == nil || request["price"] == nil || request["usage_source"] == nil || request["cost_usd"] != cost {
			t.Errorf("request show printed %v, want hold, price, source and the cost %v", request, cost)
		}
		usage := csvRows(t, dir, "usage", "--group-by", "account,model", db)
		if len(usage) != 1 || usage[0]["account"] != id || usage[0]["cost_usd"] != billed[0]["cost_usd"] {
			t.Errorf("the usage is %v, want the cost of the request", usage)
		}
		if jobs := listEntries(t, dir, "job", "list", db); len(jobs) != 0 {
			t.Errorf("the jobs are %v, want none", jobs)
		}
		var lines []map[string]any
		scene.Eventually(t, "the report of the node, some seconds after its start", func() bool {
			lines = listEntries(t, dir, "line", "list", db)
			return len(lines) > 0
		})
		if len(lines) != 1 || lines[0]["state"] != "in_service" {
			t.Fatalf("the lines are %v, want one line in service", lines)
		}
		line := fmt.Sprint(lines[0]["id"])
		if got := must(t, dir, "line", "drain", line, db); got["state"] != "drained" {
			t.Errorf("line drain printed %v, want the state drained", got)
		}
		if got := must(t, dir, "line", "resume", line, db); got["state"] != "in_service" {
			t.Errorf("line resume printed %v, want the state in_service", got)
		}
		s.stop()
	})
}

// TestJobCommands checks the commands of jobs, including those to the running service.
func TestJobCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir, "--admin-token", "letmein")
	service := []string{"--admin-token", "letmein", "--listen", strings.TrimPrefix(s.base, "http://")}
	id, _ := listEntries(t, dir, "account", "list")[0]["id"].(string)
	secret, _ := must(t, dir, "key", "create", id)["key"].(string)
	if status, body := s.request("POST", "/v1/images/generations", secret, `{"model":"sandbox-image","prompt":"a"}`); status != 202 {
		t.Fatalf("the submission got %d %s, want 202", status, body)
	}
	job, _ := listEntries(t, dir, "job", "list")[0]["id"].(string)
	canceled := tollgate(t, dir, append([]string{"job", "cancel", job}, service...)...)
	if canceled.code != 0 && !strings.Contains(canceled.errors, "has ended") {
		t.Errorf("job cancel ended with %+v, want exit 0 or an error because the job has ended", canceled)
	}
	requeue := append([]string{"job", "requeue", job, "--force", "--idempotency-key", "anew"}, service...)
	first, second := must(t, dir, requeue...), must(t, dir, requeue...)
	if first["id"] == job || first["id"] != second["id"] {
		t.Errorf("job requeue printed %v and the repetition %v, want the same new job", first, second)
	}
	if got := must(t, dir, "job", "show", fmt.Sprint(first["id"])); got["account"] != id {
		t.Errorf("job show printed %v, want a job of account %s", got, id)
	}
	if jobs := csvRows(t, dir, "job", "list", "--account", id); len(jobs) != 2 {
		t.Errorf("the jobs of the account are %v, want 2", jobs)
	}
	otherToken := tollgate(t, dir, "job", "cancel", job, "--admin-token", "other", "--listen", service[3])
	if otherToken.code != 1 || !strings.Contains(otherToken.errors, "invalid_api_key") {
		t.Errorf("job cancel with another token ended with %+v, want exit 1", otherToken)
	}
	s.stop()
}

// TestHealth checks that health succeeds silently while the service runs, and fails otherwise.
func TestHealth(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir)
	listen := strings.TrimPrefix(s.base, "http://")
	if got := tollgate(t, dir, "health", "--listen", listen); got.code != 0 || got.out+got.errors != "" {
		t.Errorf("health of a running service ended with %+v, want exit 0 without output", got)
	}
	s.stop()
	if got := tollgate(t, dir, "health", "--listen", listen); got.code != 1 || !strings.Contains(got.errors, listen+"; set --listen") {
		t.Errorf("health of an ended service ended with %+v, want exit 1 and the address", got)
	}
	if got := tollgate(t, dir, "health", "--listen", "127.0.0.1:0"); got.code != 2 || !strings.Contains(got.errors, "listen") {
		t.Errorf("health without a port ended with %+v, want exit 2", got)
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
				t.Errorf("the command ended with %+v, want exit 0 without errors", got)
			}
			for _, text := range c.want {
				if !strings.Contains(got.out, text) {
					t.Errorf("the help lacks %q: %s", text, got.out)
				}
			}
			for _, text := range c.notWant {
				if strings.Contains(got.out, text) {
					t.Errorf("the help contains %q: %s", text, got.out)
				}
			}
		})
	}
}

// TestCompletion checks the completions of commands, flags and ids, and the script in a real bash.
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
			t.Errorf("complete %q ended with %+v, want %q", words, got, want)
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
	applySandboxCatalog(t, dir, "{}")
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
		t.Errorf("the completion of an account is %+v, want its id and name", got)
	}
	if got := complete("line dr"); got.out != "drain\tTake a line out of service on all nodes until it is resumed.\n" {
		t.Errorf("the completion of a command is %+v, want its name and help", got)
	}
	for _, shell := range []string{"zsh", "fish"} {
		if got := tollgate(t, dir, "completion", shell); got.code != 0 || !strings.Contains(got.out, "complete -- ") {
			t.Errorf("completion %s ended with %+v, want a script", shell, got)
		}
	}
	if got := completeInBash(t, dir, "account", "cre"); got != "create credit" {
		t.Errorf("bash completes `account cre` to %q, want create and credit", got)
	}
}

// completeInBash returns the completions of the script in bash.
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
		t.Fatalf("bash ended with %v: %s", err, out)
	}
	return strings.Join(strings.Fields(string(out)), " ")
}
