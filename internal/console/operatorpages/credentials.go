package operatorpages

import (
	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// showCredentials shows the new link and the new key of a customer. Either may be missing.
func (c *console) showCredentials(title ui.Words, n customer) page.Responder {
	a, link, secret := n.account, n.link, n.secret
	content := show.Credentials{Title: title, To: a.Name,
		Text:             c.welcomeText(a, link, secret, show.MoneyLimits(n.limits.DailyBudget, n.limits.TotalLimit)),
		PublicURLWarning: c.publicURLWarning(),
		Back:             page.Base + "/operator/accounts/" + a.ID}
	if n.credit.USD > 0 {
		content.Credit = ui.USD(n.credit.USD)
	}
	var items []ui.Words
	if link != nil {
		items = append(items, "this link")
		content.Secrets = append(content.Secrets, show.LinkToCopy(*link))
	}
	if secret != "" {
		items = append(items, "this key")
		content.Secrets = append(content.Secrets, ui.CopyField{ID: "secret", Label: "The new key", Value: secret})
	}
	content.Items = ui.JoinAnd(items)
	return content.Page()
}

// publicURLWarning returns a warning if public_url is not set, and otherwise nil. Texts for customers have
// PublicURL.
func (c *console) publicURLWarning() *ui.Notice {
	if !c.NoPublicURL {
		return nil
	}
	return &ui.Notice{Tone: ui.Warn, Title: "The setting public_url is not set.",
		Text: ui.Sayf("Links, programs to copy and texts for customers name %s, which customers may not reach. Set public_url to "+
			"your public address, such as https://ai.example.com, before you send them anything.", c.PublicURL)}
}

// welcomeText returns the text for a customer: the address of the API, the key or the way to get one, the key's
// limits, the sign-in, an example request, and prices.
func (c *console) welcomeText(a account.Account, link *operator.ConsoleLink, secret string, limits []ui.Words) ui.Snippets {
	service := show.ServiceName(c.Brand, c.PublicURL)
	access := []ui.Words{ui.Sayf("Address of the API: %s", c.PublicURL+"/v1")}
	switch {
	case secret != "":
		access = append(access, ui.Sayf("Your key: %s", secret))
	case a.Email != "":
		access = append(access, ui.Sayf("Your key: you make it at %s", c.PublicURL+page.Base+"/keys/new"))
	default:
		access = append(access, "Your key: it comes apart from this")
	}
	if len(limits) > 0 {
		access = append(access, ui.Sayf("Limits of the key: %s", ui.JoinComma(limits)))
	}
	paragraphs := []ui.Words{"Hello,", ui.Sayf("your account %s is ready at %s.", a.Name, service), ui.Lines(access)}
	switch {
	case link != nil:
		paragraphs = append(paragraphs, show.LinkText(service, c.PublicURL, *link))
	case a.Email != "":
		paragraphs = append(paragraphs, ui.Sayf("Console: %s (sign in as %s)", c.PublicURL+page.Base, a.Email))
	}
	if codes := show.KeySnippets(c.PublicURL, c.offer(), nil, secret); len(codes) > 0 {
		paragraphs = append(paragraphs, "Try it:", codes[0].Text)
	}
	paragraphs = append(paragraphs, "Any client of OpenAI's interface works with this address and key.", c.priceLines(a),
		show.ContactLine(c.Brand))
	return ui.Snippets{ID: "welcome", Tabs: []ui.Snippet{{Name: "Welcome text", Text: ui.Paragraphs(paragraphs...), Prose: true}}}
}

// shownPrices is the maximum number of models with their prices in a text for a customer.
const shownPrices = 5

// priceLines lists prices of an account. It returns an empty text if the catalog sells only the sandbox.
func (c *console) priceLines(a account.Account) ui.Words {
	now := c.Catalog.Current()
	lines := []ui.Words{"Prices:"}
	for _, m := range now.Models() {
		if m.State == catalog.StateOpen && !now.IsSandbox(m.ID) && len(lines) <= shownPrices {
			lines = append(lines, ui.Sayf("- %s: %s", m.ID, show.ShortPrice(m, a.Prices.FactorOf(m.ID))))
		}
	}
	if len(lines) == 1 {
		return ""
	}
	return ui.Lines(append(lines, ui.Sayf("All models and prices: %s", c.PublicURL+page.Base+"/models")))
}

func (c *console) offer() show.Offer {
	return show.Offer{Catalog: c.Catalog.Current(), Lines: c.Lines.Statuses()}
}

// createLink creates a link for a user and shows the link once.
func (c *console) createLink(v *page.Visit, create func(*store.Tx) (operator.ConsoleLink, error)) (page.Responder, error) {
	l, err := page.Write(v, create)
	content := show.NewLink(c.Brand, ui.Sayf("Link for %s", l.User.Email), c.PublicURL, l,
		page.Base+"/operator/accounts/"+l.User.Account+"?view=users")
	content.PublicURLWarning = c.publicURLWarning()
	return content.Page(), err
}
