package main

import (
	"net/http"
	"net/url"
	"strings"
)

type usageCommand struct {
	format
	GroupBy  words   `help:"One row per day, account, key, model, line or endpoint; several are separated by commas." placeholder:"a,b"`
	Since    *moment `help:"From this UTC day, RFC 3339 time, or duration before now; by default 30 days." placeholder:"TIME"`
	Until    *moment `help:"Until the end of this UTC day; by default today." placeholder:"TIME"`
	Account  string  `help:"Only requests of this account." placeholder:"ID"`
	Key      string  `help:"Only requests of this key." placeholder:"ID"`
	Model    string  `help:"Only requests for this model." placeholder:"ID"`
	Line     string  `help:"Only requests with the last attempt on this line." placeholder:"ID"`
	Endpoint string  `help:"Only requests at this endpoint." placeholder:"PATH"`
}

func (c *usageCommand) Run(p *process) error {
	query := url.Values{}
	for name, value := range map[string]string{
		"group_by": strings.Join(c.GroupBy.list, ","), "since": c.Since.param(p.now()), "until": c.Until.param(p.now()), "account": c.Account,
		"key": c.Key, "model": c.Model, "line": c.Line, "endpoint": c.Endpoint,
	} {
		add(query, name, value)
	}
	if c.CSV { // the API's CSV has a header even without rows
		query.Set("format", "csv")
	}
	return p.call(call{method: http.MethodGet, path: "/usage", query: query, view: usageView(), raw: c.CSV})
}
