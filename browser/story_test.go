package browser

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"tollgate/internal/gatewaytest/fakemail"
	"tollgate/internal/gatewaytest/fakepayment"
	"tollgate/internal/store/storetest"
)

// shop is a gateway with everything that a shop can configure: mail, sign-up, an identity provider, payments
// and invoices.
type shop struct {
	*gateway
	mails  *fakemail.Server
	stripe *fakepayment.Stripe
	issuer string // of the identity provider
}

// openShop starts a shop.
func openShop(t *testing.T, database string) *shop {
	t.Helper()
	port := freePort(t)
	public := "http://127.0.0.1:" + port
	s := &shop{mails: fakemail.Start(t, fakemail.Options{}), stripe: fakepayment.NewStripe(t),
		issuer: startIdentityProvider(t, public+"/console/sign-in/with/corp/callback")}
	s.gateway = start(t, "TOLLGATE_DATABASE="+database, "TOLLGATE_LISTEN=127.0.0.1:"+port, "TOLLGATE_PUBLIC_URL="+public,
		"TOLLGATE_PRIVATE_NETWORKS=127.0.0.0/8,::1/128", "TOLLGATE_SERVICE_NAME=Example AI",
		"TOLLGATE_SMTP_SERVER="+s.mails.Address, "TOLLGATE_SMTP_SECURITY=none", "TOLLGATE_MAIL_FROM=ai@example.com",
		"TOLLGATE_ALERT_MAIL=ops@example.com", "TOLLGATE_SIGN_UP=open",
		`TOLLGATE_SIGN_IN_WITH=[{name: corp, title: Corp, issuer: "`+s.issuer+`", client_id: web, client_secret: secret}]`,
		"TOLLGATE_STRIPE_KEY="+fakepayment.StripeKey, "TOLLGATE_STRIPE_WEBHOOK_SECRET="+fakepayment.StripeSecret,
		"TOLLGATE_STRIPE_URL="+s.stripe.URL, "TOLLGATE_TOPUP_BONUS=50=10",
		"TOLLGATE_INVOICE_SELLER_NAME=Lumen GmbH", "TOLLGATE_INVOICE_SELLER_ADDRESS=Ring 1,10115 Berlin",
		"TOLLGATE_INVOICE_SELLER_COUNTRY=DE", "TOLLGATE_INVOICE_TAX_RATE=19")
	s.stripe.SendTo(public + "/payments/stripe/webhook")
	return s
}

// account returns the id and the exact balance of the account with a name, in USD.
func (g *gateway) account(t *testing.T, name string) (id, balance string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.url+"/admin/v1/accounts?limit=100", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+g.token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var list struct {
		Data []struct {
			ID, Name string
			Balance  json.Number `json:"balance_usd"`
		}
	}
	if err := json.NewDecoder(answer.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	for _, a := range list.Data {
		if a.Name == name {
			return a.ID, a.Balance.String()
		}
	}
	t.Fatalf("no account %q: %+v", name, list)
	return "", ""
}

// wantBalance checks the exact balance of an account in USD.
func (g *gateway) wantBalance(t *testing.T, name, want string) {
	t.Helper()
	var got string
	defer func() { t.Logf("the balance of %s is %s USD", name, got) }()
	eventually(t, "the balance is not "+want, func() bool {
		_, got = g.account(t, name)
		return got == want
	})
}

// papers opens each document on the page of invoices, as a page and as a PDF file, and returns their texts.
func (b *tab) papers(name string) (texts []string) {
	b.t.Helper()
	b.open("/console/billing/invoices")
	for _, path := range run(b, chromedp.Evaluate[[]string](
		`[...document.querySelectorAll("tbody a.rowlink")].map((a) => a.pathname)`)) {
		b.open(path)
		b.checkPage(name)
		texts = append(texts, b.text("main"))
		head := run(b, chromedp.Evaluate[string](`fetch(document.querySelector('main a[href$="/pdf"]').href).then(async (r) =>
			r.headers.get("Content-Type") + " " + (await r.text()).slice(0, 5))`, chromedp.EvalAwaitPromise))
		if head != "application/pdf %PDF-" {
			b.t.Errorf("the PDF file of %s begins with %q", path, head)
		}
	}
	return texts
}

// TestStory follows two customers of a shop with everything. One signs up, verifies the address, pays, calls,
// is refunded and disputes the payment. The other one comes from an identity provider.
func TestStory(t *testing.T) {
	t.Parallel()
	storetest.EachEmpty(t, func(t *testing.T, database string) {
		s := openShop(t, database)
		s.followCustomers(t, startProvider(t))
		s.audit(t, "TOLLGATE_DATABASE="+database)
	})
}

func (s *shop) followCustomers(t *testing.T, p *provider) {
	t.Helper()
	op := &clicks{tab: open(t, s.gateway, "light", 1280)}
	op.operator()
	op.sell(p)

	const ada = "ada@example.com"
	b := open(t, s.gateway, "light", 1280)
	b.signUp(s.mails, ada, "my own horse")
	b.checkPage("signed-up")
	b.open("/console/billing/invoices/details")
	b.fill("#f-name", "Ada Ltd")
	b.fill("#f-country", "DE")
	b.press("main button.main")
	id := b.order("50.00")
	b.pay(s.stripe.URL)
	b.checkPage("receipt")
	s.wantBalance(t, ada, "55")
	key := b.createKey("backend")
	if status, _ := s.chat(t, key, "swift-1"); status != http.StatusOK {
		t.Fatalf("the customer's request got status %d", status)
	}
	s.wantBalance(t, ada, "54.99998975") // 9 tokens at 0.25 and 4 at 2 USD per million

	op.refund(id, "20", "asked for it")
	op.checkPage("refunded")
	s.wantBalance(t, ada, "32.99998975") // 20 of 50 USD with a bonus of 10 %
	waitForMail(t, s.mails, ada, "refunds 20.00 USD")
	dispute := s.stripe.Dispute(s.stripe.Session(id), "needs_response")
	s.wantBalance(t, ada, "-0.00001025")
	waitForMail(t, s.mails, ada, "is disputed")
	waitForMail(t, s.mails, "ops@example.com", "a payment needs you")
	if status, _ := s.chat(t, key, "swift-1"); status != http.StatusPaymentRequired {
		t.Errorf("a request during the dispute got status %d, want 402", status)
	}
	op.open("/console/operator")
	op.waitForText("A payment needs you")
	op.visit("/console/operator/top-ups", "disputed")
	b.visit("/console/billing/top-ups/"+id, "receipt-disputed")
	s.stripe.EndDispute(dispute, "won")
	s.wantBalance(t, ada, "32.99998975")
	waitForMail(t, s.mails, ada, "gives back $33.00")
	documents := strings.Join(b.papers("document"), "\n")
	for _, want := range []string{"Ada Ltd", "Lumen GmbH", "50.00", "20.00"} {
		if !strings.Contains(documents, want) {
			t.Errorf("no %q in the documents:\n%s", want, documents)
		}
	}
	s.otherCustomer(t)
	op.visit("/console/operator/top-ups/reconciliation", "reconciled")
}

// otherCustomer comes from the identity provider, pays and calls.
func (s *shop) otherCustomer(t *testing.T) {
	t.Helper()
	b := open(t, s.gateway, "dark", 390)
	b.open("/console/sign-in")
	b.identify("/console/sign-in/with/corp", s.issuer)
	b.waitForText("Create an account")
	b.press("main button.main")
	b.waitFor(`location.pathname === "/console"`)
	b.order("10.00")
	b.checkPage("order")
	b.pay(s.stripe.URL)
	b.checkPage("receipt")
	key := b.createKey("phone")
	if status, _ := s.chat(t, key, "swift-1"); status != http.StatusOK {
		t.Fatalf("the customer's request got status %d", status)
	}
	b.visit("/console", "overview")
	s.wantBalance(t, "test-user@zitadel.ch", "9.99998975")
}
