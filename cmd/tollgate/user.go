package main

import (
	"net/http"
)

// userFlags are what may be said of a user.
type userFlags struct {
	Email    *string `help:"What the user signs in with." placeholder:"ADDRESS"`
	Password *string `help:"The password; - asks for it, or reads a line from standard input." placeholder:"TEXT"`
	Operator *bool   `help:"Whether the user sees the operator's part of the console." negatable:""`
}

// fields returns the flags that were given as JSON members.
func (f userFlags) fields(p *process) (fields, error) {
	body := fields{}
	set(body, "email", f.Email)
	set(body, "operator", f.Operator)
	if f.Password == nil {
		return body, nil
	}
	password, err := p.password(*f.Password)
	body["password"] = password
	return body, err
}

type userList struct {
	Account string `arg:"" help:"Id of the account."`
	paging
}

// Run lists the users of an account.
func (c *userList) Run(p *process) error {
	return p.call(call{method: http.MethodGet, path: path("accounts", c.Account, "users"), query: c.query(), view: usersView()})
}

type userCreate struct {
	Account string `arg:"" help:"Id of the account."`
	userFlags
}

// Run adds a user to an account; without a password it prints the link that sets one.
func (c *userCreate) Run(p *process) error {
	body, err := c.fields(p)
	if err != nil {
		return err
	}
	return p.call(call{method: http.MethodPost, path: path("accounts", c.Account, "users"), body: body, view: usersView()})
}

type userGet struct {
	User string `arg:"" help:"Id of the user."`
}

// Run shows a user.
func (c *userGet) Run(p *process) error {
	return p.call(call{method: http.MethodGet, path: path("users", c.User), view: usersView()})
}

type userChange struct {
	User string `arg:"" help:"Id of the user."`
	userFlags
	NoSecondFactor bool `name:"no-second-factor" help:"Turn the second factor off, for a user who has lost it."`
}

// Run changes a user.
func (c *userChange) Run(p *process) error {
	body, err := c.fields(p)
	if err != nil {
		return err
	}
	if c.NoSecondFactor {
		body["second_factor"] = false
	}
	return p.call(call{method: http.MethodPatch, path: path("users", c.User), body: body, view: usersView()})
}

type userLink struct {
	User string `arg:"" help:"Id of the user."`
}

// Run prints a link with which a user sets a password.
func (c *userLink) Run(p *process) error {
	return p.call(call{method: http.MethodPost, path: path("users", c.User, "link")})
}

type userDisable struct {
	User string `arg:"" help:"Id of the user."`
}

// Run keeps a user out and ends its sessions.
func (c *userDisable) Run(p *process) error {
	return p.call(call{method: http.MethodPatch, path: path("users", c.User), body: fields{"disabled": true}, view: usersView()})
}

type userEnable struct {
	User string `arg:"" help:"Id of the user."`
}

// Run lets a user sign in again.
func (c *userEnable) Run(p *process) error {
	return p.call(call{method: http.MethodPatch, path: path("users", c.User), body: fields{"disabled": false}, view: usersView()})
}

type userDelete struct {
	User string `arg:"" help:"Id of the user."`
}

// Run deletes a user.
func (c *userDelete) Run(p *process) error {
	return p.call(call{method: http.MethodDelete, path: path("users", c.User)})
}
