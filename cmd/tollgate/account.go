package main

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
)

type accountCreate struct {
	Name     string  `help:"Name of the account." required:"" placeholder:"TEXT"`
	Email    *string `help:"Contact address, and with a password the console sign-in." placeholder:"ADDRESS"`
	Password *string `help:"Password of the console sign-in; - reads a line from standard input." placeholder:"TEXT"`
	Floor    *usd    `name:"overdraft-floor-usd" help:"Lowest balance allowed, zero or negative." placeholder:"USD"`
	Test     bool    `help:"Mark it as a test account, which may use the sandbox models beside real lines."`
	pricing
}

// pricing are the flags of what an account pays.
type pricing struct {
	Factor *jsonNumber `name:"price-factor" help:"What the account pays times the catalog's prices, such as 0.9." placeholder:"FACTOR"`
	Prices *factors    `help:"Factors of single models in its place, MODEL=FACTOR,…; none removes all." placeholder:"LIST"`
}

// put sets what was given.
func (c *pricing) put(body fields) {
	set(body, "price_factor", c.Factor)
	set(body, "prices", c.Prices)
}

// Run opens an account. Like apply it may be the first command of a set-up, so
// it creates a missing database.
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
	c.put(body)
	return p.call(call{method: http.MethodPost, path: "/accounts", body: body, view: accountsView()})
}

type accountList struct {
	Q string `help:"Only those whose name, contact address or user's email holds this, or whose id it is." placeholder:"TEXT"`
	paging
}

// Run lists accounts.
func (c *accountList) Run(p *process) error {
	query := c.query()
	add(query, "q", c.Q)
	return p.call(call{method: http.MethodGet, path: "/accounts", query: query, view: accountsView()})
}

type accountGet struct {
	Account string `arg:"" help:"Id of the account."`
}

// Run shows an account.
func (c *accountGet) Run(p *process) error {
	return p.call(call{method: http.MethodGet, path: path("accounts", c.Account), view: accountsView()})
}

type accountChange struct {
	Account string  `arg:"" help:"Id of the account."`
	Name    *string `help:"New name." placeholder:"TEXT"`
	Email   *string `help:"New contact address; '' for none. Users sign in as before." placeholder:"ADDRESS"`
	Floor   *usd    `name:"overdraft-floor-usd" help:"Lowest balance allowed, zero or negative." placeholder:"USD"`
	Test    *bool   `help:"Mark it as a test account, which may use the sandbox models beside real lines." negatable:""`
	pricing
}

// Run changes an account.
func (c *accountChange) Run(p *process) error {
	body := fields{}
	set(body, "name", c.Name)
	set(body, "email", c.Email)
	set(body, "overdraft_floor_usd", c.Floor)
	set(body, "test", c.Test)
	c.put(body)
	return p.call(call{method: http.MethodPatch, path: path("accounts", c.Account), body: body, view: accountsView()})
}

type accountCredit struct {
	Account string `arg:"" help:"Id of the account."`
	USD     usd    `arg:"" name:"usd" help:"US dollars to add; negative takes back."`
	Note    string `help:"Why, for the account's entries." placeholder:"TEXT"`
	Yes     bool   `help:"Do not ask before a credit above 1000 USD."`
	once
}

// largeCredit is the credit, in US dollars, above which a person at a terminal is
// asked.
const largeCredit = 1000

// Run credits an account.
func (c *accountCredit) Run(p *process) error {
	if amount, err := c.USD.amount.Float64(); (err != nil || math.Abs(amount) > largeCredit) && !c.Yes && p.canAsk() {
		if !p.ask(fmt.Sprintf("Credit %s USD to account %s?", c.USD.amount, c.Account)) {
			return errors.New("nothing was credited")
		}
	}
	body := fields{"usd": &c.USD}
	if c.Note != "" {
		body["note"] = c.Note
	}
	return p.call(call{method: http.MethodPost, path: path("accounts", c.Account, "credits"), body: body, once: c.IdempotencyKey})
}

type accountEntries struct {
	Account string  `arg:"" help:"Id of the account."`
	Kind    string  `help:"Those of this kind: credit, with what was taken back, or charge." placeholder:"KIND"`
	Since   *moment `help:"From this UTC day or time on, or how long ago." placeholder:"TIME"`
	Until   *moment `help:"Up to the end of this UTC day, or before a time." placeholder:"TIME"`
	Limit   int     `help:"Most entries to list; 100 if not given, and all with --csv." placeholder:"N"`
	After   string  `help:"List what follows this id." placeholder:"ID"`
}

// Run lists the money movements of an account; as CSV all of them.
func (c *accountEntries) Run(p *process) error {
	query := url.Values{}
	for name, value := range map[string]string{
		"kind": c.Kind, "since": c.Since.ago(p.now()), "until": c.Until.ago(p.now()), "after": c.After,
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
	return p.call(call{method: http.MethodGet, path: path("accounts", c.Account, "entries"), query: query, view: entriesView(), asIs: all})
}

type accountDisable struct {
	Account string `arg:"" help:"Id of the account."`
}

// Run stops all keys of an account.
func (c *accountDisable) Run(p *process) error {
	return p.call(call{method: http.MethodPatch, path: path("accounts", c.Account), body: fields{"disabled": true}, view: accountsView()})
}

type accountEnable struct {
	Account string `arg:"" help:"Id of the account."`
}

// Run lets an account's keys work again.
func (c *accountEnable) Run(p *process) error {
	return p.call(call{method: http.MethodPatch, path: path("accounts", c.Account), body: fields{"disabled": false}, view: accountsView()})
}
