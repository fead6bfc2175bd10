package main

import "net/http"

type codesCreate struct {
	USD     usd     `arg:"" name:"usd" help:"Value of each code in US dollars."`
	Count   int64   `help:"Number of codes." default:"1" placeholder:"N"`
	Expires *moment `help:"Expiry: a UTC day, an RFC 3339 time, or a duration from now, such as 720h." placeholder:"TIME"`
	idempotencyFlag
}

func (c *codesCreate) Run(p *process) error {
	body := fields{"usd": &c.USD, "count": c.Count}
	if c.Expires != nil {
		body["expires"] = c.Expires.resolve(p.now()).Unix()
	}
	return p.call(call{method: http.MethodPost, path: "/codes", body: body, idempotencyKey: c.IdempotencyKey, view: codesView()})
}

type codesList struct{ paging }

func (c *codesList) Run(p *process) error {
	return p.call(call{method: http.MethodGet, path: "/codes", query: c.query(), view: codesView()})
}

type codesVoid struct {
	Code string `arg:"" help:"ID of the code."`
}

func (c *codesVoid) Run(p *process) error {
	return p.call(call{method: http.MethodDelete, path: path("codes", c.Code)})
}
