package browser

import (
	"testing"

	"tollgate/internal/gatewaytest/fakepayment"
)

// TestShopPages checks the pages for mail and payments on both displays. The SMTP server does not answer.
func TestShopPages(t *testing.T) {
	t.Parallel()
	for _, d := range displays {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			stripe := fakepayment.NewStripe(t)
			g := start(t, "TOLLGATE_PUBLIC_URL=http://127.0.0.1", "TOLLGATE_SERVICE_NAME=Example AI", "TOLLGATE_SMTP_SERVER=127.0.0.1:1",
				"TOLLGATE_SMTP_SECURITY=none", "TOLLGATE_MAIL_FROM=ai@example.com", "TOLLGATE_ALERT_MAIL=ops@example.com",
				"TOLLGATE_STRIPE_KEY="+fakepayment.StripeKey, "TOLLGATE_STRIPE_WEBHOOK_SECRET="+fakepayment.StripeSecret,
				"TOLLGATE_STRIPE_URL="+stripe.URL, "TOLLGATE_TOPUP_BONUS=50=5,100=10",
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
			b.topUp(stripe)
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

// topUp orders and pays a top-up, whose message does not arrive.
func (b *tab) topUp(stripe *fakepayment.Stripe) {
	b.t.Helper()
	b.visit("/console/billing", "billing-shop")
	b.visit("/console/billing/top-ups", "top-ups-none")
	b.visit("/console/billing/top-ups/new", "new-top-up")
	id := b.order("10.00")
	b.checkPage("top-up-open")
	stripe.Pay(stripe.Session(id))
	b.press(`form[action$="/check"] button`)
	b.checkPage("top-up-paid")
	b.visit("/console/billing/top-ups", "top-ups")
	b.visit("/console/billing/invoices/details", "invoice-details")
	b.visit("/console/billing/invoices", "invoices")
	b.press("tbody a.rowlink")
	b.checkPage("invoice")
}
