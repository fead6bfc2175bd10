package payments

import (
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakemail"
	"tollgate/internal/gatewaytest/fakepayment"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/topup/stripe"
)

// shop is a node with payments, documents and mails, with one customer. A purchase is an order, its
// payment, the refund of a half by the operator, and a dispute about the payment. Its money is zero at the
// end.
type shop struct {
	*customer
	stripe    *fakepayment.Stripe
	mails     *fakemail.Server
	sent      int // the messages of Stripe that are acknowledged
	purchases int
}

// newShop starts a node on a database. direct is the address of the same database for the test.
func newShop(t *testing.T, database, direct string) *shop {
	t.Helper()
	s := &shop{stripe: fakepayment.NewStripe(t), mails: fakemail.Start(t, fakemail.Options{StartTLS: true, Auth: true})}
	with := settings(s.stripe)
	maps.Copy(with, map[string]string{"smtp_server": s.mails.Address, "smtp_user": fakemail.User, "smtp_password": fakemail.Password,
		"mail_from": "shop@example.com", "public_url": "http://shop.example", "SSL_CERT_FILE": s.mails.CertPEM})
	s.customer = newCustomer(t, scene.NewNode(t, scene.Binary(t), database, with))
	s.db = scene.OpenDatabase(t, direct)
	return s
}

// order orders a top-up of 50 dollars, and returns its id once it has a page for the payment.
func (s *shop) order(once string) (id string) {
	s.t.Helper()
	page := s.post("/console/billing/top-ups/new", url.Values{"amount": {"50.00"}, "provider": {"stripe"}, "other": {""}, "once": {once}})
	id = topupID.FindString(page)
	if s.stripe.Session(id) == "" || !strings.Contains(s.get("/console/billing/top-ups/"+id), "/pay/") {
		s.post("/console/billing/top-ups/"+id+"/check", nil)
	}
	return id
}

// deliverNew sends the messages of Stripe that are not acknowledged, until they are.
func (s *shop) deliverNew() {
	s.t.Helper()
	for _, e := range s.stripe.Events()[s.sent:] {
		s.insist("message "+e.Type, func() (int, error) { return s.send(e) })
		s.sent++
	}
}

// send sends one message of Stripe once.
func (s *shop) send(e fakepayment.Event) (status int, err error) {
	s.stripe.SendTo(s.n.URL + stripe.Path)
	defer s.stripe.SendTo("")
	if status = s.stripe.Send(e); status == 0 {
		err = errUnanswered
	}
	return status, err
}

// insist repeats a request until it has its effect. It starts the process again if there is no answer.
func (s *shop) insist(what string, request func() (int, error)) {
	s.t.Helper()
	status, err := 0, errUnanswered
	for range 5 {
		if status, err = request(); err == nil && status < http.StatusMultipleChoices {
			return
		}
		s.revive(err)
	}
	s.t.Fatalf("%s: got %d, %v", what, status, err)
}

// operator sends a request to the operator API once. Keys are the Idempotency-Key, if there is one.
func (s *shop) operator(path, body string, keys ...string) (status int, err error) {
	headers := []string{"Authorization", "Bearer " + scene.AdminToken, "Content-Type", "application/json"}
	for _, key := range keys {
		headers = append(headers, "Idempotency-Key", key)
	}
	res, err := scene.Do(s.t.Context(), s.n.Client, "POST", s.n.URL+"/admin/v1"+path, body, headers...)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}

// refund refunds 25 dollars as an operator, once.
func (s *shop) refund(id string) (status int, err error) {
	return s.operator("/top-ups/"+id+"/refunds", `{"amount":"25.00","reason":"asked for it"}`, "refund of "+id)
}

// isConfirmed reports whether Stripe has confirmed the refund of a top-up.
func (s *shop) isConfirmed(id string) bool {
	return s.count(`SELECT COUNT(*) FROM topup_reversal WHERE requested = 0 AND topup = $1`, id) == 1
}

// refundHalf repeats a refund until it has its effect. If Stripe has not confirmed the refund then, a new process
// sweeps.
func (s *shop) refundHalf(id string) {
	s.t.Helper()
	restarts := s.restarts
	s.insist("refund", func() (int, error) { return s.refund(id) })
	if s.restarts == restarts && !s.isConfirmed(id) {
		s.revive(errUnanswered)
	}
	scene.Eventually(s.t, "the refund is confirmed", func() bool { return s.isConfirmed(id) })
}

// newest returns the id of the newest top-up.
func (s *shop) newest() (id string) {
	s.t.Helper()
	if err := s.db.QueryRow(`SELECT MAX(id) FROM topup`).Scan(&id); err != nil {
		s.t.Fatal(err)
	}
	return id
}

// count returns the number of a query.
func (s *shop) count(query string, args ...any) (n int) {
	s.t.Helper()
	if err := s.db.QueryRow(query, args...).Scan(&n); err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
	return n
}

// The steps of a purchase.
const (
	ordering   = "order"
	paying     = "payment"
	refunding  = "refund"
	disputing  = "dispute"
	halfCredit = 27_500_000_000 // of 50 dollars with a bonus of 10 %
)

// purchase makes a purchase and checks it. during runs each of its steps.
func (s *shop) purchase(during func(step string, do func())) {
	s.t.Helper()
	if during == nil {
		during = func(_ string, do func()) { do() }
	}
	s.purchases++
	sessions, refunds := s.stripe.Sessions(), s.stripe.Refunds()
	once, id := s.newOnce(), ""
	during(ordering, func() { id = s.order(once) })
	s.checkBalance(id, "order", 0)
	s.stripe.Pay(s.stripe.Session(id))
	during(paying, s.deliverNew)
	s.checkBalance(id, "payment", 2*halfCredit)
	during(refunding, func() {
		s.refundHalf(id)
		s.deliverNew()
	})
	s.checkBalance(id, "refund", halfCredit)
	s.stripe.Dispute(s.stripe.Session(id), "needs_response")
	during(disputing, s.deliverNew)
	s.checkBalance(id, "dispute", 0)
	if got := s.stripe.Sessions() - sessions; got != 1 {
		s.t.Errorf("%s: got %d sessions, want 1", id, got)
	}
	if got := s.stripe.Refunds() - refunds; got != 1 {
		s.t.Errorf("%s: got %d refunds at Stripe, want 1", id, got)
	}
	s.checkRows(id)
}

func (s *shop) checkBalance(id, after string, want money.Amount) {
	s.t.Helper()
	if got := s.n.FundsOf(s.id).Balance; got != want {
		s.t.Errorf("%s: balance after the %s: got %s, want %s", id, after, got, want)
	}
}

// checkRows checks that a purchase has one row of each kind.
func (s *shop) checkRows(id string) {
	s.t.Helper()
	for _, c := range []struct {
		what  string
		query string
		args  []any
		want  int
	}{
		{"top-ups", `SELECT COUNT(*) FROM topup`, nil, s.purchases},
		{"credits", `SELECT COUNT(*) FROM ledger_entry WHERE note = $1`, []any{"top-up " + id}, 1},
		{"take-backs by refunds", `SELECT COUNT(*) FROM ledger_entry WHERE note = $1`, []any{"refund of " + id}, 1},
		{"take-backs by disputes", `SELECT COUNT(*) FROM ledger_entry WHERE note = $1`, []any{"dispute of " + id}, 1},
		{"entries", `SELECT COUNT(*) FROM ledger_entry WHERE account = $1`, []any{s.id}, 3 * s.purchases},
		{"invoices", `SELECT COUNT(*) FROM invoice_document WHERE topup = $1 AND kind = 'invoice'`, []any{id}, 1},
		{"credit notes", `SELECT COUNT(*) FROM invoice_document WHERE topup = $1 AND kind = 'credit_note'`, []any{id}, 2},
		{"the last number of invoices", `SELECT MAX(number) FROM invoice_document WHERE kind = 'invoice'`, nil, s.purchases},
		{"the last number of credit notes", `SELECT MAX(number) FROM invoice_document WHERE kind = 'credit_note'`, nil, 2 * s.purchases},
		{"receipts", `SELECT COUNT(*) FROM mail_outbox WHERE kind = 'payment_receipt'`, nil, s.purchases},
		{"mails about refunds", `SELECT COUNT(*) FROM mail_outbox WHERE kind = 'payment_refund'`, nil, s.purchases},
		{"mails about disputes", `SELECT COUNT(*) FROM mail_outbox WHERE kind = 'payment_dispute'`, nil, s.purchases},
		{"mails with invoices", `SELECT COUNT(*) FROM mail_outbox WHERE kind = 'invoice'`, nil, s.purchases},
		{"mails with credit notes", `SELECT COUNT(*) FROM mail_outbox WHERE kind = 'credit_note'`, nil, 2 * s.purchases},
	} {
		if got := s.count(c.query, c.args...); got != c.want {
			s.t.Errorf("%s: %s: got %d, want %d", id, c.what, got, c.want)
		}
	}
}

// sendMails waits until all mails are sent. A mail whose attempt was interrupted is otherwise due in a minute.
func (s *shop) sendMails() {
	s.t.Helper()
	if _, err := s.db.Exec(`UPDATE mail_outbox SET due_ms = 1, until_ms = 1 WHERE state < 2`); err != nil {
		s.t.Error(err)
	}
	scene.Eventually(s.t, "all mails are sent", func() bool { return s.count(`SELECT COUNT(*) FROM mail_outbox WHERE state <> 2`) == 0 })
}

// checkEnd sends all messages again, which has no effect, and checks the books and the mails.
func (s *shop) checkEnd() {
	s.t.Helper()
	s.sent = 0
	s.deliverNew()
	s.checkBalance("at the end", "messages again", 0)
	if got := s.count(`SELECT COUNT(*) FROM ledger_entry WHERE account = $1`, s.id); got != 3*s.purchases {
		s.t.Errorf("after the messages again: got %d entries, want %d", got, 3*s.purchases)
	}
	s.sendMails()
	ids := map[string]bool{}
	for _, m := range s.mails.Mails() {
		ids[m.Header.Get("Message-Id")] = true
	}
	if got, want := len(ids), s.count(`SELECT COUNT(*) FROM mail_outbox`); got != want {
		s.t.Errorf("the mail server has %d mails, want %d", got, want)
	}
	s.n.Audit(s.t)
	s.n.CheckStop(s.t)
	scene.CheckBooks(s.t, s.n.Binary, s.n.Settings)
}
