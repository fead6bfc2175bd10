package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/job/row"
	"tollgate/internal/line"
	"tollgate/internal/loop"
	"tollgate/internal/media"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/trace"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// worker processes a job on this node. One goroutine uses it.
type worker struct {
	jobs       *Jobs
	rec        *row.Job
	run        *row.Run
	candidate  *line.Candidate // nil if this node cannot call the job's line
	snapshot   *catalog.Snapshot
	names      []string // reserved for results
	takenOver  bool
	attempt    *line.Attempt
	span       *trace.Span // this node's part of the attempt
	sending    bool        // counted in Jobs.sending
	life       *lifetime   // set when the worker begins
	storeUntil time.Time   // the time to give up storing kept results; zero if no results are kept
}

// errNotOwner stops a worker, because the job has ended or belongs to another worker.
var errNotOwner = errors.New("the job no longer belongs to this worker")

// begin starts a worker, unless the node stops.
func (j *Jobs) begin(w *worker) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.life == nil {
		return // another node or the next start takes over the job
	}
	j.workers[w.rec.ID] = w
	if w.run.State == row.StateSending && !w.takenOver {
		w.sending = true
		j.sending++
	}
	j.metrics.workers.Set(float64(len(j.workers)))
	if w.candidate != nil { // from here on, the line counts as occupied if it is half-open
		w.attempt = w.candidate.Begin(w.rec.Account)
		w.span = j.opts.Trace.JobAttempt(trace.AttemptStart{Operation: trace.Generate, Line: w.run.Line, Provider: w.candidate.Line.Provider,
			BaseURL: w.candidate.Line.BaseURL, Model: w.candidate.ProviderModel}, w.rec.ID, w.rec.Account)
	}
	w.life = newLifetime(j.life.work, j.life.grace)
	j.running.Go(func() {
		defer w.life.end()
		w.process()
	})
}

// endSubmission frees the worker's capacity for submissions.
func (w *worker) endSubmission() {
	j := w.jobs
	j.mu.Lock()
	wasSending := w.sending
	if w.sending {
		w.sending = false
		j.sending--
	}
	j.mu.Unlock()
	if wasSending {
		j.wakeUp()
	}
}

// process runs the job until it ends, returns to the queue or has another owner.
func (w *worker) process() {
	j := w.jobs
	defer func() {
		if cause := recover(); cause != nil {
			j.opts.Log.Error("job: a worker panicked; its job is taken over", "job", w.rec.ID, "panic", cause, "stack", string(debug.Stack()))
			w.release(w.life.grace)
		}
		w.endSubmission()
		if w.attempt != nil {
			w.attempt.End()
		}
		w.span.End()
		if !w.storeUntil.IsZero() {
			j.metrics.kept.Dec()
		}
		j.mu.Lock()
		if j.workers[w.rec.ID] == w {
			delete(j.workers, w.rec.ID)
		}
		j.metrics.workers.Set(float64(len(j.workers)))
		j.mu.Unlock()
	}()
	err := w.runSteps()
	if err != nil && !errors.Is(err, errNotOwner) && !w.life.stopped() {
		j.opts.Log.Error("job: a step failed; the job is taken over", "job", w.rec.ID, "error", err)
		w.release(w.life.grace)
	}
}

// runSteps runs the steps from the job's current state.
func (w *worker) runSteps() error {
	for {
		var err error
		var failure *upstream.JobFailure
		switch {
		case w.run.State == row.StateStored:
			return w.succeed()
		case w.candidate == nil:
			f := line.UnusableFailure(w.rec.Kind)
			f.Lost = w.run.State == row.StateSending // the outcome is unknown
			err = f
		case w.run.State == row.StateSending && w.takenOver:
			err = w.recoverTicket()
		case w.run.State == row.StateSending:
			err = w.send()
		case w.run.State == row.StateRendering:
			err = w.watch()
		case w.run.State == row.StateRendered:
			err = w.collect()
		default:
			return nil
		}
		switch {
		case errors.As(err, &failure):
			if w.life.stopped() && w.run.State != row.StateSending {
				return nil // caused by the stop of this node; the next owner continues
			}
			return w.fail(w.life.grace, failure)
		case err != nil:
			return err
		}
	}
}

// taskOf converts a job for the adapter of a line.
func (j *Jobs) taskOf(r *row.Job, p *row.Run, c *line.Candidate) jobcall.Task {
	task := jobcall.Task{
		Kind: r.Kind, Model: c.ProviderModel, Set: c.Line.FixedFields(), Omit: c.Line.OmittedFields(), Prompt: r.Prompt,
		Count: int(r.Plan.Count), Tier: r.Plan.Tier, HasSmallerTier: r.Plan.Larger, Ratio: r.Plan.Ratio,
		Width: r.Plan.Width, Height: r.Plan.Height, Exact: r.Plan.Exact, Seconds: r.Plan.Seconds,
		Key:         fmt.Sprintf("%s-%d", r.ID, p.Trace.KeyNumber(p.Number)),
		KeyMark:     p.Trace.KeyMark(),
		Submitted:   time.UnixMilli(p.SubmittedMS),
		AcquireRead: j.acquireRead,
	}
	if r.Params != "" {
		task.Params = json.RawMessage(r.Params)
	}
	for _, f := range r.Materials.References {
		task.References = append(task.References, j.reference(f))
	}
	for i, role := range r.Materials.Roles[:min(len(r.Materials.Roles), len(task.References))] {
		task.References[i].Role = role
	}
	if m := r.Materials.Mask; m != nil {
		mask := j.reference(*m)
		task.Mask = &mask
	}
	return task
}

// reference converts a file for an adapter.
func (j *Jobs) reference(f media.File) jobcall.Reference {
	ref := jobcall.Reference{Type: f.Type, Size: f.Size, Open: func(ctx context.Context) (io.ReadCloser, error) {
		body, _, err := j.opts.Media.Open(ctx, f.Name)
		return body, err
	}}
	if j.opts.Media.Public() {
		ref.URL = j.opts.Media.ReferenceURL(f)
	}
	return ref
}

// acquireRead waits for one of the slots for inline results, because they are held in memory.
func (j *Jobs) acquireRead(ctx context.Context) (release func(), err error) {
	return acquire(ctx, j.reads)
}

// acquire waits for one of the slots of a channel.
func acquire(ctx context.Context, slots chan struct{}) (release func(), err error) {
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// maxTicket is the maximum length of a ticket in bytes.
const maxTicket = 8 << 10

// submitWait is the timeout of a submission for a ticket.
const submitWait = time.Minute

// timeout returns the line's time limit for the job.
func (w *worker) timeout() time.Duration { return w.candidate.Line.Timeouts.WithDefaults(false).Total }

// send submits the job to its line and records the answer.
func (w *worker) send() error {
	if w.life.stopped() {
		return errNotOwner
	}
	task := w.task()
	references := watchReferences(&task)
	blocks := w.candidate.Generator.Blocks(task)
	wait := w.timeout()
	if !blocks {
		wait = min(wait, submitWait)
	}
	ctx, cancel := context.WithTimeout(w.life.grace, wait)
	defer cancel()
	var spending upstream.Spending
	answer, err := jobcall.Submit(spending.In(ctx), w.candidate.Generator, task)
	w.addUsage(&spending)
	w.endSubmission()
	if err != nil {
		var failure *upstream.JobFailure
		if !errors.As(err, &failure) {
			return fmt.Errorf("submit: %w", err)
		}
		if w.life.grace.Err() != nil {
			return errNotOwner // the node stops; the next owner looks up the submission
		}
		if blocks && ctx.Err() != nil {
			return w.timeoutFailure()
		}
		if cause := references.err(); cause != nil {
			return upstream.UnreadableFile(cause)
		}
		return failure
	}
	w.run.Trace.SetKeyMark(answer.KeyMark)
	switch {
	case answer.Done && len(answer.Results) == 0:
		return upstream.EmptyResult(w.rec.Kind, "an answer without a result")
	case answer.Done:
		w.attempt.RecordSuccess()
		return w.writeRendered(w.life.grace, answer)
	case answer.Ticket == "" || len(answer.Ticket) > maxTicket || !utf8.ValidString(answer.Ticket) || strings.ContainsRune(answer.Ticket, 0):
		return upstream.FailJob(upstream.Fail(fault.UpstreamUnavailable, errors.New("the provider accepted the job without a valid ticket")),
			fault.UpstreamError, upstream.NextLine)
	}
	w.attempt.RecordSuccess()
	return w.writeTicket(w.life.grace, answer.Ticket)
}

// writeTicket records the provider's ticket, unless the submission has another ticket. A node that
// was declared dead may also record a ticket.
func (w *worker) writeTicket(ctx context.Context, ticket string) error {
	err := w.write(ctx, func(tx *store.Tx, now int64, next *row.Run) (int64, error) {
		next.State, next.Ticket = row.StateRendering, ticket
		next.Trace.Step(row.StepTicket, now, next.Line)
		next.Trace.Current().Ticket = ticket
		next.Start(now)
		return next.SaveTx(tx, w.rec.ID, row.IfSubmission(next.Number, ticket), row.ColState, row.ColTicket, row.ColStarted, row.ColTrace)
	})
	if errors.Is(err, errNotOwner) { // the job was canceled or submitted again
		w.cancel(ctx, ticket)
	}
	return err
}

// Limits of polling. The interval between polls grows in proportion to the time since the first poll.
const (
	pollFirst        = 500 * time.Millisecond
	pollImage        = 3 * time.Second
	pollVideo        = 8 * time.Second
	pollShare        = 10          // the interval is the elapsed time divided by pollShare
	maxPollWait      = time.Minute // the limit of a provider's Retry-After
	unansweredFactor = 4           // times pollFirst, after an unanswered poll
	pollWait         = 30 * time.Second
	maxUnanswered    = 5 * time.Minute // of unanswered polls
)

// watch polls the provider until the task has ended.
func (w *worker) watch() error {
	j := w.jobs
	unansweredSince := time.Time{} // the first unanswered poll since the last answer; zero if none
	start := j.opts.Now()
	deadline := start.Add(w.timeout() - w.age())
	pause := time.Duration(0)
	for {
		wait := min(max(j.pollPause, j.opts.Now().Sub(start)/pollShare), pollVideo)
		if w.rec.Kind == upstream.KindImage {
			wait = min(wait, pollImage)
		}
		if pause > 0 {
			wait = min(max(pause, j.pollPause), maxPollWait)
		}
		if !loop.Sleep(w.life.work, wait) {
			return errNotOwner
		}
		answer, err := w.poll(w.life.work)
		if w.life.stopped() {
			return errNotOwner
		}
		var failure *upstream.JobFailure
		switch {
		case err == nil && answer.Done && len(answer.Results) > 0:
			return w.writeRendered(w.life.grace, answer)
		case err == nil && answer.Done:
			return upstream.EmptyResult(w.rec.Kind, "done without a result")
		case err == nil:
			unansweredSince, pause = time.Time{}, answer.Wait
		case !errors.As(err, &failure):
			return fmt.Errorf("poll: %w", err)
		case failure.Next != upstream.NextPoll:
			return failure
		default:
			now := j.opts.Now()
			if unansweredSince.IsZero() {
				unansweredSince = now
			}
			pause = max(failure.RetryAfter, unansweredFactor*j.pollPause)
			if now.Sub(unansweredSince) > maxUnanswered {
				return upstream.UnknownTask(w.rec.Kind, "polls were not answered: "+failure.Failure.Error())
			}
		}
		if j.opts.Now().After(deadline) {
			w.cancel(w.life.work, w.run.Ticket)
			return w.timeoutFailure()
		}
	}
}

// age returns the time since the submission to the provider, by the clock of the database, because the clock of this
// node may be wrong. While the database does not answer, the age is 0, so the provider gets more time.
func (w *worker) age() time.Duration {
	ctx, cancel := context.WithTimeout(w.life.work, writeWait)
	defer cancel()
	now, err := store.Read(ctx, w.jobs.opts.DB, func(tx *store.Tx) (int64, error) { return tx.NowMS() })
	if err != nil {
		return 0
	}
	return time.Duration(now-w.run.SubmittedMS) * time.Millisecond
}

// poll polls the provider once.
func (w *worker) poll(ctx context.Context) (*jobcall.TaskStatus, error) {
	release, err := acquire(ctx, w.jobs.polls)
	if err != nil {
		return nil, err
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, pollWait)
	defer cancel()
	var spending upstream.Spending
	defer w.addUsage(&spending)
	return w.candidate.Generator.Poll(spending.In(ctx), w.task(), w.run.Ticket)
}

// addUsage adds the provider's counts to the trace. It omits an implausible cost.
func (w *worker) addUsage(spending *upstream.Spending) {
	total := spending.Total()
	if cost := money.Amount(total.CostNano); cost > 0 && !w.jobs.opts.Lines.PlausibleCost(w.run.Line, w.rec.Model, cost, w.listPrice()) {
		total.CostNano = 0
	}
	w.run.Trace.AddUsage(total)
}

// listPrice returns the job's maximum cost before the account's factor.
func (w *worker) listPrice() money.Amount {
	held, factor := money.Price(w.rec.Held), w.rec.Plan.Factor
	if factor == 0 {
		factor = money.One
	}
	return money.Amount(held.Proportion(money.Price(money.One), money.Price(factor)))
}

// timeoutFailure returns the failure of a job after the line's time limit.
func (w *worker) timeoutFailure() *upstream.JobFailure {
	failure := upstream.FailJob(upstream.Fail(fault.UpstreamTimeout, fmt.Errorf("no result within the line's time limit of %s", w.timeout())),
		fault.UpstreamError, upstream.NextNone)
	if w.rec.Kind == upstream.KindVideo {
		failure.Job = fault.WaitTimeout
	}
	return failure
}

// cancel tries to cancel the task at the provider.
func (w *worker) cancel(ctx context.Context, ticket string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelWait)
	defer cancel()
	if err := w.candidate.Generator.Cancel(ctx, w.task(), ticket); err != nil {
		w.jobs.opts.Log.Debug("job: cannot cancel the task at the provider", "job", w.rec.ID, "error", err)
	}
}

// writeRendered records the addresses of the results before the download. Inline results have no
// address, so they are stored first.
func (w *worker) writeRendered(ctx context.Context, answer *jobcall.TaskStatus) error {
	results := answer.Results[:min(len(answer.Results), int(w.rec.Plan.Count))]
	if hasInline(results) {
		w.run.Results = results
		w.run.State = row.StateRendered
		return nil
	}
	reserved := w.names
	return w.write(ctx, func(tx *store.Tx, now int64, next *row.Run) (changed int64, err error) {
		next.State, next.Results = row.StateRendered, results
		next.Trace.Step(row.StepRendered, now, next.Line)
		// a rollback has removed the names of an earlier attempt
		if w.names = reserved; len(reserved) < len(results) {
			if w.names, err = media.ReserveTx(tx, w.rec.ID, len(results)); err != nil {
				return 0, err
			}
		}
		next.Start(now)
		return next.SaveTx(tx, w.rec.ID, row.IfFence(next.Fence), row.ColState, row.ColResults, row.ColStarted, row.ColTrace)
	})
}

// write commits the worker's next step and then updates w.run. While the database is unavailable,
// write retries until ctx ends. It returns errNotOwner if no row changed. Any other error means that
// the database rejects the step.
func (w *worker) write(ctx context.Context, step func(tx *store.Tx, now int64, next *row.Run) (changed int64, err error)) error {
	j := w.jobs
	for {
		var next row.Run
		var changed int64
		before := len(w.run.Trace.Steps)
		err := j.writer.Write(ctx, func(tx *store.Tx) error {
			now, err := tx.NowMS()
			if err != nil {
				return err
			}
			next = *w.run
			next.Trace = w.run.Trace.Clone()
			changed, err = step(tx, now, &next)
			return err
		})
		switch {
		case err == nil && changed == 0:
			return errNotOwner
		case err == nil:
			*w.run = next
			for _, s := range next.Trace.Steps[min(before, len(next.Trace.Steps)):] {
				j.metrics.countStep(s.Name)
			}
			return nil
		}
		if store.Refused(err) && !store.Retryable(err) || errors.Is(err, store.ErrPanic) {
			return fmt.Errorf("write a step: %w", err)
		}
		// The step may have been committed. The next attempt then changes the same row again, or no
		// row if another worker owns the job.
		j.logOutage("a step could not be committed", w.rec.ID, err)
		if !loop.Sleep(ctx, retryPause) {
			return errNotOwner
		}
	}
}

// release lets another worker process the job.
func (w *worker) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, writeWait)
	defer cancel()
	released := *w.run
	released.Epoch = noOwner
	err := w.jobs.opts.DB.Update(ctx, func(tx *store.Tx) error {
		_, err := released.SaveTx(tx, w.rec.ID, row.IfRunning(w.run.Fence), row.ColEpoch)
		return err
	})
	if err != nil {
		w.jobs.opts.Log.Error("job: cannot release a job for another worker", "job", w.rec.ID, "error", err)
	}
}
