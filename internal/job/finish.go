package job

import (
	"context"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/line"
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
	rec   *record
	fence int64 // who may end it; anyFence: everybody
	// when says under which circumstances a job that was read now may end; nil:
	// always.
	when func(p *progress, nowMS int64) bool

	files []media.File // of a success
	cost  money.Amount
	taken *money.Amount // what the provider takes, by the catalog; nil: not known
	fail  *jobError     // of a failure
	note  Note          // tells of an operator's act; nil: it is none

	row         progressRow // as read in this round
	found       bool
	publication *media.Publication
	body        []byte
}

// ending makes the end of a job that failed, or with files of one that
// succeeded.
func (j *Jobs) ending(r *record, files []media.File, fence int64, fail jobError) *ending {
	e := &ending{jobs: j, rec: r, fence: fence, files: files}
	if files == nil {
		e.fail = &fail
	}
	return e
}

// Read implements ledger.Rider.
func (e *ending) Read(q *store.Batch) {
	e.found, e.row = false, progressRow{}
	q.QueryLocked(func(row store.Row) error {
		e.found = true
		return row.Scan(e.row.dest()...)
	}, `SELECT `+progressColumns+` FROM job_run r WHERE r.id = $1`, e.rec.id)
}

// Decide implements ledger.EndRider.
func (e *ending) Decide(nowMS int64) (ledger.End, bool) {
	if !e.found || (e.fence != anyFence && e.fence != e.row.fence) {
		return ledger.End{}, false
	}
	p, err := e.row.read()
	if err != nil || (e.when != nil && !e.when(p, nowMS)) {
		return ledger.End{}, false
	}
	if a := p.trace.current(); a != nil && a.LineCost == nil {
		a.LineCost = e.taken
	}
	end := ledger.End{
		Outcome: ledger.Failed, Status: 202, Line: p.line, Attempts: p.trace.Attempts,
		Duration: time.Duration(max(0, nowMS-e.rec.createdMS)) * time.Millisecond,
	}
	for _, a := range p.trace.Attempts {
		end.LineCost = money.PlusKnown(end.LineCost, a.LineCost)
	}
	if e.fail != nil {
		end.Code = string(e.fail.code)
		return end, true
	}
	end.Outcome, end.Cost, end.Source = ledger.Billed, e.cost, ledger.SourceGateway
	if n := int64(len(e.files)); e.rec.kind == media.KindImage {
		end.Tokens.Images = n
	} else {
		end.Tokens.Clips, end.Tokens.VideoMS = n, n*e.rec.plan.Seconds*1000
	}
	return end, true
}

// Orphaned implements ledger.EndRider.
func (e *ending) Orphaned() bool {
	if !e.found || (e.fence != anyFence && e.fence != e.row.fence) {
		return false
	}
	_, _ = e.row.read() // what cannot be read of it is not shown
	e.files, e.cost = nil, 0
	e.fail = &jobError{code: fault.UpstreamError,
		message: "The records of this job were damaged, so it could not be brought to an end. You were not charged. Please submit it again."}
	return true
}

// Write implements ledger.Rider.
func (e *ending) Write(q *store.Batch, nowMS int64) {
	p, trace := &e.row.progress, e.row.trace.clone()
	status, code, cost := statusSucceeded, "", e.cost
	if e.fail != nil {
		status, code, cost = statusFailed, string(e.fail.code), 0
		e.body = e.rec.failed(*e.fail)
		if e.fail.operator {
			trace.step(stepCancelled, nowMS, "")
		}
	} else {
		links := make([]string, len(e.files))
		for i, f := range e.files {
			links[i] = e.jobs.opts.Media.Link(f)
		}
		e.body = e.rec.succeeded(links)
		e.publication = media.Publish(q, e.rec.id, e.files, nowMS)
	}
	trace.step(status, nowMS, p.line)
	if a := trace.current(); a != nil && a.Ended == 0 {
		a.Ended = nowMS
	}
	q.Exec(nil, `UPDATE job SET status = $1, code = $2, line = $3, trace = $4, body = $5, cost_nano = $6, started_ms = $7, ended_ms = $8
		WHERE id = $9`,
		status, code, p.line, text(trace), string(e.body), int64(min(cost, e.rec.held)), p.startedMS, nowMS, e.rec.id)
	q.Exec(nil, `DELETE FROM job_run WHERE id = $1`, e.rec.id)
	slot.Give(q, e.rec.id)
	media.Drop(q, e.rec.id, nowMS)
	e.jobs.opts.Webhooks.EmitJob(q, nowMS, webhook.JobEnd{
		Account: e.rec.account, Type: e.rec.event(e.fail == nil), Body: e.body, Callback: e.rec.callback,
	})
	if e.note != nil {
		e.note(q, nowMS, e.rec.account, e.rec.id)
	}
}

// end commits an ending and returns whether it took place: the job may have
// ended before, or be looked after by somebody else. It goes on trying while the
// database is away, until ctx ends.
func (j *Jobs) end(ctx context.Context, e *ending) bool {
	for {
		ended, err := j.opts.Ledger.EndJob(ctx, ledger.JobHold{Request: e.rec.request, Account: e.rec.account, Key: e.rec.key,
			Free: e.rec.free}, e)
		switch {
		case err == nil && !ended:
			return false
		case err == nil:
			j.ended(e)
			return true
		case ctx.Err() != nil:
			return false
		}
		j.away("the end of a job is not committed yet", e.rec.id, err)
		if !pause(ctx, writeAgain) {
			return false
		}
	}
}

// ended tells everybody concerned that a job has ended.
func (j *Jobs) ended(e *ending) {
	p := &e.row.progress
	code := ""
	if e.fail != nil {
		code = string(e.fail.code)
	}
	j.metrics.ended(e.rec.kind, code)
	e.settled()
	if e.publication != nil && !e.publication.Whole() {
		j.opts.Log.Error("job: a result file was gone when its job ended", "job", e.rec.id)
	}
	j.opts.Log.Debug("job: ended", "job", e.rec.id, "line", p.line, "code", code)
	j.opts.Webhooks.Wake()
	j.rouse()
}

// settled counts what the job came to on its lines: the last one of a success has
// answered, and each attempt may have cost something.
func (e *ending) settled() {
	attempts := e.row.trace.Attempts
	for i, a := range attempts {
		s := line.Settlement{LineCost: a.LineCost}
		if i == len(attempts)-1 && e.fail == nil {
			s.Answered, s.Cost, s.Held = true, e.cost, e.rec.held
		}
		e.jobs.opts.Lines.Settled(a.Line, e.rec.model, s)
	}
}

// pause waits; false: ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
