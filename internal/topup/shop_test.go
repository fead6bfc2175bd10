package topup_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/gatewaytest/fakepayment"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/audit"
	"tollgate/internal/mail"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
	"tollgate/internal/topup"
	"tollgate/internal/topup/stripe"
)

// shop is a shop with one account, which takes payments by the fake of Stripe.
type shop struct {
	*topup.Topups
	t       *testing.T
	db      *store.DB
	clock   *storetest.Clock
	stripe  *fakepayment.Stripe
	account string
	handler http.Handler
}

// terms sells USD at 1:1, with a bonus of 10 % from 100 USD on.
func terms(t *testing.T, texts topup.TermsTexts) topup.Terms {
	t.Helper()
	p, err := topup.NewTerms(texts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var usd = topup.TermsTexts{Currency: "usd", Amounts: []string{"10", "20", "100"}, Minimum: "5", Maximum: "1000", Tiers: []string{"100=10"}}

// eachShop runs test with a shop on each database. The endpoint of its webhook is served.
func eachShop(t *testing.T, o topup.Options, test func(t *testing.T, s *shop)) {
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		s := &shop{t: t, db: db, clock: clock, stripe: fakepayment.NewStripe(t)}
		s.stripe.Now = clock.Now
		o := o
		o.DB, o.PublicURL = db, "https://shop.example"
		var err error
		if o.Mails, err = mail.New(mail.Options{DB: db, Server: mail.SMTPServer{Host: "smtp.example.com"}, PublicURL: o.PublicURL}); err != nil {
			t.Fatal(err)
		}
		if o.Terms.Currency.Code == "" {
			o.Terms = terms(t, usd)
		}
		o.Providers = []topup.PaymentProvider{s.client(fakepayment.StripeSecret, false)}
		s.Topups = topup.New(o)
		s.account = s.open("acme")
		s.handler = s.Handler()
		server := httptest.NewServer(s.handler)
		t.Cleanup(server.Close)
		s.stripe.SendTo(server.URL + stripe.Path)
		test(t, s)
		s.audit()
	})
}

func (s *shop) client(secret string, tax bool) *stripe.Service {
	return stripe.New(stripe.Options{URL: s.stripe.URL, Key: fakepayment.StripeKey, Secret: secret, Tax: tax, HTTP: http.DefaultClient,
		Now: s.clock.Now})
}

func (s *shop) open(name string) string {
	s.t.Helper()
	a, err := store.Write(s.t.Context(), s.db, func(tx *store.Tx) (account.Account, error) {
		return account.CreateTx(tx, account.NewAccount{Name: name})
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return a.ID
}

// create writes the row of a top-up.
func (s *shop) create(minor int64) topup.Topup {
	s.t.Helper()
	row, err := store.Write(s.t.Context(), s.db, func(tx *store.Tx) (topup.Topup, error) {
		return s.CreateTx(tx, topup.NewOrder{Account: s.account, Provider: "stripe", Minor: minor})
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return row
}

// begin creates a top-up and its session.
func (s *shop) begin(minor int64) (row topup.Topup, session string) {
	s.t.Helper()
	row = s.create(minor)
	if err := s.Begin(s.t.Context(), row.ID); err != nil {
		s.t.Fatal(err)
	}
	return row, s.stripe.Session(row.ID)
}

// paid returns a paid top-up.
func (s *shop) paid(minor int64) (row topup.Topup, session string) {
	s.t.Helper()
	row, session = s.begin(minor)
	s.stripe.Pay(session)
	s.wantState(row, topup.Paid)
	return s.row(row.ID), session
}

func (s *shop) row(id string) topup.Topup {
	s.t.Helper()
	row, err := store.Read(s.t.Context(), s.db, func(tx *store.Tx) (topup.Topup, error) { return topup.GetTx(tx, id) })
	if err != nil {
		s.t.Fatal(err)
	}
	return row
}

func (s *shop) wantState(row topup.Topup, want topup.TopupState) {
	s.t.Helper()
	if got := s.row(row.ID).State; got != want {
		s.t.Errorf("state of the top-up: got %s, want %s", got, want)
	}
}

func (s *shop) state() ledger.AccountState {
	s.t.Helper()
	states, err := store.Read(s.t.Context(), s.db, func(tx *store.Tx) (map[string]ledger.AccountState, error) {
		return ledger.AccountsTx(tx, []string{s.account})
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return states[s.account]
}

func (s *shop) wantBalance(want money.Amount) {
	s.t.Helper()
	if got := s.state().Balance; got != want {
		s.t.Errorf("balance: got %s USD, want %s", got, want)
	}
}

// wantProblems checks the details of the open problems.
func (s *shop) wantProblems(want ...string) {
	s.t.Helper()
	list, err := store.Read(s.t.Context(), s.db, func(tx *store.Tx) (list []topup.Problem, err error) {
		list, _, err = topup.ProblemsTx(tx, "", 100)
		return list, err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	var got []string
	for _, p := range list {
		got = append(got, string(p.Kind))
	}
	if len(got) != len(want) {
		s.t.Errorf("problems: got %q, want %q", got, want)
		return
	}
	for i := range want {
		if got[i] != want[i] {
			s.t.Errorf("problems: got %q, want %q", got, want)
			return
		}
	}
}

// audit checks that the audit finds no difference.
func (s *shop) audit() {
	s.t.Helper()
	found, err := audit.Run(s.t.Context(), s.db, topup.AuditTx)
	if err != nil {
		s.t.Fatal(err)
	}
	if !found.OK {
		s.t.Errorf("audit: got %+v, want no difference", found.Differences)
	}
}

// post sends a message with a signature header, and returns the status of the answer.
func (s *shop) post(handler http.Handler, body []byte, signature string) int {
	s.t.Helper()
	r := httptest.NewRequest(http.MethodPost, stripe.Path, bytes.NewReader(body))
	r.Header.Set("Stripe-Signature", signature)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w.Code
}

// sign returns a valid signature.
func (s *shop) sign(body []byte) string {
	return fakepayment.Sign(fakepayment.StripeSecret, body, s.clock.Now())
}

// refund refunds a part of a top-up as an operator.
func (s *shop) refund(row topup.Topup, minor int64) (topup.Reversal, error) {
	c, err := store.Write(s.t.Context(), s.db, func(tx *store.Tx) (topup.Reversal, error) {
		return s.RefundTx(tx, row.ID, minor, "asked for it")
	})
	if err != nil {
		return c, err
	}
	return c, s.PayBack(s.t.Context(), c)
}

// sweepOK sweeps and fails the test after an error.
func (s *shop) sweepOK() {
	s.t.Helper()
	if err := s.Sweep(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func isNoAnswer(err error) bool { return errors.Is(err, topup.ErrNoAnswer) }
