package job

import (
	"context"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/job/row"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/measure"
	"tollgate/internal/line"
	"tollgate/internal/loop"
	"tollgate/internal/media"
	"tollgate/internal/money"
	"tollgate/internal/slot"
	"tollgate/internal/store"
	"tollgate/internal/webhook"
)

// anyFence ends a job regardless of its owner.
const anyFence = -1

// ending ends a job in the transaction that ends the job's hold. There is no other way to a final
// state.
type ending struct {
	jobs  *Jobs
	rec   *row.Job
	fence int64 // must be the job's fence, or anyFence
	// condition is checked within the transaction, if not nil.
	condition func(p *row.Run, nowMS int64) bool

	files    []media.File // if the job succeeded
	cost     money.Amount
	lineCost *money.Amount // by the catalog; nil if unknown
	failure  *row.JobError // if the job failed
	note     Note          // if not nil, logs the operator's action

	run         row.RunScan // read by this transaction
	found       bool
	publication *media.Publication
	body        []byte
}

// newEnding returns the success of a job with files, or its failure if files is nil.
func (j *Jobs) newEnding(r *row.Job, files []media.File, fence int64, failure row.JobError) *ending {
	e := &ending{jobs: j, rec: r, fence: fence, files: files}
	if files == nil {
		e.failure = &failure
	}
	return e
}

// Read implements ledger.Hook.
func (e *ending) Read(q *store.Batch) {
	e.found, e.run = false, row.RunScan{}
	q.QueryLocked(func(row store.Row) error {
		e.found = true
		return row.Scan(e.run.Dest()...)
	}, `SELECT `+row.RunColumns+` FROM job_run r WHERE r.id = $1`, e.rec.ID)
}

// mayEnd reports whether the job was found with the fence of this ending.
func (e *ending) mayEnd() bool { return e.found && (e.fence == anyFence || e.fence == e.run.Fence) }

// Decide implements ledger.EndHook.
func (e *ending) Decide(nowMS int64) (ledger.End, bool) {
	if !e.mayEnd() {
		return ledger.End{}, false
	}
	p, err := e.run.Read()
	if err != nil || (e.condition != nil && !e.condition(p, nowMS)) {
		return ledger.End{}, false
	}
	if a := p.Trace.Current(); a != nil && a.LineCost == nil {
		a.LineCost = e.lineCost
	}
	end := ledger.End{
		Outcome: ledger.Failed, Status: 202, Line: p.Line, Attempts: p.Trace.ForLog(),
		Duration: time.Duration(max(0, nowMS-e.rec.CreatedMS)) * time.Millisecond,
	}
	for _, a := range p.Trace.Attempts {
		end.LineCost = money.PlusKnown(end.LineCost, a.LineCost)
	}
	if e.failure != nil {
		end.Code = string(e.failure.Code)
		return end, true
	}
	end.Outcome, end.Cost, end.Source = ledger.Billed, e.cost, ledger.SourceGateway
	end.Quantity = measure.Quantity{Unit: measure.VideoMS, N: e.rec.Plan.Seconds * 1000}
	if e.rec.Kind == media.KindImage {
		end.Quantity = measure.Quantity{Unit: measure.Image, N: int64(len(e.files))}
	}
	return end, true
}

// Orphaned implements ledger.EndHook. A job without its hold fails free of charge.
func (e *ending) Orphaned() bool {
	if !e.mayEnd() {
		return false
	}
	_, _ = e.run.Read() // the trace of a damaged row is empty
	e.files, e.cost = nil, 0
	e.failure = &row.JobError{Code: fault.UpstreamError,
		Message: "The records of this job were damaged, so it could not be brought to an end. You were not charged. Submit it again."}
	return true
}

// Write implements ledger.Hook.
func (e *ending) Write(q *store.Batch, nowMS int64) {
	p, trace := &e.run.Run, e.run.Trace.Clone()
	status, code, cost := row.StatusSucceeded, "", e.cost
	if e.failure != nil {
		status, code, cost = row.StatusFailed, string(e.failure.Code), 0
		e.body = e.rec.FailedBody(*e.failure)
		if e.failure.Operator {
			trace.Step(row.StepCancelled, nowMS, "")
		}
	} else {
		links := make([]string, len(e.files))
		for i, f := range e.files {
			links[i] = e.jobs.opts.Media.Link(f)
		}
		e.body = e.rec.SucceededBody(links)
		e.publication = media.Publish(q, e.rec.ID, e.files, nowMS)
	}
	trace.Step(status, nowMS, p.Line)
	if a := trace.Current(); a != nil && a.Ended == 0 {
		a.Ended = nowMS
	}
	fetchedMS := int64(0)
	if e.rec.Callback != "" { // the webhook's log shows whether the result arrives
		fetchedMS = nowMS
	}
	q.Exec(nil, `UPDATE job SET status = $1, code = $2, line = $3, trace = $4, body = $5, cost_nano = $6, started_ms = $7, ended_ms = $8,
		fetched_ms = $9 WHERE id = $10`,
		status, code, p.Line, row.Text(trace), string(e.body), int64(min(cost, e.rec.Held)), p.StartedMS, nowMS, fetchedMS, e.rec.ID)
	q.Exec(nil, `DELETE FROM job_run WHERE id = $1`, e.rec.ID)
	slot.Give(q, e.rec.ID)
	media.Drop(q, e.rec.ID, nowMS)
	e.jobs.opts.Webhooks.EmitJob(q, nowMS, webhook.JobEnd{
		Account: e.rec.Account, Type: e.rec.Event(e.failure == nil), Body: e.body, Callback: e.rec.Callback,
	})
	if e.note != nil {
		e.note(q, nowMS, e.rec.Account, e.rec.ID)
	}
}

// end commits an ending, and retries until ctx ends if the database is unavailable. It returns false
// if ctx has ended, the job had ended before, or the job belongs to another worker.
func (j *Jobs) end(ctx context.Context, e *ending) bool {
	for {
		ended, err := j.opts.Ledger.EndJob(ctx, ledger.JobHold{Request: e.rec.Request, Account: e.rec.Account, Key: e.rec.Key}, e)
		switch {
		case err == nil && !ended:
			return false
		case err == nil:
			j.afterEnd(e)
			return true
		case ctx.Err() != nil:
			return false
		}
		j.logOutage("the end of a job could not be committed", e.rec.ID, err)
		if !loop.Sleep(ctx, retryPause) {
			return false
		}
	}
}

// afterEnd updates the metrics and wakes the webhooks, the clients that wait for the job, and Start.
func (j *Jobs) afterEnd(e *ending) {
	p := &e.run.Run
	code := ""
	if e.failure != nil {
		code = string(e.failure.Code)
	}
	j.metrics.countEnd(e.rec.Kind, code)
	e.countSettlement()
	if e.publication != nil && !e.publication.AllPublished() {
		j.opts.Log.Error("job: a result file was missing at the end of its job", "job", e.rec.ID)
	}
	j.opts.Log.Debug("job: ended", "job", e.rec.ID, "line", p.Line, "code", code)
	j.opts.Webhooks.Wake()
	j.waits.end(e.rec.ID)
	j.wakeUp()
}

// countSettlement records each attempt's cost, and the success of the last attempt, for the lines.
func (e *ending) countSettlement() {
	attempts := e.run.Trace.Attempts
	for i, a := range attempts {
		s := line.Settlement{LineCost: a.LineCost}
		if i == len(attempts)-1 && e.failure == nil {
			s.Answered, s.Cost, s.Held = true, e.cost, e.rec.Held
		}
		e.jobs.opts.Lines.RecordSettlement(a.Line, e.rec.Model, s)
	}
}
