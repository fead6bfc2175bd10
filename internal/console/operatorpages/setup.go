package operatorpages

import (
	"net/url"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/ui"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/movement"
	"tollgate/internal/store"
)

// setup has the completed steps to the first paying customer. The sandbox and the demo account do not count.
type setup struct {
	done       bool // all steps are complete, or there are more than firstAccounts accounts
	hasLine    bool
	account    string // the first customer's id, or empty
	hasCredit  bool
	hasKey     bool
	hasRequest bool
}

// firstAccounts is the maximum number of accounts of a new shop. With more accounts, the steps are not shown.
const firstAccounts = 5

// setupTx returns the completed steps. It does not read the database after the last step.
func (c *console) setupTx(tx *store.Tx) (s setup, err error) {
	if c.setupDone.Load() {
		return setup{done: true}, nil
	}
	if s, err = c.readSetupTx(tx); err == nil {
		c.setupDone.Store(s.isComplete())
	}
	return s, err
}

func (c *console) readSetupTx(tx *store.Tx) (s setup, err error) {
	for _, l := range c.Catalog.Current().AllLines() {
		s.hasLine = s.hasLine || !l.IsSandbox()
	}
	list, more, err := account.ListTx(tx, "", firstAccounts)
	if err != nil || more {
		s.done = more
		return s, err
	}
	for _, a := range list {
		if a.Email == account.DemoEmail {
			continue
		}
		keys, _, err := account.ListKeysTx(tx, a.ID, "", 1)
		if err != nil {
			return s, err
		}
		credits, _, err := movement.ListTx(tx, movement.Selection{Account: a.ID, Kind: movement.Credits, Limit: 1})
		if err != nil {
			return s, err
		}
		usage, err := ledger.UsageTx(tx, a.ID)
		if err != nil {
			return s, err
		}
		s.account = a.ID
		s.hasCredit, s.hasKey, s.hasRequest = s.hasCredit || len(credits) > 0, s.hasKey || len(keys) > 0, s.hasRequest || usage.Total.Requests > 0
	}
	return s, nil
}

// isComplete reports whether the shop has a paying customer.
func (s setup) isComplete() bool {
	return s.done || s.hasLine && s.hasCredit && s.hasKey && s.hasRequest
}

// steps returns the steps to the first paying customer, or nil if all are complete.
func (c *console) steps(s setup) ui.FirstSteps {
	if s.isComplete() {
		return nil
	}
	create := ui.Words("An account for your first customer. You get one text to send, with a key and a sign-in link.")
	if c.SignUps.Rules.On() {
		create = ui.Sayf("An account for your first customer. Customers sign up at %s, or you create one and get a text to send.",
			c.PublicURL+page.Base+"/sign-up")
	}
	credit := ui.Words("A credit on the account, with the number of your invoice as its note.")
	if c.Topups != nil {
		credit = "A credit on the account: a payment of the customer, or yours, with the number of your invoice as its note."
	}
	link := func(address string, text ui.Words) *ui.Link {
		return &ui.Link{Href: page.Base + address, Text: text, Button: true}
	}
	steps := ui.FirstSteps{
		{Done: s.hasLine, Text: "A provider with your key, its models and your margin. The sandbox only makes up answers.",
			Link: link(providersPath+"/new", "Add a provider")},
		{Done: s.account != "", Text: create, Link: link("/operator/accounts/new", "Create an account")},
		{Done: s.hasCredit, Text: credit},
		{Done: s.hasKey, Text: "A key: the customer's secret, shown once."},
		{Done: s.hasRequest, Text: "Your customer's first request. It appears in the request log within a second.",
			Link: link("/operator/requests", "Requests")},
	}
	if s.account != "" {
		path := "/operator/accounts/" + url.PathEscape(s.account)
		steps[2].Link, steps[3].Link = link(path, "Credit it"), link(path+"?view=keys", "Create a key")
	}
	for i := range steps {
		if steps[i].Done {
			steps[i].Link = nil
		} else if steps[i].Link != nil {
			steps[i].Link.Main = true // the next step
			break
		}
	}
	return steps
}

// missingSettings names the settings without which customers cannot sign up and pay by themselves.
type missingSettings struct {
	Hints  []ui.Words
	Sample ui.Snippets // of the settings file
}

// missing returns the missing settings of a new shop. It returns nil if no setting is missing. It also returns
// nil if the first steps are complete or a customer has credit, because such a shop works without the settings.
func (c *console) missing(s setup) *missingSettings {
	if s.hasCredit || s.isComplete() {
		return nil
	}
	var m missingSettings
	var lines []string
	add := func(isMissing bool, hint ui.Words, settings ...string) {
		if isMissing {
			m.Hints, lines = append(m.Hints, hint), append(lines, settings...)
		}
	}
	add(!c.Mails.On(), "No mail can be sent: set smtp_server and mail_from.", "smtp_server: smtp.example.com:587", "smtp_user: ai@example.com",
		"smtp_password_file: smtp-password", "mail_from: ai@example.com")
	add(!c.SignUps.Rules.On(), "Customers cannot sign up: set sign_up to open. This needs mail, because addresses are verified.",
		"sign_up: open")
	add(c.Topups == nil, ui.Sayf("Customers cannot pay yet: set stripe_key_file and stripe_webhook_secret_file, or epay_url, epay_pid and "+
		"epay_key_file. The webhook of Stripe is %s.", c.PublicURL+"/payments/stripe/webhook"), "stripe_key_file: stripe-key",
		"stripe_webhook_secret_file: stripe-secret")
	if len(lines) == 0 {
		return nil
	}
	if c.NoPublicURL {
		lines = append([]string{"public_url: https://ai.example.com"}, lines...)
	}
	m.Sample = ui.Snippets{ID: "settings", Tabs: []ui.Snippet{{Name: ui.Data("tollgate.yaml"), Text: ui.Data(strings.Join(lines, "\n"))}}}
	return &m
}
