package main

import "net/http"

type secretList struct{}

func (c *secretList) Run(p *process) error {
	return p.call(call{method: http.MethodGet, path: "/secrets", view: secretsView()})
}

type secretArg struct {
	Secret string `arg:"" help:"Name of the secret."`
}

type secretSet struct{ secretArg }

func (c *secretSet) Run(p *process) error {
	value, err := p.password("-")
	if err != nil {
		return err
	}
	return p.call(call{method: http.MethodPut, path: path("secrets", c.Secret), body: fields{"value": value}, view: secretsView()})
}

type secretDelete struct{ secretArg }

func (c *secretDelete) Run(p *process) error {
	return p.call(call{method: http.MethodDelete, path: path("secrets", c.Secret), view: secretsView()})
}

type secretRotate struct{}

func (c *secretRotate) Run(p *process) error {
	return p.call(call{method: http.MethodPost, path: "/secrets/rotate", view: secretsView()})
}
