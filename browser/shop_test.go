package browser

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// payAtOnce starts a payment provider with the part of Stripe's API for top-ups. Every payment is paid at
// the first question.
func payAtOnce(t *testing.T) (address string) {
	t.Helper()
	var mu sync.Mutex
	sessions := map[string]map[string]any{}
	list := func(objects ...any) map[string]any {
		return map[string]any{"object": "list", "data": append([]any{}, objects...), "has_more": false}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var answer any = list()
		id, one := strings.CutPrefix(r.URL.Path, "/v1/checkout/sessions/")
		switch {
		case r.Method == http.MethodPost:
			answer = map[string]any{"id": "cs_test_1", "url": "http://127.0.0.1/pay", "status": "open", "payment_status": "unpaid"}
			sessions["cs_test_1"] = map[string]any{"id": "cs_test_1", "status": "complete", "payment_status": "paid", "currency": "usd",
				"client_reference_id": r.FormValue("client_reference_id"), "amount_total": 1000, "created": time.Now().Unix(),
				"payment_intent": map[string]any{"id": "pi_test_0123456789abcdef01234567", "status": "succeeded"}}
		case one:
			answer = sessions[id]
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestShopPages checks the pages for mail and payments on both displays. The SMTP server does not answer.
func TestShopPages(t *testing.T) {
	t.Parallel()
	for _, d := range displays {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			g := start(t, "TOLLGATE_PUBLIC_URL=http://127.0.0.1", "TOLLGATE_SERVICE_NAME=Example AI", "TOLLGATE_SMTP_SERVER=127.0.0.1:1",
				"TOLLGATE_SMTP_SECURITY=none", "TOLLGATE_MAIL_FROM=ai@example.com", "TOLLGATE_ALERT_MAIL=ops@example.com",
				"TOLLGATE_STRIPE_KEY=sk_test_0123456789abcdef", "TOLLGATE_STRIPE_WEBHOOK_SECRET=whsec_0123456789abcdef0123456789abcdef",
				"TOLLGATE_STRIPE_URL="+payAtOnce(t), "TOLLGATE_TOPUP_BONUS=50=5,100=10",
				"TOLLGATE_INVOICE_SELLER_NAME=Lumen GmbH", "TOLLGATE_INVOICE_SELLER_ADDRESS=Ring 1,10115 Berlin",
				"TOLLGATE_INVOICE_SELLER_COUNTRY=DE", "TOLLGATE_INVOICE_TAX_RATE=19")
			b := open(t, g, d.theme, d.width)
			b.open("/console/sign-in")
			b.press(`a[href="/console/forgot"]`)
			b.checkPage("forgot")
			b.fill("#f-email", g.email)
			b.press("main button.main")
			b.waitForText("Look into your mailbox")
			b.checkPage("forgot-sent")
			b.visit("/console/link", "link-empty")
			b.signIn()
			b.preferences()
			b.topUp()
			b.operator()
			b.visit("/console/operator/mails/test", "new-test-mail")
			b.fill("#f-to", "somebody.with.a.long.name@mailbox.customers.example.com")
			b.press("main button.main")
			b.waitForText("given up")
			b.checkPage("mails")
			b.visit("/console/operator/mails?state=sent", "mails-none")
			b.visit("/console/operator/top-ups", "operator-top-ups")
			b.press("tbody a.rowlink")
			b.checkPage("operator-top-up")
			b.visit("/console/operator/top-ups/reconciliation", "reconciliation")
			b.visit("/console/operator/invoices", "operator-invoices")
			b.visit("/console/operator/statements", "operator-statements")
		})
	}
}

// preferences chooses mails, and first an invalid level.
func (b *tab) preferences() {
	b.t.Helper()
	b.visit("/console/settings", "settings-shop")
	b.press(`a[href="/console/settings/mails"]`)
	b.checkPage("preferences")
	b.fill("#f-level", "-1")
	b.press("main button.main")
	b.waitForText("must be an amount in USD")
	b.expect("422")
	b.checkPage("preferences-wrong")
	b.fill("#f-level", "12.50")
	b.press("main button.main")
	b.waitForText("Saved.")
}

// topUp orders and pays a top-up.
func (b *tab) topUp() {
	b.t.Helper()
	b.visit("/console/billing", "billing-shop")
	b.visit("/console/billing/top-ups", "top-ups-none")
	b.visit("/console/billing/top-ups/new", "new-top-up")
	b.press("main button.main")
	b.checkPage("top-up-open")
	b.press(`form[action$="/check"] button`)
	b.checkPage("top-up-paid")
	b.visit("/console/billing/top-ups", "top-ups")
	b.visit("/console/billing/invoices/details", "invoice-details")
	b.visit("/console/billing/invoices", "invoices")
	b.press("tbody a.rowlink")
	b.checkPage("invoice")
}
