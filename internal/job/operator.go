package job

import (
	"context"
	"encoding/json"

	"tollgate/internal/fault"
	"tollgate/internal/job/row"
	"tollgate/internal/ledger"
	"tollgate/internal/money"
	"tollgate/internal/node"
	"tollgate/internal/store"
)

// View is a job as the operator sees it.
type View struct {
	// Body is the public body. A queued job's position is missing; AddPosition adds it.
	Body               json.RawMessage
	Account, Key       string
	Request            string
	Line               string // the current or last line
	Steps              []row.Step
	Attempts           []row.TracedAttempt
	Held, Cost         money.Amount
	Over               money.Amount // usage above the hold
	StartedMS, EndedMS int64
	// Node is the epoch of the node that processes the job, or empty. Host is the node's machine, or
	// empty if unknown.
	Node, Host string

	queued *queuedJob // nil if the job has started
}

// queuedJob is the input of AddPosition.
type queuedJob struct {
	rec         *row.Job
	state, turn int64
}

// Note logs an operator's action by adding statements to the action's transaction. Note is called again
// if the transaction is retried.
type Note func(q *store.Batch, nowMS int64, account, job string)

// GetTx reads a job. It may return ErrNoJob.
func GetTx(tx *store.Tx, id string) (View, error) {
	rec, p, err := row.ReadTx(tx, id)
	if err != nil {
		return View{}, err
	}
	if rec != nil {
		v := viewOf(rec, p.Trace)
		v.Line, v.Node, v.StartedMS, v.Held = p.Line, p.Epoch, p.StartedMS, rec.Held
		v.Body = bodyWithoutPosition(rec, p)
		if p.StartedMS == 0 {
			v.queued = &queuedJob{rec, p.State, p.Turn}
		}
		if v.Node == "" {
			return v, nil
		}
		hosts, err := node.HostsTx(tx)
		v.Host = hosts[v.Node]
		return v, err
	}
	if rec, err = row.RecordTx(tx, id); err != nil {
		return View{}, err
	}
	v := viewOf(rec, rec.Trace)
	v.Body = json.RawMessage(rec.Body)
	over, err := ledger.OverOfRequestsTx(tx, []string{rec.Request})
	v.Over = over[rec.Request]
	return v, err
}

// AddPosition adds the position in the queue to the body of a queued job. Callers must not have an
// open transaction.
func (j *Jobs) AddPosition(ctx context.Context, v *View) error {
	if v.queued == nil {
		return nil
	}
	body, err := j.queuedBody(ctx, v.queued.rec, v.queued.state, v.queued.turn)
	v.Body = body
	return err
}

// viewOf returns a view with the common fields of unfinished and ended jobs.
func viewOf(r *row.Job, t row.Trace) View {
	return View{
		Account: r.Account, Key: r.Key, Request: r.Request, Line: r.Line, Steps: t.Steps, Attempts: t.Attempts,
		Cost: r.Cost, StartedMS: r.StartedMS, EndedMS: r.EndedMS,
	}
}

// bodyWithoutPosition returns the public body of an unfinished job.
func bodyWithoutPosition(r *row.Job, p *row.Run) []byte {
	if p.StartedMS > 0 {
		return r.ProcessingBody()
	}
	return row.Render(r.Base(row.StatusQueued))
}

// Cancel fails a job with upstream_error, refunds it, and cancels the provider's task if possible.
// note may be nil. It returns ErrNoJob, or a fault if the job has ended.
func (j *Jobs) Cancel(ctx context.Context, id string, note Note) error {
	rec, _, err := j.readUnfinished(ctx, id)
	if err != nil {
		return err
	}
	stopWorker := j.workerStop(id)
	e := j.newEnding(rec, nil, anyFence, row.JobError{Code: fault.UpstreamError, Operator: true,
		Message: "The job was cancelled by the operator. You were not charged."})
	e.note = note
	if !j.end(ctx, e) {
		if ctx.Err() != nil {
			return fault.TryAgain(ctx.Err())
		}
		return endedError(id)
	}
	stopWorker()
	j.cancelAtProvider(ctx, rec, &e.run.Run)
	return nil
}

// workerStop returns a function that stops the present worker of a job on this node, if any. A worker
// on another node stops at its next step.
func (j *Jobs) workerStop(id string) func() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if w := j.workers[id]; w != nil {
		return w.life.end
	}
	return func() {}
}

// cancelAtProvider cancels a job's task at its provider if this node can call the line.
func (j *Jobs) cancelAtProvider(ctx context.Context, rec *row.Job, p *row.Run) {
	if p.Ticket == "" {
		return
	}
	snapshot, err := j.opts.Catalog.SnapshotAt(ctx, p.Revision)
	if err != nil {
		return
	}
	if candidate := j.opts.Lines.CandidateFor(snapshot, p.Line, rec.Model); candidate != nil {
		(&worker{jobs: j, rec: rec, run: p, candidate: candidate}).cancel(ctx, p.Ticket)
	}
}

// readUnfinished reads an unfinished job.
func (j *Jobs) readUnfinished(ctx context.Context, id string) (rec *row.Job, p *row.Run, err error) {
	err = j.opts.DB.View(ctx, func(tx *store.Tx) error {
		if rec, p, err = row.ReadTx(tx, id); err != nil || rec != nil {
			return err
		}
		if _, err := row.RecordTx(tx, id); err != nil {
			return err
		}
		return endedError(id)
	})
	return rec, p, err
}

func endedError(id string) error {
	return fault.New(fault.InvalidRequest, "The job %s has ended.", id)
}
