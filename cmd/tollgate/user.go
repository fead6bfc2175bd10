package main

import (
	"net/http"

	"github.com/alecthomas/kong"
)

// userFlags has the flags of create and change.
type userFlags struct {
	Email    *string `help:"Email address for signing in." placeholder:"ADDRESS"`
	Password *string `help:"Password; - asks for it, or reads a line from standard input." placeholder:"TEXT"`
	Operator *bool   `help:"Make the user an owner, with access to the operator's part of the console." negatable:"" xor:"role"`
	Role     *string `help:"Role in the operator's part of the console: owner, operator, support, or none." placeholder:"ROLE" xor:"role"`
}

func (f userFlags) fields(p *process) (fields, error) {
	body := fields{}
	set(body, "email", f.Email)
	set(body, "operator", f.Operator)
	set(body, "role", f.Role)
	if f.Role != nil && *f.Role == "none" {
		body["role"] = nil
	}
	if f.Password == nil {
		return body, nil
	}
	password, err := p.password(*f.Password)
	body["password"] = password
	return body, err
}

type userList struct {
	accountArg
	paging
}

func (c *userList) Run(p *process) error {
	return p.call(call{method: http.MethodGet, path: path("accounts", c.Account, "users"), query: c.query(), view: usersView()})
}

type userCreate struct {
	accountArg
	userFlags
}

func (c *userCreate) Run(p *process) error {
	body, err := c.fields(p)
	if err != nil {
		return err
	}
	return p.call(call{method: http.MethodPost, path: path("accounts", c.Account, "users"), body: body, view: usersView()})
}

type userGet struct{ userArg }

func (c *userGet) Run(p *process) error {
	return p.call(call{method: http.MethodGet, path: path("users", c.User), view: usersView()})
}

type userChange struct {
	userArg
	userFlags
	NoSecondFactor bool `name:"no-second-factor" help:"Turn off the second factor of a user who has lost it."`
}

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

type userLink struct{ userArg }

func (c *userLink) Run(p *process) error {
	return p.call(call{method: http.MethodPost, path: path("users", c.User, "link")})
}

// userSwitch disables or enables a user.
type userSwitch struct{ userArg }

func (c *userSwitch) Run(p *process, parsed *kong.Context) error {
	return p.call(call{method: http.MethodPatch, path: path("users", c.User), body: disabledBody(parsed), view: usersView()})
}

type userDelete struct{ userArg }

func (c *userDelete) Run(p *process) error {
	return p.call(call{method: http.MethodDelete, path: path("users", c.User)})
}
