package operatorpages

import (
	"net/url"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/ui"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/movement"
	"tollgate/internal/store"
)

// setup records the completed steps to the first paying customer. The sandbox and the demo account
// of a first start do not count.
type setup struct {
	done       bool // the first steps are complete, or there are more than firstAccounts accounts
	hasLine    bool
	account    string // the first customer's id, or empty
	hasCredit  bool
	hasKey     bool
	hasRequest bool
}

// firstAccounts is the number of accounts up to which the steps are shown.
const firstAccounts = 5

// setupTx returns the completed steps. After the last step, it no longer reads the database.
func (c *console) setupTx(tx *store.Tx) (b setup, err error) {
	if c.setupDone.Load() {
		return setup{done: true}, nil
	}
	if b, err = c.readSetupTx(tx); err == nil {
		c.setupDone.Store(len(b.steps()) == 0)
	}
	return b, err
}

func (c *console) readSetupTx(tx *store.Tx) (b setup, err error) {
	for _, l := range c.Catalog.Current().AllLines() {
		b.hasLine = b.hasLine || !l.IsSandbox()
	}
	list, more, err := account.ListTx(tx, "", firstAccounts)
	if err != nil || more {
		b.done = more
		return b, err
	}
	for _, a := range list {
		if a.Email == account.DemoEmail {
			continue
		}
		keys, _, err := account.ListKeysTx(tx, a.ID, "", 1)
		if err != nil {
			return b, err
		}
		credits, _, err := movement.ListTx(tx, movement.Selection{Account: a.ID, Kind: movement.Credits, Limit: 1})
		if err != nil {
			return b, err
		}
		usage, err := ledger.UsageTx(tx, a.ID)
		if err != nil {
			return b, err
		}
		b.account = a.ID
		b.hasCredit, b.hasKey, b.hasRequest = b.hasCredit || len(credits) > 0, b.hasKey || len(keys) > 0, b.hasRequest || usage.Total.Requests > 0
	}
	return b, nil
}

// steps returns the steps to the first paying customer, or nil if all are complete.
func (b setup) steps() ui.FirstSteps {
	if b.done || b.hasLine && b.hasCredit && b.hasKey && b.hasRequest {
		return nil
	}
	link := func(address, text string) *ui.Link {
		return &ui.Link{Href: page.Base + address, Text: ui.Data(text), Button: true}
	}
	steps := ui.FirstSteps{
		{Done: b.hasLine, Text: "A provider with your key, its models and your margin. The sandbox only makes up answers.",
			Link: link(providersPath+"/new", "Add a provider")},
		{Done: b.account != "", Text: "An account for your first customer. You get one text to send, with a key and a sign-in link.",
			Link: link("/operator/accounts/new", "Create an account")},
		{Done: b.hasCredit, Text: "A credit on the account, with the number of your invoice as its note."},
		{Done: b.hasKey, Text: "A key: the customer's secret, shown once."},
		{Done: b.hasRequest, Text: "Your customer's first request. It appears in the request log within a second.",
			Link: link("/operator/requests", "Requests")},
	}
	if b.account != "" {
		path := "/operator/accounts/" + url.PathEscape(b.account)
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
