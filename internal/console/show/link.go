package show

import (
	"cmp"
	"net/url"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/ui"
	"tollgate/internal/operator"
)

// Credentials is the content of a page with a new link or key and a text to send. The page is shown
// once.
type Credentials struct {
	Title            ui.Words
	Items            ui.Words       // the created objects, such as this key
	Secrets          []ui.CopyField // empty if the form was sent before
	Credit           string         // the first credit of an account; may be empty
	To               string         // recipient of the text
	Text             ui.Snippets
	PublicURLWarning *ui.Notice // warns about an address in the text that customers may not reach; may be nil
	Back             string     // address of the page to return to
}

// Page returns the page.
func (c Credentials) Page() page.FullPage {
	return page.FullPage{Name: "credentials", Title: c.Title, Main: c}
}

// NewLink returns the content for a new link of a user. base is the base address of the console.
func NewLink(b page.Brand, title ui.Words, base string, l operator.ConsoleLink, back string) Credentials {
	letter := ui.Paragraphs("Hello,", LinkText(ServiceName(b, base), base, l), ContactLine(b))
	return Credentials{Title: title, Items: "this link", To: l.User.Email, Secrets: []ui.CopyField{LinkToCopy(l)}, Back: back,
		Text: ui.Snippets{ID: "letter", Tabs: []ui.Snippet{{Name: "Text", Text: letter, Prose: true}}}}
}

// LinkToCopy returns a field to copy a user's link.
func LinkToCopy(l operator.ConsoleLink) ui.CopyField {
	return ui.CopyField{ID: "link", Label: ui.Sayf("Link, works once until %s", ui.UTC(l.ExpiresMS)), Value: l.Address}
}

// Host returns the host name of a base address, to name the service in sentences and in authenticator apps. It
// returns tollgate if the host has a colon, because a name in an authenticator app must not have one.
func Host(base string) string {
	if u, err := url.Parse(base); err == nil && u.Hostname() != "" && !strings.Contains(u.Hostname(), ":") {
		return u.Hostname()
	}
	return "tollgate"
}

// ContactLine returns the last line of a text to send, or an empty text if the shop has no contact.
func ContactLine(b page.Brand) ui.Words {
	if link := b.ContactLink(); link != nil {
		return ui.Sayf("Questions? %s", link.Text)
	}
	return ""
}

// ServiceName returns the name of the shop in texts to send. base is the base address of the console.
func ServiceName(b page.Brand, base string) string { return cmp.Or(b.Name, Host(base)) }

// LinkText explains a user's link to the console of a service. base is the base address of the console.
func LinkText(service, base string, l operator.ConsoleLink) ui.Words {
	use := ui.Words("With this link you set your password for the console of %s. It works once, until %s:")
	if l.Kind == account.Reset {
		use = "With this link you set a new password for the console of %s. It works once, until %s:"
	}
	signIn := ui.Sayf("Later you sign in at %s as %s.", base+page.Base, l.User.Email)
	if l.User.Role != "" { // the operators' pages may have their own address
		signIn = ui.Sayf("Later you sign in at the operator's pages, %s, as %s.", page.Base+"/operator", l.User.Email)
	}
	return ui.Paragraphs(ui.Lines([]ui.Words{ui.Sayf(use, service, ui.UTC(l.ExpiresMS)), ui.Data(l.Address)}), signIn)
}
