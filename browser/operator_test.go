package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
)

// provider is a fake provider of chat. Its requests fail while down is set.
type provider struct {
	url  string
	down atomic.Bool
}

// startProvider starts a local provider with OpenAI's interface.
func startProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/v1/models" {
			_, _ = fmt.Fprint(w, `{"object": "list", "data": [{"id": "vendor-1", "object": "model"}]}`)
			return
		}
		if p.down.Load() {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = fmt.Fprint(w, `{"error": {"message": "upstream connect error", "type": "server_error"}}`)
			return
		}
		_, _ = fmt.Fprint(w, `{"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "vendor-1",
			"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello to you."}, "finish_reason": "stop"}],
			"usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}}`)
	}))
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

// catalogEntries returns the catalog entries of a model and its line to the provider.
func (p *provider) catalogEntries(model, line string) (models, lines string) {
	return fmt.Sprintf("  - {id: %s, kind: chat, context_window: 128000, max_output_tokens: 16384, "+
			"price: {input: 0.25, output: 2.00}}\n", model),
		fmt.Sprintf("  - {id: %s, provider: openai, base_url: %q, api_key: \"${PROVIDER_KEY}\", models: {%s: vendor-1}, "+
			"cost: {input: 0.1, output: 1}}\n", line, p.url+"/v1", model)
}

// clicks is a tab that counts the operator's clicks.
type clicks struct {
	*tab
	n int
}

// click clicks an element that leads to another page.
func (c *clicks) click(selector string) {
	c.t.Helper()
	c.n++
	c.press(selector)
}

// checkClicks checks the number of clicks for a task, and resets the counter.
func (c *clicks) checkClicks(task string, limit int) {
	c.t.Helper()
	if c.n > limit {
		c.t.Errorf("%s took %d clicks, want at most %d", task, c.n, limit)
	}
	c.t.Logf("%s took %d clicks", task, c.n)
	c.n = 0
}

// menu returns the selector of a menu entry.
func menu(path string) string { return `aside a[href="/console/operator` + path + `"]` }

// addModels adds models and lines of a provider to the catalog in the editor.
func (c *clicks) addModels(models, lines string) {
	c.t.Helper()
	text := c.value("#f-yaml")
	c.fill("#f-yaml", strings.Replace(text, "lines:\n", models+"lines:\n"+lines, 1))
	c.click("main form button.main")
}

// sell adds a model of a provider to the catalog.
func (c *clicks) sell(p *provider) {
	c.t.Helper()
	c.open("/console/operator/catalog/edit")
	c.addModels(p.catalogEntries("swift-1", "main"))
	c.click("main form button.main")
	c.waitForText("Applied.")
}

// TestFirstPayingCustomer goes from an empty machine to a charged request of a customer, following
// the pages' own instructions. Then come a complaint, a change of prices, a customer with a
// discount, and the end of a month.
func TestFirstPayingCustomer(t *testing.T) {
	t.Parallel()
	p, g := startProvider(t), start(t)
	b := &clicks{tab: open(t, g, "light", 1280)}
	b.open("/")
	b.click(`main a[href="/console/operator/sign-in"]`)
	b.fill("#f-admin_token", adminToken)
	b.click(`form:has(#f-admin_token) button`)
	b.waitForText("Steps to your first paying customer")
	b.checkPage("home-new")
	b.click(`main .steps a.main`)
	b.waitForText("Where to get a key")
	b.checkPage("provider-new")
	b.click(`main a[href="/console/operator/catalog/edit"]`)
	b.do(chromedp.Click(chromedp.CSS("main details summary")))
	b.waitForText("the name your customers use")
	b.checkPage("catalog-edit")
	models, lines := p.catalogEntries("swift-1", "main")
	b.addModels(strings.Replace(models, "0.25", "-0.25", 1), lines)
	b.expect("422")
	b.waitForText("must not be negative")
	b.checkPage("catalog-refused")
	b.fill("#f-yaml", strings.Replace(b.value("#f-yaml"), "-0.25", "0.25", 1))
	b.click("main form button.main")
	b.waitForText("model swift-1: added")
	b.checkPage("catalog-changes")
	b.click("main form button.main")
	b.waitForText("Applied.")
	b.checkPage("catalog-applied")
	b.checkClicks("signing in and selling a model, with a fault on the way", 8)

	b.click(menu(""))
	b.click(`main .steps a.main`)
	b.fill("#f-name", "Acme")
	b.fill("#f-email", "shop@acme.example")
	b.fill("#f-usd", "50")
	b.fill("#f-note", "invoice 1043")
	b.checkPage("account-new")
	b.click("main form button.main")
	b.waitForText("credited with $50.00")
	key, letter := b.value("#secret"), run(b.tab, chromedp.Text(chromedp.CSS("#welcome-0-text")))
	for _, part := range []string{"your account Acme is ready", key, "/console/link#", `"model": "swift-1"`} {
		if !strings.Contains(letter, part) {
			t.Errorf("no %q in the text to send: %s", part, letter)
		}
	}
	b.do(chromedp.Click(chromedp.CSS(`button[data-copy="welcome-0-text"]`)))
	b.n++
	b.waitForText("Copied")
	b.checkPage("account-created")
	b.checkClicks("an account with credit, a key, and the text to send", 4)

	if status, _ := g.chat(t, key, "swift-1"); status != http.StatusOK {
		t.Fatalf("the customer's request got status %d", status)
	}
	b.click(menu(""))
	b.waitForText("$0.00001025")
	if run(b.tab, chromedp.Evaluate[bool](`document.body.innerText.includes("Steps to your first paying customer")`)) {
		t.Error("the first steps are still shown")
	}
	b.checkPage("home")
	b.complaint(p, key)
	b.prices(key)
	b.monthEnd()
}

// complaint answers a customer's complaint about a request in three clicks.
func (c *clicks) complaint(p *provider, key string) {
	c.t.Helper()
	p.down.Store(true)
	status, failed := c.g.chat(c.t, key, "swift-1")
	p.down.Store(false)
	_, good := c.g.chat(c.t, key, "swift-1")
	if status != http.StatusBadGateway {
		c.t.Fatalf("the status is %d while the provider is down, want 502", status)
	}
	c.n = 0
	c.click(menu("/find"))
	c.fill("main input[name=q]", "Hello, we got an error ("+failed+")! Were we charged?")
	c.click("main .filters button")
	c.waitForText("upstream connect error")
	c.waitForText("You were not charged: the reserved $")
	c.checkPage("request-failed")
	c.do(chromedp.Click(chromedp.CSS(`button[data-copy="reply-0-text"]`)))
	c.n++
	c.waitForText("Copied")
	c.checkClicks("the answer to a complaint", 3)

	c.open("/console/operator/find?q=" + good)
	c.waitForText("$0.25 per million")
	c.checkPage("request")
	c.click(`main a[href*="note=refund"]`)
	c.click(`form[action$="/credit"] button`)
	c.waitForText("refund of " + good)
	c.checkPage("credit")
	c.click("main form button.main")
	c.waitForText("Done. The balance below includes the change.")
	c.checkClicks("giving a charge back", 3)
}

// prices changes a model's price, takes the change back, and gives a customer a discount.
func (c *clicks) prices(key string) {
	c.t.Helper()
	c.click(menu("/catalog"))
	c.click(`main a[href="/console/operator/catalog/edit"]`)
	text := c.value("#f-yaml")
	at := strings.Index(text, "id: swift-1")
	c.fill("#f-yaml", text[:at]+strings.Replace(text[at:], "output: 2\n", "output: 4\n", 1))
	c.click("main form button.main")
	c.waitForText("model swift-1: price.output 2 -> 4")
	c.click("main form button.main")
	c.waitForText("$0.25 in, $4.00 out per million tokens")
	c.checkClicks("a change of prices", 4)
	c.click(`main a[href="/console/operator/catalog/revisions/2"]`)
	c.checkPage("revision")
	c.do(chromedp.Click(chromedp.CSS("a[data-open]")))
	c.n++
	c.waitForText("model swift-1: price.output 4 -> 2")
	c.shoot("rollback")
	c.click("dialog[open] button.main")
	c.waitForText("$0.25 in, $2.00 out per million tokens")
	c.checkClicks("rolling it back", 3)

	c.click(menu("/find"))
	c.fill("main input[name=q]", "acme")
	c.click("main .filters button")
	c.checkPage("account")
	c.fill("#f-price_factor", "0.8")
	c.click(`form[action$="/prices"] button`)
	c.waitForText("The prices apply to new requests.")
	c.checkClicks("a discount", 3)
	_, cheap := c.g.chat(c.t, key, "swift-1")
	c.open("/console/operator/requests/" + cheap)
	c.waitForText("$0.0000082")
	c.waitForText("× 0.8")
}

// monthEnd reads the charges and margin of each customer, as a page and as a file.
func (c *clicks) monthEnd() {
	c.t.Helper()
	c.n = 0
	c.click(menu("/usage"))
	c.click(`nav[aria-label="Days"] li:nth-child(4) a`) // this month
	c.waitForText("Margin")
	c.checkPage("usage")
	file := run(c.tab, chromedp.Evaluate[string](`fetch(document.querySelector('main a[href*="/usage/table"]').href).then((r) => r.text())`,
		chromedp.EvalAwaitPromise))
	if !strings.HasPrefix(file, "account,account_name,requests,") || !strings.Contains(file, ",Acme,4,3,1,") ||
		!strings.Contains(strings.SplitN(file, "\n", 2)[0], "margin_usd") {
		c.t.Errorf("the file of the month is %s", file)
	}
	c.checkClicks("the month by customer", 2)
}

// TestProviderGoesDown lets a provider fail. The first page reports it, and the operator drains the
// line and brings it back.
func TestProviderGoesDown(t *testing.T) {
	t.Parallel()
	onDisplays(t, func(t *testing.T, g *gateway, d display) {
		p := startProvider(t)
		b := &clicks{tab: open(t, g, d.theme, d.width)}
		b.operator()
		b.sell(p)
		b.open("/console/operator/accounts/new")
		b.fill("#f-name", "Acme")
		b.fill("#f-usd", "5")
		b.click("main form button.main")
		key := b.value("#secret")
		p.down.Store(true)
		for range 6 {
			if status, _ := g.chat(t, key, "swift-1"); status != http.StatusBadGateway {
				t.Fatalf("the status is %d while the provider is down, want 502", status)
			}
		}
		b.n = 0
		b.open("/console/operator")
		b.waitForText("1 thing needs you")
		b.waitForText("Line main: circuit open.")
		b.checkPage("home")
		b.click("main .notice.bad a")
		b.waitForText("upstream connect error")
		b.checkPage("line-out")
		b.do(chromedp.Click(chromedp.CSS(`a[data-open="drain-main"]`)))
		b.n++
		b.waitForText("No other line in use has swift-1")
		b.shoot("drain")
		b.click("dialog[open] button.main")
		b.waitForText("The line is drained on all nodes")
		b.checkPage("line-drained")
		b.checkClicks("seeing that a provider is down and draining its line", 3)
		p.down.Store(false)
		if status, _ := g.chat(t, key, "swift-1"); status != http.StatusBadGateway {
			t.Errorf("the status is %d while the only line is drained, want 502", status)
		}
		b.visit("/console/operator/lines", "lines")
		b.click(`form[action$="/lines/main/resume"] button`)
		b.waitForText("The line is back in use on all nodes")
		b.checkClicks("bringing it back", 1)
		if status, _ := g.chat(t, key, "swift-1"); status != http.StatusOK {
			t.Errorf("the status is %d after the line was resumed, want 200", status)
		}
	})
}

// operatorPages are the pages that TestOperatorPages opens directly.
var operatorPages = map[string]string{
	"accounts": "accounts", "accounts-none": "accounts?q=nobody", "account-new": "accounts/new", "find": "find", "found": "find?q=example",
	"lines": "lines", "line": "lines/sandbox", "requests": "requests", "requests-none": "requests?code=upstream_timeout&min_duration_ms=10000",
	"requests-wrong": "requests?status=many", "jobs": "jobs", "jobs-none": "jobs?status=failed", "catalog": "catalog",
	"catalog-edit": "catalog/edit", "revision": "catalog/revisions/1", "log": "log", "books-none": "books",
}

// TestOperatorPages checks every operator page in both themes, on a laptop and on a phone, with the
// data of a small shop.
func TestOperatorPages(t *testing.T) {
	t.Parallel()
	onDisplays(t, func(t *testing.T, g *gateway, d display) {
		for range 3 {
			g.call(t, g.key, "/v1/chat/completions", 200, hello("sandbox-chat"))
		}
		g.chat(t, g.key, "no-such-model")
		g.call(t, g.key, "/v1/images/generations", 202, map[string]any{"model": "sandbox-image", "prompt": "A lighthouse in the fog"})
		op := open(t, g, d.theme, d.width)
		op.operator()
		for _, name := range []string{"Blue Sky", "Corner Shop example"} {
			op.open("/console/operator/accounts/new")
			op.fill("#f-name", name)
			op.press("main form button.main")
		}
		for name, path := range operatorPages {
			op.visit("/console/operator/"+path, name)
		}
		op.open("/console/operator/books")
		op.press(`form[action$="/books/run"] button`)
		op.waitForText("and the result appears here.")
		op.waitForText("agree") // without a reload
		op.checkPage("books")
		op.open("/console/operator/requests")
		op.press("tbody a.rowlink")
		op.checkPage("request")
		op.open("/console/operator/jobs")
		op.press("tbody a.rowlink")
		op.checkPage("job")
		op.open("/console/operator/find?q=demo")
		at := run(op, chromedp.Evaluate[string]("location.pathname"))
		for _, view := range []string{"", "keys", "users", "money", "requests", "jobs", "webhook", "log"} {
			op.visit(at+"?view="+view, "account-"+view)
		}
		op.open(at + "?view=keys")
		op.press("tbody a.rowlink")
		op.waitForText("Its requests")
		op.checkPage("key")
	})
}
