// Package imports owns the tests of migrations: tollgate imports the database of another gateway, and
// the users keep their keys.
package imports

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
)

// fixture returns the dump of another gateway's database, with the address of a test provider.
func fixture(t *testing.T, name, provider string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "importer", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(raw), "http://upstream.example", provider)
}

// load executes a dump on a database.
func load(t *testing.T, url, dump string) {
	t.Helper()
	if _, err := scene.OpenDatabase(t, url).Exec(dump); err != nil {
		t.Fatal(err)
	}
}

// loadDump creates a database from a dump and returns the database's address for the import command.
func loadDump(t *testing.T, name, dump string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "source.db")
	switch {
	case strings.Contains(name, ".sqlite."):
		load(t, "sqlite:"+path, dump)
		return path
	case strings.Contains(name, ".postgres."):
		url := storetest.PostgreSQL(t)
		load(t, url, dump)
		return url
	}
	address := storetest.MariaDB(t)
	storetest.LoadMariaDB(t, address, dump)
	return address
}

// file writes a file and returns its path.
func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// tokenOf finds the key of a token in a dump.
func tokenOf(t *testing.T, dump, name string) string {
	t.Helper()
	match := regexp.MustCompile(`'([A-Za-z0-9]{48})', ?\d, ?'` + name + `'`).FindStringSubmatch(dump)
	if match == nil {
		t.Fatalf("the dump has no token %s", name)
	}
	return "sk-" + match[1]
}

// report is the output of an import.
type report struct {
	Counts []struct {
		What  string `json:"what"`
		Found int    `json:"found"`
		Made  int    `json:"made"`
		There int    `json:"there"`
		Left  int    `json:"left"`
	} `json:"counts"`
	Credit money.Amount `json:"credit_usd"`
}

// counts returns the numbers of new and of existing entries of a kind.
func (r report) counts(kind string) (created, existing int) {
	for _, c := range r.Counts {
		if c.What == kind {
			return c.Made, c.There
		}
	}
	return -1, -1
}

// run runs a command and requires success.
func run(t *testing.T, binary string, settings map[string]string, args ...string) string {
	t.Helper()
	out, errs, code := scene.Run(t, binary, settings, args...)
	if code != 0 {
		t.Fatalf("%v: exit %d, %s", args, code, errs)
	}
	return out
}

// importTwice imports a source twice, after a dry run, and applies the imported catalog.
func importTwice(t *testing.T, binary string, settings map[string]string, args ...string) report {
	t.Helper()
	catalog := filepath.Join(t.TempDir(), "imported.yaml")
	args = append(append([]string{"import"}, args...), "--write-catalog", catalog)
	read := func(args ...string) (r report) {
		t.Helper()
		if err := json.Unmarshal([]byte(run(t, binary, settings, args...)), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	dry := read(append(args, "--dry-run")...)
	if _, err := os.Stat(catalog); err == nil {
		t.Error("a dry run wrote the catalog")
	}
	first := read(args...)
	if dry.Credit != first.Credit || len(dry.Counts) != len(first.Counts) {
		t.Errorf("the dry run reported %+v, the import %+v", dry, first)
	}
	for i, c := range first.Counts {
		if dry.Counts[i] != c || c.Found != c.Made+c.There+c.Left {
			t.Errorf("the dry run reported %+v, the import %+v", dry.Counts[i], c)
		}
	}
	again := read(args...)
	for _, what := range []string{"accounts", "keys", "sign_ins"} {
		created, _ := first.counts(what)
		if createdAgain, existing := again.counts(what); createdAgain != 0 || existing != created {
			t.Errorf("second import: %d %s created, %d existing; want 0 and %d", createdAgain, what, existing, created)
		}
	}
	if again.Credit != 0 {
		t.Errorf("the second import credited %s", again.Credit)
	}
	run(t, binary, settings, "apply", catalog)
	return first
}

// balance returns the balance of the account with a name.
func balance(t *testing.T, g *scene.Gateway, name string) money.Amount {
	t.Helper()
	var list struct {
		Data []struct {
			Name    string       `json:"name"`
			Balance money.Amount `json:"balance_usd"`
		} `json:"data"`
	}
	g.Process.Admin(http.MethodGet, "/accounts", nil, &list)
	for _, a := range list.Data {
		if a.Name == name {
			return a.Balance
		}
	}
	t.Fatalf("no account is named %s: %+v", name, list.Data)
	return 0
}

// provider starts a provider whose answers have a known cost. A wrong credential fails the test.
func provider(t *testing.T, credential string) *fakeprovider.Server {
	t.Helper()
	p := fakeprovider.New(t)
	p.Always(func(r fakeprovider.Request) fakeprovider.Reply {
		if got := r.Header.Get("Authorization"); got != "Bearer "+credential {
			t.Errorf("the provider got the credential %q", got)
		}
		return fakeprovider.Answer("hello", 1000, 500)
	})
	return p
}

// question is the request of the other gateway's users.
const question = `{"model":"gpt-4o","max_tokens":500,"messages":[{"role":"user","content":"Hello!"}]}`

// caller sends requests with the keys of the other gateway.
type caller struct {
	*testing.T
	*scene.Gateway
}

// asks sends question with a key and checks the status of the answer and the account's charge.
func (c caller) asks(account, key string, status int, charged money.Amount) {
	c.Helper()
	before := balance(c.T, c.Gateway, account)
	if a := c.Send(c.T, scene.Chat, key, question); a.Status != status {
		c.Errorf("a key of %s got %d: %+v", account, a.Status, a.Err)
	}
	if after := balance(c.T, c.Gateway, account); before-after != charged {
		c.Errorf("%s was charged %s; want %s", account, before-after, charged)
	}
}

// price is the cost of question: 1000 tokens at 2.5 and 500 at 10 US dollars per million.
const price = money.USD * 75 / 10_000

// TestUsersOfOneAPIGoOn imports databases of one-api and new-api into SQLite and PostgreSQL. A user's
// key works at the same prices as before, and stops at its limit.
func TestUsersOfOneAPIGoOn(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	for _, name := range []string{
		"one-api.sqlite.sql", "one-api.postgres.sql", "one-api.mysql.sql", "new-api.sqlite.sql", "new-api.mysql.sql",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.EachEmpty(t, func(t *testing.T, url string) {
				upstream := provider(t, "sk-upstream-main-7d2f")
				dump := fixture(t, name, strings.TrimSuffix(upstream.URL(), "/v1"))
				program, _, _ := strings.Cut(name, ".")
				importTwice(t, binary, map[string]string{"database": url}, program, loadDump(t, name, dump))
				c := caller{t, scene.Open(t, binary, url, nil)}
				c.asks("Alice (alice)", tokenOf(t, dump, "laptop"), 200, price)
				c.asks("Alice (alice)", tokenOf(t, dump, "ci"), 200, price)
				c.asks("Alice (alice)", tokenOf(t, dump, "old"), 401, 0)
				c.asks("Bob (bob)", tokenOf(t, dump, "office"), 403, 0)
				c.asks("Bob (bob)", tokenOf(t, dump, "spent"), 402, 0)
				c.asks("Bob (bob)", tokenOf(t, dump, "paused"), 401, 0)
				c.asks("Carol (carol)", tokenOf(t, dump, "carols"), 401, 0)
				if name == "new-api.mysql.sql" { // only this dump has a token of a group with another price
					c.asks("Bob (bob)", tokenOf(t, dump, "cheap"), 200, price*8/10)
				}
				c.Audit(t)
			})
		})
	}
}

// TestUsersOfLiteLLMGoOn does the same for LiteLLM. Its database only has the hashes of keys.
func TestUsersOfLiteLLMGoOn(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	storetest.EachEmpty(t, func(t *testing.T, url string) {
		upstream := provider(t, "sk-upstream-main-7d2f")
		var keys map[string]string
		if err := json.Unmarshal([]byte(fixture(t, "litellm.keys.json", "")), &keys); err != nil {
			t.Fatal(err)
		}
		config := file(t, "config.yaml", fixture(t, "litellm.config.yaml", strings.TrimSuffix(upstream.URL(), "/v1")))
		const dump = "litellm.postgres.sql"
		importTwice(t, binary, map[string]string{"database": url}, "litellm", loadDump(t, dump, fixture(t, dump, "")), "--litellm-config", config,
			"--models", file(t, "models.json", fixture(t, "litellm.models.json", "")), "--unlimited-usd", "3")
		c := caller{t, scene.Open(t, binary, url, nil)}
		for _, key := range []string{"adas", "daily", "total", "soon", "own"} {
			c.asks("Ada (ada)", keys[key], 200, price)
		}
		c.asks("ben", keys["bens"], 200, price)
		c.asks("Red team (team-red)", keys["teams"], 200, price)
		c.asks("Red team (team-red)", keys["stopped"], 401, 0)
		c.asks("lone (sk-...x9Vg)", keys["lone"], 200, price)
		c.asks("Ada (ada)", keys["ui"], 401, 0)
		c.Audit(t)
	})
}
