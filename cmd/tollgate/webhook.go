package main

import "net/http"

type webhookGet struct {
	Account string `arg:"" help:"Id of the account."`
}

// Run shows where an account receives its events, with the signing secret.
func (c *webhookGet) Run(p *process) error {
	return p.call(call{method: http.MethodGet, path: path("accounts", c.Account, "webhook")})
}

type webhookSet struct {
	Account string      `arg:"" help:"Id of the account."`
	URL     string      `help:"Address that receives events, or none to switch them off." required:"" placeholder:"URL"`
	Events  *words      `help:"Types of events that it receives, separated by commas." placeholder:"a,b"`
	Low     *jsonNumber `name:"balance-low-credits" help:"Credits below which balance.low is sent; left out: it is not." placeholder:"N"`
}

// Run sets all of an account's webhook but its secret.
func (c *webhookSet) Run(p *process) error {
	body := fields{"url": c.URL}
	if c.URL == none {
		body["url"] = nil
	}
	if c.Events != nil {
		body["events"] = c.Events.list
	}
	set(body, "balance_low_credits", c.Low)
	return p.call(call{method: http.MethodPut, path: path("accounts", c.Account, "webhook"), body: body})
}

type webhookRoll struct {
	Account string `arg:"" help:"Id of the account."`
}

// Run gives an account a new signing secret.
func (c *webhookRoll) Run(p *process) error {
	return p.call(call{method: http.MethodPost, path: path("accounts", c.Account, "webhook", "roll")})
}

type webhookTest struct {
	Account string `arg:"" help:"Id of the account."`
}

// Run sends a test event from this machine.
func (c *webhookTest) Run(p *process) error {
	return p.call(call{method: http.MethodPost, path: path("accounts", c.Account, "webhook", "test")})
}

type webhookDeliveries struct {
	Account string `arg:"" help:"Id of the account."`
	paging
}

// Run lists the deliveries of an account.
func (c *webhookDeliveries) Run(p *process) error {
	return p.call(call{method: http.MethodGet, path: path("accounts", c.Account, "deliveries"), query: c.query(), view: deliveriesView()})
}

type webhookResend struct {
	Delivery string `arg:"" help:"Id of the delivery."`
}

// Run sends a delivery again from this machine.
func (c *webhookResend) Run(p *process) error {
	return p.call(call{method: http.MethodPost, path: path("deliveries", c.Delivery, "resend"), view: deliveriesView()})
}
