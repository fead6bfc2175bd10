package page_test

import (
	"net/http"
	"testing"

	"tollgate/internal/console"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/console/page"
	"tollgate/internal/console/ui"
	"tollgate/internal/mail"
)

// legalOptions sets the terms of a shop, and a privacy policy in two languages.
func legalOptions(t *testing.T) func(o *console.Options) {
	t.Helper()
	terms, err := ui.Markdown([]byte("# Our terms\n\nPay **first**. <b>No</b>\n"))
	if err != nil {
		t.Fatal(err)
	}
	return func(o *console.Options) {
		o.Legal = page.Legal{Terms: page.LegalText{mail.English: terms}, Privacy: page.LegalText{
			mail.English: {Plain: "We keep <nothing>."}, mail.Chinese: {Plain: "我们不保存。"}}}
	}
}

// TestLegalPages checks that everybody reads terms and privacy policy, that each page links to them, and that
// a shop without them has no such pages and links.
func TestLegalPages(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Browser()
		b.Handler = s.Console(func(o *console.Options) { o.Legal = page.Legal{} })
		b.Get("/console/terms").Want(t, http.StatusNotFound)
		b.Get("/console/sign-in").Without(t, "/console/terms", "/console/privacy")
		b.Handler = s.Console(legalOptions(t))
		links := []string{`href="/console/terms"`, `href="/console/privacy"`}
		b.Get("/console/terms").Want(t, http.StatusOK, append(links, "<h1>Our terms</h1>", "<strong>first</strong>")...)
		b.Get("/console/terms").Without(t, "<b>")
		b.Get("/console/privacy").Want(t, http.StatusOK, "<h1>Privacy</h1>", "We keep &lt;nothing&gt;.")
		b.Get("/console/sign-in").Want(t, http.StatusOK, links...)
		b.Get("/console/none").Want(t, http.StatusNotFound, links...)
		b.SignIn("ada@example.com", consoletest.Password)
		b.Get("/console").Want(t, http.StatusOK, links...)
		b.Get("/console/terms").Want(t, http.StatusOK, "Our terms", "Sign out")
		b.Handler = s.Console(func(o *console.Options) {
			legalOptions(t)(o)
			o.Sections = console.OperatorSection
		})
		b.Get("/console/operator/sign-in").Without(t, links...)
	})
}
