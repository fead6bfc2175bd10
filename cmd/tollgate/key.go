package main

import (
	"errors"
	"net/http"

	"github.com/alecthomas/kong"
)

// keyFlags has the flags of create and change.
type keyFlags struct {
	Name          *string     `help:"Name of the key." placeholder:"TEXT"`
	RPM           *countLimit `name:"rpm" help:"Requests per minute, or none." placeholder:"N"`
	DailyBudget   *usdLimit   `name:"daily-budget-usd" help:"Budget per UTC day, or none." placeholder:"USD"`
	TotalLimit    *usdLimit   `name:"total-limit-usd" help:"Most the key may spend in total, or none." placeholder:"USD"`
	AllowedModels *words      `help:"Models the key may use, separated by commas, or none for all." placeholder:"a,b"`
	AllowedIPs    *words      `name:"allowed-ips" help:"Addresses and CIDRs of callers, with commas, or none for all." placeholder:"a,b"`
	Wait          *bool       `name:"wait-for-pictures" negatable:"" help:"Let submissions of images wait for the result."`
}

// fields returns the flags of the command line as a JSON body. The word none becomes null.
func (f keyFlags) fields() fields {
	body := fields{}
	set(body, "name", f.Name)
	if f.RPM != nil {
		body["rpm"] = f.RPM.count
	}
	if f.DailyBudget != nil {
		body["daily_budget_usd"] = f.DailyBudget.amount
	}
	if f.TotalLimit != nil {
		body["total_limit_usd"] = f.TotalLimit.amount
	}
	if f.AllowedModels != nil {
		body["allowed_models"] = f.AllowedModels.list
	}
	if f.AllowedIPs != nil {
		body["allowed_ips"] = f.AllowedIPs.list
	}
	set(body, "wait_for_pictures", f.Wait)
	return body
}

type keyCreate struct {
	accountArg
	keyFlags
	idempotencyFlag
}

func (c *keyCreate) Run(p *process) error {
	return p.call(call{method: http.MethodPost, path: path("accounts", c.Account, "keys"), body: c.fields(),
		idempotencyKey: c.IdempotencyKey, view: keysView()})
}

type keyList struct {
	Account string `arg:"" optional:"" help:"ID of the account."`
	Hint    string `help:"Find keys by this hint instead of by account." placeholder:"sk-ab12...wxyz"`
	paging
}

func (c *keyList) Run(p *process) error {
	query := c.query()
	switch {
	case (c.Account == "") == (c.Hint == ""):
		return usageError{errors.New("name an account, or a key's hint with --hint, such as sk-ab12...wxyz")}
	case c.Hint != "":
		add(query, "hint", c.Hint)
		return p.call(call{method: http.MethodGet, path: "/keys", query: query, view: keysView()})
	}
	return p.call(call{method: http.MethodGet, path: path("accounts", c.Account, "keys"), query: query, view: keysView()})
}

type keyChange struct {
	keyArg
	keyFlags
}

func (c *keyChange) Run(p *process) error {
	return p.call(call{method: http.MethodPatch, path: path("keys", c.Key), body: c.fields(), view: keysView()})
}

// keySwitch disables or enables a key.
type keySwitch struct{ keyArg }

func (c *keySwitch) Run(p *process, parsed *kong.Context) error {
	return p.call(call{method: http.MethodPatch, path: path("keys", c.Key), body: disabledBody(parsed), view: keysView()})
}

type keyDelete struct{ keyArg }

func (c *keyDelete) Run(p *process) error {
	return p.call(call{method: http.MethodDelete, path: path("keys", c.Key)})
}
