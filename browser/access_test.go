package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// focused reports whether an element has the focus.
func (b *tab) focused(selector string) bool {
	b.t.Helper()
	return run(b, chromedp.Evaluate[bool](fmt.Sprintf(`document.activeElement.matches(%q)`, selector)))
}

// checkFocus checks that an element has the focus.
func (b *tab) checkFocus(selector string) {
	b.t.Helper()
	if !b.focused(selector) {
		b.t.Errorf("the focus is not on %s", selector)
	}
}

// slash types a / like a keyboard. If the page prevents the key's default action, no text is typed.
func (b *tab) slash() {
	b.t.Helper()
	for _, kind := range []input.DispatchKeyEventType{kb.KeyDown, kb.KeyUp} {
		p := input.DispatchKeyEventParams{Type: kind, Key: "/", Code: "Slash", WindowsVirtualKeyCode: 191}
		if kind == kb.KeyDown {
			p.Text, p.UnmodifiedText = "/", "/"
		}
		if _, err := chromedp.Call(b.ctx, input.DispatchKeyEvent, p); err != nil {
			b.fail(err)
		}
	}
}

// keys types keys one after the other.
func (b *tab) keys(keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		b.do(chromedp.KeyEvent(key))
	}
}

// TestShortcuts checks the shortcuts: `/` searches, `?` shows help, g and a letter open a page, j
// and k select a row, Enter opens it, Escape closes. They do nothing while the user types or after
// the user has turned them off.
func TestShortcuts(t *testing.T) {
	t.Parallel()
	g := start(t)
	g.seedUsage(t)
	b := open(t, g, "light", 1280)
	b.signIn()
	b.slash()
	b.checkFocus(".side [data-find]")
	b.slash()
	b.keys("gk?")
	if typed := b.value(".side [data-find]"); typed != "/gk?" {
		t.Errorf("the search box has %q", typed)
	}
	run(b, chromedp.Evaluate[any](`(document.activeElement.select(), 0)`))
	b.keys("sandbox-reas")
	b.navigate(chromedp.KeyEvent(kb.Enter))
	b.waitForText("sandbox-reasoner")
	b.waitForText("Prices")
	for letter, title := range map[string]string{"o": "Overview", "k": "Keys", "r": "Requests", "u": "Usage", "b": "Billing", "j": "Jobs",
		"w": "Webhooks", "m": "Models", "p": "Playground", "s": "Settings"} {
		b.keys("g")
		b.navigate(chromedp.KeyEvent(letter))
		if got := b.text("h1"); got != title {
			t.Errorf("g %s leads to %s, want %s", letter, got, title)
		}
	}
	b.keys("g")
	b.navigate(chromedp.KeyEvent("r"))
	b.keys("j", "j", "k", "j")
	at := chromedp.Evaluate[float64](`[...document.querySelectorAll("tbody a.rowlink")].indexOf(document.activeElement)`)
	if row := run(b, at); row != 1 {
		t.Errorf("row %v has the focus, want 1", row)
	}
	b.navigate(chromedp.KeyEvent(kb.Enter))
	b.waitForText("What happened")
	b.do(chromedp.Focus(chromedp.CSS(".head a.button")))
	b.keys("?")
	b.waitForText("next and previous row")
	b.shoot("help")
	b.keys(kb.Escape)
	if run(b, chromedp.Evaluate[bool](`document.getElementById("help").open`)) || !b.focused(".head a.button") {
		t.Error("Escape does not return the focus")
	}
	b.do(chromedp.Click(chromedp.CSS(`.side [data-open="help"]`)))
	b.press(`#help button[name="keys"]`)
	b.waitForText("What happened")
	b.keys("?", "g", "k")
	b.slash()
	if run(b, chromedp.Evaluate[bool](`document.getElementById("help").open`)) || b.focused("[data-find]") {
		t.Error("shortcuts have an effect although the user has turned them off")
	}
	b.do(chromedp.Click(chromedp.CSS(`.side [data-open="help"]`)))
	b.press(`#help button[value="on"]`)
	b.slash()
	b.checkFocus("[data-find]")

	phone := open(t, g, "light", 390)
	phone.signIn()
	phone.slash()
	phone.checkFocus(".top [data-find]")
	phone.checkPage("menu")
	phone.keys(kb.Escape)
	if run(phone, chromedp.Evaluate[bool](`document.querySelector(".top details").open`)) || !phone.focused(".top summary") {
		t.Error("Escape does not close a phone's menu")
	}
}

// TestFocusAfterForms checks that the focus is on the message after a form, and that Escape closes
// a dialog opened by the server.
func TestFocusAfterForms(t *testing.T) {
	t.Parallel()
	g := start(t)
	b := open(t, g, "dark", 390)
	b.signIn()
	focusOn := func(what string) {
		t.Helper()
		b.waitForText(what)
		b.checkFocus("[data-focus]")
	}
	b.open("/console/billing")
	b.fill("#f-code", "none")
	b.press(`form[action$="/redeem"] button`)
	b.expect("422")
	focusOn("There is no such code.")
	b.checkPage("redeem-refused")
	if link := run(b, chromedp.Evaluate[string](`document.querySelector("[data-focus] a").getAttribute("href")`)); link != "#f-code" {
		t.Errorf("the error links to %s", link)
	}
	b.open("/console/keys")
	b.press("tbody a.rowlink")
	b.press(`form[action$="/disable"] button`)
	focusOn("The key is disabled")
	b.open(run(b, chromedp.Evaluate[string](`location.pathname`)) + "?confirm=delete")
	b.shoot("delete")
	b.fill("#delete-typed", "another")
	b.press("dialog[open] button.danger")
	b.expect("422")
	focusOn("does not match")
	b.keys(kb.Escape)
	if run(b, chromedp.Evaluate[bool](`document.querySelector("dialog[open]") !== null`)) {
		t.Error("Escape does not close a dialog opened by the server")
	}
	b.open("/console/webhooks")
	b.press(`form[action$="/webhooks/test"] button`)
	focusOn("has no webhook address")
}

// checkText checks without waiting that the open page has a text.
func (b *tab) checkText(want string) {
	b.t.Helper()
	if got := b.text("main"); !strings.Contains(got, want) {
		b.fail(fmt.Errorf("no %q in %s", want, got))
	}
}

// TestFormsWithoutScripts redeems a code, saves and tests a receiver, resends a delivery, filters,
// and chooses a theme, all without scripts. Features that need scripts are not offered.
func TestFormsWithoutScripts(t *testing.T) {
	t.Parallel()
	var status atomic.Int64
	status.Store(http.StatusInternalServerError)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) }))
	t.Cleanup(receiver.Close)
	g := start(t)
	g.seedUsage(t)
	code, _ := g.call(t, adminToken, "/admin/v1/codes", 200, map[string]any{"usd": 2.5})["data"].([]any)[0].(map[string]any)["code"].(string)
	b := open(t, g, "light", 390)
	b.withoutScripts()
	b.open("/console/billing")
	b.do(chromedp.SendKeys(chromedp.CSS("#f-email"), g.email), chromedp.SendKeys(chromedp.CSS("#f-password"), g.password))
	b.press("main button.main")
	b.checkText("Redeem a code")
	b.do(chromedp.SendKeys(chromedp.CSS("#f-code"), code))
	b.press(`form[action$="/redeem"] button`)
	b.checkText("The code is redeemed")
	b.open("/console/webhooks")
	b.do(chromedp.SendKeys(chromedp.CSS("#f-url"), receiver.URL))
	b.press(`main form:has(#f-url) button.main`)
	b.checkText("Saved.")
	b.press(`form[action$="/webhooks/test"] button`)
	b.checkText("The test was not delivered. It answered 500")
	b.press("tbody a.rowlink")
	b.checkText("What is sent")
	status.Store(http.StatusNoContent)
	b.press(`form[action$="/resend"] button`)
	b.checkText("It was sent again.")
	b.checkText("204")
	b.open("/console/webhooks")
	b.press(`a[data-open="roll"]`)
	b.press("dialog[open] button.danger")
	b.checkText("The secret was replaced.")
	b.open("/console/requests")
	b.do(chromedp.Click(chromedp.CSS(".folder summary")), chromedp.SetValue(chromedp.CSS("#f-status"), "502"))
	b.press(".filters button")
	b.checkText("502 provider failed")
	b.do(chromedp.Click(chromedp.CSS(".top summary")))
	b.press(`.top button[value="dark"]`)
	b.checkText("502 provider failed")
	b.shoot("dark")
	if text := b.text("body"); strings.Contains(text, "Shortcuts") {
		t.Error("shortcuts are offered without scripts")
	}
	b.open("/console/playground")
	b.checkText("The playground needs JavaScript.")
}

// TestLiveJobs checks that the gallery shows and announces the end of a job without a reload.
func TestLiveJobs(t *testing.T) {
	t.Parallel()
	g := start(t)
	b := open(t, g, "light", 1280)
	b.signIn()
	boat := map[string]any{"model": "sandbox-video", "prompt": "a moving boat"}
	job, _ := g.call(t, g.key, "/v1/videos/generations", 202, boat)["id"].(string)
	b.open("/console/jobs")
	b.waitForText("a moving boat")
	run(b, chromedp.Evaluate[any](`(window.before = true, 0)`))
	b.waitForText("Done 1")
	b.waitFor(`document.querySelector(".tile video") !== null && window.before === true`)
	b.waitFor(`document.getElementById("live").textContent.includes("0 running")`)
	b.open("/console/jobs/" + job)
	b.waitForText("Generated")
}

// TestForcedColours checks that selections stay visible if the system forces all colours.
func TestForcedColours(t *testing.T) {
	t.Parallel()
	g := start(t)
	g.seedUsage(t)
	b := open(t, g, "dark", 1280)
	features := []*emulation.MediaFeature{{Name: "forced-colors", Value: "active"}, {Name: "prefers-color-scheme", Value: "dark"}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}); err != nil {
		t.Fatal(err)
	}
	b.signIn()
	for _, p := range []struct{ name, path string }{{"overview", "/console"}, {"usage", "/console/usage"}, {"webhooks", "/console/webhooks"},
		{"key", "/console/keys/new"}} {
		b.open(p.path)
		b.shoot(p.name)
		if none := run(b, chromedp.Evaluate[string](`[...document.querySelectorAll(".side [aria-current], .tabs [aria-current], " +
			"[aria-pressed=true], .codetabs > input:checked + label")].filter((one) => one.checkVisibility() &&
			getComputedStyle(one).outlineStyle === "none").map((one) => one.textContent).join()`)); none != "" {
			t.Errorf("%s: these selections are not visible: %s", p.name, none)
		}
	}
}
