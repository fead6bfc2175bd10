package contract

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"

	"tollgate/internal/gatewaytest/fakepayment"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/store/storetest"
	"tollgate/internal/topup/stripe"
)

var (
	onceValue = regexp.MustCompile(`name="once"[^>]*value="([^"]+)"`)
	topupID   = regexp.MustCompile(`topup_\w{26}`)
)

// invoices calls the operations of invoices, at a gateway of its own whose customer has paid.
func (v *contractClient) invoices(binary string) {
	main := v.process
	defer func() { v.process = main }()
	s := fakepayment.NewStripe(v.t)
	v.process = scene.Start(v.t, binary, map[string]string{"database": storetest.SQLite(v.t), "stripe_url": s.URL,
		"stripe_key": fakepayment.StripeKey, "stripe_webhook_secret": fakepayment.StripeSecret, "private_networks": "127.0.0.0/8",
		"invoice_seller_name": "Lumen", "invoice_seller_address": "Ring 1", "invoice_seller_country": "DE"})
	s.SendTo(v.process.URL + stripe.Path)
	const email, password = "payer@example.com", "right horse battery"
	v.process.Admin("POST", "/accounts", map[string]any{"name": "payer", "email": email, "password": password}, nil)
	jar, err := cookiejar.New(nil)
	if err != nil {
		v.t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	read := func(resp *http.Response, err error) (path, body string) {
		if err != nil {
			v.t.Fatal(err)
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			v.t.Fatalf("%s: %d, %v", resp.Request.URL, resp.StatusCode, err)
		}
		return resp.Request.URL.Path, string(raw)
	}
	read(browser.PostForm(v.process.URL+"/console/sign-in", url.Values{"email": {email}, "password": {password}}))
	const form = "/console/billing/top-ups/new"
	_, body := read(browser.Get(v.process.URL + form))
	once := onceValue.FindStringSubmatch(body)
	if once == nil {
		v.t.Fatal("the form has no once-value")
	}
	path, _ := read(browser.PostForm(v.process.URL+form, url.Values{"amount": {"50.00"}, "provider": {stripe.Name}, "once": {once[1]}}))
	session := s.Session(topupID.FindString(path))
	s.Pay(session)
	s.RefundElsewhere(session, 100)
	document := first(v.ask(200, "GET", "/admin/v1/invoices?kind=credit_note&since=2026-01-01", ""))
	v.ask(400, "GET", "/admin/v1/invoices?kind=bill", "")
	v.ask(200, "GET", "/admin/v1/invoices?limit=1", "")
	v.ask(200, "GET", "/admin/v1/invoices/"+text(document, "id"), "")
	v.ask(200, "GET", "/admin/v1/invoices/"+text(document, "id")+"/pdf", "")
	v.ask(404, "GET", "/admin/v1/invoices/invoice_none/pdf", "")

	account := text(document, "account")
	v.ask(200, "POST", "/admin/v1/accounts/"+account+"/credits", `{"usd":50,"reference":"bank-1","paid":true}`)
	entry := "/admin/v1/entries/" + text(first(v.ask(200, "GET", "/admin/v1/accounts/"+account+"/entries", "")), "id")
	issued := v.ask(200, "POST", entry+"/invoice", `{}`)
	if again := v.ask(200, "POST", entry+"/invoice", `{}`); again["number"] != issued["number"] {
		v.t.Errorf("the second request: got %v, want the invoice %v", again["number"], issued["number"])
	}
	v.ask(400, "PATCH", entry, `{"paid":false}`)
	v.ask(404, "POST", "/admin/v1/entries/ent_none/invoice", `{"corrects":"INVOICE-2026-00001"}`)

	paid := "/admin/v1/top-ups/" + text(first(v.ask(200, "GET", "/admin/v1/top-ups?state=partly_refunded&since=2026-01-01", "")), "id")
	v.ask(400, "GET", "/admin/v1/top-ups?state=lost", "")
	v.ask(200, "GET", "/admin/v1/top-ups?format=csv", "")
	v.ask(200, "POST", paid+"/refunds", `{"amount":"2.50","reason":"asked for it"}`, "Idempotency-Key", "refund")
	v.ask(200, "POST", paid+"/refunds", `{"amount":"2.50","reason":"asked for it"}`, "Idempotency-Key", "refund")
	v.ask(400, "POST", paid+"/refunds", `{"amount":"50.00","reason":"more than is left"}`)
	v.ask(400, "POST", paid+"/refunds", `{"amount":"1.00"}`)
	v.ask(200, "POST", paid+"/check", "")
	if reversals, _ := v.ask(200, "GET", paid, "")["reversals"].([]any); len(reversals) != 2 {
		v.t.Errorf("the top-up has %d refunds, want 2: one made elsewhere, and one for two requests with one key", len(reversals))
	}
	v.ask(404, "POST", "/admin/v1/top-ups/topup_none/check", "")
	v.ask(200, "GET", "/admin/v1/top-ups/reconciliation?days=30&provider=stripe", "")
	s.Dispute(session, "needs_response")
	p := first(v.ask(200, "GET", "/admin/v1/top-ups/problems?limit=1", ""))
	if text(p, "kind") != "dispute" || p["due"] == nil {
		v.t.Errorf("the problem is %v, want a dispute that is due", p)
	}
	closing := "/admin/v1/top-ups/problems/" + text(p, "id") + "/close"
	if closed, again := v.ask(200, "POST", closing, ""), v.ask(200, "POST", closing, ""); closed["closed"] != again["closed"] {
		v.t.Errorf("the problem was closed at %v, and again at %v, want one time", closed["closed"], again["closed"])
	}
	if left, _ := v.ask(200, "GET", "/admin/v1/top-ups/problems", "")["data"].([]any); len(left) != 0 {
		v.t.Errorf("the open problems are %v, want none", left)
	}
	v.ask(404, "POST", "/admin/v1/top-ups/problems/problem_none/close", "")
	v.ask(400, "GET", "/admin/v1/top-ups/reconciliation?days=91", "")
	v.ask(400, "GET", "/admin/v1/top-ups/reconciliation?provider=paypal", "")
}
