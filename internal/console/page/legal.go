package page

import (
	"cmp"

	"tollgate/internal/console/ui"
	"tollgate/internal/mail"
)

// Legal has the shop's terms and privacy policy. The zero value has none.
type Legal struct {
	Terms, Privacy LegalText
	// Version names the terms that users must accept. If empty, users need not accept any.
	Version string
}

// LegalText is a text by language. It is nil if the shop has no such text. Otherwise it has at least the
// default, mail.English.
type LegalText map[mail.Locale]ui.Prose

// Paths of the pages of Legal.
const (
	termsPath   = "/terms"
	privacyPath = "/privacy"
	acceptPath  = "/terms/accept"
)

// StatusPath is the path of the page with the availability of models.
const StatusPath = "/status"

// publicLinks returns the links to the shop's public pages, or none for an address of operators only.
func (o Options) publicLinks() (links []ui.Link) {
	for _, l := range []struct {
		on   bool
		path string
		text ui.Words
	}{
		{o.PublicPrices, "/prices", "Models and prices"},
		{o.Availability != nil, StatusPath, "Availability"},
		{o.Legal.Terms != nil, termsPath, "Terms"},
		{o.Legal.Privacy != nil, privacyPath, "Privacy"},
	} {
		if l.on && !o.OwnAddress {
			links = append(links, ui.Link{Href: Base + l.path, Text: l.text})
		}
	}
	return links
}

// legalContent is the content of the page with the terms or the privacy policy.
type legalContent struct {
	Title ui.Words
	Text  ui.Prose
}

// legalPage returns the handler of the page with a text, in the visitor's language or in English.
func (srv *server) legalPage(title ui.Words, text LegalText) func(*Visit) (Responder, error) {
	return func(v *Visit) (Responder, error) {
		locale := v.Locale()
		if _, ok := text[locale]; !ok {
			locale = mail.English
		}
		content := legalContent{Title: title, Text: text[locale]}
		if locale != mail.English {
			content.Text.Lang = string(locale)
		}
		return FullPage{Name: "legal", Title: cmp.Or(ui.Data(content.Text.Title), title), Main: content, Wide: true}, nil
	}
}
