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

// worker looks after one running job on this node. It is used by one goroutine.
type worker struct {
	jobs      *Jobs
	rec       *row.Job
	run       *row.Run
	candidate *line.Candidate // of the submission; nil: it cannot be had on this node
	snapshot  *catalog.Snapshot
	names     []string // reserved for results
	adopted   bool     // taken over
	attempt   *line.Attempt
	span      *trace.Span // of the attempt, as far as this node makes it
	sending   bool        // counted in Jobs.sending
	life      *lifetime   // of it; set when it begins
	until     time.Time   // when storing kept results ends; zero if none are kept
}

// errGone means that somebody else looks after the job now, or that it has
// ended: the worker has nothing more to say.
var errGone = errors.New("the job is not this worker's any more")

// take lets a worker run, unless the node stops.
func (j *Jobs) take(w *worker) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.life == nil {
		return // the next start takes it over
	}
	j.workers[w.rec.ID] = w
	if w.run.State == row.StateSending && !w.adopted {
		w.sending = true
		j.sending++
	}
	j.metrics.workers.Set(float64(len(j.workers)))
	if w.candidate != nil { // a half-open line is taken from here on
		w.attempt = w.candidate.Begin(w.rec.Account)
		w.span = j.opts.Trace.JobAttempt(trace.AttemptStart{Operation: trace.Generate, Line: w.run.Line, Provider: w.candidate.Line.Provider,
			BaseURL: w.candidate.Line.BaseURL, Model: w.candidate.ProviderModel}, w.rec.ID, w.rec.Account)
	}
	w.life = newLifetime(j.life.work, j.life.grace)
	j.running.Go(func() {
		defer w.life.end()
		w.live()
	})
}

// sent tells that the worker does not submit any more.
func (w *worker) sent() {
	j := w.jobs
	j.mu.Lock()
	was := w.sending
	if w.sending {
		w.sending = false
		j.sending--
	}
	j.mu.Unlock()
	if was {
		j.rouse()
	}
}

// live looks after the job until it has ended, waits in the queue again, or
// somebody else looks after it.
func (w *worker) live() {
	j := w.jobs
	defer func() {
		if cause := recover(); cause != nil {
			j.opts.Log.Error("job: a task panicked; its job is taken over", "job", w.rec.ID, "panic", cause, "stack", string(debug.Stack()))
			w.abandon(w.life.grace)
		}
		w.sent()
		if w.attempt != nil {
			w.attempt.End()
		}
		w.span.End()
		if !w.until.IsZero() {
			j.metrics.kept.Dec()
		}
		j.mu.Lock()
		if j.workers[w.rec.ID] == w {
			delete(j.workers, w.rec.ID)
		}
		j.metrics.workers.Set(float64(len(j.workers)))
		j.mu.Unlock()
	}()
	err := w.steps()
	if err != nil && !errors.Is(err, errGone) && !w.life.stopped() {
		j.opts.Log.Error("job: a step failed; the job is taken over", "job", w.rec.ID, "error", err)
		w.abandon(w.life.grace)
	}
}

// steps goes from where the job stands to its end.
func (w *worker) steps() error {
	for {
		var err error
		var failure *upstream.JobFailure
		switch {
		case w.run.State == row.StateStored:
			return w.succeed()
		case w.candidate == nil:
			none := line.Unusable(w.rec.Kind)
			none.Lost = w.run.State == row.StateSending // nobody knows what became of it
			err = none
		case w.run.State == row.StateSending && w.adopted:
			err = w.found()
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
				return nil // the stop made it; whoever comes next goes on
			}
			return w.failed(w.life.grace, failure)
		case err != nil:
			return err
		}
	}
}

// taskOf is a job as a line is to do it.
func (j *Jobs) taskOf(r *row.Job, p *row.Run, on *line.Candidate) jobcall.Task {
	w := jobcall.Task{
		Kind: r.Kind, Model: on.ProviderModel, Set: on.Line.Fixed(), Omit: on.Line.Omits(), Prompt: r.Prompt,
		Count: int(r.Plan.Count), Tier: r.Plan.Tier, Larger: r.Plan.Larger, Ratio: r.Plan.Ratio,
		Width: r.Plan.Width, Height: r.Plan.Height, Exact: r.Plan.Exact, Seconds: r.Plan.Seconds,
		Key:       fmt.Sprintf("%s-%d", r.ID, p.Trace.Submissions(p.Number)),
		KeyMark:   p.Trace.KeyMark(),
		Submitted: time.UnixMilli(p.SubmittedMS),
		Reading:   j.reading,
	}
	if r.Params != "" {
		w.Params = json.RawMessage(r.Params)
	}
	for _, f := range r.Materials.References {
		w.References = append(w.References, j.reference(f))
	}
	for i, role := range r.Materials.Roles[:min(len(r.Materials.Roles), len(w.References))] {
		w.References[i].Role = role
	}
	if m := r.Materials.Mask; m != nil {
		mask := j.reference(*m)
		w.Mask = &mask
	}
	return w
}

// reference is a kept file as a provider gets it.
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

// reading bounds how many whole results are read into memory at a time.
func (j *Jobs) reading(ctx context.Context) (done func(), err error) { return enter(ctx, j.reads) }

// enter takes a place among those that work at a time.
func enter(ctx context.Context, places chan struct{}) (leave func(), err error) {
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// maxTicket bounds what a provider may give for a ticket, in bytes.
const maxTicket = 8 << 10

// submitWait bounds a submission that is answered by a ticket.
const submitWait = time.Minute

// total is the longest that the line may take for the job.
func (w *worker) total() time.Duration { return w.candidate.Line.Timeouts.Defaults(false).Total }

// send submits the job to its line, as was written before, and writes what came
// of it.
func (w *worker) send() error {
	if w.life.stopped() {
		return errGone
	}
	work := w.task()
	references := watchReferences(&work)
	blocks := w.candidate.Generator.Blocks(work)
	wait := w.total()
	if !blocks {
		wait = min(wait, submitWait)
	}
	ctx, cancel := context.WithTimeout(w.life.grace, wait)
	defer cancel()
	var spending upstream.Spending
	made, err := jobcall.Submit(spending.In(ctx), w.candidate.Generator, work)
	w.spent(&spending)
	w.sent()
	if err != nil {
		var failure *upstream.JobFailure
		if !errors.As(err, &failure) {
			return fmt.Errorf("submit: %w", err)
		}
		if w.life.grace.Err() != nil {
			return errGone // the node stops; whoever comes next asks what became of it
		}
		if blocks && ctx.Err() != nil {
			return w.tooLong()
		}
		if cause := references.err(); cause != nil {
			return upstream.Unread(cause)
		}
		return failure
	}
	w.run.Trace.Submitted(made.KeyMark)
	switch {
	case made.Done && len(made.Results) == 0:
		return upstream.Nothing(w.rec.Kind, "an answer without a result")
	case made.Done:
		w.attempt.Succeeded()
		return w.rendered(w.life.grace, made)
	case made.Ticket == "" || len(made.Ticket) > maxTicket || !utf8.ValidString(made.Ticket) || strings.ContainsRune(made.Ticket, 0):
		return upstream.FailJob(upstream.Fail(fault.UpstreamUnavailable, errors.New("accepted without a ticket that can be kept")),
			fault.UpstreamError, upstream.NextLine)
	}
	w.attempt.Succeeded()
	return w.accepted(w.life.grace, made.Ticket)
}

// accepted writes the provider's ticket. It is a fact, and taken also from a
// node that was declared dead meanwhile, unless the submission has one already.
func (w *worker) accepted(ctx context.Context, ticket string) error {
	err := w.write(ctx, func(tx *store.Tx, now int64, next *row.Run) (int64, error) {
		next.State, next.Ticket = row.StateRendering, ticket
		next.Trace.Step(row.StepTicket, now, next.Line)
		next.Trace.Current().Ticket = ticket
		next.Start(now)
		return next.SaveTx(tx, w.rec.ID, row.Submitted(next.Number, ticket), row.ColState, row.ColTicket, row.ColStarted, row.ColTrace)
	})
	if errors.Is(err, errGone) { // it was cancelled, or submitted anew
		w.cancel(ctx, ticket)
	}
	return err
}

// Polling: often at first, then in proportion to the time that has passed.
const (
	pollFirst     = 500 * time.Millisecond
	pollImage     = 3 * time.Second
	pollVideo     = 8 * time.Second
	pollShare     = 10
	maxPollWait   = time.Minute // what a provider may ask for
	pollAgain     = 4           // times pollFirst, after a poll without an answer
	pollWait      = 30 * time.Second
	unstableAfter = 5 * time.Minute // of polls without an answer
)

// watch polls the provider until the work has ended.
func (w *worker) watch() error {
	j := w.jobs
	silent := time.Time{} // since when polls bring no answer
	began := j.opts.Now()
	asked := time.Duration(0)
	for {
		wait := min(max(j.pollPause, j.opts.Now().Sub(began)/pollShare), pollVideo)
		if w.rec.Kind == upstream.KindImage {
			wait = min(wait, pollImage)
		}
		if asked > 0 {
			wait = min(max(asked, j.pollPause), maxPollWait)
		}
		if !loop.Sleep(w.life.work, wait) {
			return errGone
		}
		made, err := w.poll(w.life.work)
		if w.life.stopped() {
			return errGone
		}
		var failure *upstream.JobFailure
		switch {
		case err == nil && made.Done && len(made.Results) > 0:
			return w.rendered(w.life.grace, made)
		case err == nil && made.Done:
			return upstream.Nothing(w.rec.Kind, "done without a result")
		case err == nil:
			silent, asked = time.Time{}, made.Wait
		case !errors.As(err, &failure):
			return fmt.Errorf("poll: %w", err)
		case failure.Next != upstream.NextPoll:
			return failure
		default:
			now := j.opts.Now()
			if silent.IsZero() {
				silent = now
			}
			asked = max(failure.RetryAfter, pollAgain*j.pollPause)
			if now.Sub(silent) > unstableAfter {
				return upstream.Vanished(w.rec.Kind, "polls were not answered: "+failure.Failure.Error())
			}
		}
		if j.opts.Now().After(time.UnixMilli(w.run.SubmittedMS).Add(w.total())) {
			w.cancel(w.life.work, w.run.Ticket)
			return w.tooLong()
		}
	}
}

// poll asks the provider once.
func (w *worker) poll(ctx context.Context) (*jobcall.TaskStatus, error) {
	leave, err := enter(ctx, w.jobs.polls)
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, pollWait)
	defer cancel()
	var spending upstream.Spending
	defer w.spent(&spending)
	return w.candidate.Generator.Poll(spending.In(ctx), w.task(), w.run.Ticket)
}

// spent notes what the provider has counted. A cost that it cannot mean is left out.
func (w *worker) spent(spending *upstream.Spending) {
	total := spending.Total()
	if cost := money.Amount(total.CostNano); cost > 0 && !w.jobs.opts.Lines.PlausibleCost(w.run.Line, w.rec.Model, cost, w.worth()) {
		total.CostNano = 0
	}
	w.run.Trace.Spent(total)
}

// worth is the job's price in the catalog, before the account's factor.
func (w *worker) worth() money.Amount {
	held, factor := money.Price(w.rec.Held), w.rec.Plan.Factor
	if factor == 0 {
		factor = money.One
	}
	return money.Amount(held.Proportion(money.Price(money.One), money.Price(factor)))
}

// tooLong is the failure of a job that took longer than its line allows.
func (w *worker) tooLong() *upstream.JobFailure {
	failure := upstream.FailJob(upstream.Fail(fault.UpstreamTimeout, fmt.Errorf("nothing within the line's longest wait of %s", w.total())),
		fault.UpstreamError, upstream.NextNone)
	if w.rec.Kind == upstream.KindVideo {
		failure.Job = fault.WaitTimeout
	}
	return failure
}

// cancel tells the provider that nobody waits, as a courtesy.
func (w *worker) cancel(ctx context.Context, ticket string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), courtesy)
	defer cancel()
	if err := w.candidate.Generator.Cancel(ctx, w.task(), ticket); err != nil {
		w.jobs.opts.Log.Debug("job: the provider was not told that nobody waits", "job", w.rec.ID, "error", err)
	}
}

// rendered writes where the results are, before they are fetched. Results that
// came with the answer are in no place that could be written: they are stored
// next.
func (w *worker) rendered(ctx context.Context, made *jobcall.TaskStatus) error {
	results := made.Results[:min(len(made.Results), int(w.rec.Plan.Count))]
	if inline(results) {
		w.run.Results = results
		w.run.State = row.StateRendered
		return nil
	}
	reserved := w.names
	return w.write(ctx, func(tx *store.Tx, now int64, next *row.Run) (changed int64, err error) {
		next.State, next.Results = row.StateRendered, results
		next.Trace.Step(row.StepRendered, now, next.Line)
		// Names that an earlier try has reserved went with its transaction.
		if w.names = reserved; len(reserved) < len(results) {
			if w.names, err = media.ReserveTx(tx, w.rec.ID, len(results)); err != nil {
				return 0, err
			}
		}
		next.Start(now)
		return next.SaveTx(tx, w.rec.ID, row.KeptBy(next.Fence), row.ColState, row.ColResults, row.ColStarted, row.ColTrace)
	})
}

// write writes the worker's next step and, once it is committed, stands there. It
// goes on trying while the database is away, until ctx ends. errGone: the row did
// not change. Other errors: the database refuses the step itself.
func (w *worker) write(ctx context.Context, step func(tx *store.Tx, now int64, next *row.Run) (changed int64, err error)) error {
	j := w.jobs
	for {
		var next row.Run
		var changed int64
		before := len(w.run.Trace.Steps)
		err := j.writer.write(ctx, func(tx *store.Tx) error {
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
			return errGone
		case err == nil:
			*w.run = next
			for _, s := range next.Trace.Steps[min(before, len(next.Trace.Steps)):] {
				j.metrics.step(s.Name)
			}
			return nil
		}
		if store.Refused(err) && !store.Retryable(err) || errors.Is(err, errPanic) {
			return fmt.Errorf("write a step: %w", err)
		}
		// It may have been committed all the same: then the same step changes
		// the same row once more, or finds it changed by somebody else.
		j.logAway("a step is not written yet", w.rec.ID, err)
		if !loop.Sleep(ctx, writeAgain) {
			return errGone
		}
	}
}

// abandon lets somebody else look after the job.
func (w *worker) abandon(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, writeWait)
	defer cancel()
	given := *w.run
	given.Epoch = abandoned
	err := w.jobs.opts.DB.Update(ctx, func(tx *store.Tx) error {
		_, err := given.SaveTx(tx, w.rec.ID, row.Running(w.run.Fence), row.ColEpoch)
		return err
	})
	if err != nil {
		w.jobs.opts.Log.Error("job: a job could not be given up for others", "job", w.rec.ID, "error", err)
	}
}
