package api_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/api"
	"tollgate/internal/call"
	"tollgate/internal/catalog"
	"tollgate/internal/egress"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/httpapi"
	"tollgate/internal/job"
	"tollgate/internal/ledger"
	"tollgate/internal/media"
	"tollgate/internal/money"
	"tollgate/internal/node"
	storedresponse "tollgate/internal/response"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
	"tollgate/internal/wire"
)

// models is a catalog with a model in each state and form.
const models = `
models:
  - {id: swift-1, kind: chat, owned_by: example, forms: [chat], context_window: 8000, max_output_tokens: 1000, price: {input: 1, output: 2}}
  - {id: other-1, kind: chat, forms: [chat], context_window: 8000, max_output_tokens: 1000, price: {input: 1, output: 2}}
  - {id: soon-1, kind: chat, state: coming_soon, forms: [chat], context_window: 8000, max_output_tokens: 1000, price: {input: 1, output: 2}}
  - {id: broken-1, kind: chat, state: maintenance, forms: [chat], context_window: 8000, max_output_tokens: 1000, price: {input: 1, ` +
	`output: 2}}
  - {id: old-1, kind: chat, state: retired, forms: [chat], context_window: 8000, max_output_tokens: 1000, price: {input: 1, output: 2}}
  - {id: native-1, kind: chat, state: retired, forms: [messages], context_window: 8000, max_output_tokens: 1000, price: {input: 1, ` +
	`output: 2}}
  - {id: easel-1, kind: image, price: {1K: 0.03, 2K: 0.05}, ratios: ["1:1", "16:9"], max_images: 4,
     max_references: 3, params: [seed, style]}
  - {id: gift-1, kind: image, price: {1K: 0}, free_daily_requests: 1}
  - {id: reel-1, kind: video, price: {720p: 0.05, 1080p: 0.09}, durations: [5, 10], ratios: ["16:9"], max_references: 2}
  - {id: soon-2, kind: image, state: coming_soon, price: {1K: 1}}
  - {id: broken-2, kind: image, state: maintenance, price: {1K: 1}}
  - {id: old-2, kind: image, state: retired, price: {1K: 1}}
lines:
  - {id: main, provider: sandbox, models: {swift-1: swift, easel-1: easel, gift-1: gift, reel-1: reel}}
`

// providers are the adapters of the catalog's lines.
func providers() map[string]catalog.Provider {
	all := catalog.Provider{Kinds: []catalog.Kind{catalog.KindChat, catalog.KindImage, catalog.KindVideo}, Forms: []wire.Form{wire.FormChat}}
	return map[string]catalog.Provider{"sandbox": all, "real": all}
}

// server runs the public endpoints on a database, with test data.
type server struct {
	t       *testing.T
	db      *store.DB
	keys    *account.Keys
	watcher *catalog.Watcher
	folder  string // of the media store
	books   *ledger.Ledger
	server  *httptest.Server
	account string
	log     *scene.Buffer
	once    sync.Once // for closing the books once
}

// maxBody is the body limit of these tests.
const maxBody = 4096

// newServer serves the endpoints with a catalog and an account of 10 USD.
func newServer(t *testing.T, db *store.DB, with func(*api.Options)) *server {
	t.Helper()
	ctx := t.Context()
	d := &server{t: t, db: db, log: new(scene.Buffer)}
	log := slog.New(slog.NewTextHandler(d.log, nil))
	err := db.Update(ctx, func(tx *store.Tx) error {
		owner, err := account.CreateTx(tx, account.NewAccount{Name: "test"})
		if err != nil {
			return err
		}
		d.account = owner.ID
		_, err = ledger.CreditTx(tx, owner.ID, 10*money.USD, "")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	d.watcher = catalog.NewWatcher(catalog.WatcherOptions{DB: db, Providers: providers(), Log: log,
		Lookup: func(string) (string, bool) { return "", false }})
	d.apply(models)
	self, err := node.Join(ctx, node.Options{DB: db})
	if err != nil {
		t.Fatal(err)
	}
	d.books = ledger.New(ledger.Options{DB: db, Node: self, Log: log})
	if err := d.books.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.closeBooks)
	d.keys = account.NewKeys(account.KeysOptions{DB: db})
	t.Cleanup(d.keys.Close)
	d.folder = filepath.Join(t.TempDir(), "media")
	files, err := media.Open(ctx, media.Options{DB: db, Location: "file:" + d.folder, Base: "http://media.test",
		Retention: time.Hour, Log: log, Lookup: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	sweep, stop := context.WithCancel(context.WithoutCancel(ctx))
	var sweeping sync.WaitGroup
	sweeping.Go(func() { files.Run(sweep) })
	t.Cleanup(func() { stop(); sweeping.Wait() })
	// No worker runs these jobs, so they stay queued.
	jobs := job.New(job.Options{DB: db, Ledger: d.books, Lines: lines(), Catalog: d.watcher, Media: files, Log: log})
	options := api.Options{Options: httpapi.Options{Log: log}, Since: catalog.NewModelTimes(db),
		Keys: d.keys, Catalog: d.watcher, Ledger: d.books, Chat: conductor(d.books, log),
		Calls:     call.New(call.Options{Ledger: d.books, Lines: lines(), Log: log}),
		Responses: storedresponse.New(storedresponse.Options{DB: db, Retention: 24 * time.Hour}),
		Jobs:      jobs, Media: files, Guard: egress.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}),
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, MaxBody: maxBody}
	if with != nil {
		with(&options)
	}
	d.server = httptest.NewServer(api.New(options))
	t.Cleanup(d.server.Close)
	return d
}

// key creates a key of the account and returns its id and secret.
func (s *server) key(settings account.KeySettings) (id, secret string) {
	s.t.Helper()
	err := s.db.Update(s.t.Context(), func(tx *store.Tx) error {
		k, value, err := account.CreateKeyTx(tx, s.account, settings)
		id, secret = k.ID, value
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return id, secret
}

// closeBooks closes the ledger, after it has written everything queued.
func (s *server) closeBooks() {
	s.t.Helper()
	s.once.Do(func() {
		if err := s.books.Close(context.Background()); err != nil {
			s.t.Error(err)
		}
	})
}

// response is a complete HTTP response.
type response struct {
	status int
	header http.Header
	body   []byte
}

// send sends a request; headers are pairs of a name and a value.
func (s *server) send(method, path, body string, headers ...string) response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.server.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return s.do(r)
}

// do sends a request and reads the whole response.
func (s *server) do(r *http.Request) response {
	s.t.Helper()
	client := http.Client{Transport: &http.Transport{DisableCompression: true}, Timeout: 30 * time.Second}
	// Deferred, because the server reads the rest of a rejected body while the connection is open.
	defer client.CloseIdleConnections()
	answer, err := client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if a, b := answer.Header.Get("x-request-id"), answer.Header.Get("request-id"); !strings.HasPrefix(a, "req_") || a != b {
		s.t.Errorf("%s %s: request ids %q and %q", r.Method, r.URL.Path, a, b)
	}
	return response{answer.StatusCode, answer.Header, body}
}

// refused checks the status, code and members of a /v1 error and returns its param.
func (r response) refused(t *testing.T, status int, code string) (param string) {
	t.Helper()
	var body struct {
		Error map[string]any `json:"error"`
	}
	if err := json.Unmarshal(r.body, &body); err != nil {
		t.Fatalf("status %d, %v: %s", r.status, err, r.body)
	}
	if r.status != status || body.Error["code"] != code {
		t.Fatalf("got %d %v, want %d %s: %s", r.status, body.Error["code"], status, code, r.body)
	}
	for _, name := range []string{"message", "type", "code", "param"} {
		if _, there := body.Error[name]; !there {
			t.Errorf("error %s has no %s: %s", code, name, r.body)
		}
	}
	if got := r.header.Get("Content-Type"); got != "application/json" {
		t.Errorf("%s has Content-Type %q", code, got)
	}
	param, _ = body.Error["param"].(string)
	return param
}

// onSQLite returns a migrated database for tests independent of the engine.
func onSQLite(t *testing.T) *store.DB {
	t.Helper()
	return storetest.Open(t, storetest.SQLite(t), store.Options{})
}
