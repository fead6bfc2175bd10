package browser

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// link returns the link on the page as a path of the gateway.
func (b *tab) link() string {
	b.t.Helper()
	address, err := url.Parse(b.value("#link"))
	if err != nil || address.Path != "/console/link" || len(address.Fragment) != 43 {
		b.fail(fmt.Errorf("the link is %s, %w", address, err))
	}
	return address.Path + "#" + address.Fragment
}

// TestInvitation creates an account with a link and a key as an operator. The recipient sets a
// password with the keyboard alone and is signed in. The link then no longer works. The recipient
// invites a colleague in the same way.
func TestInvitation(t *testing.T) {
	t.Parallel()
	onDisplays(t, func(t *testing.T, g *gateway, d display) {
		op := open(t, g, d.theme, d.width)
		op.operator()
		op.open("/console/operator/accounts/new")
		op.fill("#f-name", "Acme")
		op.fill("#f-email", "shop@acme.example")
		op.checkPage("new-account")
		op.press("main form button.main")
		op.waitForText("Copy this link and this key")
		op.checkPage("account-created")
		link := op.link()
		op.do(chromedp.Click(chromedp.CSS(`button[data-copy="welcome-0-text"]`)))
		op.waitForText("Copied")
		op.press("main > p a.button")
		op.press(`a[href$="view=users"]`)
		op.waitForText("invited, no password yet")
		op.checkPage("users")

		b := open(t, g, d.theme, d.width)
		b.visit("/console/sign-in", "sign-in")
		b.visit("/console/link", "use-link")
		b.open("/console/sign-in")
		b.setPassword(link)
		b.follow(link, "no longer valid")
		b.expect("422")
		b.checkFocus("[data-focus]")
		b.checkPage("used-link")

		b.open("/console/settings")
		b.fill("#new-f-email", "lin@acme.example")
		b.press(`form[action$="/settings/users"] button.main`)
		b.waitForText("It is not shown again")
		b.checkPage("invitation")
		link = b.link()
		b.press("main > p a.button")
		b.waitForText("invited, no password yet")
		colleague := open(t, g, d.theme, d.width)
		colleague.follow(link, "Set your password")
		colleague.fill("#f-password", "my own horse")
		colleague.press("main button.main")
		colleague.waitForText("Overview")

		op.press(`form[action$="/link"] button`)
		op.waitForText("set a new password")
		op.checkPage("new-link")
	})
}

// setPassword opens a link and sets a password, without a mouse.
func (b *tab) setPassword(link string) {
	b.t.Helper()
	b.follow(link, "Set your password")
	if at := run(b, chromedp.Evaluate[string](`location.href`)); strings.Contains(at, "#") {
		b.t.Errorf("the address keeps the token: %s", at)
	}
	b.checkPage("set-password")
	tabTo(b, "#f-password")
	b.do(chromedp.KeyEvent("short"))
	b.navigate(chromedp.KeyEvent(kb.Enter))
	b.waitForText("at least 8 characters")
	b.expect("422")
	b.checkPage("password-refused")
	tabTo(b, "#f-password")
	b.do(chromedp.KeyEvent("my own horse"))
	b.navigate(chromedp.KeyEvent(kb.Enter))
	b.waitForText("Overview")
}

// follow opens a link and waits for a text on the next page. The page of the link submits its form
// by itself.
func (b *tab) follow(link, text string) {
	b.t.Helper()
	b.open(link)
	b.waitForText(text)
}

// TestLinkWithoutScripts pastes the link into the form.
func TestLinkWithoutScripts(t *testing.T) {
	t.Parallel()
	g := start(t)
	op := open(t, g, "light", 1280)
	op.operator()
	op.open("/console/operator/accounts?q=")
	op.press("tbody a.rowlink")
	op.press(`a[href$="view=users"]`)
	op.press(`form[action$="/link"] button`)
	link := g.url + op.link()
	b := open(t, g, "light", 1280)
	b.withoutScripts()
	b.open("/console/link")
	b.do(chromedp.SendKeys(chromedp.CSS("#f-link"), link))
	b.press("main button.main")
	b.do(chromedp.SendKeys(chromedp.CSS("#f-password"), "my own horse"))
	b.press("main button.main")
	b.checkText("Overview")
}
