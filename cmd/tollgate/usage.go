package main

import (
	"net/http"
	"net/url"
	"strings"
)

type usageCommand struct {
	format
	GroupBy  words   `help:"A row for each: day, account, key, model, line, endpoint, several with commas." placeholder:"a,b"`
	Since    *moment `help:"From this UTC day on, or a time of it, or how long ago; by default 30 days." placeholder:"TIME"`
	Until    *moment `help:"Up to the end of this UTC day; by default today." placeholder:"TIME"`
	Account  string  `help:"Of this account." placeholder:"ID"`
	Key      string  `help:"Of this key." placeholder:"ID"`
	Model    string  `help:"For this model." placeholder:"ID"`
	Line     string  `help:"Asked of this line last." placeholder:"ID"`
	Endpoint string  `help:"At this endpoint." placeholder:"PATH"`
}

// Run shows what requests came to.
func (c *usageCommand) Run(p *process) error {
	query := url.Values{}
	for name, value := range map[string]string{
		"group_by": strings.Join(c.GroupBy.list, ","), "since": c.Since.ago(p.now()), "until": c.Until.ago(p.now()), "account": c.Account,
		"key": c.Key, "model": c.Model, "line": c.Line, "endpoint": c.Endpoint,
	} {
		add(query, name, value)
	}
	if c.CSV { // which the report knows best: it has its columns without a row, too
		query.Set("format", "csv")
	}
	return p.call(call{method: http.MethodGet, path: "/usage", query: query, view: usageView(), asIs: c.CSV})
}
