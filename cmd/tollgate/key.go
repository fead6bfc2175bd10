package main

import "net/http"

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
}

// Run makes a key.
func (c *keyCreate) Run(p *process) error {
	return p.call(http.MethodPost, path("accounts", c.Account, "keys"), nil, c.fields())
}

type keyList struct {
	Account string `arg:"" help:"Id of the account."`
	paging
}

// Run lists the keys of an account.
func (c *keyList) Run(p *process) error {
	return p.call(http.MethodGet, path("accounts", c.Account, "keys"), &c.paging, nil)
}

type keyChange struct {
	Key string `arg:"" help:"Id of the key."`
	keyFlags
}

// Run changes a key.
func (c *keyChange) Run(p *process) error {
	return p.call(http.MethodPatch, path("keys", c.Key), nil, c.fields())
}

type keyDisable struct {
	Key string `arg:"" help:"Id of the key."`
}

// Run stops a key.
func (c *keyDisable) Run(p *process) error {
	return p.call(http.MethodPatch, path("keys", c.Key), nil, fields{"disabled": true})
}

type keyEnable struct {
	Key string `arg:"" help:"Id of the key."`
}

// Run lets a key work again.
func (c *keyEnable) Run(p *process) error {
	return p.call(http.MethodPatch, path("keys", c.Key), nil, fields{"disabled": false})
}

type keyDelete struct {
	Key string `arg:"" help:"Id of the key."`
}

// Run deletes a key.
func (c *keyDelete) Run(p *process) error {
	return p.call(http.MethodDelete, path("keys", c.Key), nil, nil)
}
