package importer

import (
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"tollgate/internal/account"
	"tollgate/internal/app"
	"tollgate/internal/ledger/audit"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// importTime is the time of the imports. One token of each fixture has expired by then.
var importTime = time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)

// sample reads a file of testdata.
func sample(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// sqliteFile creates an SQLite file from a dump.
func sqliteFile(t *testing.T, dump string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "source.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(dump); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// oldOneAPI creates the SQLite file of one-api's fixture.
func oldOneAPI(t *testing.T) string {
	t.Helper()
	return sqliteFile(t, sample(t, "one-api.sqlite.sql"))
}

// file writes a file and returns its path.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// mariaDB creates a MariaDB database from a dump.
func mariaDB(t *testing.T, dump string) string {
	t.Helper()
	address := storetest.MariaDB(t)
	storetest.LoadMariaDB(t, address, dump)
	return address
}

func read(t *testing.T, program Program, source string, change func(*Options)) *Contents {
	t.Helper()
	o := Options{Program: program, Source: source, Now: importTime, Secrets: "/secrets", Providers: app.Providers()}
	if change != nil {
		change(&o)
	}
	c, err := Read(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// write imports c and returns the report.
func write(t *testing.T, db *store.DB, c *Contents, dry bool) *ImportReport {
	t.Helper()
	done, err := c.Write(t.Context(), db, dry)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// countOf returns the counts of a kind.
func countOf(c *ImportReport, what string) KindCount {
	i := slices.IndexFunc(c.Counts, func(n *KindCount) bool { return n.What == what })
	return *c.Counts[i]
}

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := sample(t, name); got != want {
		t.Errorf("%s differs; -update writes it anew. got\n%s\nwant\n%s", name, got, want)
	}
}

func fixture(t *testing.T, program Program) *Contents {
	t.Helper()
	switch program {
	case OneAPI:
		return read(t, OneAPI, oldOneAPI(t), nil)
	case NewAPI:
		return read(t, NewAPI, mariaDB(t, sample(t, "new-api.mysql.sql")), nil)
	}
	return read(t, LiteLLM, liteLLMDatabase(t), func(o *Options) {
		o.Config, o.Models = filepath.Join("testdata", "litellm.config.yaml"), filepath.Join("testdata", "litellm.models.json")
		o.Unlimited = 3 * money.USD
	})
}

// liteLLMDatabase creates the PostgreSQL database of LiteLLM's fixture.
func liteLLMDatabase(t *testing.T) string {
	t.Helper()
	url := storetest.PostgreSQL(t)
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(sample(t, "litellm.postgres.sql")); err != nil {
		t.Fatal(err)
	}
	return url
}

// TestFixtures compares the catalogs and reports of the fixtures with golden files.
func TestFixtures(t *testing.T) {
	t.Parallel()
	for _, program := range []Program{OneAPI, NewAPI, LiteLLM} {
		t.Run(string(program), func(t *testing.T) {
			t.Parallel()
			c := fixture(t, program)
			golden(t, string(program)+".catalog.yaml", string(c.Document.YAML()))
			db := storetest.Open(t, storetest.SQLite(t), store.Options{})
			golden(t, string(program)+".report.txt", write(t, db, c, false).Text())
		})
	}
}

// keysOf returns an account and its keys by name.
func keysOf(t *testing.T, db *store.DB, name string) (keys map[string]account.Key, owner account.Account) {
	t.Helper()
	keys = map[string]account.Key{}
	storetest.View(t, db, func(tx *store.Tx) error {
		accounts, _, err := account.ListTx(tx, "", 100)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(accounts, func(a account.Account) bool { return a.Name == name })
		if i < 0 {
			t.Fatalf("no account is called %s", name)
		}
		owner = accounts[i]
		list, _, err := account.ListKeysTx(tx, owner.ID, "", 100)
		for _, k := range list {
			keys[k.Name] = k
		}
		return err
	})
	return keys, owner
}

func TestLimitsOfKeys(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.SQLite(t), store.Options{})
	write(t, db, fixture(t, OneAPI), false)
	alice, a := keysOf(t, db, "Alice (alice)")
	bob, b := keysOf(t, db, "Bob (bob)")
	dave, d := keysOf(t, db, "Dave (dave)")
	if a.Money.Balance != 9_999_818_000 || b.Money.Balance != 24_691_356_000 || b.Prices.Factor != 800_000 || a.Prices.Factor != money.One {
		t.Errorf("got balances %s and %s, factors %s and %s; want 9.999818 and 24.691356, 1 and 0.8",
			a.Money.Balance, b.Money.Balance, a.Prices.Factor, b.Prices.Factor)
	}
	if !strings.Contains(b.Note, "user 3 (bob), group vip") || d.Money.Balance != 0 {
		t.Errorf("got note %q, balance %s; want user 3 (bob), group vip, and 0", b.Note, d.Money.Balance)
	}
	if got := alice["ci"]; *got.Ledger.Limits.TotalLimit != 1_999_906_000 ||
		!slices.Equal(got.AllowedModels, []string{"gpt-4o", "gpt-4o-mini"}) {
		t.Errorf("ci has %+v, %v; want a total limit of 1.999906 and gpt-4o, gpt-4o-mini", got.Ledger.Limits, got.AllowedModels)
	}
	if got := alice["laptop"]; got.Ledger.Limits.TotalLimit != nil || !slices.Equal(got.AllowedModels,
		[]string{"deepseek-chat", "gpt-4o", "gpt-4o-mini", "smart"}) { // without the channel of Anthropic, for group vip only
		t.Errorf("laptop has %+v, %v; want no total limit and all four models of its group", got.Ledger.Limits, got.AllowedModels)
	}
	if got := bob["office"]; !slices.Equal(account.ShowIPs(got.AllowedIPs), []string{"192.0.2.0/24"}) {
		t.Errorf("office is allowed %v, want 192.0.2.0/24", got.AllowedIPs)
	}
	if got := bob["spent"]; *got.Ledger.Limits.TotalLimit != 0 || got.Ledger.Limits.Disabled {
		t.Errorf("spent has %+v, want an enabled key with a total limit of 0", got.Ledger.Limits)
	}
	if !alice["old"].Ledger.Limits.Disabled || alice["later"].Ledger.Limits.Disabled || !bob["paused"].Ledger.Limits.Disabled {
		t.Error("old and paused must be disabled, and later not")
	}
	if got := dave["default"]; !got.Ledger.Limits.Disabled || got.AllowedModels != nil {
		t.Errorf("a key of a group without channels has %+v, %v; want it disabled without a list", got.Ledger.Limits, got.AllowedModels)
	}
}

func TestLimitsOfLiteLLM(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.SQLite(t), store.Options{})
	write(t, db, fixture(t, LiteLLM), false)
	ada, a := keysOf(t, db, "Ada (ada)")
	_, ben := keysOf(t, db, "ben")
	red, r := keysOf(t, db, "Red team (team-red)")
	_, lone := keysOf(t, db, "lone (sk-...x9Vg)")
	for name, balances := range map[string][2]money.Amount{
		"ada": {a.Money.Balance, 19_887_654_300}, "ben": {ben.Money.Balance, 3 * money.USD}, "team": {r.Money.Balance, 37_654_330_000},
		"lone": {lone.Money.Balance, money.USD},
	} {
		if balances[0] != balances[1] {
			t.Errorf("%s has %s, want %s", name, balances[0], balances[1])
		}
	}
	daily := ada["daily"].Ledger.Limits
	if *daily.DailyBudget != 5*money.USD || daily.TotalLimit != nil || *daily.RPM != 60 {
		t.Errorf("daily has %+v, want a daily budget of 5, no total limit and 60 requests per minute", daily)
	}
	if got := *ada["total"].Ledger.Limits.TotalLimit; got != 2_399_999_900 {
		t.Errorf("total has %s left, want 2.3999999", got)
	}
	if got := red["teams"].AllowedModels; !slices.Equal(got, []string{"gpt-4o", "fast"}) {
		t.Errorf("the team's key is allowed %v, want gpt-4o and fast", got)
	}
	if !red["stopped"].Ledger.Limits.Disabled || len(ada) != 5 {
		t.Errorf("ada has %d keys, want 5; stopped has %+v, want it disabled", len(ada), red["stopped"].Ledger.Limits)
	}
}

// TestUnreadableNumbersAreReported checks that each value without a number has a remark and a safe
// substitute.
func TestUnreadableNumbersAreReported(t *testing.T) {
	t.Parallel()
	oneAPI := sample(t, "one-api.sqlite.sql") + `
UPDATE users SET quota='many' WHERE username='alice';
UPDATE users SET role='root', status='on' WHERE username='bob';
UPDATE tokens SET remain_quota='1,000', expired_time='never' WHERE name='ci';
UPDATE tokens SET status='yes' WHERE name='later';
UPDATE channels SET priority='high' WHERE id=1;
UPDATE channels SET weight='-', status='enabled' WHERE id=2;
INSERT INTO redemptions (id, name, status) VALUES (77, 'gift', 'unused');`
	cases := []struct {
		about, name, column, text, as string
	}{
		{"user", "alice", "quota", "many", "0"},
		{"user", "bob", "role", "root", "0"},
		{"user", "bob", "status", "on", "switched off"},
		{"token", "ci", "remain_quota", "1,000", "0"},
		{"token", "ci", "expired_time", "never", "expired"},
		{"token", "later", "status", "yes", "switched off"},
		{"channel", "", "priority", "high", "0"},
		{"channel", "", "weight", "-", "0"},
		{"channel", "", "status", "enabled", "switched off"},
		{"redemption code", "", "status", "unused", "switched off"},
	}
	c := read(t, NewAPI, sqliteFile(t, oneAPI), nil) // new-api reads weights
	for _, want := range cases {
		what := "its " + want.column + " is not a number and counts as " + want.as + ": " + strconv.Quote(want.text)
		found := 0
		for _, r := range c.Remarks {
			if r.About == want.about && (want.name == "" || r.Name == want.name) && r.ID != "" && r.What == what {
				found++
			}
		}
		if found != 1 {
			t.Errorf("got %d remarks on %s %s, want 1: %s", found, want.about, want.name, what)
		}
	}
	for _, a := range c.Accounts {
		if a.Mark == "alice" && a.Credit != 0 || a.Mark == "bob" && !a.Disabled {
			t.Errorf("%s has %s, disabled %t; want alice without a credit and bob disabled", a.Mark, a.Credit, a.Disabled)
		}
		for _, k := range a.Keys {
			if off := slices.Contains([]string{"ci", "later"}, k.Settings.Name); off && !k.Settings.Disabled {
				t.Errorf("key %s is enabled, want it disabled", k.Settings.Name)
			}
		}
	}
}

// TestUnreadableNumbersOfLiteLLM is TestUnreadableNumbersAreReported for LiteLLM. A copy of its
// database may lack the column types.
func TestUnreadableNumbersOfLiteLLM(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		column, text string
		allowed      func(k OldKey) bool
	}{
		{"max_budget", "ten", func(k OldKey) bool { return k.Settings.TotalLimit == nil || *k.Settings.TotalLimit > 0 }},
		{"max_budget", "0x10", func(k OldKey) bool { return k.Settings.TotalLimit == nil || *k.Settings.TotalLimit > 0 }},
		{"spend", "-", func(k OldKey) bool { return *k.Settings.TotalLimit > 0 }},
		{"spend", "1/3", func(k OldKey) bool { return *k.Settings.TotalLimit > 0 }},
		{"rpm_limit", "sixty", func(k OldKey) bool { return !k.Settings.Disabled }},
		{"rpm_limit", "1.5", func(k OldKey) bool { return !k.Settings.Disabled }},
	} {
		row := record{"token": strings.Repeat("a", 64), "key_name": "sk-...abcd", "user_id": "ada", "max_budget": "5", "spend": "1"}
		row[test.column] = test.text
		n := notes{}
		s := liteLLM{draft: newDraft(&n, nil, ""), now: importTime, budgets: map[string]record{}}
		k := s.keyOf(row, &liteAccount{})
		want := "its " + test.column + " is not a number and counts as 0: " + strconv.Quote(test.text)
		if len(n.Remarks) == 0 || n.Remarks[0].What != want || n.Remarks[0].ID != "sk-...abcd" {
			t.Errorf("%s %s: remarks %+v, want %q", test.column, test.text, n.Remarks, want)
		}
		if test.allowed(k) {
			t.Errorf("%s %s: got %+v, want a key that may spend nothing", test.column, test.text, k.Settings)
		}
	}
}

// TestUnreadableNumbersOfLiteLLMConfig checks that unreadable prices and limits of the config file
// are reported, also if --models has them.
func TestUnreadableNumbersOfLiteLLMConfig(t *testing.T) {
	t.Parallel()
	for _, column := range []string{"input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost",
		"cache_creation_input_token_cost", "input_cost_per_token_above_200k_tokens", "max_input_tokens", "max_output_tokens",
		"max_tokens", "weight", "rpm", "order", "max_parallel_requests"} {
		config := "model_list: [{model_name: gpt-4o, litellm_params: {model: openai/gpt-4o, api_key: k, " + column + ": ten"
		for _, price := range []string{"input_cost_per_token", "output_cost_per_token"} {
			if column != price {
				config += ", " + price + ": 1e-6"
			}
		}
		config += "}}]"
		c := read(t, LiteLLM, "", func(o *Options) {
			o.Config, o.Models = file(t, config), filepath.Join("testdata", "litellm.models.json")
		})
		if !slices.ContainsFunc(c.Remarks, func(r Remark) bool {
			return r.Name == "gpt-4o" && strings.HasSuffix(r.What, `"ten"`) &&
				strings.HasPrefix(r.What, "its "+column+" is not a number and counts as ")
		}) {
			t.Errorf("got remarks %+v, want one on %s", c.Remarks, column)
		}
	}
}

// TestNamesLoseInvisibleCharacters checks that names lose the invisible characters that accounts and
// keys reject.
func TestNamesLoseInvisibleCharacters(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"safe\u202egpj": "safegpj", "\ufeffAda\u200b": "Ada", "a\u2028b\tc": "a b c",
		"\u0915\u094d\u200d\u0937": "\u0915\u094d\u200d\u0937", "\u200b": "user 7",
	} {
		name := nameOr(text, "", "7")
		if err := (&account.NewAccount{Name: name}).Check(); name != want || err != nil {
			t.Errorf("%q became %q, %v; want %q", text, name, err, want)
		}
	}
}

// TestSecondImportAddsOnlyNewEntries checks that a second import adds only new entries, and that the
// books stay correct.
func TestSecondImportAddsOnlyNewEntries(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		dump := sample(t, "one-api.sqlite.sql")
		first := write(t, db, read(t, OneAPI, sqliteFile(t, dump), nil), false)
		dump += `UPDATE users SET quota = 1 WHERE username = 'alice';
			INSERT INTO tokens (id, user_id, key, status, name, expired_time, unlimited_quota) VALUES
			(50, 2, 'newKeyOfAliceABCDEFGHIJKLMNOPQRSTUVWXYZ01234567', 1, 'new', -1, 1);`
		again := write(t, db, read(t, OneAPI, sqliteFile(t, dump), nil), false)
		if n := countOf(again, "accounts"); n.Made != 0 || n.There != countOf(first, "accounts").Made || again.Credit != 0 {
			t.Errorf("accounts: got %+v with %s credited, want all of the first import and no credit", n, again.Credit)
		}
		if n := countOf(again, "keys"); n.Made != 1 || n.There != countOf(first, "keys").Made {
			t.Errorf("keys: got %+v, want one new key", n)
		}
		if keys, a := keysOf(t, db, "Alice (alice)"); keys["new"].ID == "" || a.Money.Balance != 9_999_818_000 {
			t.Errorf("alice has %s and the keys %v; want 9.999818 and the key new", a.Money.Balance, keys)
		}
		findings, err := audit.Run(t.Context(), db, audit.WithoutProcess(db.IsServed), account.AuditTx)
		if err != nil || !findings.OK {
			t.Errorf("audit: got %+v, %v; want no differences", findings, err)
		}
	})
}

// TestImportCompletesAnInterruptedOne interrupts an import between accounts and within an account. The
// next import adds the rest.
func TestImportCompletesAnInterruptedOne(t *testing.T) {
	t.Parallel()
	source := oldOneAPI(t)
	for steps := range 5 {
		db := storetest.Open(t, storetest.SQLite(t), store.Options{})
		c := read(t, OneAPI, source, nil)
		c.Accounts = c.Accounts[:steps]
		write(t, db, c, false)
		if steps > 0 { // and within an account, which then has only some of its keys
			c = read(t, OneAPI, source, nil)
			whole := c.Accounts[steps].Keys
			c.Accounts[steps].Keys = whole[:len(whole)/2]
			c.Accounts = c.Accounts[steps : steps+1]
			write(t, db, c, false)
		}
		done := write(t, db, read(t, OneAPI, source, nil), false)
		for _, what := range []string{"accounts", "keys"} {
			if n := countOf(done, what); n.Found != n.Made+n.There || n.Left != 0 {
				t.Errorf("after %d accounts: got %+v, want all entries made or there", steps, n)
			}
		}
		if _, a := keysOf(t, db, "Alice (alice)"); a.Money.Balance != 9_999_818_000 {
			t.Errorf("after %d accounts alice has %s, want 9.999818", steps, a.Money.Balance)
		}
	}
}

// TestDryRunsWriteNothing checks that a dry run writes nothing and returns the report of an import. One
// account has more keys than a transaction.
func TestDryRunsWriteNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		plan := func() *Contents {
			c := fixture(t, OneAPI)
			for i := range 2*keysAtOnce + 7 {
				proof, err := account.ProofOf("sk-" + strings.Repeat("x", 30+i%100) + strings.Repeat("y", i/100))
				if err != nil {
					t.Fatal(err)
				}
				c.Accounts[1].Keys = append(c.Accounts[1].Keys, OldKey{ID: "more" + strings.Repeat("i", i), Proof: proof})
				c.count("keys").Found++
			}
			return c
		}
		dry := write(t, db, plan(), true)
		storetest.View(t, db, func(tx *store.Tx) error {
			accounts, _, err := account.ListTx(tx, "", 10)
			if len(accounts) > 0 {
				t.Errorf("a dry run created %d accounts, want none", len(accounts))
			}
			return err
		})
		done := write(t, db, plan(), false)
		for i, n := range done.Counts {
			if *dry.Counts[i] != *n {
				t.Errorf("the dry run reports %+v, want %+v, as the import does", *dry.Counts[i], *n)
			}
		}
		if dry.Credit != done.Credit || len(dry.Remarks) != len(done.Remarks) {
			t.Errorf("the dry run reports %s and %d remarks, want %s and %d, as the import does",
				dry.Credit, len(dry.Remarks), done.Credit, len(done.Remarks))
		}
	})
}

// TestOtherDatabasesAreNotMixedUp checks that an entry with the identifier of another one is left
// out, and that a name separates two sources.
func TestOtherDatabasesAreNotMixedUp(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		dump := sample(t, "one-api.sqlite.sql")
		write(t, db, read(t, OneAPI, sqliteFile(t, dump), nil), false)
		dump = strings.ReplaceAll(dump, "'alice'", "'zoe'")
		dump = regexp.MustCompile(`'[A-Za-z0-9]{40}([A-Za-z0-9]{8})'`).ReplaceAllString(dump, `'`+strings.Repeat("Z", 40)+`$1'`)
		other := write(t, db, read(t, OneAPI, sqliteFile(t, dump), nil), false)
		if n := countOf(other, "accounts"); n.Left != 1 || n.Made != 0 || other.Credit != 0 {
			t.Errorf("accounts: got %+v with %s credited, want one left out and no credit", n, other.Credit)
		}
		if n := countOf(other, "keys"); n.Left != n.Found {
			t.Errorf("keys: got %+v, want all left out", n)
		}
		if !slices.ContainsFunc(other.Remarks, func(r Remark) bool { return strings.Contains(r.Do, "--name") }) {
			t.Errorf("got remarks %+v, want one that advises --name", other.Remarks)
		}
		named := write(t, db, read(t, OneAPI, sqliteFile(t, dump), func(o *Options) { o.Name = "second" }), false)
		if n := countOf(named, "accounts"); n.Made != n.Found {
			t.Errorf("accounts with a name of the source: got %+v, want all created", n)
		}
		if n := countOf(named, "sign_ins"); n.Left != 2 { // their emails sign in to the accounts of the first
			t.Errorf("sign-ins: got %+v, want 2 left out", n)
		}
	})
}

// TestReportsContainNoSecret checks that neither a report nor the operators' log contains a credential,
// a key or the hash of a password.
func TestReportsContainNoSecret(t *testing.T) {
	t.Parallel()
	secrets := regexp.MustCompile(`sk-[A-Za-z0-9_-]{10,}|'([A-Za-z0-9]{48})'|\$2a\$[^']+|abc\|def`)
	for program, dump := range map[Program]string{OneAPI: "one-api.sqlite.sql", NewAPI: "new-api.mysql.sql", LiteLLM: "litellm.config.yaml"} {
		db := storetest.Open(t, storetest.SQLite(t), store.Options{})
		done := write(t, db, fixture(t, program), false)
		raw, err := json.Marshal(done)
		if err != nil {
			t.Fatal(err)
		}
		output := string(raw) + done.Text() + operatorLog(t, db)
		found := secrets.FindAllString(sample(t, dump), -1)
		if len(found) == 0 {
			t.Errorf("found no secrets in %s, want some", dump)
		}
		for _, secret := range found {
			if strings.Contains(output, strings.Trim(secret, "'")) {
				t.Errorf("%s: the output contains the secret %s, want none", program, secret)
			}
		}
	}
}

// operatorLog returns the rows of the operators' log.
func operatorLog(t *testing.T, db *store.DB) (all string) {
	t.Helper()
	err := db.View(context.Background(), func(tx *store.Tx) error {
		rows, err := store.Column[string](tx, `SELECT act || ' ' || object || before_text || after_text FROM operator_log`)
		all = strings.Join(rows, "\n")
		return err
	})
	if err != nil || all == "" {
		t.Fatalf("the operators' log: %q, %v", all, err)
	}
	return all
}

// TestInvalidSources checks that the error of each invalid source names the problem and shows no
// password.
func TestInvalidSources(t *testing.T) {
	t.Parallel()
	empty := sqliteFile(t, "CREATE TABLE other (id int);")
	text := file(t, "- a\n")
	for name, test := range map[string]struct {
		o    Options
		want string
	}{
		"no file":           {Options{Program: OneAPI, Source: "gone.db"}, "gone.db"},
		"other tables":      {Options{Program: OneAPI, Source: empty}, "no table channels"},
		"not LiteLLM's":     {Options{Program: LiteLLM, Source: empty}, "no table LiteLLM_VerificationToken"},
		"nothing":           {Options{Program: LiteLLM}, "config file"},
		"an empty config":   {Options{Program: LiteLLM, Config: text}, "model_list"},
		"no models file":    {Options{Program: LiteLLM, Config: text, Models: text}, "JSON object"},
		"no settings":       {Options{Program: OneAPI, Source: oldOneAPI(t), Settings: text}, "GET /api/option/"},
		"another program":   {Options{Program: "other"}, "no import from"},
		"a dump":            {Options{Program: OneAPI, Source: filepath.Join("testdata", "one-api.mysql.sql")}, "load it into a database"},
		"an empty MariaDB":  {Options{Program: OneAPI, Source: storetest.MariaDB(t)}, "the database has no table channels"},
		"a far MariaDB":     {Options{Program: OneAPI, Source: "u:sesame@tcp(127.0.0.1:1)/x"}, "open the source"},
		"no address":        {Options{Program: OneAPI, Source: "u:sesame@127.0.0.1/x"}, "@tcp(HOST:3306)"},
		"a server far away": {Options{Program: OneAPI, Source: "postgres://u:sesame@127.0.0.1:1/x"}, "open the source"},
	} {
		_, err := Read(t.Context(), test.o)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: got %v, want %q without the password", name, err, test.want)
		}
	}
}
