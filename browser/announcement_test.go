package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestAnnouncements writes announcements, and shows them to a customer in both languages on both displays, until
// the customer dismisses them.
func TestAnnouncements(t *testing.T) {
	t.Parallel()
	onDisplays(t, func(t *testing.T, g *gateway, d display) {
		b := open(t, g, d.theme, d.width)
		b.operator()
		b.visit("/console/operator/announcements", "announcements-none")
		b.visit("/console/operator/announcements/new", "new-announcement")
		b.press("main button.main")
		b.waitForText("must be one line")
		b.expect("422")
		b.checkPage("new-announcement-wrong")
		b.fill("#f-title", "Maintenance on Sunday")
		b.do(chromedp.SetValue(chromedp.CSS("#f-text"), "From 8 to 9 UTC, models answer slowly.\nFailed requests cost nothing."))
		b.do(chromedp.SetValue(chromedp.CSS("#f-level"), "warning"))
		b.press("main button.main")
		b.waitForText("Saved. Each node")
		b.checkPage("announcement")
		b.open("/console/operator/announcements/new")
		b.fill("#f-title", "deepseek-reasoner-2026-11-preview-with-a-long-name is here")
		b.press("main button.main")
		b.visit("/console/operator/announcements", "announcements")

		b.open("/console/sign-in")
		b.fillSignIn(g.email, g.password)
		b.waitForText("Maintenance on Sunday")
		b.checkPage("overview")
		b.open("/console/requests?status=500")
		b.press(`form[action$="/dismiss"] button`)
		b.waitFor(`location.search === "?status=500"`)
		b.checkPage("requests")
		if text := b.text("main"); strings.Contains(text, "deepseek") || !strings.Contains(text, "Maintenance on Sunday") {
			t.Errorf("after the dismissal of the latest announcement, the page has the text %q", text)
		}
	})
}

// TestAnnouncementsInChinese checks the pages of announcements in Chinese on both displays. The announcement is
// shown as it was written.
func TestAnnouncementsInChinese(t *testing.T) {
	t.Parallel()
	onDisplays(t, func(t *testing.T, g *gateway, d display) {
		g.call(t, g.token, "/admin/v1/announcements", 200, map[string]any{"title": "周日维护", "text": "8 点到 9 点模型较慢。", "level": "warning"})
		b := open(t, g, d.theme, d.width)
		b.chooseChinese()
		b.fillSignIn(g.email, g.password)
		b.waitFor(`location.pathname === "/console"`)
		eventually(t, "the node has not read the announcement", func() bool {
			b.open("/console/keys")
			return strings.Contains(b.text("main"), "周日维护")
		})
		b.visitChinese("/console/keys", "keys")
		b.press(`form[action$="/dismiss"] button`)
		b.visitChinese("/console/keys", "keys-dismissed")
		b.operator()
		b.visitChinese("/console/operator/announcements/new", "new-announcement")
		b.visitChinese("/console/operator/announcements", "announcements")
		b.press("tbody a.rowlink")
		b.visitChinese(pathOf(t, b.location()), "announcement")
	})
}
