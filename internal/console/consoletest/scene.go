// Package consoletest owns the scene of the console's tests: a console on a database with accounts,
// users and sandbox models, and browsers for its visitors.
//
// Invariants: a test runs on both databases; a browser sends the headers of a browser on a page of
// the console; no request leaves the machine.
package consoletest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/api"
	"tollgate/internal/app"
	"tollgate/internal/call"
	"tollgate/internal/catalog"
	"tollgate/internal/catalog/vault"
	"tollgate/internal/chat"
	"tollgate/internal/console"
	"tollgate/internal/console/page"
	"tollgate/internal/egress"
	"tollgate/internal/gatewaytest/fakemail"
	"tollgate/internal/gatewaytest/fakepayment"
	"tollgate/internal/httpapi"
	"tollgate/internal/identity"
	"tollgate/internal/invoice"
	"tollgate/internal/job"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/books"
	"tollgate/internal/ledger/measure"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/line"
	"tollgate/internal/mail"
	"tollgate/internal/media"
	"tollgate/internal/money"
	"tollgate/internal/node"
	"tollgate/internal/operator"
	"tollgate/internal/provider"
	"tollgate/internal/response"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
	"tollgate/internal/store/storetest"
	"tollgate/internal/topup"
	"tollgate/internal/topup/epay"
	"tollgate/internal/topup/stripe"
	"tollgate/internal/upstream/adapters"
	"tollgate/internal/webhook"
)

// Settings of a scene's console, and the password of all users.
const (
	AdminToken = "the-operator-s-token-0123456789"
	Password   = "right horse"
	PublicURL  = "http://console.example"
)

// cheapHash is the hash of Password at the lowest permitted cost. Other tests cover the cost of
// hashing.
const cheapHash = "$argon2id$v=19$m=8,t=1,p=1$YSBzYWx0IG9mIDE2IGIuLg$U1frWxJUusgCKkm4/3f8Kg"

// Scene is a console on a database, with accounts and users.
type Scene struct {
	DB *store.DB
	// Options are the options of the scene's console. Console makes further consoles from them.
	Options console.Options
	// Books is the ledger; see CloseBooks.
	Books *ledger.Ledger
	// Accounts has the accounts by name. Users has the users by email.
	Accounts map[string]account.Account
	Users    map[string]account.User
	// Stripe is the fake that takes the payments of customers.
	Stripe *fakepayment.Stripe
	// Mail is the fake server that takes the mails.
	Mail *fakemail.Server

	t          *testing.T
	handler    http.Handler
	closeBooks sync.Once
}

// Each runs test with a console on each kind of database. The console has the accounts ada and
// bob, each with 10 USD and a user, ada@example.com and bob@example.com.
func Each(t *testing.T, test func(t *testing.T, s *Scene)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		passwords := account.NewPasswords()
		// The sandbox models answer without a delay.
		delays := regexp.MustCompile(`delay: [0-9]+m?s`)
		doc, _, err := catalog.Parse(delays.ReplaceAll(catalog.Sandbox(), []byte("delay: 0s")), app.Providers())
		if err != nil {
			t.Fatal(err)
		}
		s := &Scene{t: t, DB: db, Accounts: map[string]account.Account{}, Users: map[string]account.User{}}
		s.Update(func(tx *store.Tx) error { _, _, err := catalog.ApplyFirstTx(tx, doc); return err })
		secretKeys, err := vault.ParseKeys(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", vault.KeyBytes))))
		if err != nil {
			t.Fatal(err)
		}
		watcher := catalog.NewWatcher(catalog.WatcherOptions{DB: db, Providers: app.Providers(), Keys: secretKeys,
			Lookup: func(string) (string, bool) { return "", false }, Log: slog.New(slog.DiscardHandler)})
		if err := watcher.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		keys := account.NewKeys(account.KeysOptions{DB: db})
		t.Cleanup(keys.Close)
		hooks := webhook.New(webhook.Options{
			DB: db, Guard: egress.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}), Timeout: 10 * time.Second, Retention: 720 * time.Hour,
		})
		s.Options = console.Options{Options: page.Options{DB: db, Keys: keys, Passwords: passwords,
			SignIns: account.NewSignIns(db, passwords, nil), Catalog: watcher, Providers: app.Providers(), Webhooks: hooks,
			Audits: operator.NewAudits(db, nil, nil, nil), SecretKeys: secretKeys, ProviderHTTP: provider.NewClient(),
			SignUps:    operator.SignUps{Rules: account.SignUpRules{Mode: account.SignUpOpen}},
			AdminToken: httpapi.NewOperatorToken(AdminToken), PublicURL: PublicURL, MediaURL: PublicURL + "/media"}}
		s.showPublicPages()
		s.startServices(watcher)
		s.sendMails()
		s.takePayments()
		s.handler = s.Console(nil)
		s.account("ada", "ada@example.com")
		s.account("bob", "bob@example.com")
		test(t, s)
	})
}

// CloseBooks commits the ledger's pending writes.
func (s *Scene) CloseBooks() {
	s.closeBooks.Do(func() {
		if err := s.Books.Close(context.Background()); err != nil {
			s.t.Error(err)
		}
	})
}

// startServices starts the services for models: the API for the playground, and jobs. Jobs wait
// until Run is called.
func (s *Scene) startServices(watcher *catalog.Watcher) {
	s.t.Helper()
	ctx := context.WithoutCancel(s.t.Context())
	self, err := node.Join(ctx, node.Options{DB: s.DB, Lease: time.Hour}) // without heartbeats, the ledger stays writable for one lease
	if err != nil {
		s.t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	books := ledger.New(ledger.Options{DB: s.DB, Node: self, Log: log})
	if err := books.Start(ctx); err != nil {
		s.t.Fatal(err)
	}
	s.Books = books
	s.t.Cleanup(s.CloseBooks)
	files, err := media.Open(ctx, media.Options{DB: s.DB, Location: "file:" + s.t.TempDir(), Base: PublicURL + "/media",
		Retention: 1440 * time.Hour, Log: log})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(files.Close)
	clients := adapters.New(adapters.Options{})
	s.t.Cleanup(clients.Close)
	lines := line.New(line.Options{Open: clients.Open, Catalog: watcher, DB: s.DB, Node: self, Log: log})
	if err := lines.Refresh(ctx); err != nil {
		s.t.Fatal(err)
	}
	jobs := job.New(job.Options{DB: s.DB, Ledger: books, Node: self, Lines: lines, Catalog: watcher, Media: files,
		Webhooks: s.Options.Webhooks, Log: log})
	calls := call.New(call.Options{Ledger: books, Lines: lines, Log: log})
	server := api.New(api.Options{Options: httpapi.Options{Log: log}, Since: catalog.NewModelTimes(s.DB),
		Keys: s.Options.Keys, Catalog: watcher, Ledger: books, Jobs: jobs, Media: files,
		Chat: chat.New(calls, chat.Options{}), Calls: calls, Responses: response.New(response.Options{DB: s.DB}),
		Guard: egress.New(nil), MaxBody: 1 << 20})
	s.Options.Ledger, s.Options.Lines, s.Options.Jobs, s.Options.Media = books, lines, jobs, files
	s.Options.ServeAs = server.ServeAs
}

// sendMails configures mail. Waiting mails are not sent, but the pages can send single mails.
func (s *Scene) sendMails() {
	s.t.Helper()
	s.Mail = fakemail.Start(s.t, fakemail.Options{})
	at, err := netip.ParseAddrPort(s.Mail.Address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.Options.Mails, err = mail.New(mail.Options{DB: s.DB, From: "shop@example.com", PublicURL: PublicURL,
		Server: mail.SMTPServer{Host: at.Addr().String(), Port: int(at.Port()), Security: mail.Plain}})
	if err != nil {
		s.t.Fatal(err)
	}
}

// AddProvider configures the identity provider corp, for customers and operators. No server runs at its
// address.
func (s *Scene) AddProvider() {
	s.t.Helper()
	s.Options.Identities = []*identity.IDProvider{identity.New(identity.Options{HTTP: http.DefaultClient, Config: identity.Config{
		Name: "corp", Title: "Corp", Kind: identity.OIDC, Issuer: "http://127.0.0.1:1", ClientID: "a", ClientSecret: "b", For: identity.Both}})}
	s.handler = s.Console(nil)
}

// WithoutMail returns a console that sends no mail.
func (s *Scene) WithoutMail() http.Handler {
	return s.Console(func(o *console.Options) { o.Mails = nil })
}

// WroteMail adds a mail to ada to the outbox, and returns the mail's id.
func (s *Scene) WroteMail() (mailID string) {
	s.t.Helper()
	s.Update(func(tx *store.Tx) error {
		err := account.MailUserTx(tx, s.Options.Mails, s.Users["ada@example.com"], mail.Letter{Kind: mail.Test, Cause: id.New("test_")})
		if err != nil {
			return err
		}
		return tx.QueryRow(`SELECT id FROM mail_outbox ORDER BY id DESC LIMIT 1`).Scan(&mailID)
	})
	return mailID
}

// takePayments configures Stripe with a bonus of 10 % from 50 USD on.
func (s *Scene) takePayments() {
	s.t.Helper()
	s.Stripe = fakepayment.NewStripe(s.t)
	terms, err := topup.NewTerms(topup.TermsTexts{Currency: "usd",
		Amounts: []string{"10", "50"}, Minimum: "5", Maximum: "500", Tiers: []string{"50=10"}, Automatic: "300"})
	if err != nil {
		s.t.Fatal(err)
	}
	s.Options.Invoices = &invoice.Issuer{PublicURL: PublicURL, Terms: invoice.SellerTerms{
		Seller:        invoice.Party{Name: "Lumen GmbH", Address: []string{"Ring 1", "10115 Berlin"}, Country: "DE", TaxID: "DE123456789"},
		InvoiceSeries: "INVOICE", CreditSeries: "CREDIT", TaxName: "VAT", TaxRate: 190_000}}
	s.Options.Topups = topup.New(topup.Options{DB: s.DB, Terms: terms, PublicURL: PublicURL, Settled: s.Options.Invoices.IssueTx,
		Providers: []topup.PaymentProvider{
			stripe.New(stripe.Options{URL: s.Stripe.URL, Key: fakepayment.StripeKey, Secret: fakepayment.StripeSecret, HTTP: http.DefaultClient}),
		}})
}

// TakeCNY returns top-ups in CNY, with Stripe and an EPay site. 1 CNY buys 0.1 USD.
func (s *Scene) TakeCNY(site *fakepayment.EPay) *topup.Topups {
	s.t.Helper()
	terms, err := topup.NewTerms(topup.TermsTexts{Currency: "cny", Rate: "0.1", Amounts: []string{"50"}, Minimum: "5", Maximum: "500"})
	if err != nil {
		s.t.Fatal(err)
	}
	methods, err := epay.ParseMethods([]string{"alipay", "wxpay"})
	if err != nil {
		s.t.Fatal(err)
	}
	o := s.Options.Topups.Options
	o.Terms = terms
	o.Providers = append(slices.Clone(o.Providers), epay.New(epay.Options{URL: site.URL, PID: fakepayment.EPayPID, Key: fakepayment.EPayKey,
		Methods: methods, HTTP: http.DefaultClient}))
	return topup.New(o)
}

// Invoice pays a top-up of an account and returns the invoice.
func (s *Scene) Invoice(name string) invoice.IssuedDocument {
	s.t.Helper()
	t := s.Topup(name)
	s.Stripe.Pay(s.Stripe.Session(t.ID))
	if err := s.Options.Topups.Sync(s.t.Context(), t.ID, ""); err != nil {
		s.t.Fatal(err)
	}
	var list []invoice.IssuedDocument
	s.Update(func(tx *store.Tx) (err error) {
		list, err = invoice.OfTopupTx(tx, t.ID)
		return err
	})
	if len(list) != 1 {
		s.t.Fatalf("got %d documents of a payment, want an invoice", len(list))
	}
	return list[0]
}

// Topup orders a top-up of 50 USD for an account and begins its payment.
func (s *Scene) Topup(name string) (t topup.Topup) {
	s.t.Helper()
	s.Update(func(tx *store.Tx) (err error) {
		t, err = s.Options.Topups.CreateTx(tx, topup.NewOrder{Account: s.Accounts[name].ID, Provider: stripe.Name, Minor: 5000})
		return err
	})
	if err := s.Options.Topups.Begin(s.t.Context(), t.ID); err != nil {
		s.t.Fatal(err)
	}
	return t
}

// Run lets jobs run until the test ends.
func (s *Scene) Run() {
	ctx, stop := context.WithCancel(context.WithoutCancel(s.t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() { s.Options.Jobs.Run(ctx) })
	s.t.Cleanup(func() { stop(); wg.Wait() })
}

// Job submits an image job for an account and returns the job's id.
func (s *Scene) Job(name, prompt string) string {
	s.t.Helper()
	body, err := json.Marshal(map[string]string{"model": "sandbox-image", "prompt": prompt})
	if err != nil {
		s.t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, PublicURL+"/v1/images/generations", bytes.NewReader(body))
	r.RemoteAddr = "192.0.2.7:4711"
	w := httptest.NewRecorder()
	s.Options.ServeAs(w, r, s.Accounts[name].ID, s.Key(name, "for a job").ID)
	var created struct{ ID string }
	if err := json.Unmarshal(w.Body.Bytes(), &created); err != nil || w.Code != http.StatusAccepted {
		s.t.Fatalf("submitting a job: status %d, want 202: %s", w.Code, w.Body)
	}
	return created.ID
}

// Console makes a console with the scene's options, after change has edited them. change may be
// nil.
func (s *Scene) Console(change func(*console.Options)) http.Handler {
	s.t.Helper()
	o := s.Options
	if change != nil {
		change(&o)
	}
	h, err := console.New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}

// Update runs act in one transaction.
func (s *Scene) Update(act func(tx *store.Tx) error) {
	s.t.Helper()
	if err := s.DB.Update(s.t.Context(), act); err != nil {
		s.t.Fatal(err)
	}
}

// Exec runs a statement in its own transaction.
func (s *Scene) Exec(text string, args ...any) {
	s.t.Helper()
	s.Update(func(tx *store.Tx) error {
		_, err := tx.Exec(text, args...)
		return err
	})
}

// ChangeAccount changes an account.
func (s *Scene) ChangeAccount(name string, p account.Patch) {
	s.t.Helper()
	s.Update(func(tx *store.Tx) error {
		_, err := account.ChangeTx(tx, s.Accounts[name].ID, p)
		return err
	})
}

// ChangeUser changes a user.
func (s *Scene) ChangeUser(email string, change account.UserChange) {
	s.t.Helper()
	s.Update(func(tx *store.Tx) error {
		_, err := account.ChangeUserTx(tx, s.Users[email].ID, change)
		return err
	})
}

// ChangeKey changes the settings of a key and returns the changed key.
func (s *Scene) ChangeKey(id string, edit func(*account.KeySettings)) (k account.Key) {
	s.t.Helper()
	s.Update(func(tx *store.Tx) (err error) {
		k, err = account.ChangeKeyTx(tx, id, func(settings *account.KeySettings) error { edit(settings); return nil })
		return err
	})
	return k
}

// account opens an account with 10 USD and a user.
func (s *Scene) account(name, email string) {
	s.t.Helper()
	s.Update(func(tx *store.Tx) error {
		a, err := account.CreateTx(tx, account.NewAccount{Name: name})
		if err != nil {
			return err
		}
		s.Accounts[name] = a
		if err := webhook.OpenTx(tx, a.ID); err != nil {
			return err
		}
		_, err = ledger.CreditTx(tx, a.ID, 10*money.USD, "invoice 1")
		return err
	})
	s.User(name, account.SignIn{Email: email})
}

// User adds a user to an account.
func (s *Scene) User(name string, signIn account.SignIn) account.User {
	s.t.Helper()
	signIn.PasswordHash = cheapHash
	s.Update(func(tx *store.Tx) error {
		u, err := account.CreateUserTx(tx, s.Accounts[name].ID, signIn)
		s.Users[signIn.Email] = u
		return err
	})
	return s.Users[signIn.Email]
}

// Invite adds a user without a password to an account, and returns the link.
func (s *Scene) Invite(name string, signIn account.SignIn) (address string) {
	s.t.Helper()
	s.Update(func(tx *store.Tx) error {
		l, err := operator.InviteTx(tx, operator.Actor{Way: operator.Shell, Role: account.Owner}, nil, PublicURL, s.Accounts[name].ID, signIn)
		s.Users[signIn.Email], address = l.User, l.Address
		return err
	})
	return address
}

// Link creates a sign-in link for a user and returns the link's token.
func (s *Scene) Link(email string) (token string) {
	s.t.Helper()
	s.Update(func(tx *store.Tx) (err error) {
		_, token, err = account.CreateLinkTx(tx, s.Users[email].ID)
		return err
	})
	return token
}

// Key creates a key of an account.
func (s *Scene) Key(name, label string) (k account.Key) {
	s.t.Helper()
	s.Update(func(tx *store.Tx) (err error) {
		k, _, err = account.CreateKeyTx(tx, s.Accounts[name].ID, account.KeySettings{Name: label})
		return err
	})
	return k
}

// Code creates a redeem code worth 1 USD and returns the code with its text.
func (s *Scene) Code() (code account.RedeemCode, text string) {
	s.t.Helper()
	s.Update(func(tx *store.Tx) error {
		codes, texts, err := account.CreateCodesTx(tx, account.NewCodes{Value: money.USD, Count: 1})
		if err == nil {
			code, text = codes[0], texts[0]
		}
		return err
	})
	return code, text
}

// SignedIn returns a browser in which a user has signed in.
func (s *Scene) SignedIn(email string) *Browser {
	s.t.Helper()
	b := s.Browser()
	if got := b.SignIn(email, Password); got.Code != http.StatusSeeOther {
		s.t.Fatalf("signing in %s: status %d, want 303: %s", email, got.Code, got.Body)
	}
	return b
}

// Session returns a browser with a session of a user. It skips the sign-in, so it is faster than SignedIn.
func (s *Scene) Session(kind account.SessionKind, email string) *Browser {
	s.t.Helper()
	b := s.Browser()
	n := account.NewSession{Kind: kind, User: s.Users[email].ID}
	name := "tollgate"
	if kind == account.OperatorSession {
		name, n.Token = "tollgate-op", AdminToken
	}
	s.Update(func(tx *store.Tx) error {
		_, value, err := account.OpenSessionTx(tx, n)
		b.Cookies[name] = &http.Cookie{Name: name, Value: value}
		return err
	})
	return b
}

// Operator returns a browser in which the operator has signed in with the token.
func (s *Scene) Operator() *Browser {
	s.t.Helper()
	b := s.Browser()
	if got := b.Post("/console/operator/sign-in", "admin_token", AdminToken); got.Code != http.StatusSeeOther {
		s.t.Fatalf("signing in with the token: status %d, want 303: %s", got.Code, got.Body)
	}
	return b
}

// Request writes a row of an account's request log and returns the request's id.
func (s *Scene) Request(name string, status int, code string) string {
	s.t.Helper()
	request := id.New("req_")
	s.Update(func(tx *store.Tx) error {
		batch := tx.Batch()
		requestlog.Write(batch, []books.ReceiptRow{{
			Hold: books.HoldRow{ID: request, Account: s.Accounts[name].ID, Model: "swift-1", Endpoint: "/v1/chat/completions", Revision: 1,
				Amount: 4_100_000, CreatedMS: 1_800_000_000_000},
			End: books.End{Outcome: books.Billed, Status: status, Code: code, Line: "secret-line", FirstByte: 420 * time.Millisecond,
				Duration: 1400 * time.Millisecond, Tokens: books.Tokens{Prompt: 1000, Cached: 200, Completion: 310}},
			Attempts: `[{"line":"secret-line","status":502,"code":"upstream_timeout","cause":"secret cause","duration_ms":60000},
				{"line":"secret-line","status":200,"duration_ms":1400}]`,
			Seq: 7, Cost: 875_000, StandsFor: 1, EndedMS: 1_800_000_001_400,
		}})
		return tx.Run(batch)
	})
	return request
}

// AddUsage adds the sums in d to the usage of the named account on one day. daysAgo counts from the current UTC
// day.
func (s *Scene) AddUsage(name string, daysAgo int64, d spending.UsageRow) {
	s.t.Helper()
	s.Update(func(tx *store.Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		var series int64
		if err := tx.QueryRow(`SELECT COUNT(*) + 1000 FROM ledger_series`).Scan(&series); err != nil {
			return err
		}
		unit := ""
		for u := range d.Quantities { // a day row has one unit
			unit = string(u)
		}
		if _, err := tx.Exec(`INSERT INTO ledger_series (id, account, key, model, line, endpoint, folded)
			VALUES ($1, $2, $3, $4, $5, $6, 0) ON CONFLICT DO NOTHING`,
			series, s.Accounts[name].ID, d.Key, d.Model, d.Line, d.Endpoint); err != nil {
			return err
		}
		if err := tx.QueryRow(`SELECT id FROM ledger_series WHERE account = $1 AND key = $2 AND model = $3 AND line = $4 AND endpoint = $5`,
			s.Accounts[name].ID, d.Key, d.Model, d.Line, d.Endpoint).Scan(&series); err != nil {
			return err
		}
		_, err = tx.Exec(`INSERT INTO ledger_day (day, series, requests, billed, failed, prompt_tokens, cached_tokens, completion_tokens,
			quantity, cost_nano, line_cost_nano, line_costs, known_cost_nano, unit)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
			now/(24*time.Hour).Milliseconds()-daysAgo, series, d.Requests, d.Billed, d.Failed, d.Prompt, d.Cached, d.Completion,
			d.Quantities[measure.Unit(unit)].N, int64(d.Charged), int64(d.LineCost), d.LineCosts, int64(d.KnownCost), unit)
		return err
	})
}

// Delivery sends a test event of an account to a receiver and returns the id of the delivery.
func (s *Scene) Delivery(name string) string {
	s.t.Helper()
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.t.Cleanup(receiver.Close)
	s.Update(func(tx *store.Tx) error {
		_, err := s.Options.Webhooks.PutEndpointTx(tx, s.Accounts[name].ID, webhook.Endpoint{URL: receiver.URL})
		return err
	})
	if _, err := s.Options.Webhooks.Test(s.t.Context(), s.Accounts[name].ID); err != nil {
		s.t.Fatal(err)
	}
	var id string
	s.Update(func(tx *store.Tx) error {
		list, _, err := s.Options.Webhooks.DeliveriesTx(tx, s.Accounts[name].ID, "", 1)
		if err == nil {
			id = list[0].ID
		}
		return err
	})
	return id
}

// SellReal adds two models to the catalog. The model sold has a line of a real provider. The model both has
// this line and a sandbox line.
func (s *Scene) SellReal() {
	s.t.Helper()
	s.Sell(`  - {id: sold, kind: chat, forms: [chat], context_window: 1000, max_output_tokens: 100, price: {input: 1, output: 1}}
  - {id: both, kind: chat, forms: [chat], context_window: 1000, max_output_tokens: 100, price: {input: 1, output: 1}}
`, `  - {id: main, provider: openai, api_key: "${SET}", models: {sold: x, both: x}}
  - {id: second, provider: sandbox, models: {both: sandbox-chat}}
`)
}

// Sell adds models and lines, as YAML, to the catalog.
func (s *Scene) Sell(models, lines string) {
	s.t.Helper()
	s.Update(func(tx *store.Tx) error {
		doc, _, err := catalog.CurrentTx(tx)
		if err != nil {
			return err
		}
		text := regexp.MustCompile(`(?m)^models:\n`).ReplaceAllLiteralString(string(doc.YAML()), "models:\n"+models)
		text = regexp.MustCompile(`(?m)^lines:\n`).ReplaceAllLiteralString(text, "lines:\n"+lines)
		if doc, _, err = catalog.Parse([]byte(text), s.Options.Providers); err == nil {
			_, err = catalog.ApplyTx(tx, doc)
		}
		return err
	})
	if err := s.Options.Catalog.Refresh(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}
