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
	// Body is the public body; of a queued job without its place in the queue,
	// which AddPosition adds.
	Body               json.RawMessage
	Account, Key       string
	Request            string
	Line               string // that has it, or did it
	Steps              []row.Step
	Attempts           []row.TracedAttempt
	Held, Cost         money.Amount
	Over               money.Amount // what usage exceeded the hold by
	StartedMS, EndedMS int64
	// Node is the epoch of the node that looks after it; empty: none does. Host is
	// its machine, as far as that is known.
	Node, Host string

	queued *queuedJob // nil: it has started, or ended
}

// queuedJob is what the place of a job follows from.
type queuedJob struct {
	rec         *row.Job
	state, turn int64
}

// Note adds the statements that tell of an operator's act to the transaction of
// the act. It may be called again for a transaction that is tried again.
type Note func(q *store.Batch, nowMS int64, account, job string)

// GetTx reads one job. ErrNoJob.
func GetTx(tx *store.Tx, id string) (View, error) {
	rec, p, err := row.ReadTx(tx, id)
	if err != nil {
		return View{}, err
	}
	if rec != nil {
		v := viewOf(rec, p.Trace)
		v.Line, v.Node, v.StartedMS, v.Held = p.Line, p.Epoch, p.StartedMS, rec.Held
		v.Body = unplaced(rec, p)
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

// AddPosition adds to the body of a job that is queued where it stands in its queue.
// Call it outside of a transaction.
func (j *Jobs) AddPosition(ctx context.Context, v *View) error {
	if v.queued == nil {
		return nil
	}
	body, err := j.queuedBody(ctx, v.queued.rec, v.queued.state, v.queued.turn)
	v.Body = body
	return err
}

// viewOf is what both running and ended jobs show.
func viewOf(r *row.Job, t row.Trace) View {
	return View{
		Account: r.Account, Key: r.Key, Request: r.Request, Line: r.Line, Steps: t.Steps, Attempts: t.Attempts,
		Cost: r.Cost, StartedMS: r.StartedMS, EndedMS: r.EndedMS,
	}
}

// unplaced is the public body of a running job without its place.
func unplaced(r *row.Job, p *row.Run) []byte {
	if p.StartedMS > 0 {
		return r.Processing()
	}
	return row.Render(r.Base(row.StatusQueued))
}

// Cancel ends a job that has not ended: it fails with upstream_error and is
// refunded; its provider is told where that is possible. note adds to the
// transaction that it was done; nil: nothing is. ErrNoJob; a fault if it has
// ended.
func (j *Jobs) Cancel(ctx context.Context, id string, note Note) error {
	rec, _, err := j.unended(ctx, id)
	if err != nil {
		return err
	}
	drop := j.dropper(id)
	e := j.ending(rec, nil, anyFence, row.JobError{Code: fault.UpstreamError, Operator: true,
		Message: "The job was cancelled by the operator. You were not charged."})
	e.note = note
	if !j.end(ctx, e) {
		if ctx.Err() != nil {
			return fault.TryAgain(ctx.Err())
		}
		return hasEnded(id)
	}
	drop()
	j.tellProvider(ctx, rec, &e.row.Run) // as it was when it ended
	return nil
}

// dropper returns what makes this node's present worker of a job end, if it has
// one. Other nodes notice at the job's next step.
func (j *Jobs) dropper(id string) func() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if w := j.workers[id]; w != nil {
		return w.life.end
	}
	return func() {}
}

// tellProvider cancels the work of a job at its provider, as a courtesy, where
// this node can reach it.
func (j *Jobs) tellProvider(ctx context.Context, rec *row.Job, p *row.Run) {
	if p.Ticket == "" {
		return
	}
	snapshot, err := j.opts.Catalog.At(ctx, p.Revision)
	if err != nil {
		return
	}
	if candidate := j.opts.Lines.CandidateFor(snapshot, p.Line, rec.Model); candidate != nil {
		(&worker{jobs: j, rec: rec, run: p, candidate: candidate}).cancel(ctx, p.Ticket)
	}
}

// unended reads a job that has not ended.
func (j *Jobs) unended(ctx context.Context, id string) (rec *row.Job, p *row.Run, err error) {
	err = j.opts.DB.View(ctx, func(tx *store.Tx) error {
		if rec, p, err = row.ReadTx(tx, id); err != nil || rec != nil {
			return err
		}
		if _, err := row.RecordTx(tx, id); err != nil {
			return err
		}
		return hasEnded(id)
	})
	return rec, p, err
}

// hasEnded is the refusal of what only jobs can be asked that have not ended.
func hasEnded(id string) error {
	return fault.New(fault.InvalidRequest, "The job %s has ended.", id)
}
