package main

import "net/http"

type jobList struct {
	logFilter
	paging
}

// Run lists jobs, newest first.
func (c *jobList) Run(p *process) error {
	query := c.query()
	c.addTo(query, p.now())
	return p.call(call{method: http.MethodGet, path: "/jobs", query: query, view: jobsView()})
}

type jobShow struct {
	Job string `arg:"" help:"Id of the job."`
}

// Run shows a job.
func (c *jobShow) Run(p *process) error {
	return p.call(call{method: http.MethodGet, path: path("jobs", c.Job), view: jobsView()})
}

type jobCancel struct {
	Job string `arg:"" help:"Id of the job."`
}

// Run ends a job.
func (c *jobCancel) Run(p *process) error {
	return p.call(call{method: http.MethodPost, path: path("jobs", c.Job, "cancel"), view: jobsView(), service: true})
}

type jobRequeue struct {
	Job   string `arg:"" help:"Id of the job."`
	Force bool   `help:"Also if it has succeeded: it is done again at its user's expense."`
	once
}

// Run lets a job be done anew.
func (c *jobRequeue) Run(p *process) error {
	return p.call(call{method: http.MethodPost, path: path("jobs", c.Job, "requeue"), body: fields{"force": c.Force},
		once: c.IdempotencyKey, view: jobsView(), service: true})
}
