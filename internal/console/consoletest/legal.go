package consoletest

import (
	"tollgate/internal/console/page"
	"tollgate/internal/mail"
)

// legalTexts returns the texts of the scene's shop.
func legalTexts() page.Legal {
	return page.Legal{Terms: page.LegalText{mail.English: {Plain: "Be kind."}},
		Privacy: page.LegalText{mail.English: {Plain: "We keep little."}}}
}
