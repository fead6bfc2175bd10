package operatorpages

import (
	"fmt"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// showCredentials shows the new link and the new key of an account. Either may be missing.
func (c *console) showCredentials(
	title ui.Words, a account.Account, link *operator.ConsoleLink, secret string, credit operator.Credit,
) page.Responder {
	content := show.Credentials{Title: title, To: a.Name, Text: c.welcomeText(a, link, secret),
		PublicURLWarning: c.publicURLWarning(),
		Back:             page.Base + "/operator/accounts/" + a.ID}
	if credit.USD > 0 {
		content.Credit = ui.USD(credit.USD)
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

// publicURLWarning returns a warning with the address in customers' texts if public_url is not set.
// Otherwise it returns nil.
func (c *console) publicURLWarning() *ui.Notice {
	if !c.NoPublicURL {
		return nil
	}
	return &ui.Notice{Tone: ui.Warn, Title: "The setting public_url is not set.",
		Text: ui.Sayf("Links, programs to copy and texts for customers name %s, which customers may not reach. Set public_url to "+
			"your public address, such as https://ai.example.com, before you send them anything.", c.PublicURL)}
}

// welcomeText returns the text for a customer: the address of the API, the sign-in, the key's
// secret or a placeholder, and an example request.
func (c *console) welcomeText(a account.Account, link *operator.ConsoleLink, secret string) ui.Snippets {
	keyText := secret
	switch {
	case keyText != "":
	case a.Email != "":
		keyText = "you make it at " + c.PublicURL + page.Base + "/keys/new"
	default:
		keyText = "it comes apart from this"
	}
	paragraphs := []string{"Hello,", "your account " + a.Name + " is ready at " + show.ServiceName(c.Brand, c.PublicURL) + ".",
		fmt.Sprintf("Address of the API: %s/v1\nYour key: %s", c.PublicURL, keyText)}
	switch {
	case link != nil:
		paragraphs = append(paragraphs, show.LinkText(show.ServiceName(c.Brand, c.PublicURL), c.PublicURL, *link))
	case a.Email != "":
		paragraphs = append(paragraphs, fmt.Sprintf("Console: %s%s (sign in as %s)", c.PublicURL, page.Base, a.Email))
	}
	if codes := show.KeySnippets(c.PublicURL, c.offer(), nil, secret); len(codes) > 0 {
		paragraphs = append(paragraphs, "Try it:", codes[0].Text.String())
	}
	paragraphs = append(paragraphs, "Any client of OpenAI's interface works with this address and key.")
	if prices := c.priceLines(a); prices != "" {
		paragraphs = append(paragraphs, prices)
	}
	if line := show.ContactLine(c.Brand); line != "" {
		paragraphs = append(paragraphs, strings.TrimSpace(line))
	}
	return ui.Snippets{ID: "welcome", Tabs: []ui.Snippet{{Name: "Welcome text", Text: ui.Data(strings.Join(paragraphs, "\n\n") + "\n"),
		Prose: true}}}
}

// shownPrices is the maximum number of models with prices in a text for a customer.
const shownPrices = 5

// priceLines lists prices of an account, or nothing if the catalog sells only the sandbox.
func (c *console) priceLines(a account.Account) string {
	now := c.Catalog.Current()
	var lines []string
	for _, m := range now.Models() {
		if m.State == catalog.StateOpen && !now.IsSandbox(m.ID) && len(lines) < shownPrices {
			lines = append(lines, "- "+m.ID+": "+show.ShortPrice(m, a.Prices.FactorOf(m.ID)).String())
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return "Prices:\n" + strings.Join(lines, "\n") + "\nAll models and prices: " + c.PublicURL + page.Base + "/models"
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
