package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"tollgate/internal/gatewaytest/fakepayment"
)

// englishTexts returns texts of the open page with three or more English words in a row, except those of
// the demo account and messages of the API.
const englishTexts = `(() => {
  const texts = [], english = /\b[A-Za-z]{2,} [a-z]{2,} [a-z]{2,}\b/;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (node.parentElement.closest("script, style, noscript, pre, code, textarea")) continue;
    if (english.test(node.textContent)) texts.push(node.textContent.trim());
  }
  for (const name of ["title", "aria-label", "placeholder", "alt"])
    for (const node of document.querySelectorAll("[" + name + "]"))
      if (english.test(node.getAttribute(name))) texts.push(name + ": " + node.getAttribute(name));
  const known = /lighthouse|paper boat|two cats|the nightly run|haiku|Explain how|The provider's safety|The prompt, a reference/;
  return texts.filter((text) => !known.test(text));
})()`

// visitChinese goes to a page, and checks it and its language.
func (b *tab) visitChinese(path, name string) {
	b.t.Helper()
	b.visit(path, name)
	if language := run(b, chromedp.Evaluate[string](`document.documentElement.lang`)); language != "zh-CN" {
		b.t.Errorf("%s: the language is %q", name, language)
	}
	for _, text := range run(b, chromedp.Evaluate[[]string](englishTexts)) {
		b.t.Errorf("%s: English text %q", name, text)
	}
}

// TestChinese checks the pages of an account in use, and those of operators, in Chinese on both displays.
func TestChinese(t *testing.T) {
	t.Parallel()
	onDisplays(t, func(t *testing.T, g *gateway, d display) {
		g.addHistory(t)
		b := open(t, g, d.theme, d.width)
		b.chooseChinese()
		b.fillSignIn(g.email, g.password)
		b.waitFor(`location.pathname === "/console"`)
		for _, p := range livelyPages {
			b.visitChinese(p.path, p.name)
		}
		for _, path := range []string{"keys/new", "models?id=sandbox-messages", "playground", "settings"} {
			b.visitChinese("/console/"+path, strings.ReplaceAll(path, "/", "-"))
		}
		b.operator()
		for name, path := range operatorPages {
			b.visitChinese("/console/operator/"+path, "operator-"+name)
		}
	})
}

// chooseChinese chooses Chinese on the page to sign in.
func (b *tab) chooseChinese() {
	b.t.Helper()
	b.open("/console/sign-in")
	b.press(`button[name="language"][value="zh-CN"]`)
}

// TestShopInChinese checks the pages for sign-up, mails and payments in Chinese on both displays.
func TestShopInChinese(t *testing.T) {
	t.Parallel()
	for _, d := range displays {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			stripe := fakepayment.NewStripe(t)
			g := start(t, append(shopSettings(stripe), "TOLLGATE_PUBLIC_PRICES=true", "TOLLGATE_SIGN_UP=open")...)
			b := open(t, g, d.theme, d.width)
			b.chooseChinese()
			for _, path := range []string{"sign-in", "sign-up", "forgot", "link", "prices"} {
				b.visitChinese("/console/"+path, path)
			}
			b.open("/console/sign-in")
			b.fillSignIn(g.email, g.password)
			b.waitFor(`location.pathname === "/console"`)
			b.operator()
			for _, path := range []string{"settings/mails", "billing", "billing/top-ups", "billing/top-ups/new", "billing/invoices",
				"billing/invoices/details", "operator/top-ups", "operator/top-ups/reconciliation", "operator/invoices", "operator/statements",
				"operator/mails", "operator/operators"} {
				b.visitChinese("/console/"+path, strings.ReplaceAll(path, "/", "-"))
			}
		})
	}
}
