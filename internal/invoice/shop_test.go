package invoice_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/gatewaytest/fakepayment"
	"tollgate/internal/invoice"
	"tollgate/internal/ledger/audit"
	"tollgate/internal/mail"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
	"tollgate/internal/topup"
	"tollgate/internal/topup/stripe"
)

// terms are those of a seller in Germany.
func terms() invoice.SellerTerms {
	return invoice.SellerTerms{
		Seller:        invoice.Party{Name: "Lumen GmbH", Address: []string{"Ring 1", "10115 Berlin"}, Country: "DE", TaxID: "DE123456789"},
		InvoiceSeries: "INVOICE", CreditSeries: "CREDIT", TaxName: "VAT", TaxRate: 190_000, Note: "Thank you."}
}

// shop is a shop with one account, which takes payments by the fake of Stripe and issues documents.
type shop struct {
	*topup.Topups
	*invoice.Issuer
	t       *testing.T
	db      *store.DB
	clock   *storetest.Clock // nil if the time passes
	now     func() time.Time
	stripe  *fakepayment.Stripe
	account string
}

// eachShop runs test with a shop on each database, and audits the shop afterwards.
func eachShop(t *testing.T, tax bool, test func(t *testing.T, s *shop)) {
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		s := newShop(t, db, clock.Now, tax)
		s.clock = clock
		test(t, s)
		s.audit()
	})
}

func newShop(t *testing.T, db *store.DB, now func() time.Time, tax bool) *shop {
	t.Helper()
	s := &shop{t: t, db: db, now: now, stripe: fakepayment.NewStripe(t)}
	s.stripe.Now = now
	mails, err := mail.New(mail.Options{DB: db, Server: mail.SMTPServer{Host: "smtp.example.com"}, PublicURL: "https://shop.example"})
	if err != nil {
		t.Fatal(err)
	}
	s.Issuer = &invoice.Issuer{Terms: terms(), Mails: mails, PublicURL: "https://shop.example"}
	s.Topups = s.open(db, tax)
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	s.stripe.SendTo(server.URL + stripe.Path)
	a, err := store.Write(t.Context(), db, func(tx *store.Tx) (account.Account, error) {
		return account.CreateTx(tx, account.NewAccount{Name: "acme"})
	})
	if err != nil {
		t.Fatal(err)
	}
	s.account = a.ID
	return s
}

// open returns the top-ups of a node.
func (s *shop) open(db *store.DB, tax bool) *topup.Topups {
	s.t.Helper()
	p, err := topup.NewTerms(topup.TermsTexts{Currency: "usd", Amounts: []string{"10"}, Minimum: "5", Maximum: "1000",
		Tiers: []string{"100=10"}})
	if err != nil {
		s.t.Fatal(err)
	}
	return topup.New(topup.Options{DB: db, Terms: p, PublicURL: "https://shop.example", Settled: s.IssueTx,
		Providers: []topup.PaymentProvider{stripe.New(stripe.Options{URL: s.stripe.URL, Key: fakepayment.StripeKey,
			Secret: fakepayment.StripeSecret, Tax: tax, HTTP: http.DefaultClient, Now: s.now})}})
}

// begin orders a top-up and returns its session.
func (s *shop) begin(minor int64) (row topup.Topup, session string) {
	s.t.Helper()
	row, err := store.Write(s.t.Context(), s.db, func(tx *store.Tx) (topup.Topup, error) {
		return s.CreateTx(tx, topup.NewOrder{Account: s.account, Provider: "stripe", Minor: minor})
	})
	if err = errors.Join(err, s.Begin(s.t.Context(), row.ID)); err != nil {
		s.t.Fatal(err)
	}
	return row, s.stripe.Session(row.ID)
}

// paid returns a paid top-up.
func (s *shop) paid(minor int64) (row topup.Topup, session string) {
	s.t.Helper()
	row, session = s.begin(minor)
	s.stripe.Pay(session)
	return row, session
}

// documents returns the documents of a top-up.
func (s *shop) documents(topup string) []invoice.IssuedDocument {
	s.t.Helper()
	list, err := store.Read(s.t.Context(), s.db, func(tx *store.Tx) ([]invoice.IssuedDocument, error) { return invoice.OfTopupTx(tx, topup) })
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

// amount is what a test compares of a document.
type amount struct {
	Name, Corrects  string
	Net, Tax, Total int64
	Credit          string
}

func (s *shop) wantDocuments(topup string, want ...amount) {
	s.t.Helper()
	var got []amount
	for _, d := range s.documents(topup) {
		got = append(got, amount{d.Name, d.Corrects, d.Net, d.Tax, d.Total, d.Credit.String()})
	}
	if len(got) != len(want) {
		s.t.Errorf("documents: got %+v, want %+v", got, want)
		return
	}
	for i := range want {
		if got[i] != want[i] {
			s.t.Errorf("document %d: got %+v, want %+v", i+1, got[i], want[i])
		}
	}
}

func (s *shop) audit() {
	s.t.Helper()
	found, err := audit.Run(s.t.Context(), s.db, topup.AuditTx, invoice.AuditTx)
	if err != nil {
		s.t.Fatal(err)
	}
	if !found.OK {
		s.t.Errorf("audit: got %+v, want no difference", found.Differences)
	}
}

// list returns the documents of a filter.
func (s *shop) list(f invoice.DocumentFilter) (list []invoice.IssuedDocument) {
	s.t.Helper()
	storetest.View(s.t, s.db, func(tx *store.Tx) (err error) {
		list, _, err = invoice.ListTx(tx, f)
		return err
	})
	return list
}

// save saves the details of the customer.
func (s *shop) save(p invoice.Party) error {
	return s.db.Update(s.t.Context(), func(tx *store.Tx) error { return invoice.SetCustomerTx(tx, s.account, p) })
}
