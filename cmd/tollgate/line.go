package main

import (
	"net/http"
	"net/url"
)

type lineList struct{}

// Run lists lines, joined from what the nodes reported last.
func (c *lineList) Run(p *process) error {
	return p.call(call{method: http.MethodGet, path: "/lines", query: url.Values{"node": {"all"}}, view: linesView()})
}

type lineDrain struct {
	Line string `arg:"" help:"Id of the line."`
}

// Run takes a line out of use on all nodes.
func (c *lineDrain) Run(p *process) error {
	return p.call(call{method: http.MethodPost, path: path("lines", c.Line, "drain"), view: linesView()})
}

type lineResume struct {
	Line string `arg:"" help:"Id of the line."`
}

// Run brings a line back on all nodes.
func (c *lineResume) Run(p *process) error {
	return p.call(call{method: http.MethodPost, path: path("lines", c.Line, "resume"), view: linesView()})
}
