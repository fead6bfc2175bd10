package consoletest

import (
	"tollgate/internal/availability"
	"tollgate/internal/console/page"
	"tollgate/internal/mail"
)

// showPublicPages configures all pages that everybody may see.
func (s *Scene) showPublicPages() {
	s.Options.PublicPrices = true
	s.Options.Legal = page.Legal{Terms: page.LegalText{mail.English: {Plain: "Be kind."}},
		Privacy: page.LegalText{mail.English: {Plain: "We keep little."}}}
	s.Options.Availability = availability.New(availability.Options{DB: s.DB, Known: func(string) bool { return true }})
}
