package main

import (
	"errors"
	"net/http"
)

// keyFlags are the settings of a key, as create and change take them.
type keyFlags struct {
	Name          *string     `help:"Name of the key." placeholder:"TEXT"`
	RPM           *countLimit `name:"rpm" help:"Requests per minute, or none." placeholder:"N"`
	DailyBudget   *usdLimit   `name:"daily-budget-usd" help:"Budget of a UTC day, or none." placeholder:"USD"`
	TotalLimit    *usdLimit   `name:"total-limit-usd" help:"Limit of all that the key may ever spend, or none." placeholder:"USD"`
	AllowedModels *words      `help:"Models that the key may use, separated by commas; none: all." placeholder:"a,b"`
	AllowedIPs    *words      `name:"allowed-ips" help:"Addresses and CIDRs of its callers, separated by commas; none: all." placeholder:"a,b"`
}

// fields returns the flags that were given as JSON members; none is null.
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
	return body
}

type keyCreate struct {
	Account string `arg:"" help:"Id of the account."`
	keyFlags
	once
}

// Run makes a key.
func (c *keyCreate) Run(p *process) error {
	return p.call(call{method: http.MethodPost, path: path("accounts", c.Account, "keys"), body: c.fields(),
		once: c.IdempotencyKey, view: keysView()})
}

type keyList struct {
	Account string `arg:"" optional:"" help:"Id of the account."`
	Hint    string `help:"Instead of an account: the keys that show this." placeholder:"sk-ab12...wxyz"`
	paging
}

// Run lists the keys of an account, or those that show a hint.
func (c *keyList) Run(p *process) error {
	query := c.query()
	switch {
	case (c.Account == "") == (c.Hint == ""):
		return usageError{errors.New("name an account, or --hint: what its owner sees of a key")}
	case c.Hint != "":
		add(query, "hint", c.Hint)
		return p.call(call{method: http.MethodGet, path: "/keys", query: query, view: keysView()})
	}
	return p.call(call{method: http.MethodGet, path: path("accounts", c.Account, "keys"), query: query, view: keysView()})
}

type keyChange struct {
	Key string `arg:"" help:"Id of the key."`
	keyFlags
}

// Run changes a key.
func (c *keyChange) Run(p *process) error {
	return p.call(call{method: http.MethodPatch, path: path("keys", c.Key), body: c.fields(), view: keysView()})
}

type keyDisable struct {
	Key string `arg:"" help:"Id of the key."`
}

// Run stops a key.
func (c *keyDisable) Run(p *process) error {
	return p.call(call{method: http.MethodPatch, path: path("keys", c.Key), body: fields{"disabled": true}, view: keysView()})
}

type keyEnable struct {
	Key string `arg:"" help:"Id of the key."`
}

// Run lets a key work again.
func (c *keyEnable) Run(p *process) error {
	return p.call(call{method: http.MethodPatch, path: path("keys", c.Key), body: fields{"disabled": false}, view: keysView()})
}

type keyDelete struct {
	Key string `arg:"" help:"Id of the key."`
}

// Run deletes a key.
func (c *keyDelete) Run(p *process) error {
	return p.call(call{method: http.MethodDelete, path: path("keys", c.Key)})
}
