package payments

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakemail"
	"tollgate/internal/gatewaytest/fakepayment"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/topup/epay"
	"tollgate/internal/topup/stripe"
)

// shop is a node with payments by Stripe and by an EPay site, documents and mails, with one customer. A yuan is a
// dollar.
type shop struct {
	*customer
	stripe  *fakepayment.Stripe
	epay    *fakepayment.EPay
	mails   *fakemail.Server
	sent    int          // the messages of Stripe that are acknowledged
	balance money.Amount // between two purchases

	// What the database must have.
	topups, refunds, disputes, debits int
}

// newShop starts a node on a database. direct is the address of the same database for the test.
func newShop(t *testing.T, database, direct string) *shop {
	t.Helper()
	s := &shop{stripe: fakepayment.NewStripe(t), epay: fakepayment.NewEPay(t),
		mails: fakemail.Start(t, fakemail.Options{StartTLS: true, Auth: true})}
	s.customer = newCustomer(t, scene.NewNode(t, scene.Binary(t), database, map[string]string{
		"stripe_url": s.stripe.URL, "stripe_key": fakepayment.StripeKey, "stripe_webhook_secret": fakepayment.StripeSecret,
		"epay_url": s.epay.URL, "epay_pid": fakepayment.EPayPID, "epay_key": fakepayment.EPayKey, "epay_refunds": "true",
		"topup_currency": "cny", "topup_rate": "1", "topup_bonus": "50=10", "topup_automatic_maximum": "10000",
		"invoice_seller_name": "Lumen", "invoice_seller_address": "Ring 1", "invoice_seller_country": "DE",
		"smtp_server": s.mails.Address, "smtp_user": fakemail.User, "smtp_password": fakemail.Password,
		"mail_from": "shop@example.com", "public_url": "http://shop.example", "SSL_CERT_FILE": s.mails.CertPEM,
		"private_networks": "127.0.0.0/8", "node_lease": "1s"}))
	s.db = scene.OpenDatabase(t, direct)
	return s
}

// submit sends the form of an order of 50 yuan, and returns the page of the top-up. more are further fields.
func (s *shop) submit(provider, once string, more ...string) (page string) {
	s.t.Helper()
	form := url.Values{"amount": {"50.00"}, "provider": {provider}, "other": {""}, "once": {once}}
	for _, field := range more {
		form.Set(field, "on")
	}
	return s.post("/console/billing/top-ups/new", form)
}

// order orders a top-up at Stripe, and returns its id once it has a page for the payment.
func (s *shop) order(once string, more ...string) (id string) {
	s.t.Helper()
	id = topupID.FindString(s.submit("stripe", once, more...))
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

// refund refunds a part of a top-up as an operator, once.
func (s *shop) refund(id, amount string) (status int, err error) {
	return s.operator("/top-ups/"+id+"/refunds", `{"amount":"`+amount+`","reason":"asked for it"}`, "refund of "+id)
}

// isConfirmed reports whether the provider has confirmed the operator's refund of a top-up.
func (s *shop) isConfirmed(id string) bool {
	return s.count(`SELECT COUNT(*) FROM topup_reversal WHERE requested = 0 AND reason <> '' AND topup = $1`, id) == 1
}

// insistOnRefund repeats a refund until it has its effect. If the provider has not confirmed the refund then, a new
// process sweeps.
func (s *shop) insistOnRefund(id, amount string) {
	s.t.Helper()
	restarts := s.restarts
	s.insist("refund", func() (int, error) { return s.refund(id, amount) })
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

// The steps of purchases.
const (
	ordering  = "order"
	paying    = "payment"
	refunding = "refund"
	disputing = "dispute"
	charging  = "charge"

	refundingElsewhere = "refund on Stripe's pages"
)

// purchase makes a purchase, or an automatic top-up, and checks it. during runs each of its steps.
type purchase func(during func(step string, do func()))

// halfCredit is the credit of 25 yuan, with a bonus of 10 %.
const halfCredit money.Amount = 27_500_000_000

// buy orders a top-up at Stripe and pays it.
func (s *shop) buy(during func(step string, do func())) (id string) {
	s.t.Helper()
	sessions, once := s.stripe.Sessions(), s.newOnce()
	during(ordering, func() { id = s.order(once) })
	s.checkBalance(id, ordering, s.balance)
	s.stripe.Pay(s.stripe.Session(id))
	during(paying, s.deliverNew)
	s.checkBalance(id, paying, s.balance+2*halfCredit)
	s.checkReceipt(id)
	if got := s.stripe.Sessions() - sessions; got != 1 {
		s.t.Errorf("%s: got %d sessions, want 1", id, got)
	}
	return id
}

// checkReceipt checks that the page of a paid top-up is a receipt.
func (s *shop) checkReceipt(id string) {
	s.t.Helper()
	if body := s.get("/console/billing/top-ups/" + id); !strings.Contains(body, "Receipt") {
		s.t.Errorf("%s: the page of the top-up is no receipt:\n%s", id, body)
	}
}

// purchase makes a purchase at Stripe and checks it: an order, its payment, the refund of a half by the operator, and
// a dispute about the payment.
func (s *shop) purchase(during func(step string, do func())) {
	s.t.Helper()
	refunds := s.stripe.Refunds()
	id := s.buy(during)
	during(refunding, func() {
		s.insistOnRefund(id, "25.00")
		s.deliverNew()
	})
	s.checkBalance(id, refunding, s.balance+halfCredit)
	s.stripe.Dispute(s.stripe.Session(id), "needs_response")
	during(disputing, s.deliverNew)
	s.checkBalance(id, disputing, s.balance)
	if got := s.stripe.Refunds() - refunds; got != 1 {
		s.t.Errorf("%s: got %d refunds at Stripe, want 1", id, got)
	}
	s.checkRows(id, 1, 1)
}

// purchaseWithPartRefunds makes a purchase at Stripe and checks it: an order, its payment, the refund of a half on
// Stripe's pages, and the refund of the other half by the operator.
func (s *shop) purchaseWithPartRefunds(during func(step string, do func())) {
	s.t.Helper()
	id := s.buy(during)
	s.stripe.RefundElsewhere(s.stripe.Session(id), 2500)
	during(refundingElsewhere, s.deliverNew)
	s.checkBalance(id, refundingElsewhere, s.balance+halfCredit)
	refunds := s.stripe.Refunds()
	during(refunding, func() {
		s.insistOnRefund(id, "25.00")
		s.deliverNew()
	})
	s.checkBalance(id, refunding, s.balance)
	if got := s.stripe.Refunds() - refunds; got != 1 {
		s.t.Errorf("%s: got %d refunds at Stripe, want 1", id, got)
	}
	s.checkRows(id, 2, 0)
}

var sitePage = regexp.MustCompile(`href="(http[^"]+/submit\.php[^"]+)"`)

// purchaseAtSite makes a purchase at the EPay site and checks it: an order, its payment, and the refund of the whole
// by the operator.
func (s *shop) purchaseAtSite(during func(step string, do func())) {
	s.t.Helper()
	refunds := s.epay.Calls("refund")
	once, page, address := s.newOnce(), "", []string(nil)
	during(ordering, func() {
		page = s.submit("epay/alipay", once)
		address = sitePage.FindStringSubmatch(s.get(page))
	})
	id := topupID.FindString(page)
	if address == nil {
		s.t.Fatalf("%s: the page has no address of the site", id)
	}
	s.epay.Visit(html.UnescapeString(address[1]))
	s.epay.Pay(id)
	sent := s.epay.Messages()
	during(paying, func() {
		s.insist("message of the site", func() (int, error) {
			s.epay.SendTo(s.n.URL + epay.Path)
			defer s.epay.SendTo("")
			for range 2 { // the site repeats a message that is not acknowledged
				if s.epay.Send(sent[len(sent)-1]) {
					return http.StatusOK, nil
				}
			}
			return 0, errUnanswered
		})
	})
	s.checkBalance(id, paying, s.balance+2*halfCredit)
	s.checkReceipt(id)
	during(refunding, func() { s.insistOnRefund(id, "50.00") })
	s.checkBalance(id, refunding, s.balance)
	if got := s.epay.Calls("refund") - refunds; got < 1 {
		s.t.Errorf("%s: the site was not asked for a refund", id)
	}
	s.checkRows(id, 1, 0)
}

// saveCard makes a purchase that saves the card, and switches automatic top-ups on.
func (s *shop) saveCard() {
	s.t.Helper()
	id := s.order(s.newOnce(), "save")
	s.stripe.Pay(s.stripe.Session(id))
	s.deliverNew()
	s.balance += 2 * halfCredit
	s.checkBalance(id, paying, s.balance)
	s.checkRows(id, 0, 0)
	s.post("/console/billing/automatic", url.Values{"level": {"50"}, "amount": {"20"}, "monthly": {"10000"}})
}

// topUpAutomatically lets the balance fall below its level, waits for the automatic top-up, and checks it. The only
// step is the charge.
func (s *shop) topUpAutomatically(during func(step string, do func())) {
	s.t.Helper()
	if s.topups == 0 {
		s.saveCard()
	}
	s.n.Admin("POST", "/accounts/"+s.id+"/credits", map[string]any{"usd": "-20", "note": "spent elsewhere"}, nil)
	s.debits++
	charges := s.stripe.Charges()
	during(charging, func() {
		s.restart() // the loop of a new process begins at once
		scene.Eventually(s.t, "the card is charged", func() bool {
			s.get("/console/billing/top-ups") // starts the process again if it was killed
			return s.count(`SELECT COUNT(*) FROM topup WHERE state = 'paid'`) == s.topups+1
		})
		s.deliverNew()
	})
	id := s.newest()
	s.checkBalance(id, charging, s.balance)
	if got := s.stripe.Charges() - charges; got != 1 {
		s.t.Errorf("%s: got %d charges, want 1", id, got)
	}
	s.checkRows(id, 0, 0)
}

func (s *shop) checkBalance(id, after string, want money.Amount) {
	s.t.Helper()
	if got := s.n.FundsOf(s.id).Balance; got != want {
		s.t.Errorf("%s: balance after the %s: got %s, want %s", id, after, got, want)
	}
}

// entries returns the number of entries that the customer must have.
func (s *shop) entries() int { return s.topups + s.refunds + s.disputes + s.debits }

// missingNumbers counts the numbers of documents that no document has.
const missingNumbers = `SELECT COALESCE(SUM(missing), 0) FROM
	(SELECT MAX(number) - COUNT(*) AS missing FROM invoice_document GROUP BY series, year) s`

// checkRows checks that a new purchase has one row of each kind.
func (s *shop) checkRows(id string, refunds, disputes int) {
	s.t.Helper()
	s.topups++
	s.refunds += refunds
	s.disputes += disputes
	for _, c := range []struct {
		what  string
		query string
		args  []any
		want  int
	}{
		{"top-ups", `SELECT COUNT(*) FROM topup`, nil, s.topups},
		{"credits", `SELECT COUNT(*) FROM ledger_entry WHERE note = $1`, []any{"top-up " + id}, 1},
		{"take-backs by refunds", `SELECT COUNT(*) FROM ledger_entry WHERE note = $1`, []any{"refund of " + id}, refunds},
		{"take-backs by disputes", `SELECT COUNT(*) FROM ledger_entry WHERE note = $1`, []any{"dispute of " + id}, disputes},
		{"entries", `SELECT COUNT(*) FROM ledger_entry WHERE account = $1`, []any{s.id}, s.entries()},
		{"invoices", `SELECT COUNT(*) FROM invoice_document WHERE topup = $1 AND kind = 'invoice'`, []any{id}, 1},
		{"credit notes", `SELECT COUNT(*) FROM invoice_document WHERE topup = $1 AND kind = 'credit_note'`, []any{id}, refunds + disputes},
		{"all invoices", `SELECT COUNT(*) FROM invoice_document WHERE kind = 'invoice'`, nil, s.topups},
		{"all credit notes", `SELECT COUNT(*) FROM invoice_document WHERE kind = 'credit_note'`, nil, s.refunds + s.disputes},
		{"missing numbers of documents", missingNumbers, nil, 0},
		{"receipts", `SELECT COUNT(*) FROM mail_outbox WHERE kind IN ('payment_receipt', 'automatic_topup')`, nil, s.topups},
		{"mails about refunds", `SELECT COUNT(*) FROM mail_outbox WHERE kind = 'payment_refund'`, nil, s.refunds},
		{"mails about disputes", `SELECT COUNT(*) FROM mail_outbox WHERE kind = 'payment_dispute'`, nil, s.disputes},
		{"mails with invoices", `SELECT COUNT(*) FROM mail_outbox WHERE kind = 'invoice'`, nil, s.topups},
		{"mails with credit notes", `SELECT COUNT(*) FROM mail_outbox WHERE kind = 'credit_note'`, nil, s.refunds + s.disputes},
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
	s.checkBalance("at the end", "messages again", s.balance)
	if got := s.count(`SELECT COUNT(*) FROM ledger_entry WHERE account = $1`, s.id); got != s.entries() {
		s.t.Errorf("after the messages again: got %d entries, want %d", got, s.entries())
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
