package main

import "net/http"

// paging are the flags of every list.
type paging struct {
	Limit int    `help:"Most entries to list." default:"100"`
	After string `help:"List what follows this id." placeholder:"ID"`
}

type accountCreate struct {
	Name     string  `help:"Name of the account." required:"" placeholder:"TEXT"`
	Email    *string `help:"Contact address, and with a password the console sign-in." placeholder:"ADDRESS"`
	Password *string `help:"Password of the console sign-in." placeholder:"TEXT"`
	Floor    *usd    `name:"overdraft-floor-usd" help:"Lowest balance allowed, zero or negative." placeholder:"USD"`
}

// Run opens an account. Like apply it may be the first command of a set-up, so
// it creates a missing database.
func (c *accountCreate) Run(p *process) error {
	body := fields{"name": c.Name}
	set(body, "email", c.Email)
	set(body, "password", c.Password)
	set(body, "overdraft_floor_usd", c.Floor)
	return p.ask(true, http.MethodPost, "/accounts", nil, body)
}

type accountList struct{ paging }

// Run lists accounts.
func (c *accountList) Run(p *process) error {
	return p.call(http.MethodGet, "/accounts", &c.paging, nil)
}

type accountGet struct {
	Account string `arg:"" help:"Id of the account."`
}

// Run shows an account.
func (c *accountGet) Run(p *process) error {
	return p.call(http.MethodGet, path("accounts", c.Account), nil, nil)
}

type accountChange struct {
	Account string  `arg:"" help:"Id of the account."`
	Name    *string `help:"New name." placeholder:"TEXT"`
	Floor   *usd    `name:"overdraft-floor-usd" help:"Lowest balance allowed, zero or negative." placeholder:"USD"`
}

// Run changes an account.
func (c *accountChange) Run(p *process) error {
	body := fields{}
	set(body, "name", c.Name)
	set(body, "overdraft_floor_usd", c.Floor)
	return p.call(http.MethodPatch, path("accounts", c.Account), nil, body)
}

type accountCredit struct {
	Account string `arg:"" help:"Id of the account."`
	USD     usd    `arg:"" name:"usd" help:"US dollars to add; negative takes back."`
	Note    string `help:"Why, for the account's entries." placeholder:"TEXT"`
}

// Run credits an account.
func (c *accountCredit) Run(p *process) error {
	body := fields{"usd": &c.USD}
	if c.Note != "" {
		body["note"] = c.Note
	}
	return p.call(http.MethodPost, path("accounts", c.Account, "credits"), nil, body)
}

type accountEntries struct {
	Account string `arg:"" help:"Id of the account."`
	paging
}

// Run lists the money movements of an account.
func (c *accountEntries) Run(p *process) error {
	return p.call(http.MethodGet, path("accounts", c.Account, "entries"), &c.paging, nil)
}

type accountDisable struct {
	Account string `arg:"" help:"Id of the account."`
}

// Run stops all keys of an account.
func (c *accountDisable) Run(p *process) error {
	return p.call(http.MethodPatch, path("accounts", c.Account), nil, fields{"disabled": true})
}

type accountEnable struct {
	Account string `arg:"" help:"Id of the account."`
}

// Run lets an account's keys work again.
func (c *accountEnable) Run(p *process) error {
	return p.call(http.MethodPatch, path("accounts", c.Account), nil, fields{"disabled": false})
}
