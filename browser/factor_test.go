package browser

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base32"
	endian "encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// codeOf returns the code of an authenticator app for a secret, ahead time steps from now (RFC
// 6238).
func codeOf(t *testing.T, secret string, ahead int64) string {
	t.Helper()
	key, err := base32.StdEncoding.DecodeString(secret)
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha1.New, key)
	if err := endian.Write(mac, endian.BigEndian, time.Now().Unix()/30+ahead); err != nil {
		t.Fatal(err)
	}
	sum := mac.Sum(nil)
	at := sum[19] & 0xf
	return fmt.Sprintf("%06d", endian.BigEndian.Uint32(sum[at:at+4])&0x7fff_ffff%1_000_000)
}

// TestSecondFactor sets up a second factor with the data of the page, enters it at the next
// sign-in, and lets an operator turn it off. The pages look right on a laptop and a phone.
func TestSecondFactor(t *testing.T) {
	t.Parallel()
	onDisplays(t, func(t *testing.T, g *gateway, d display) {
		b := open(t, g, d.theme, d.width)
		b.signIn()
		b.visit("/console/settings/factor", "factor-off")
		b.fill("#f-password", g.password)
		b.press("main form button.main")
		b.waitForText("Scan this")
		b.checkPage("factor-setup")
		secret := b.value("#secret")
		b.fill("#f-code", codeOf(t, secret, 0))
		b.press("main form button.main")
		b.waitForText("Your second factor is on.")
		b.checkFocus("[data-focus]")
		b.checkPage("factor-codes")
		recovery, _, _ := strings.Cut(run(b, chromedp.Text(chromedp.CSS("#recovery-0-text"))), "\n")
		b.visit("/console/settings/factor", "factor-on")
		b.fill("#renew-f-code", recovery)
		b.press(`form[action$="/recovery"] button`)
		b.waitForText("The previous codes no longer work.")
		b.checkPage("factor-renewed")
		b.visit("/console/settings", "settings-factor")
		b = open(t, g, d.theme, d.width) // another browser
		b.open("/console/sign-in")
		b.fill("#f-email", g.email)
		b.fill("#f-password", g.password)
		b.press("main form button.main")
		b.waitForText("Second factor")
		b.checkPage("sign-in-code")
		b.fill("#f-code", codeOf(t, secret, 1))
		b.press("main form button.main")
		b.waitForText("Overview")
		b.open("/console/operator/sign-in?next=%2Fconsole%2Foperator%2Faccounts")
		b.fill("#f-admin_token", adminToken)
		b.press(`form:has(#f-admin_token) button`)
		b.press("tbody a.rowlink")
		b.checkPage("operator-account")
		b.press(`a[href$="view=users"]`)
		b.checkPage("operator-users")
		b.do(chromedp.Click(chromedp.CSS(`a[data-open^="factor-"]`)))
		b.press("dialog[open] button.danger")
		b.waitForText("The second factor is off")
	})
}
