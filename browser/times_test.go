package browser

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// TestTimesInTheReadersZone checks that scripts show times in the reader's zone, in the
// format of the server, with UTC in the title.
func TestTimesInTheReadersZone(t *testing.T) {
	t.Parallel()
	g := start(t)
	b := open(t, g, "light", 1280)
	b.signIn()
	g.call(t, g.key, "/v1/chat/completions", 200, hello("sandbox-chat"))
	for _, zone := range []struct{ id, pattern string }{
		{"Asia/Kolkata", `GMT\+5:30`}, {"America/Sao_Paulo", `GMT-3`},
		{"UTC", `UTC`}, {"Pacific/Kiritimati", `GMT\+14`}, {"America/Phoenix", `MST`},
	} {
		override := emulation.SetTimezoneOverrideParams{TimezoneID: zone.id}
		if _, err := chromedp.Call(b.ctx, emulation.SetTimezoneOverride, override); err != nil {
			b.fail(err)
		}
		for _, path := range []string{"/console/requests", "/console/keys", "/console/settings", "/console/billing"} {
			b.open(path)
			b.waitFor(`[...document.querySelectorAll("main time")].length > 0 && [...document.querySelectorAll("main time")].every((time) =>
				/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ` + zone.pattern + `$/.test(time.textContent) &&
				time.title === time.dateTime.replace("T", " ").replace("Z", " UTC"))`)
		}
	}
}
