package admin

import (
	"bytes"
	"encoding/json"
	"errors"

	"tollgate/internal/fault"
	"tollgate/internal/job"
	"tollgate/internal/job/row"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/money"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// jobFields are the operator's members of a job, in addition to the public body. held_usd is zero
// after the job has ended.
type jobFields struct {
	Account  string              `json:"account"`
	Key      string              `json:"key"`
	Request  string              `json:"request_id"`
	Line     *string             `json:"line"` // null while the job has no line
	Attempts []row.TracedAttempt `json:"attempts"`
	Steps    []stepAnswer        `json:"steps"`
	Held     money.Amount        `json:"held_usd"`
	Cost     money.Amount        `json:"cost_usd"`
	Over     money.Amount        `json:"over_hold_usd"`
	LineCost *money.Amount       `json:"line_cost_usd,omitempty"`
	Started  int64               `json:"started,omitempty"`
	Ended    int64               `json:"ended,omitempty"`
	Node     string              `json:"node,omitempty"`
	Host     string              `json:"node_host,omitempty"`
}

// stepAnswer is a step of a job.
type stepAnswer struct {
	Name string `json:"name"`
	At   int64  `json:"at"` // Unix seconds
	AtMS int64  `json:"at_ms"`
	Line string `json:"line,omitempty"`
}

// showJob appends the operator's members to the public body.
func showJob(v job.View) json.RawMessage {
	if v.Attempts == nil {
		v.Attempts = []row.TracedAttempt{}
	}
	steps := make([]stepAnswer, len(v.Steps))
	for i, s := range v.Steps {
		steps[i] = stepAnswer{s.Name, seconds(s.At), s.At, s.Line}
	}
	attempts, _ := json.Marshal(v.Attempts) // texts and numbers: cannot fail
	members, _ := json.Marshal(jobFields{   // texts and numbers: cannot fail
		Account: v.Account, Key: v.Key, Request: v.Request, Line: nilIfZero(v.Line), Attempts: v.Attempts, Steps: steps,
		Held: v.Held, Cost: v.Cost, Over: v.Over, LineCost: lineCost(attempts),
		Started: seconds(v.StartedMS), Ended: seconds(v.EndedMS), Node: v.Node, Host: v.Host,
	})
	out := append(json.RawMessage(nil), v.Body[:len(v.Body)-1]...)
	out = append(out, ',')
	return append(out, members[1:]...)
}

func (s *server) listJobs(c *call) (any, error) {
	values, after, limit, err := c.page("account", "key", "model", "status", "line", "code", "since", "until")
	if err != nil {
		return nil, err
	}
	f := job.Filter{Account: values.Get("account"), Key: values.Get("key"), Model: values.Get("model"), Line: values.Get("line"),
		Status: values.Get("status"), Code: values.Get("code"), After: after, Limit: limit}
	if f.SinceMS, f.UntilMS, err = requestlog.Span(values.Get("since"), values.Get("until")); err != nil {
		return nil, err
	}
	switch f.Status {
	case "", "queued", "processing", "succeeded", "failed":
	default:
		return nil, fault.At(fault.InvalidRequest, "status", "status must be queued, processing, succeeded or failed.")
	}
	var more bool
	items, err := view(s, c, func(tx *store.Tx) (items []job.View, err error) {
		items, more, err = job.ListTx(tx, f)
		return items, err
	})
	if err != nil {
		return nil, err
	}
	for i := range items {
		if err := s.queuePosition(c, &items[i]); err != nil {
			return nil, err
		}
	}
	return newList(items, more, showJob), nil
}

func (s *server) getJob(c *call) (any, error) {
	v, err := view(s, c, func(tx *store.Tx) (job.View, error) { return job.GetTx(tx, c.id) })
	if err != nil {
		return nil, noJob(err, c.id)
	}
	if err := s.queuePosition(c, &v); err != nil {
		return nil, err
	}
	return showJob(v), nil
}

// queuePosition sets the position of a queued job if jobs run in this process.
func (s *server) queuePosition(c *call, v *job.View) error {
	if s.Jobs == nil {
		return nil
	}
	return s.Jobs.AddPosition(c.ctx, v)
}

// noJob converts row.ErrNoJob to a 404.
func noJob(err error, id string) error {
	if errors.Is(err, row.ErrNoJob) {
		return fault.New(fault.JobNotFound, "There is no job %q. Records are kept for job_retention after a job has ended.", fault.Excerpt(id))
	}
	return err
}

func (s *server) cancelJob(c *call) (any, error) {
	if s.Jobs == nil {
		return nil, noJobs()
	}
	if err := operator.CancelJob(c.ctx, s.Jobs, s.actor(c), c.id); err != nil {
		return nil, noJob(err, c.id)
	}
	return s.getJob(c)
}

func (s *server) requeueJob(c *call) (any, error) {
	body, force, err := c.readForce()
	if err != nil {
		return nil, err
	}
	if s.Jobs == nil {
		return nil, noJobs()
	}
	key, err := c.idempotencyKey()
	if err != nil {
		return nil, err
	}
	options := job.RequeueOptions{Force: force, Show: func(v job.View) []byte { return showJob(v) }}
	if key != "" {
		once := s.once(c, key, body)
		options.Once = &once
	}
	out, replayed, err := operator.RequeueJob(c.ctx, s.Jobs, s.actor(c), c.id, options)
	switch {
	case errors.Is(err, ledger.ErrOtherBody):
		return nil, otherRequest()
	case err != nil:
		return nil, noJob(err, c.id)
	case replayed:
		c.markReplayed()
	}
	return json.RawMessage(out), nil
}

// readForce reads `force` from the body or the query.
func (c *call) readForce() (body object, force bool, err error) {
	values, err := c.query("force")
	if err != nil {
		return body, false, err
	}
	raw, err := c.read(maxBody)
	if err != nil {
		return body, false, err
	}
	if len(bytes.TrimSpace(raw)) > 0 {
		if body, err = parseObject(raw); err != nil {
			return body, false, err
		}
	}
	var inBody *bool
	if err := body.decode(flagField("force", &inBody)); err != nil {
		return body, false, err
	}
	inQuery, err := boolean(values, "force")
	if inBody != nil {
		return body, *inBody, err
	}
	return body, inQuery, err
}

func noJobs() error { return fault.Unavailable(errors.New("no jobs run in this process")) }
