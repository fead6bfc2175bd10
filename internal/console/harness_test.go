package console_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/api"
	"tollgate/internal/app"
	"tollgate/internal/catalog"
	"tollgate/internal/chat"
	"tollgate/internal/console"
	"tollgate/internal/egress"
	"tollgate/internal/job"
	"tollgate/internal/job/proof"
	"tollgate/internal/ledger"
	"tollgate/internal/line"
	"tollgate/internal/media"
	"tollgate/internal/money"
	"tollgate/internal/node"
	"tollgate/internal/operator"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
	"tollgate/internal/upstream/adapters"
	"tollgate/internal/webhook"
)

const (
	adminToken = "the-operator-s-token-0123456789"
	password   = "right horse"
	publicURL  = "http://console.example"
)

// scene is a console on a database, with accounts and users.
type scene struct {
	t        *testing.T
	db       *store.DB
	options  console.Options
	handler  http.Handler
	books    *ledger.Ledger
	shut     sync.Once // of books
	hash     string    // of password
	accounts map[string]account.Account
	users    map[string]account.User // by email
}

// each runs a test with a console on either database.
func each(t *testing.T, test func(t *testing.T, s *scene)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		passwords := account.NewPasswords()
		hash, err := passwords.Hash(t.Context(), password)
		if err != nil {
			t.Fatal(err)
		}
		// Its studio takes no time.
		doc, _, err := catalog.Parse(bytes.Replace(catalog.Sandbox(), []byte("delay: 3s"), []byte("delay: 0s"), 1), app.Providers())
		if err != nil {
			t.Fatal(err)
		}
		s := &scene{t: t, db: db, hash: hash, accounts: map[string]account.Account{}, users: map[string]account.User{}}
		s.update(func(tx *store.Tx) error { _, _, err := catalog.ApplyFirstTx(tx, doc); return err })
		watcher := catalog.NewWatcher(catalog.WatcherOptions{DB: db, Providers: app.Providers(),
			Lookup: func(string) (string, bool) { return "", false }, Log: slog.New(slog.DiscardHandler)})
		if err := watcher.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		keys := account.NewKeys(account.KeysOptions{DB: db})
		t.Cleanup(keys.Close)
		hooks := webhook.New(webhook.Options{
			DB: db, Guard: egress.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}), Timeout: 10 * time.Second, Retention: 720 * time.Hour,
			Disabled: func(*store.Tx, []string) (map[string]bool, error) { return nil, nil },
		})
		s.options = console.Options{DB: db, Keys: keys, Passwords: passwords, Entrance: account.NewEntrance(db, passwords, nil),
			Catalog: watcher, Providers: app.Providers(), Webhooks: hooks,
			Audits: operator.NewAudits(db, proof.AuditTx, nil), Writable: func() error { return nil }, AdminToken: adminToken, PublicURL: publicURL,
			MediaURL: publicURL + "/media"}
		s.studio(watcher)
		s.handler = s.console(nil)
		s.account("ada", "ada@example.com")
		s.account("bob", "bob@example.com")
		test(t, s)
	})
}

// closeBooks commits what the ledger has to write.
func (s *scene) closeBooks() {
	s.shut.Do(func() {
		if err := s.books.Close(context.Background()); err != nil {
			s.t.Error(err)
		}
	})
}

// studio makes what runs models: the API that the playground goes through, and jobs,
// which wait until run.
func (s *scene) studio(watcher *catalog.Watcher) {
	s.t.Helper()
	ctx := context.WithoutCancel(s.t.Context())
	self, err := node.Join(ctx, node.Options{DB: s.db})
	if err != nil {
		s.t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	books := ledger.New(ledger.Options{DB: s.db, Node: self, Log: log})
	if err := books.Start(ctx); err != nil {
		s.t.Fatal(err)
	}
	s.books = books
	s.t.Cleanup(s.closeBooks)
	files, err := media.Open(ctx, media.Options{DB: s.db, Location: "file:" + s.t.TempDir(), Base: publicURL + "/media",
		Retention: 1440 * time.Hour, Log: log})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(files.Close)
	opened := adapters.New(adapters.Options{})
	s.t.Cleanup(opened.Close)
	lines := line.New(line.Options{Open: opened.Open, Current: watcher.Current, DB: s.db, Epoch: self.Epoch, Log: log})
	if err := lines.Refresh(ctx); err != nil {
		s.t.Fatal(err)
	}
	jobs := job.New(job.Options{DB: s.db, Ledger: books, Epoch: self.Epoch, Lines: lines, Catalog: watcher, Media: files,
		Webhooks: s.options.Webhooks, Log: log})
	door := api.New(api.Options{DB: s.db, Keys: s.options.Keys, Catalog: watcher, Ledger: books, Log: log, Jobs: jobs, Media: files,
		Chat: chat.New(chat.Options{Ledger: books, Lines: lines, Log: log}), Guard: egress.New(nil), MaxBody: 1 << 20})
	s.options.Lines, s.options.Jobs, s.options.Media, s.options.ServeAs = lines, jobs, files, door.ServeAs
}

// run lets jobs run until the test ends.
func (s *scene) run() {
	ctx, stop := context.WithCancel(context.WithoutCancel(s.t.Context()))
	var running sync.WaitGroup
	running.Go(func() { s.options.Jobs.Run(ctx) })
	s.t.Cleanup(func() { stop(); running.Wait() })
}

// job submits an image of an account and returns its id.
func (s *scene) job(name, prompt string) string {
	s.t.Helper()
	body, err := json.Marshal(map[string]string{"model": "sandbox-image", "prompt": prompt})
	if err != nil {
		s.t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, publicURL+"/v1/images/generations", bytes.NewReader(body))
	r.RemoteAddr = "192.0.2.7:4711"
	w := httptest.NewRecorder()
	s.options.ServeAs(w, r, s.accounts[name].ID, s.key(name, "for a job").ID)
	var made struct{ ID string }
	if err := json.Unmarshal(w.Body.Bytes(), &made); err != nil || w.Code != http.StatusAccepted {
		s.t.Fatalf("%d %s", w.Code, w.Body)
	}
	return made.ID
}

// console makes a console, with other options.
func (s *scene) console(change func(*console.Options)) http.Handler {
	s.t.Helper()
	o := s.options
	if change != nil {
		change(&o)
	}
	h, err := console.New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}

func (s *scene) update(act func(tx *store.Tx) error) {
	s.t.Helper()
	if err := s.db.Update(s.t.Context(), act); err != nil {
		s.t.Fatal(err)
	}
}

// account opens an account with 10 USD and a user.
func (s *scene) account(name, email string) {
	s.t.Helper()
	s.update(func(tx *store.Tx) error {
		a, err := account.CreateTx(tx, account.Opening{Name: name})
		if err != nil {
			return err
		}
		s.accounts[name] = a
		if err := webhook.OpenTx(tx, a.ID); err != nil {
			return err
		}
		_, err = ledger.CreditTx(tx, a.ID, 10*money.USD, "invoice 1")
		return err
	})
	s.user(name, account.SignIn{Email: email})
}

// user adds a user to an account.
func (s *scene) user(name string, in account.SignIn) account.User {
	s.t.Helper()
	in.PasswordHash = s.hash
	s.update(func(tx *store.Tx) error {
		u, err := account.CreateUserTx(tx, s.accounts[name].ID, in)
		s.users[in.Email] = u
		return err
	})
	return s.users[in.Email]
}

// key makes a key of an account.
func (s *scene) key(name, label string) (k account.Key) {
	s.t.Helper()
	s.update(func(tx *store.Tx) (err error) {
		k, _, err = account.CreateKeyTx(tx, s.accounts[name].ID, account.KeySettings{Name: label})
		return err
	})
	return k
}

// browser is somebody with cookies.
type browser struct {
	s       *scene
	handler http.Handler
	cookies map[string]*http.Cookie
	headers map[string]string
}

func (s *scene) browser() *browser {
	return &browser{s: s, handler: s.handler, cookies: map[string]*http.Cookie{}, headers: map[string]string{}}
}

// signedIn is a browser of a user.
func (s *scene) signedIn(email string) *browser {
	s.t.Helper()
	b := s.browser()
	if got := b.post("/console/sign-in", "email", email, "password", password); got.Code != http.StatusSeeOther {
		s.t.Fatalf("%s is not signed in: %d %s", email, got.Code, got.Body)
	}
	return b
}

// session is a browser of a user that was signed in before, without a password's
// work.
func (s *scene) session(kind account.SessionKind, email string) *browser {
	s.t.Helper()
	b := s.browser()
	n := account.NewSession{Kind: kind, User: s.users[email].ID}
	name := "tollgate"
	if kind == account.OperatorSession {
		name, n.Token = "tollgate-op", adminToken
	}
	s.update(func(tx *store.Tx) error {
		_, value, err := account.OpenSessionTx(tx, n)
		b.cookies[name] = &http.Cookie{Name: name, Value: value}
		return err
	})
	return b
}

// operator is a browser with the operator's token.
func (s *scene) operator() *browser {
	s.t.Helper()
	b := s.browser()
	if got := b.post("/console/operator/sign-in", "admin_token", adminToken); got.Code != http.StatusSeeOther {
		s.t.Fatalf("the operator is not signed in: %d %s", got.Code, got.Body)
	}
	return b
}

func (b *browser) get(path string) *httptest.ResponseRecorder { return b.do(http.MethodGet, path, "") }

func (b *browser) post(path string, fields ...string) *httptest.ResponseRecorder {
	values := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		values.Add(fields[i], fields[i+1])
	}
	return b.do(http.MethodPost, path, values.Encode())
}

// do sends a request as a browser does that is on our own pages.
func (b *browser) do(method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, publicURL+path, strings.NewReader(body))
	r.RemoteAddr = "192.0.2.7:4711"
	r.Header.Set("User-Agent", "Test browser")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", publicURL)
	}
	for _, c := range b.cookies {
		r.AddCookie(c)
	}
	for name, value := range b.headers {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	answer := w.Result()
	defer func() { _, _ = io.Copy(io.Discard, answer.Body) }()
	for _, c := range answer.Cookies() {
		if c.MaxAge < 0 {
			delete(b.cookies, c.Name)
			continue
		}
		b.cookies[c.Name] = c
	}
	return w
}

// want checks the status of an answer and what its page says.
func want(t *testing.T, got *httptest.ResponseRecorder, status int, parts ...string) {
	t.Helper()
	if got.Code != status {
		t.Errorf("status %d, want %d: %s", got.Code, status, got.Body)
		return
	}
	for _, part := range parts {
		if !strings.Contains(got.Body.String()+got.Header().Get("Location"), part) {
			t.Errorf("no %q in %s %s", part, got.Header().Get("Location"), got.Body)
		}
	}
}
