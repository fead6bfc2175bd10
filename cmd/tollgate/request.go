package main

import (
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// logFilter has the flags to filter requests and jobs.
type logFilter struct {
	Account string  `help:"Only of this account." placeholder:"ID"`
	Key     string  `help:"Only of this key." placeholder:"ID"`
	Model   string  `help:"Only for this model." placeholder:"ID"`
	Line    string  `help:"Only with the last attempt on this line." placeholder:"ID"`
	Code    string  `help:"Only with this error code." placeholder:"CODE"`
	Since   *moment `help:"Only received since this UTC day, RFC 3339 time, or duration before now, such as 24h." placeholder:"TIME"`
	Until   *moment `help:"Only received before this time, or until the end of this UTC day." placeholder:"TIME"`
}

func (f logFilter) addTo(query url.Values, now time.Time) {
	for name, value := range map[string]string{
		"account": f.Account, "key": f.Key, "model": f.Model, "line": f.Line, "code": f.Code,
		"since": f.Since.param(now), "until": f.Until.param(now),
	} {
		add(query, name, value)
	}
}

type requestList struct {
	logFilter
	Status      string `help:"Only with this HTTP status, such as 429." placeholder:"STATUS"`
	MinDuration int64  `name:"min-duration-ms" help:"Only with this duration or more, in milliseconds." placeholder:"N"`
	paging
}

func (c *requestList) Run(p *process) error {
	query := c.query()
	c.addTo(query, p.now())
	add(query, "status", c.Status)
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
