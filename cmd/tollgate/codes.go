package main

import "net/http"

type codesCreate struct {
	USD     usd     `arg:"" name:"usd" help:"What each code is worth, in US dollars."`
	Count   int64   `help:"How many to make." default:"1" placeholder:"N"`
	Expires *moment `help:"When they run out: a UTC day, an RFC 3339 time, or how long they are good for, such as 720h." placeholder:"TIME"`
	once
}

// Run makes codes; their texts are shown this once.
func (c *codesCreate) Run(p *process) error {
	body := fields{"usd": &c.USD, "count": c.Count}
	if c.Expires != nil {
		body["expires"] = c.Expires.ahead(p.now()).Unix()
	}
	return p.call(call{method: http.MethodPost, path: "/codes", body: body, once: c.IdempotencyKey, view: codesView()})
}

type codesList struct{ paging }

// Run lists codes, newest first.
func (c *codesList) Run(p *process) error {
	return p.call(call{method: http.MethodGet, path: "/codes", query: c.query(), view: codesView()})
}

type codesVoid struct {
	Code string `arg:"" help:"Id of the code."`
}

// Run makes a code worth nothing.
func (c *codesVoid) Run(p *process) error {
	return p.call(call{method: http.MethodDelete, path: path("codes", c.Code)})
}
