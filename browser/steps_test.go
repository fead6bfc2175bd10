package browser

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"tollgate/internal/gatewaytest/fakemail"
)

// signIn signs in the demo account's user.
func (b *tab) signIn() {
	b.t.Helper()
	b.open("/")
	b.fillSignIn(b.g.email, b.g.password)
	b.waitForText("Overview")
}

// fillSignIn sends the open form with an email and a password.
func (b *tab) fillSignIn(email, password string) {
	b.t.Helper()
	b.fill("#f-email", email)
	b.fill("#f-password", password)
	b.press("main form button.main")
}

// operator signs in with the operator's token.
func (b *tab) operator() {
	b.t.Helper()
	b.open("/console/operator/sign-in")
	b.fill("#f-admin_token", b.g.token)
	b.press(`form:has(#f-admin_token) button`)
}

// identify presses the button of a form that leads to the identity provider, and signs its user in there.
func (b *tab) identify(action, issuer string) {
	b.t.Helper()
	b.press(`form[action="` + action + `"] button`)
	b.waitFor(`document.querySelector("#username") !== null && document.querySelector("#password") !== null`)
	b.fill("#username", "test-user@localhost")
	b.fill("#password", "verysecure")
	b.press("form button")
	b.expect(issuer)
}

// signUp creates an account with the link that is mailed to its user.
func (b *tab) signUp(mails *fakemail.Server, email, password string) {
	b.t.Helper()
	b.open("/console/sign-in")
	b.press(`a[href="/console/sign-up"]`)
	b.fillSignIn(email, password)
	b.waitForText("Check your inbox")
	b.follow(pathOf(b.t, waitForMail(b.t, mails, email, "address").Link()), "Verify your address")
	b.press("main form button.main")
	b.waitFor(`location.pathname === "/console"`)
}

// pathOf returns an address without its host.
func pathOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil || u.Path == "" {
		t.Fatalf("the address is %q: %v", address, err)
	}
	u.Scheme, u.Host = "", ""
	return u.String()
}

// waitForMail returns the newest mail to an address with a word in its subject.
func waitForMail(t *testing.T, mails *fakemail.Server, to, word string) (found fakemail.Mail) {
	t.Helper()
	eventually(t, fmt.Sprintf("no mail to %s about %q", to, word), func() bool {
		for _, m := range slices.Backward(mails.Mails()) {
			if m.To == to && strings.Contains(m.Subject, word) {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

// createKey creates a key in the console and returns its secret.
func (b *tab) createKey(name string) (secret string) {
	b.t.Helper()
	b.open("/console/keys/new")
	b.fill("#f-name", name)
	b.press("main form button.main")
	b.waitForText("Copy this key now.")
	return b.value("#secret")
}

// order orders the top-up of an amount and returns the id of the top-up.
func (b *tab) order(amount string) (id string) {
	b.t.Helper()
	b.open("/console/billing/top-ups/new")
	b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`void (document.querySelector("#f-amount").value = %q)`, amount)))
	b.press("main form button.main")
	b.waitForText("Pay " + amount)
	_, id, _ = strings.Cut(b.location(), "/top-ups/")
	return id
}

// pay pays the top-up of the open page at the payment provider, and waits for the credit.
func (b *tab) pay(provider string) {
	b.t.Helper()
	b.press(`main a[href^="` + provider + `"]`)
	b.waitForText("Back")
	b.press("form button")
	b.waitForText("Receipt")
	b.expect(provider)
}

// location returns the path of the open page.
func (b *tab) location() string {
	b.t.Helper()
	return run(b, chromedp.Evaluate[string]("location.pathname"))
}

// refund pays a part of a top-up back as an operator.
func (b *tab) refund(topup, amount, reason string) {
	b.t.Helper()
	b.open("/console/operator/top-ups/" + topup)
	b.fill("#f-amount", amount)
	b.fill("#f-reason", reason)
	b.fill("#f-secret", b.g.token)
	b.press(`form[action$="/refund"] button`)
	b.waitForText("The refund is made")
}

// audit runs `tollgate audit`.
func (g *gateway) audit(t *testing.T, settings ...string) {
	t.Helper()
	program, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	audit := exec.Command(program, "audit")
	audit.Dir, audit.Env = g.folder, append(os.Environ(), settings...)
	if out, err := audit.CombinedOutput(); err != nil {
		t.Errorf("tollgate audit: %v\n%s", err, out)
	}
}
