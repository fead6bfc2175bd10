package browser

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"tollgate/internal/gatewaytest/fakepayment"
)

// shopSettings are the settings of a shop with mail, payments and invoices. The SMTP server does not answer.
func shopSettings(stripe *fakepayment.Stripe) []string {
	return []string{"TOLLGATE_PUBLIC_URL=http://127.0.0.1", "TOLLGATE_SERVICE_NAME=Example AI", "TOLLGATE_SMTP_SERVER=127.0.0.1:1",
		"TOLLGATE_SMTP_SECURITY=none", "TOLLGATE_MAIL_FROM=ai@example.com",
		"TOLLGATE_STRIPE_KEY=" + fakepayment.StripeKey, "TOLLGATE_STRIPE_WEBHOOK_SECRET=" + fakepayment.StripeSecret,
		"TOLLGATE_STRIPE_URL=" + stripe.URL, "TOLLGATE_INVOICE_SELLER_NAME=Lumen GmbH",
		"TOLLGATE_INVOICE_SELLER_ADDRESS=Ring 1,10115 Berlin", "TOLLGATE_INVOICE_SELLER_COUNTRY=DE", "TOLLGATE_INVOICE_TAX_RATE=19"}
}

// TestShopPages checks the pages for mail and payments on both displays.
func TestShopPages(t *testing.T) {
	t.Parallel()
	for _, d := range displays {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			stripe := fakepayment.NewStripe(t)
			g := start(t, append(shopSettings(stripe), "TOLLGATE_ALERT_MAIL=ops@example.com", "TOLLGATE_TOPUP_BONUS=50=5,100=10")...)
			b := open(t, g, d.theme, d.width)
			b.open("/console/sign-in")
			b.press(`a[href="/console/forgot"]`)
			b.checkPage("forgot")
			b.fill("#f-email", g.email)
			b.press("main button.main")
			b.waitForText("Check your inbox")
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

// TestTermsPages checks the pages of terms and their acceptance on both displays.
func TestTermsPages(t *testing.T) {
	t.Parallel()
	terms := filepath.Join(t.TempDir(), "terms.md")
	if err := os.WriteFile(terms, []byte("# Terms\n\nPay **first**.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	onDisplays(t, func(t *testing.T, g *gateway, d display) {
		b := open(t, g, d.theme, d.width)
		b.visit("/console/status", "status-none")
		b.visit("/console/terms", "terms")
		b.visit("/console/privacy", "privacy")
		b.visit("/console/sign-up", "sign-up-terms")
		b.fill("#f-email", "cleo@example.com")
		b.fill("#f-password", "a new horse")
		b.press("main button.main")
		b.waitForText("Accept the terms to go on.")
		b.expect("422")
		b.checkPage("sign-up-terms-wrong")
		b.open("/console/sign-in")
		b.fillSignIn(g.email, g.password)
		b.waitForText("I accept the terms of this service.")
		b.checkPage("accept-terms")
		b.do(chromedp.Click(chromedp.CSS("#f-terms")))
		b.press("main button.main")
		b.waitForText("Overview")
		b.operator()
		b.open("/console/operator/accounts?q=")
		b.press("tbody a.rowlink")
		b.press(`a[href$="view=users"]`)
		b.waitForText("2026-12-01")
		b.checkPage("operator-users-terms")
	}, "TOLLGATE_PUBLIC_URL=http://127.0.0.1", "TOLLGATE_SMTP_SERVER=127.0.0.1:1", "TOLLGATE_SMTP_SECURITY=none",
		"TOLLGATE_MAIL_FROM=ai@example.com", "TOLLGATE_SIGN_UP=open", "TOLLGATE_TERMS_FILE="+terms, "TOLLGATE_PRIVACY_FILE="+terms,
		"TOLLGATE_TERMS_VERSION=2026-12-01", "TOLLGATE_PUBLIC_STATUS=true")
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
