package main

import (
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// logFilter has the flags that filter requests and jobs.
type logFilter struct {
	Account string  `help:"Of this account." placeholder:"ID"`
	Key     string  `help:"Of this key." placeholder:"ID"`
	Model   string  `help:"For this model." placeholder:"ID"`
	Line    string  `help:"Whose last attempt was on this line." placeholder:"ID"`
	Status  string  `help:"With this status: an HTTP status, or for jobs queued, processing, succeeded or failed." placeholder:"STATUS"`
	Code    string  `help:"With this error code." placeholder:"CODE"`
	Since   *moment `help:"Received since this UTC day, RFC 3339 time, or duration before now, such as 24h." placeholder:"TIME"`
	Until   *moment `help:"Received before this time, or until the end of this UTC day." placeholder:"TIME"`
}

func (f logFilter) addTo(query url.Values, now time.Time) {
	for name, value := range map[string]string{
		"account": f.Account, "key": f.Key, "model": f.Model, "line": f.Line, "status": f.Status, "code": f.Code,
		"since": f.Since.before(now), "until": f.Until.before(now),
	} {
		add(query, name, value)
	}
}

type requestList struct {
	logFilter
	MinDuration int64 `name:"min-duration-ms" help:"With this duration or more, in milliseconds." placeholder:"N"`
	paging
}

func (c *requestList) Run(p *process) error {
	query := c.query()
	c.addTo(query, p.now())
	if c.MinDuration != 0 {
		add(query, "min_duration_ms", strconv.FormatInt(c.MinDuration, 10))
	}
	return p.call(call{method: http.MethodGet, path: "/requests", query: query, view: requestsView()})
}

type requestShow struct {
	Request string `arg:"" help:"ID of the request, from the header x-request-id of its answer."`
}

func (c *requestShow) Run(p *process) error {
	return p.call(call{method: http.MethodGet, path: path("requests", c.Request), view: requestsView()})
}
