package job

import (
	"context"
	"encoding/json"
	"errors"

	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/money"
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
	Steps              []Step
	Attempts           []TracedAttempt
	Held, Cost         money.Amount
	Over               money.Amount // what usage exceeded the hold by
	StartedMS, EndedMS int64
	// Node is the epoch of the node that looks after it; empty: none does.
	Node string

	queued *queuedJob // nil: it has started, or ended
}

// queuedJob is what the place of a job follows from.
type queuedJob struct {
	rec         *record
	state, turn int64
}

// Note adds the statements that tell of an operator's act to the transaction of
// the act. It may be called again for a transaction that is tried again.
type Note func(q *store.Batch, nowMS int64, account, job string)

// ErrNoJob means that there is no such job.
var ErrNoJob = errors.New("no such job")

// GetTx reads one job. ErrNoJob.
func GetTx(tx *store.Tx, id string) (View, error) {
	rec, p, err := readTx(tx, id)
	if err != nil {
		return View{}, err
	}
	if rec != nil {
		v := rec.view(p.trace)
		v.Line, v.Node, v.StartedMS, v.Held = p.line, p.epoch, p.startedMS, rec.held
		v.Body = rec.submittedView(p)
		if p.startedMS == 0 {
			v.queued = &queuedJob{rec, p.state, p.turn}
		}
		return v, nil
	}
	if rec, err = recordTx(tx, id); err != nil {
		return View{}, err
	}
	v := rec.view(rec.trace)
	v.Body = json.RawMessage(rec.body)
	over, err := ledger.OverOfRequestsTx(tx, []string{rec.request})
	v.Over = over[rec.request]
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

// recordTx reads the record of a job. ErrNoJob.
func recordTx(tx *store.Tx, id string) (*record, error) {
	rows, err := tx.Query(`SELECT `+recordColumns+` FROM job j WHERE j.id = $1`, id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	if !rows.Next() {
		return nil, errors.Join(rows.Err(), ErrNoJob)
	}
	return scanRecord(rows)
}

// view is what both running and ended jobs show.
func (r *record) view(t trace) View {
	return View{
		Account: r.account, Key: r.key, Request: r.request, Line: r.line, Steps: t.Steps, Attempts: t.Attempts,
		Cost: r.cost, StartedMS: r.startedMS, EndedMS: r.endedMS,
	}
}

// submittedView is the public body of a running job without its place.
func (r *record) submittedView(p *progress) []byte {
	if p.startedMS > 0 {
		return r.processing()
	}
	return render(r.base(statusQueued))
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
	e := j.ending(rec, nil, anyFence, jobError{code: fault.UpstreamError, operator: true,
		message: "The job was cancelled by the operator. You were not charged."})
	e.note = note
	if !j.end(ctx, e) {
		if ctx.Err() != nil {
			return away(ctx.Err())
		}
		return hasEnded(id)
	}
	drop()
	j.tellProvider(ctx, rec, &e.row.progress) // as it was when it ended
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
func (j *Jobs) tellProvider(ctx context.Context, rec *record, p *progress) {
	if p.ticket == "" {
		return
	}
	snapshot, err := j.opts.Catalog.At(ctx, p.revision)
	if err != nil {
		return
	}
	if candidate := j.opts.Lines.CandidateFor(snapshot, p.line, rec.model); candidate != nil {
		(&worker{jobs: j, rec: rec, run: p, candidate: candidate}).cancel(ctx, p.ticket)
	}
}

// unended reads a job that has not ended.
func (j *Jobs) unended(ctx context.Context, id string) (rec *record, p *progress, err error) {
	err = j.opts.DB.View(ctx, func(tx *store.Tx) error {
		if rec, p, err = readTx(tx, id); err != nil || rec != nil {
			return err
		}
		if _, err := recordTx(tx, id); err != nil {
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
