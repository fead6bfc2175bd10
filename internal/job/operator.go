package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/id"
	"tollgate/internal/ledger"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// View is a job as the operator sees it.
type View struct {
	// Body is the public body; of a queued job without its place in the queue.
	Body               json.RawMessage
	Account, Key       string
	Request            string
	Line               string // that has it, or did it
	Steps              []Step
	Attempts           []Attempt
	Held, Cost         money.Amount
	Over               money.Amount // what usage exceeded the hold by
	StartedMS, EndedMS int64
	// Node is the epoch of the node that looks after it; empty: none does.
	Node string
}

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
// refunded; its provider is told where that is possible. ErrNoJob; a fault if it
// has ended.
func (j *Jobs) Cancel(ctx context.Context, id string) error {
	rec, _, err := j.unended(ctx, id)
	if err != nil {
		return err
	}
	drop := j.dropper(id)
	e := j.ending(rec, nil, anyFence, failure{code: fault.UpstreamError, operator: true, message: "The job was cancelled by the operator. You were not charged."})
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

// dropper returns what makes this node's present task of a job end, if it has
// one. Other nodes notice at the job's next step.
func (j *Jobs) dropper(id string) func() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if t := j.tasks[id]; t != nil {
		return t.drop
	}
	return func() {}
}

// tellProvider cancels the work of a job at its provider, as a courtesy, where
// this node can reach it.
func (j *Jobs) tellProvider(ctx context.Context, rec *record, p *progress) {
	if p.ticket == "" {
		return
	}
	snapshot, err := j.Catalog.At(ctx, p.revision)
	if err != nil {
		return
	}
	if berth := j.Lines.MakerOf(snapshot, p.line, rec.model); berth != nil {
		(&task{jobs: j, rec: rec, run: p, berth: berth}).cancel(ctx, p.ticket)
	}
}

// unended reads a job that has not ended.
func (j *Jobs) unended(ctx context.Context, id string) (rec *record, p *progress, err error) {
	err = j.DB.View(ctx, func(tx *store.Tx) error {
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

// Requeue lets a job be done anew. One that has not ended leaves its line, whose
// provider is told, forgets its attempts and waits in the queue at its old
// place; its id is returned. One that has ended is submitted once more, as a job
// of its own that passes the same admission for the same key, and the new id is
// returned. ErrNoJob; the faults of an admission; a fault for a job whose
// references are gone, as they are when a job has ended.
func (j *Jobs) Requeue(ctx context.Context, id string) (string, error) {
	rec, p, err := j.unended(ctx, id)
	var ended *fault.Error
	switch {
	case errors.As(err, &ended):
		return j.again(ctx, id)
	case err != nil:
		return "", err
	}
	drop, moved := j.dropper(id), false
	err = j.DB.Update(ctx, func(tx *store.Tx) error {
		moved = false
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		next := *p
		next.trace = p.trace.clone()
		for i := range next.trace.Attempts { // they count for nothing
			next.trace.Attempts[i].Next = nextLater
			if next.trace.Attempts[i].Ended == 0 {
				next.trace.Attempts[i].Ended = now
			}
			next.trace.Attempts[i].Lost = false
		}
		next.trace.step(stepRequeued, now, p.line)
		next.queuedMS = now
		changed, err := next.stepBackTx(tx, id, now, 0)
		moved = changed > 0
		return err
	})
	if err != nil {
		return "", fmt.Errorf("requeue job %s: %w", id, err)
	}
	if !moved {
		return "", fault.New(fault.InvalidRequest, "The job %s has just changed. Look at it, and try again.", id)
	}
	drop()
	j.tellProvider(ctx, rec, p)
	j.rouse()
	return id, nil
}

// again submits a job that has ended once more.
func (j *Jobs) again(ctx context.Context, old string) (string, error) {
	var rec *record
	var key ledger.KeyState
	err := j.DB.View(ctx, func(tx *store.Tx) (err error) {
		if rec, err = recordTx(tx, old); err != nil {
			return err
		}
		keys, err := ledger.KeysTx(tx, []string{rec.key})
		key = keys[rec.key]
		return err
	})
	if err != nil {
		return "", err
	}
	if len(rec.materials.References) > 0 || rec.materials.Mask != nil {
		return "", fault.New(fault.InvalidRequest, "The job %s had reference files, which were deleted when it ended: its user has to submit it again.", old)
	}
	model, err := j.pricedBy(ctx, rec)
	if err != nil {
		return "", err
	}
	now := time.Now()
	next := *rec
	next.id, next.request, next.status, next.body, next.trace = NewID(), id.At("req_", now), statusQueued, "", trace{}
	next.cost, next.line, next.code, next.startedMS, next.endedMS = 0, "", "", 0, 0
	err = j.Ledger.AdmitJob(context.WithoutCancel(ctx), ledger.Admission{
		Request: next.request, Account: next.account, Key: next.key, KeyVersion: key.Version, Model: next.model, Endpoint: next.endpoint,
		Amount: next.held, FreeDaily: model.FreeDailyRequests, Revision: next.revision, Received: now, Job: next.id,
	}, &admission{jobs: j, rec: &next})
	if errors.Is(err, ledger.ErrKeyChanged) {
		return "", fault.New(fault.InvalidRequest, "The key of the job has just changed. Try again.")
	}
	if err != nil {
		return "", err
	}
	j.metrics.submitted(next.kind)
	j.rouse()
	return next.id, nil
}
