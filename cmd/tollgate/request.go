package main

import (
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// logFilter are the flags that choose requests and jobs alike.
type logFilter struct {
	Account string  `help:"Of this account." placeholder:"ID"`
	Key     string  `help:"Of this key." placeholder:"ID"`
	Model   string  `help:"For this model." placeholder:"ID"`
	Line    string  `help:"Asked of this line last." placeholder:"ID"`
	Status  string  `help:"With this status: of requests one of HTTP, of jobs queued, processing, succeeded or failed." placeholder:"STATUS"`
	Code    string  `help:"That ended with this error code." placeholder:"CODE"`
	Since   *moment `help:"That came at this time or later: a UTC day, an RFC 3339 time, or how long ago, such as 24h." placeholder:"TIME"`
	Until   *moment `help:"That came before this time, or up to the end of this UTC day." placeholder:"TIME"`
}

// addTo adds the flags that were given to a list's parameters.
func (f logFilter) addTo(query url.Values, now time.Time) {
	for name, value := range map[string]string{
		"account": f.Account, "key": f.Key, "model": f.Model, "line": f.Line, "status": f.Status, "code": f.Code,
		"since": f.Since.ago(now), "until": f.Until.ago(now),
	} {
		add(query, name, value)
	}
}

type requestList struct {
	logFilter
	MinDuration int64 `name:"min-duration-ms" help:"That took so many milliseconds or more." placeholder:"N"`
	paging
}

// Run lists requests, newest first.
func (c *requestList) Run(p *process) error {
	query := c.query()
	c.addTo(query, p.now())
	if c.MinDuration != 0 {
		add(query, "min_duration_ms", strconv.FormatInt(c.MinDuration, 10))
	}
	return p.call(call{method: http.MethodGet, path: "/requests", query: query, view: requestsView()})
}

type requestShow struct {
	Request string `arg:"" help:"Id of the request, as every answer carries it in x-request-id."`
}

// Run shows a request.
func (c *requestShow) Run(p *process) error {
	return p.call(call{method: http.MethodGet, path: path("requests", c.Request), view: requestsView()})
}
