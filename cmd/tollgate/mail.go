package main

import "net/http"

type mailTest struct {
	To string `arg:"" name:"address" help:"Address that gets the mail."`
}

func (c *mailTest) Run(p *process) error {
	return p.call(call{method: http.MethodPost, path: "/mails/test", body: fields{"to": c.To}, view: mailsView()})
}

type mailList struct {
	State   string `help:"Only mails in this state: waiting, failed, sent or given_up." placeholder:"STATE"`
	Account string `help:"Only mails to users of this account." placeholder:"ACCOUNT"`
	paging
}

func (c *mailList) Run(p *process) error {
	query := c.query()
	add(query, "state", c.State)
	add(query, "account", c.Account)
	return p.call(call{method: http.MethodGet, path: "/mails", query: query, view: mailsView()})
}

type mailResend struct {
	Mail string `arg:"" help:"ID of the mail."`
}

func (c *mailResend) Run(p *process) error {
	return p.call(call{method: http.MethodPost, path: path("mails", c.Mail, "resend"), view: mailsView()})
}
