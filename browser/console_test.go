package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// display is the theme and the screen width of a page.
type display struct {
	theme string
	width int64
}

// displays has both themes and both widths. TestLivelyAccount uses other combinations.
var displays = []display{{"light", 1280}, {"dark", 390}}

func (d display) String() string { return fmt.Sprintf("%s-%d", d.theme, d.width) }

// onDisplays runs a test for each display, each with its own gateway. settings are those of start.
func onDisplays(t *testing.T, test func(t *testing.T, g *gateway, d display), settings ...string) {
	t.Helper()
	for _, d := range displays {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			test(t, start(t, settings...), d)
		})
	}
}

// agents are the user agents of other programs that are signed in beside the browser.
var agents = []string{
	"Mozilla/5.0 (iPhone; CPU iPhone OS 18_3_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) " +
		"Version/18.3 Mobile/15E148 Safari/604.1",
	"Mozilla/5.0 (compatible; ExampleOrdersAndInvoicesSynchronizer/3.14.15; +https://orders.example/about/our/programs)",
	"curl/8.5.0",
}

// signInWith signs in the demo account's user with another user agent.
func (g *gateway) signInWith(t *testing.T, agent string) {
	t.Helper()
	form := url.Values{"email": {g.email}, "password": {g.password}}.Encode()
	r, err := http.NewRequest(http.MethodPost, g.url+"/console/sign-in", strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("User-Agent", agent)
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusSeeOther {
		t.Fatalf("status %d, %v", answer.StatusCode, err)
	}
}

// TestPages checks every page on both displays.
func TestPages(t *testing.T) {
	t.Parallel()
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(receiver.Close)
	onDisplays(t, func(t *testing.T, g *gateway, d display) {
		b := open(t, g, d.theme, d.width)
		b.visit("/console/sign-in", "sign-in")
		// Both references have one generator and one stylesheet. Axe needs as long for either as for
		// ten other pages, so it checks each on one display.
		b.open("/docs")
		if d.theme == "light" {
			b.checkPage("reference")
		} else {
			b.checkLayout("reference")
			b.visit("/admin/docs", "operator-reference")
		}
		b.open("/console/sign-in")
		b.signIn()
		b.checkPage("overview-new")
		for range 3 {
			g.call(t, g.key, "/v1/chat/completions", 200, hello("sandbox-chat"))
		}
		b.visit("/console", "overview")
		b.visit("/console/keys", "keys")
		b.press("tbody a.rowlink")
		b.checkPage("key")
		b.visit("/console/keys/new", "new-key")
		b.visit("/console/requests", "requests")
		b.press("tbody a.rowlink")
		b.checkPage("request")
		b.visit("/console/usage", "usage")
		b.press(`nav[aria-label="Grouped by"] a[href*="by=key"]`)
		b.waitFor(`document.querySelector("section thead th").textContent === "Key"`)
		b.visit("/console/usage?span=90&by=day", "usage-days")
		b.visit("/console/usage?model=none", "usage-none")
		b.visit("/console/billing", "billing")
		b.visit("/console/billing/statements", "statements")
		b.press("tbody a.rowlink")
		b.waitForText("Closing balance")
		b.checkPage("statement")
		b.visit("/console/models", "models")
		b.visit("/console/models?id=sandbox-messages", "model")
		b.open("/console/webhooks")
		b.fill("#f-url", receiver.URL)
		b.press(`main form:has(#f-url) button.main`)
		b.press(`form[action$="/webhooks/test"] button`)
		b.waitForText("Your receiver works.")
		b.checkPage("webhooks")
		b.press("tbody a.rowlink")
		b.checkPage("delivery")
		for _, agent := range agents {
			g.signInWith(t, agent)
		}
		b.visit("/console/settings", "settings")
		b.open("/console/nowhere")
		b.expect("404")
		b.checkPage("not-found")
		b.visit("/console/operator/sign-in", "operator-sign-in")
		b.operator()
		b.waitForText("Charged in the last 30 days")
		b.checkPage("operator")
		b.visit("/console/operator/usage", "operator-usage")
		b.visit("/console/operator/usage?by=line&span=90", "operator-usage-lines")
		b.codes()
		b.open("/console/operator/deliveries")
		b.waitForText("webhook.test")
		b.checkPage("operator-deliveries")
		b.visit("/console/operator/deliveries?state=failed", "operator-deliveries-none")
		b.visit("/console/operator/sessions", "operator-sessions")
	})
}

// codes creates redeem codes and voids one.
func (b *tab) codes() {
	b.t.Helper()
	b.visit("/console/operator/codes", "operator-codes-none")
	b.open("/console/operator/codes/new")
	b.fill("#f-usd", "2.50")
	b.fill("#f-count", "3")
	b.checkPage("operator-codes-new")
	b.press("main form button.main")
	b.expect("422")
	b.fill("#f-secret", adminToken)
	b.press("main form button.main")
	b.waitForText("3 codes of $2.50 created")
	b.checkPage("operator-codes-created")
	b.press("main > p a.button")
	b.do(chromedp.Click(chromedp.CSS("a[data-open]")))
	b.waitForText("This cannot be undone.")
	b.shoot("operator-codes-void")
	b.press("dialog[open] button.danger")
	b.waitForText("The code is void")
	b.checkPage("operator-codes")
}

// TestKeyStory creates a key, which is shown once, then copies, uses and deletes it.
func TestKeyStory(t *testing.T) {
	t.Parallel()
	g := start(t)
	b := open(t, g, "light", 1280)
	b.signIn()
	b.open("/console/keys/new")
	b.fill("#f-name", "backend")
	b.fill("#f-rpm", "many")
	b.press("main form button.main")
	b.expect("422")
	b.waitForText("whole number from 1")
	b.checkFocus("[data-focus]")
	b.checkPage("refused")
	b.fill("#f-rpm", "60")
	b.press("main form button.main")
	b.waitForText("Copy this key now.")
	key := b.value("#secret")
	if !strings.HasPrefix(key, "sk-") {
		t.Fatalf("the key is %q", key)
	}
	b.do(chromedp.Click(chromedp.CSS(`button[data-copy="secret"]`)))
	b.waitForText("Copied")
	b.checkPage("created")
	g.call(t, key, "/v1/chat/completions", 200, hello("sandbox-chat"))
	b.waitForText("It arrived")
	b.press(`main > p a.button`)
	if got := b.value("#f-rpm"); got != "60" {
		t.Errorf("the limit is %q", got)
	}
	b.open("/console/keys")
	b.waitForText("60/min")
}

// TestKeyboardAlone signs in and creates a key without a mouse.
func TestKeyboardAlone(t *testing.T) {
	t.Parallel()
	g := start(t)
	b := open(t, g, "dark", 1280)
	b.open("/console")
	tabTo(b, "#f-email")
	b.do(chromedp.KeyEvent(g.email), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(g.password))
	b.navigate(chromedp.KeyEvent(kb.Enter))
	b.waitForText("Overview")
	b.navigate(chromedp.KeyEvent("g"), chromedp.KeyEvent("k"))
	b.waitForText("Keys")
	tabTo(b, `main a[href="/console/keys/new"]`)
	b.navigate(chromedp.KeyEvent(kb.Enter))
	tabTo(b, "#f-name")
	b.do(chromedp.KeyEvent("by keyboard"))
	b.navigate(chromedp.KeyEvent(kb.Enter))
	b.waitForText("Copy this key now.")
	b.do(chromedp.KeyEvent("?"))
	b.waitForText("next and previous row")
	b.do(chromedp.KeyEvent(kb.Escape))
}

// tabTo presses Tab until the focus is on an element.
func tabTo(b *tab, selector string) {
	b.t.Helper()
	for range 60 {
		if b.focused(selector) {
			return
		}
		b.do(chromedp.KeyEvent(kb.Tab))
	}
	b.fail(fmt.Errorf("Tab does not lead to %s", selector))
}

// TestWithoutScripts creates a key and deletes it with its dialog.
func TestWithoutScripts(t *testing.T) {
	t.Parallel()
	g := start(t)
	b := open(t, g, "light", 1280)
	b.withoutScripts()
	b.open("/console/keys/new")
	b.do(chromedp.SendKeys(chromedp.CSS("#f-email"), g.email), chromedp.SendKeys(chromedp.CSS("#f-password"), g.password))
	b.press("main button.main")
	b.do(chromedp.SendKeys(chromedp.CSS("#f-name"), "plain"))
	b.press("main form button.main")
	b.checkText("Copy this key now.")
	b.press(`main > p a.button`)
	b.press(`a[data-open="delete"]`)
	b.do(chromedp.SendKeys(chromedp.CSS("#delete-typed"), "plain"))
	b.press("dialog[open] button")
	b.checkText("The key is deleted.")
}
