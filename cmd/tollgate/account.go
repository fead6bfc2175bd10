package main

import "net/http"

type accountCreate struct {
	Name     string  `help:"Name of the account." required:"" placeholder:"TEXT"`
	Email    *string `help:"Contact address, and with a password the console sign-in." placeholder:"ADDRESS"`
	Password *string `help:"Password of the console sign-in; - reads a line from standard input." placeholder:"TEXT"`
	Floor    *usd    `name:"overdraft-floor-usd" help:"Lowest balance allowed, zero or negative." placeholder:"USD"`
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
	Floor   *usd    `name:"overdraft-floor-usd" help:"Lowest balance allowed, zero or negative." placeholder:"USD"`
	pricing
}

// Run changes an account.
func (c *accountChange) Run(p *process) error {
	body := fields{}
	set(body, "name", c.Name)
	set(body, "overdraft_floor_usd", c.Floor)
	c.put(body)
	return p.call(call{method: http.MethodPatch, path: path("accounts", c.Account), body: body, view: accountsView()})
}

type accountCredit struct {
	Account string `arg:"" help:"Id of the account."`
	USD     usd    `arg:"" name:"usd" help:"US dollars to add; negative takes back."`
	Note    string `help:"Why, for the account's entries." placeholder:"TEXT"`
	once
}

// Run credits an account.
func (c *accountCredit) Run(p *process) error {
	body := fields{"usd": &c.USD}
	if c.Note != "" {
		body["note"] = c.Note
	}
	return p.call(call{method: http.MethodPost, path: path("accounts", c.Account, "credits"), body: body, once: c.IdempotencyKey})
}

type accountEntries struct {
	Account string `arg:"" help:"Id of the account."`
	paging
}

// Run lists the money movements of an account.
func (c *accountEntries) Run(p *process) error {
	return p.call(call{method: http.MethodGet, path: path("accounts", c.Account, "entries"), query: c.query(), view: entriesView()})
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
