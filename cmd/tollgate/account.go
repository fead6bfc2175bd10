package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/alecthomas/kong"

	"tollgate/internal/money"
)

type accountCreate struct {
	Name     string  `help:"Name of the account." required:"" placeholder:"TEXT"`
	Email    *string `help:"Contact address; with a password, also the name for signing in to the console." placeholder:"ADDRESS"`
	Password *string `help:"Password for the console; - asks for it, or reads a line from standard input." placeholder:"TEXT"`
	Floor    *usd    `name:"overdraft-floor-usd" help:"Lowest balance allowed, zero or negative." placeholder:"USD"`
	Test     bool    `help:"Make it a test account, which may use sandbox models."`
	pricing
}

// pricing has the flags for the prices of an account.
type pricing struct {
	Factor *jsonNumber `name:"price-factor" help:"Multiplies the catalog's prices for this account, such as 0.9." placeholder:"FACTOR"`
	Prices *factors    `help:"Price factors of single models, as MODEL=FACTOR,…; the word none removes all." placeholder:"LIST"`
}

func (c *pricing) addTo(body fields) {
	set(body, "price_factor", c.Factor)
	set(body, "prices", c.Prices)
}

func (c *accountCreate) Run(p *process) error {
	body := fields{"name": c.Name}
	set(body, "email", c.Email)
	if c.Password != nil {
		password, err := p.password(*c.Password)
		if err != nil {
			return err
		}
		body["password"] = password
	}
	set(body, "overdraft_floor_usd", c.Floor)
	if c.Test {
		body["test"] = true
	}
	c.addTo(body)
	return p.call(call{method: http.MethodPost, path: "/accounts", body: body, view: accountsView()})
}

type accountList struct {
	Q string `help:"Only accounts with this text in the name, contact address or a user's email, or with this ID." placeholder:"TEXT"`
	paging
}

func (c *accountList) Run(p *process) error {
	query := c.query()
	add(query, "q", c.Q)
	return p.call(call{method: http.MethodGet, path: "/accounts", query: query, view: accountsView()})
}

type accountGet struct{ accountArg }

func (c *accountGet) Run(p *process) error {
	return p.call(call{method: http.MethodGet, path: path("accounts", c.Account), view: accountsView()})
}

type accountChange struct {
	accountArg
	Name  *string `help:"New name." placeholder:"TEXT"`
	Email *string `help:"New contact address, or \"\" for none. Sign-ins do not change." placeholder:"ADDRESS"`
	Floor *usd    `name:"overdraft-floor-usd" help:"Lowest balance allowed, zero or negative." placeholder:"USD"`
	Test  *bool   `help:"Make it a test account, which may use sandbox models." negatable:""`
	pricing
}

func (c *accountChange) Run(p *process) error {
	body := fields{}
	set(body, "name", c.Name)
	set(body, "email", c.Email)
	set(body, "overdraft_floor_usd", c.Floor)
	set(body, "test", c.Test)
	c.addTo(body)
	return p.call(call{method: http.MethodPatch, path: path("accounts", c.Account), body: body, view: accountsView()})
}

type accountCredit struct {
	accountArg
	USD  usd    `arg:"" name:"usd" help:"US dollars to add; a negative amount is subtracted."`
	Note string `help:"Reason, shown in the account's entries." placeholder:"TEXT"`
	Ref  string `name:"reference" help:"The payment's ID. A repetition, even years later, moves nothing." placeholder:"TEXT"`
	Yes  bool   `help:"Do not ask for confirmation above 1000 USD."`
	idempotencyFlag
}

// largeCredit is the largest credit without a confirmation on a terminal.
const largeCredit = 1000 * money.USD

func (c *accountCredit) Run(p *process) error {
	amount := c.USD.amount
	if max(amount, -amount) > largeCredit && !c.Yes && p.canAsk() && !p.ask(fmt.Sprintf("Credit %s USD to account %s?", amount, c.Account)) {
		return errors.New("not confirmed, so nothing was credited")
	}
	body := fields{"usd": &c.USD}
	if c.Note != "" {
		body["note"] = c.Note
	}
	if c.Ref != "" {
		body["reference"] = c.Ref
	}
	return p.call(call{method: http.MethodPost, path: path("accounts", c.Account, "credits"), body: body, idempotencyKey: c.IdempotencyKey})
}

type accountEntries struct {
	accountArg
	Kind  string  `help:"Only entries of this kind: credit (also negative ones) or charge." placeholder:"KIND"`
	Since *moment `help:"From this UTC day or time, or this long ago, such as 24h." placeholder:"TIME"`
	Until *moment `help:"Until the end of this UTC day, or before this time." placeholder:"TIME"`
	Limit int     `help:"Number of entries. The default is 100, or all entries with --csv." placeholder:"N"`
	After string  `help:"Continue after this ID." placeholder:"ID"`
}

func (c *accountEntries) Run(p *process) error {
	query := url.Values{}
	for name, value := range map[string]string{
		"kind": c.Kind, "since": c.Since.param(p.now()), "until": c.Until.param(p.now()), "after": c.After,
	} {
		add(query, name, value)
	}
	all := p.format.CSV && c.Limit == 0
	switch {
	case all:
		query.Set("format", "csv")
	case c.Limit == 0:
		query.Set("limit", "100")
	default:
		query.Set("limit", strconv.Itoa(c.Limit))
	}
	return p.call(call{method: http.MethodGet, path: path("accounts", c.Account, "entries"), query: query, view: entriesView(), raw: all})
}

// accountSwitch disables or enables an account.
type accountSwitch struct{ accountArg }

func (c *accountSwitch) Run(p *process, parsed *kong.Context) error {
	return p.call(call{method: http.MethodPatch, path: path("accounts", c.Account), body: disabledBody(parsed), view: accountsView()})
}
