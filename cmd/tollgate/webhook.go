package main

import "net/http"

type webhookGet struct{ accountArg }

func (c *webhookGet) Run(p *process) error {
	return p.call(call{method: http.MethodGet, path: path("accounts", c.Account, "webhook")})
}

type webhookSet struct {
	accountArg
	URL    string      `help:"Address for events, or none to switch them off." required:"" placeholder:"URL"`
	Events *words      `help:"Event types to send, separated by commas." placeholder:"a,b"`
	Low    *jsonNumber `name:"balance-low-credits" help:"Send balance.low when fewer credits are left." placeholder:"N"`
}

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

type webhookRoll struct{ accountArg }

func (c *webhookRoll) Run(p *process) error {
	return p.call(call{method: http.MethodPost, path: path("accounts", c.Account, "webhook", "roll")})
}

type webhookTest struct{ accountArg }

func (c *webhookTest) Run(p *process) error {
	return p.call(call{method: http.MethodPost, path: path("accounts", c.Account, "webhook", "test")})
}

type webhookDeliveries struct {
	accountArg
	paging
}

func (c *webhookDeliveries) Run(p *process) error {
	return p.call(call{method: http.MethodGet, path: path("accounts", c.Account, "deliveries"), query: c.query(), view: deliveriesView()})
}

type webhookResend struct {
	Delivery string `arg:"" help:"ID of the delivery."`
}

func (c *webhookResend) Run(p *process) error {
	return p.call(call{method: http.MethodPost, path: path("deliveries", c.Delivery, "resend"), view: deliveriesView()})
}
