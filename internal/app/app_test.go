package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tollgate/internal/account"
	"tollgate/internal/app/metrics"
	"tollgate/internal/catalog"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testSettings returns settings for a database. more is the text of a settings file.
func testSettings(t *testing.T, url, more string) *Settings {
	t.Helper()
	s, err := Sources{Flags: map[string]string{"database": url, "listen": "127.0.0.1:0"}}.settings("test.yaml", []byte(more))
	if err != nil {
		t.Fatal(err)
	}
	if s.Media == "file:data/media" { // the default is below the working directory
		s.Media = "file:" + t.TempDir()
	}
	return s
}

// runningApp is an App that serves until stop is called.
type runningApp struct {
	*App
	out, err *scene.Buffer
	cancel   context.CancelFunc
	ended    chan error
}

// serve starts an App, and waits until it is ready and has written its ready line.
func serve(t *testing.T, s *Settings) *runningApp {
	t.Helper()
	return serveWith(t, s, Options{})
}

// serveWith is serve with some of the options.
func serveWith(t *testing.T, s *Settings, o Options) *runningApp {
	t.Helper()
	p := &runningApp{out: new(scene.Buffer), err: new(scene.Buffer), ended: make(chan error, 1)}
	o.Stdout, o.Stderr, o.Lookup, o.Version = p.out, p.err, os.LookupEnv, "test"
	a, err := New(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	p.App = a
	var ctx context.Context
	ctx, p.cancel = context.WithCancel(context.Background())
	go func() { p.ended <- a.Serve(ctx) }()
	if status := p.get(t, "/readyz"); status != 200 {
		t.Fatalf("not ready: %d", status)
	}
	scene.Eventually(t, "the ready line", func() bool { return strings.Contains(p.err.String(), "listening on ") })
	return p
}

// quietStart creates an App without showing its output. The settings must not work.
func quietStart(t *testing.T, s *Settings) (*App, error) {
	t.Helper()
	return New(t.Context(), s, Options{Stdout: io.Discard, Stderr: io.Discard, Lookup: os.LookupEnv})
}

// file writes a file and returns its path.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// get requests a path and returns the status. The server listens before New returns, so the
// connection waits until the server answers.
func (a *runningApp) get(t *testing.T, path string, headers ...string) int {
	t.Helper()
	r, err := http.NewRequest("GET", "http://"+a.server.Address()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

// stop ends an App as a signal does.
func (a *runningApp) stop(t *testing.T) {
	t.Helper()
	a.cancel()
	if err := <-a.ended; err != nil {
		t.Errorf("stop: %v", err)
	}
}

// TestStopIsAnnounced checks that with shutdown_delay a node reports that it is not ready, and
// still takes requests, before it stops.
func TestStopIsAnnounced(t *testing.T) {
	t.Parallel()
	p := serve(t, testSettings(t, "sqlite:"+filepath.Join(t.TempDir(), "a.db"), "shutdown_delay: 3s\n"))
	p.cancel()
	scene.Eventually(t, "not ready", func() bool { return p.get(t, "/readyz") == 503 })
	if status := p.get(t, "/v1/models"); status != 401 {
		t.Errorf("a request without a key gets %d after the announcement, want 401", status)
	}
	p.stop(t)
}

func TestFirstStart(t *testing.T) {
	t.Parallel()
	storetest.EachEmpty(t, func(t *testing.T, url string) {
		s := testSettings(t, url, "")
		first := serve(t, s)
		if got, want := first.err.String(), "listening on http://"+first.server.Address()+"\n"; !strings.Contains(got, want) {
			t.Errorf("no ready line in %q", got)
		}
		output := first.out.String()
		secret := regexp.MustCompile(`sk-[A-Za-z0-9_-]+`).FindString(output)
		if got := strings.Count(output, secret); secret == "" || got != 10 {
			t.Errorf("the key is shown %d times, want once by itself and in nine commands:\n%s", got, output)
		}
		if got := strings.Count(output, "curl "); got != 9 || strings.Contains(output, "%!") {
			t.Errorf("%d commands:\n%s", got, output)
		}
		for _, part := range []string{"/v1/chat/completions ", "/v1/images/generations ", "/v1/images/jobs/JOB ", `"model": "sandbox-image"`,
			"/v1/videos/generations ", "/v1/videos/jobs/JOB ", `"model": "sandbox-video"`, "http://" + first.server.Address() + "/v1/usage "} {
			if !strings.Contains(output, part) {
				t.Errorf("%q is not shown:\n%s", part, output)
			}
		}
		if status := first.get(t, "/v1/usage", "Authorization", "Bearer "+secret); status != 200 {
			t.Errorf("the printed key gets %d", status)
		}
		if strings.Contains(first.err.String(), secret) {
			t.Error("the key is in the log")
		}
		first.stop(t)

		again := serve(t, s)
		if again.out.String() != "" {
			t.Errorf("a later start shows %q", again.out.String())
		}
		if status := again.get(t, "/v1/usage", "Authorization", "Bearer "+secret); status != 200 {
			t.Errorf("after a restart the key gets %d", status)
		}
		again.stop(t)
		checkOnlyDemo(t, s)
	})
}

// checkOnlyDemo checks that there is exactly one account, with 10 USD, and one key.
func checkOnlyDemo(t *testing.T, s *Settings) {
	t.Helper()
	err := view(t.Context(), s, func(tx *store.Tx) error {
		accounts, _, err := account.ListTx(tx, "", 10)
		if err != nil || len(accounts) != 1 || accounts[0].Money.Balance != 10*money.USD {
			t.Errorf("accounts: %+v, %v", accounts, err)
			return err
		}
		keys, _, err := account.ListKeysTx(tx, accounts[0].ID, "", 10)
		if err != nil || len(keys) != 1 {
			t.Errorf("keys: %+v, %v", keys, err)
			return err
		}
		doc, _, err := catalog.CurrentTx(tx)
		if err != nil || !slices.Equal(keys[0].AllowedModels, idsOf(doc)) {
			t.Errorf("the demo's key may be used with %v, %v; want the sandbox's models", keys[0].AllowedModels, err)
		}
		var secrets int
		err = tx.QueryRow(`SELECT COUNT(*) FROM webhook_endpoint WHERE account = $1 AND secret LIKE 'whsec_%'`, accounts[0].ID).Scan(&secrets)
		if secrets != 1 {
			t.Errorf("%d signing secrets", secrets)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if report, err := Audit(t.Context(), s, "", false); err != nil || !report.OK {
		t.Errorf("audit: %+v, %v", report, err)
	}
}

// TestFirstStartOfManyNodes starts several nodes on one empty database and checks that only one
// node sets it up.
func TestFirstStartOfManyNodes(t *testing.T) {
	t.Parallel()
	storetest.EachEmpty(t, func(t *testing.T, url string) {
		s := testSettings(t, url, "")
		db := storetest.Open(t, url, store.Options{})
		var wg sync.WaitGroup
		demos := make([]*demo, 4)
		for i := range demos {
			wg.Go(func() {
				var err error
				if demos[i], err = setUp(t.Context(), db, s, Providers(), account.NewPasswords()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		shown := 0
		for _, d := range demos {
			if d != nil {
				shown++
			}
		}
		if shown != 1 {
			t.Errorf("%d nodes set the database up, want 1", shown)
		}
		checkOnlyDemo(t, s)
	})
}

func TestSetUpLeavesAlone(t *testing.T) {
	t.Parallel()
	file := file(t, "catalog.yaml", "models: []\nlines: []\n")
	openAccount := func(tx *store.Tx) error {
		_, err := account.CreateTx(tx, account.NewAccount{Name: "mine"})
		return err
	}
	for _, c := range []struct {
		name     string
		settings string
		before   func(tx *store.Tx) error
		revision int64
		accounts int
	}{
		{"no_demo", "no_demo: true", nil, 0, 0},
		{"the operator's catalog", "catalog: " + file, nil, 1, 0},
		{"the operator's catalog, no_demo", "{catalog: " + file + ", no_demo: true}", nil, 1, 0},
		{"an account is there", "", openAccount, 0, 1},
		{"an account is there, the operator's catalog", "catalog: " + file, openAccount, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url := storetest.SQLite(t)
			s := testSettings(t, url, c.settings)
			db := storetest.Open(t, url, store.Options{})
			if c.before != nil {
				storetest.Update(t, db, c.before)
			}
			for range 2 {
				d, err := setUp(t.Context(), db, s, Providers(), account.NewPasswords())
				if d != nil || err != nil {
					t.Fatalf("shows %+v, %v", d, err)
				}
			}
			storetest.View(t, db, func(tx *store.Tx) error {
				head, err := catalog.HeadTx(tx)
				if err != nil || head != c.revision {
					t.Errorf("revision %d, want %d", head, c.revision)
				}
				accounts, _, err := account.ListTx(tx, "", 10)
				if len(accounts) != c.accounts {
					t.Errorf("%d accounts, want %d", len(accounts), c.accounts)
				}
				return err
			})
		})
	}
}

// TestStartFaults checks that a failing start names the setting, leaves nothing running and sets
// nothing up.
func TestStartFaults(t *testing.T) {
	t.Parallel()
	var config net.ListenConfig
	busy, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { busy.Close() })
	bad := file(t, "bad.yaml", "models:\n  - {id: x, kind: chat}\n")
	for _, c := range []struct{ name, settings, key, want string }{
		{"address taken", "metrics_listen: " + busy.Addr().String(), "metrics_listen",
			"another program listens at " + busy.Addr().String() + " (address already in use): stop it, or choose another address"},
		{"address elsewhere", "metrics_listen: 192.0.2.1:9090", "metrics_listen",
			"this machine has no address 192.0.2.1 (cannot assign requested address): choose one that it has with --metrics-listen"},
		{"media that cannot be written", "media: file:" + bad + "/media", "media", "bad.yaml"},
		{"no catalog file", "catalog: gone.yaml", "catalog", "gone.yaml"},
		{"bad catalog file", "catalog: " + bad, "catalog", "models[0]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := testSettings(t, storetest.SQLite(t), c.settings)
			_, err := quietStart(t, s)
			_, fault := errors.AsType[*SettingError](err)
			if mayPass := c.name == "address taken"; fault == mayPass || !strings.HasPrefix(err.Error(), c.key+": ") ||
				!strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v", err)
			}
			db, err := store.Open(t.Context(), s.Database, store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var tables int
			err = db.View(t.Context(), func(tx *store.Tx) error { return tx.QueryRow(`SELECT COUNT(*) FROM sqlite_master`).Scan(&tables) })
			if err != nil || tables != 0 {
				t.Errorf("%d tables are left, %v", tables, err)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
			s.Media, s.Catalog, s.MetricsListen = "file:"+t.TempDir(), "", ""
			next := serve(t, s)
			if !strings.Contains(next.out.String(), "sk-") {
				t.Errorf("the next start shows %q", next.out.String())
			}
			next.stop(t)
		})
	}
}

func TestSecondServiceOfAFile(t *testing.T) {
	t.Parallel()
	s := testSettings(t, storetest.SQLite(t), "")
	first := serve(t, s)
	_, err := quietStart(t, s)
	if fault, ok := errors.AsType[*SettingError](err); !ok || fault.Key != "database" || !errors.Is(err, store.ErrServed) ||
		!strings.HasSuffix(err.Error(), "stop it first, or choose another file with --database") {
		t.Errorf("got %v", err)
	}
	first.stop(t)
	serve(t, s).stop(t)
}

func TestMissingDatabase(t *testing.T) {
	t.Parallel()
	url := storetest.SQLite(t)
	s := testSettings(t, url, "")
	if _, err := OpenDatabase(t.Context(), s, false); !errors.Is(err, ErrNoDatabase) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(strings.TrimPrefix(url, "sqlite:")); err == nil {
		t.Error("an empty file was left behind")
	}
	db, err := OpenDatabase(t.Context(), s, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// TestCommandBesideAStartingService runs commands that create the schema, while a service holds the
// file and its schema is not there yet.
func TestCommandBesideAStartingService(t *testing.T) {
	t.Parallel()
	url := storetest.SQLite(t)
	s := testSettings(t, url, "")
	p := serve(t, s)
	defer p.stop(t)
	db, err := OpenDatabase(t.Context(), s, false)
	if err != nil {
		t.Fatal(err)
	}
	storetest.Exec(t, db, `DELETE FROM goose_db_version WHERE version_id > 0`)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = OpenDatabase(t.Context(), s, true)
	if fault, ok := errors.AsType[*SettingError](err); !ok || fault.Key != "database" || !errors.Is(err, store.ErrServed) {
		t.Errorf("got %v", err)
	}
	_, err = Migrate(t.Context(), s, false, slog.New(slog.DiscardHandler))
	if _, ok := errors.AsType[*SettingError](err); !ok || !errors.Is(err, store.ErrServed) {
		t.Errorf("migrate: %v", err)
	}
}

// TestNodeStopsOnANewerSchema raises the schema above a running node. The node drains and ends with
// the reason.
func TestNodeStopsOnANewerSchema(t *testing.T) {
	t.Parallel()
	url := storetest.PostgreSQL(t)
	p := serve(t, testSettings(t, url, ""))
	defer p.cancel()
	db := storetest.Open(t, url, store.Options{})
	storetest.Update(t, db, func(tx *store.Tx) error {
		_, err := tx.Exec(`UPDATE store_schema SET compatible_since = 9000`)
		return err
	})
	err := <-p.ended
	if fault, ok := errors.AsType[*SettingError](err); !ok || fault.Key != "database" || !errors.Is(err, store.ErrNewerSchema) {
		t.Errorf("ended with %v", err)
	}
	_, err = New(t.Context(), p.settings, Options{Stdout: p.out, Stderr: p.err, Lookup: os.LookupEnv})
	if !errors.Is(err, store.ErrNewerSchema) {
		t.Errorf("a later start: %v", err)
	}
}

func TestMetricsAddress(t *testing.T) {
	t.Parallel()
	p := serve(t, testSettings(t, storetest.SQLite(t), "metrics_listen: 127.0.0.1:0"))
	defer p.stop(t)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://" + p.metricsServer.Address() + "/metrics") // the first one: a rate needs its zeros
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	body := string(text)
	metrics := []string{"tollgate_charge_over_hold_usd_total 0", `tollgate_requests_total{endpoint="/v1/chat/completions",status="503"} 0`,
		`tollgate_model_requests_total{code="",model="sandbox-chat"} 0`, `tollgate_job_queued{model="sandbox-video"} 0`,
		`tollgate_job_oldest_queued_seconds{model="sandbox-image"} 0`,
		`tollgate_line_attempts_total{line="sandbox",outcome="ok"} 0`,
		`tollgate_line_charged_usd_total{line="sandbox",model="sandbox-chat"} 0`,
		`tollgate_database_connections{state="in_use"}`, "go_goroutines", "process_"}
	document, err := os.ReadFile("../../docs/operator.md")
	if err != nil {
		t.Fatal(err)
	}
	late := []string{"tollgate_line_cost_usd_total", "tollgate_unknown_usage_total", // from the document; the next two with payments only
		"tollgate_topup_problems", "tollgate_topup_dispute_due_timestamp_seconds"}
	for _, m := range regexp.MustCompile("(?m)^\\| `(tollgate_[a-z_]+)` \\|").FindAllStringSubmatch(string(document), -1) {
		if !slices.Contains(late, m[1]) {
			metrics = append(metrics, "# TYPE "+m[1]+" ")
		}
	}
	if len(metrics) < 20 {
		t.Fatalf("the test checks only %q", metrics)
	}
	for _, name := range metrics {
		if !strings.Contains(body, name) {
			t.Errorf("no %s", name)
		}
	}
	if status := p.get(t, "/metrics"); status != 401 {
		t.Errorf("without a token the product's address answers %d", status)
	}
}

func TestLifecycleUnwindsBackwards(t *testing.T) {
	t.Parallel()
	var order []string
	l := lifecycle{log: slog.New(slog.DiscardHandler)}
	trouble := errors.New("trouble")
	for _, name := range []string{"store", "ledger", "server"} {
		l.addCleanup(name, func(context.Context) error {
			order = append(order, name)
			if name == "ledger" {
				return trouble
			}
			return nil
		})
	}
	l.loop("loop", func(ctx context.Context) {
		<-ctx.Done()
		order = append(order, "loop")
	})
	err := l.unwind()
	if got := strings.Join(order, " "); got != "loop server ledger store" {
		t.Errorf("order %s", got)
	}
	if !errors.Is(err, trouble) || !strings.Contains(err.Error(), "stop ledger") {
		t.Errorf("error %v", err)
	}
	if err := l.unwind(); err != nil || len(order) != 4 {
		t.Errorf("a second time: %v, %v", err, order)
	}
}

func TestClockJumpsAreReported(t *testing.T) {
	t.Parallel()
	var log scene.Buffer
	a := &App{metrics: metrics.New("test"), log: slog.New(slog.NewTextHandler(&log, nil))}
	a.clockJumped(40*24*time.Hour + 1234567)
	a.clockJumped(-time.Hour)
	body := ask(a.metrics.Handler(), "GET", "/metrics").Body.String()
	for _, want := range []string{`tollgate_clock_jumps_total{direction="ahead"} 1`, `tollgate_clock_jumps_total{direction="back"} 1`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
	for _, want := range []string{"direction=ahead by=960h0m0.001s", "direction=back by=1h0m0s"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in %q", want, log.String())
		}
	}
}
