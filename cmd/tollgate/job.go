package main

import "net/http"

type jobList struct {
	logFilter
	Status string `help:"Only with this status: queued, processing, succeeded or failed." placeholder:"STATUS"`
	paging
}

func (c *jobList) Run(p *process) error {
	query := c.query()
	c.addTo(query, p.now())
	add(query, "status", c.Status)
	return p.call(call{method: http.MethodGet, path: "/jobs", query: query, view: jobsView()})
}

type jobShow struct{ jobArg }

func (c *jobShow) Run(p *process) error {
	return p.call(call{method: http.MethodGet, path: path("jobs", c.Job), view: jobsView()})
}

type jobCancel struct{ jobArg }

func (c *jobCancel) Run(p *process) error {
	return p.call(call{method: http.MethodPost, path: path("jobs", c.Job, "cancel"), view: jobsView(), service: true})
}

type jobRequeue struct {
	jobArg
	Force bool `help:"Also if the job has succeeded. The account pays for it again."`
	idempotencyFlag
}

func (c *jobRequeue) Run(p *process) error {
	return p.call(call{method: http.MethodPost, path: path("jobs", c.Job, "requeue"), body: fields{"force": c.Force},
		idempotencyKey: c.IdempotencyKey, view: jobsView(), service: true})
}
