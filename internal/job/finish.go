package job

import (
	"context"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/job/row"
	"tollgate/internal/ledger"
	"tollgate/internal/line"
	"tollgate/internal/loop"
	"tollgate/internal/media"
	"tollgate/internal/money"
	"tollgate/internal/slot"
	"tollgate/internal/store"
	"tollgate/internal/webhook"
)

// anyFence is for ends that do not depend on who looks after the job.
const anyFence = -1

// ending is the one way to a final state: it rides with the end of the hold.
type ending struct {
	jobs  *Jobs
	rec   *row.Job
	fence int64 // who may end it; anyFence: everybody
	// when says under which circumstances a job that was read now may end; nil:
	// always.
	when func(p *row.Run, nowMS int64) bool

	files []media.File // of a success
	cost  money.Amount
	taken *money.Amount // what the provider takes, by the catalog; nil: not known
	fail  *row.JobError // of a failure
	note  Note          // tells of an operator's act; nil: it is none

	row         row.ScannedRun // as read in this round
	found       bool
	publication *media.Publication
	body        []byte
}

// ending makes the end of a job that failed, or with files of one that
// succeeded.
func (j *Jobs) ending(r *row.Job, files []media.File, fence int64, fail row.JobError) *ending {
	e := &ending{jobs: j, rec: r, fence: fence, files: files}
	if files == nil {
		e.fail = &fail
	}
	return e
}

// Read implements ledger.Hook.
func (e *ending) Read(q *store.Batch) {
	e.found, e.row = false, row.ScannedRun{}
	q.QueryLocked(func(row store.Row) error {
		e.found = true
		return row.Scan(e.row.Dest()...)
	}, `SELECT `+row.RunColumns+` FROM job_run r WHERE r.id = $1`, e.rec.ID)
}

// Decide implements ledger.EndRider.
func (e *ending) Decide(nowMS int64) (ledger.End, bool) {
	if !e.found || (e.fence != anyFence && e.fence != e.row.Fence) {
		return ledger.End{}, false
	}
	p, err := e.row.Read()
	if err != nil || (e.when != nil && !e.when(p, nowMS)) {
		return ledger.End{}, false
	}
	if a := p.Trace.Current(); a != nil && a.LineCost == nil {
		a.LineCost = e.taken
	}
	end := ledger.End{
		Outcome: ledger.Failed, Status: 202, Line: p.Line, Attempts: p.Trace.ForLog(),
		Duration: time.Duration(max(0, nowMS-e.rec.CreatedMS)) * time.Millisecond,
	}
	for _, a := range p.Trace.Attempts {
		end.LineCost = money.PlusKnown(end.LineCost, a.LineCost)
	}
	if e.fail != nil {
		end.Code = string(e.fail.Code)
		return end, true
	}
	end.Outcome, end.Cost, end.Source = ledger.Billed, e.cost, ledger.SourceGateway
	if n := int64(len(e.files)); e.rec.Kind == media.KindImage {
		end.Tokens.Images = n
	} else {
		end.Tokens.Clips, end.Tokens.VideoMS = n, n*e.rec.Plan.Seconds*1000
	}
	return end, true
}

// Orphaned implements ledger.EndRider.
func (e *ending) Orphaned() bool {
	if !e.found || (e.fence != anyFence && e.fence != e.row.Fence) {
		return false
	}
	_, _ = e.row.Read() // what cannot be read of it is not shown
	e.files, e.cost = nil, 0
	e.fail = &row.JobError{Code: fault.UpstreamError,
		Message: "The records of this job were damaged, so it could not be brought to an end. You were not charged. Submit it again."}
	return true
}

// Write implements ledger.Hook.
func (e *ending) Write(q *store.Batch, nowMS int64) {
	p, trace := &e.row.Run, e.row.Trace.Clone()
	status, code, cost := row.StatusSucceeded, "", e.cost
	if e.fail != nil {
		status, code, cost = row.StatusFailed, string(e.fail.Code), 0
		e.body = e.rec.Failed(*e.fail)
		if e.fail.Operator {
			trace.Step(row.StepCancelled, nowMS, "")
		}
	} else {
		links := make([]string, len(e.files))
		for i, f := range e.files {
			links[i] = e.jobs.opts.Media.Link(f)
		}
		e.body = e.rec.Succeeded(links)
		e.publication = media.Publish(q, e.rec.ID, e.files, nowMS)
	}
	trace.Step(status, nowMS, p.Line)
	if a := trace.Current(); a != nil && a.Ended == 0 {
		a.Ended = nowMS
	}
	q.Exec(nil, `UPDATE job SET status = $1, code = $2, line = $3, trace = $4, body = $5, cost_nano = $6, started_ms = $7, ended_ms = $8
		WHERE id = $9`,
		status, code, p.Line, row.Text(trace), string(e.body), int64(min(cost, e.rec.Held)), p.StartedMS, nowMS, e.rec.ID)
	q.Exec(nil, `DELETE FROM job_run WHERE id = $1`, e.rec.ID)
	slot.Give(q, e.rec.ID)
	media.Drop(q, e.rec.ID, nowMS)
	e.jobs.opts.Webhooks.EmitJob(q, nowMS, webhook.JobEnd{
		Account: e.rec.Account, Type: e.rec.Event(e.fail == nil), Body: e.body, Callback: e.rec.Callback,
	})
	if e.note != nil {
		e.note(q, nowMS, e.rec.Account, e.rec.ID)
	}
}

// end commits an ending and returns whether it took place: the job may have
// ended before, or be looked after by somebody else. It goes on trying while the
// database is away, until ctx ends.
func (j *Jobs) end(ctx context.Context, e *ending) bool {
	for {
		ended, err := j.opts.Ledger.EndJob(ctx, ledger.JobHold{Request: e.rec.Request, Account: e.rec.Account, Key: e.rec.Key,
			Free: e.rec.Free}, e)
		switch {
		case err == nil && !ended:
			return false
		case err == nil:
			j.ended(e)
			return true
		case ctx.Err() != nil:
			return false
		}
		j.logAway("the end of a job is not committed yet", e.rec.ID, err)
		if !loop.Sleep(ctx, writeAgain) {
			return false
		}
	}
}

// ended tells everybody concerned that a job has ended.
func (j *Jobs) ended(e *ending) {
	p := &e.row.Run
	code := ""
	if e.fail != nil {
		code = string(e.fail.Code)
	}
	j.metrics.ended(e.rec.Kind, code)
	e.settled()
	if e.publication != nil && !e.publication.Whole() {
		j.opts.Log.Error("job: a result file was gone when its job ended", "job", e.rec.ID)
	}
	j.opts.Log.Debug("job: ended", "job", e.rec.ID, "line", p.Line, "code", code)
	j.opts.Webhooks.Wake()
	j.rouse()
}

// settled counts what the job came to on its lines: the last one of a success has
// answered, and each attempt may have cost something.
func (e *ending) settled() {
	attempts := e.row.Trace.Attempts
	for i, a := range attempts {
		s := line.Settlement{LineCost: a.LineCost}
		if i == len(attempts)-1 && e.fail == nil {
			s.Answered, s.Cost, s.Held = true, e.cost, e.rec.Held
		}
		e.jobs.opts.Lines.Settled(a.Line, e.rec.Model, s)
	}
}
