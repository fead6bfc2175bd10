package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/console"
	"tollgate/internal/store"
)

// pageRuns is the number of times each page is opened.
const pageRuns = 100

// The user of the console.
const (
	pagesEmail    = "bench@example.com"
	pagesPassword = "the bench's password"
)

// benchPages prints the time of each console page without an id, and of the pages of one account
// with all requests.
func benchPages(o options) error {
	gateway, err := buildGateway(o)
	if err != nil {
		return err
	}
	fmt.Printf("### Pages of the console: an account with %d requests over %d days, each page %d times\n\n", o.receipts, bookDays, pageRuns)
	out := newTable("page", "database", "KiB", "p50 ms", "p99 ms")
	err = o.onEngines(func(engine string) error { return benchPagesOn(o, gateway, engine, out) })
	slices.SortStableFunc(out.rows, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	out.print()
	return err
}

func benchPagesOn(o options, gateway, engine string, out *table) (err error) {
	ctx := context.Background()
	database, drop, err := freshDatabase(ctx, o, engine)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drop()) }()
	if err := onMigrated(ctx, database, func(db *store.DB) error { return writeConsole(ctx, db, int64(o.receipts)) }); err != nil {
		return err
	}
	file := filepath.Join(o.folder, "sandbox.yaml")
	if err := os.WriteFile(file, catalog.Sandbox(), 0o644); err != nil {
		return err
	}
	p, err := startProcess([]string{"TOLLGATE_DATABASE=" + database, "TOLLGATE_CATALOG=" + file, "TOLLGATE_LISTEN=127.0.0.1:0",
		"TOLLGATE_MEDIA=file:" + filepath.Join(o.folder, "media"), "TOLLGATE_NO_DEMO=true", "TOLLGATE_ADMIN_TOKEN=" + benchToken},
		gateway, "serve")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	client := &http.Client{Jar: jar, Timeout: time.Minute}
	for path, form := range map[string]url.Values{
		"/console/sign-in":          {"email": {pagesEmail}, "password": {pagesPassword}},
		"/console/operator/sign-in": {"admin_token": {benchToken}},
	} {
		if err := signIn(client, p.url, path, form); err != nil {
			return err
		}
	}
	for _, path := range measuredPages(time.Now().UTC()) {
		if err := openPage(client, p.url, path, engine, out); err != nil {
			return err
		}
	}
	return nil
}

// pagesAccount is the first account of writeBooks.
const pagesAccount = "acct_" + benchPad + "1000"

// Rare values in the account's log: a key used once in twenty thousand requests, and the model of
// the oldest request.
const (
	rareKey   = "key_" + benchPad + "rare"
	rareModel = "model-rare"
	rareEvery = 20_000
)

// measuredPages returns the paths of all console pages without an id in their path, of the pages of
// the account, and of lists with each filter.
func measuredPages(today time.Time) []string {
	var paths []string
	for _, route := range console.Routes() {
		path, isPage := strings.CutPrefix(route, "GET ")
		if isPage && !strings.ContainsAny(path, "{.") && !strings.Contains(path, "sign-in") {
			paths = append(paths, path)
		}
	}
	for _, view := range []string{"", "?view=keys", "?view=money", "?view=requests", "?view=jobs"} {
		paths = append(paths, "/console/operator/accounts/"+pagesAccount+view)
	}
	days := "since=" + today.AddDate(0, 0, -61).Format(time.DateOnly) + "&until=" + today.AddDate(0, 0, -59).Format(time.DateOnly)
	for _, query := range []string{"status=502", "code=upstream_unavailable", "account=" + pagesAccount + "&status=502", "key=" + rareKey,
		"key=" + rareKey + "&" + days, "model=model-3", "model=" + rareModel, "account=" + pagesAccount + "&model=" + rareModel, "line=other",
		days, "account=" + pagesAccount + "&" + days, "min_duration_ms=5000", "min_duration_ms=10000"} {
		paths = append(paths, "/console/operator/requests?"+query)
	}
	for _, query := range []string{"span=90&by=key", "span=90&by=day", "account=" + pagesAccount + "&by=model"} {
		paths = append(paths, "/console/operator/usage?"+query)
	}
	return append(paths, "/console/requests?status=502", "/console/requests?model=model-3", "/console/operator/find?q="+pagesAccount)
}

// writeConsole writes the account with its requests, its keys and its user.
func writeConsole(ctx context.Context, db *store.DB, receipts int64) error {
	if err := writeBooks(ctx, db, receipts, 1); err != nil {
		return fmt.Errorf("write the books: %w", err)
	}
	hash, err := account.NewPasswords().Hash(ctx, pagesPassword)
	if err != nil {
		return err
	}
	return db.Update(ctx, func(tx *store.Tx) error {
		if _, err := tx.Exec(`INSERT INTO account (id, name, email, created_ms) VALUES ($1, 'bench', '', 1)`, pagesAccount); err != nil {
			return err
		}
		for n := range 2 {
			if _, err := tx.Exec(`INSERT INTO api_key (id, account, hash, name, hint, allowed_models, allowed_ips, created_ms, deleted)
				VALUES ($1, $2, $3, 'bench', 'sk-bench', '', '', 1, 0)`,
				fmt.Sprintf("key_%s%d%d", benchPad, n, 1000), pagesAccount, fmt.Sprint("bench", n)); err != nil {
				return err
			}
		}
		for _, text := range []string{
			`UPDATE ledger_receipt SET key = '` + rareKey + `' WHERE seq % ` + fmt.Sprint(rareEvery) + ` = 0`,
			`UPDATE ledger_receipt SET model = '` + rareModel + `' WHERE seq = 2`,
			`INSERT INTO ledger_key (id, account, version, disabled, closed, rpm, daily_budget_nano, total_limit_nano, spent_nano,
				last_used_ms) VALUES ('` + rareKey + `', '` + pagesAccount + `', 1, 0, 0, -1, -1, -1, 0, 0)`,
			`INSERT INTO ledger_key_part (key, part) SELECT DISTINCT key, seq / 128 FROM ledger_receipt
				WHERE account = '` + pagesAccount + `' ON CONFLICT DO NOTHING`,
		} {
			if _, err := tx.Exec(text); err != nil {
				return err
			}
		}
		if _, err := account.CreateUserTx(tx, pagesAccount, account.SignIn{Email: pagesEmail, PasswordHash: hash}); err != nil {
			return err
		}
		_, err := tx.Exec(`ANALYZE`)
		return err
	})
}

// signIn sends a sign-in form. The client keeps the cookie.
func signIn(client *http.Client, base, path string, form url.Values) error {
	r, err := http.NewRequest(http.MethodPost, base+path, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", base)
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && (answer.StatusCode != http.StatusOK || answer.Request.URL.Path == path) {
		err = fmt.Errorf("%s: %s\n%.2000s", path, answer.Status, body)
	}
	return err
}

// openPage opens a page pageRuns times and adds a row with the times to out.
func openPage(client *http.Client, base, path, engine string, out *table) error {
	durations := make([]time.Duration, 0, pageRuns)
	size := 0
	for range pageRuns {
		r, err := http.NewRequest(http.MethodGet, base+path, nil)
		if err != nil {
			return err
		}
		start := time.Now()
		body, err := send(client, r, http.StatusOK)
		if err != nil {
			return err
		}
		durations, size = append(durations, time.Since(start)), len(body)
	}
	slices.Sort(durations)
	name := strings.TrimPrefix(strings.ReplaceAll(path, pagesAccount, "ACCOUNT"), "/console")
	out.add("`/console"+name+"`", engine, fmt.Sprint(size>>10), millis(percentile(durations, 0.5)), millis(percentile(durations, 0.99)))
	return nil
}
