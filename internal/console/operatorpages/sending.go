package operatorpages

import (
	"fmt"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/part"
	"tollgate/internal/console/show"
	"tollgate/internal/operator"
)

// sendingPage shows a customer's new link or key once, with the text to send.
type sendingPage struct {
	Title string
	What  string         // the created objects, such as this key
	Once  []part.Copying // empty: it was shown before, and nothing was made now
	Given string         // the first credit; may be empty
	To    string         // whom the text is for
	Text  part.Snippets
	Unset *part.Notice // warns that public_url is not set, so the text would have an unreachable address
	Back  string       // the account's page
}

// sending shows the new link and the new key of an account. Either may be missing.
func (c *console) sending(title string, a account.Account, link *operator.SentLink, secret string, given operator.Credit) page.Outgoing {
	shown := sendingPage{Title: title, To: a.Name, Text: c.welcome(a, link, secret), Unset: c.unset(),
		Back: page.Base + "/operator/accounts/" + a.ID}
	if given.USD > 0 {
		shown.Given = part.USD(given.USD)
	}
	var made []string
	if link != nil {
		made = append(made, "this link")
		shown.Once = append(shown.Once, show.LinkToCopy(*link))
	}
	if secret != "" {
		made = append(made, "this key")
		shown.Once = append(shown.Once, part.Copying{ID: "secret", Label: "The new key", Value: secret})
	}
	shown.What = part.Words(made)
	return page.Whole{Name: "sending", Title: title, Main: shown}
}

// unset returns a warning with the address in customers' texts if public_url is not set. Otherwise
// it returns nil.
func (c *console) unset() *part.Notice {
	if !c.NoPublicURL {
		return nil
	}
	return &part.Notice{Tone: part.Warn, Title: "The setting public_url is not set.",
		Text: "Links, programs to copy and texts for customers name " + c.PublicURL + ", which may lead nowhere from where they are. " +
			"Set it to the address that they reach, such as https://ai.example.com, before you send them anything."}
}

// welcome returns the text for a customer: the address of the API, the sign-in, the key's secret or
// a placeholder, and an example request.
func (c *console) welcome(a account.Account, link *operator.SentLink, secret string) part.Snippets {
	shown := secret
	switch {
	case shown != "":
	case a.Email != "":
		shown = "you make it at " + c.PublicURL + page.Base + "/keys/new"
	default:
		shown = "it comes apart from this"
	}
	paragraphs := []string{"Hello,", "your account " + a.Name + " is ready at " + show.Host(c.PublicURL) + ".",
		fmt.Sprintf("Address of the API: %s/v1\nYour key: %s", c.PublicURL, shown)}
	switch {
	case link != nil:
		paragraphs = append(paragraphs, show.LinkText(c.PublicURL, *link))
	case a.Email != "":
		paragraphs = append(paragraphs, fmt.Sprintf("Console: %s%s (sign in as %s)", c.PublicURL, page.Base, a.Email))
	}
	if codes := show.KeySnippets(c.PublicURL, c.offer(), nil, secret); len(codes) > 0 {
		paragraphs = append(paragraphs, "Try it:", codes[0].Text)
	}
	paragraphs = append(paragraphs, "Any client of OpenAI's interface works with this address and key.")
	return part.Snippets{ID: "welcome", Tabs: []part.Snippet{{Name: "Welcome text", Text: strings.Join(paragraphs, "\n\n") + "\n",
		Prose: true}}}
}

// offer returns the catalog and the state of its lines on this node.
func (c *console) offer() show.Offer {
	return show.Offer{Catalog: c.Catalog.Current(), Lines: c.Lines.Statuses()}
}

// sendLink shows a link for a user, this once.
func (c *console) sendLink(l operator.SentLink) page.Outgoing {
	title := "Link for " + l.User.Email
	return page.Whole{Name: "sending", Title: title, Main: sendingPage{Title: title, What: "this link", To: l.User.Email,
		Once: []part.Copying{show.LinkToCopy(l)}, Text: show.LinkLetter(c.PublicURL, l), Unset: c.unset(),
		Back: page.Base + "/operator/accounts/" + l.User.Account + "?view=users"}}
}
