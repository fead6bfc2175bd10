package job

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/job/row"
	"tollgate/internal/loop"
	"tollgate/internal/media"
	"tollgate/internal/slot"
	"tollgate/internal/store"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// Bounds of fetching the results of a job.
const (
	fetchTries = 5
	fetchFirst = 500 * time.Millisecond // before the second try, then twice as long each time
	fetchWait  = 5 * time.Minute        // for one file
	maxImage   = 64 << 20
	maxVideo   = 1 << 30
)

// collect fetches and stores the results, each as often as it takes, and writes
// the stored files. A file that broke off is begun anew; addresses that do not
// work any more are asked for afresh. Results that the media store does not take are
// kept and tried again for as long as MediaRetry.
func (w *worker) collect() error {
	files := make([]media.File, len(w.run.Results))
	stored := make([]bool, len(files))
	for tries, waits := 0, 0; ; {
		ctx := w.collecting()
		if len(w.names) < len(w.run.Results) {
			if err := w.reserve(ctx); err != nil {
				return err
			}
		}
		failure, ours := w.storeMissing(ctx, files, stored)
		switch {
		case failure == nil:
			return w.stored(w.life.grace, files)
		case ctx.Err() != nil:
			return errGone
		case ours:
			left, err := w.keep(ctx)
			switch {
			case errors.Is(err, errSpoolFull):
				return w.partly(files, stored, w.unstored(err))
			case err != nil:
				return err
			case left <= 0:
				return w.partly(files, stored, w.unstored(failure))
			case !loop.Sleep(w.life.work, min(w.jobs.fetchPause<<min(waits, 16), maxStorePause, left)):
				return errGone
			}
			waits++
			continue
		}
		if tries++; tries == fetchTries {
			return w.partly(files, stored, w.unfetched(failure))
		}
		if !loop.Sleep(ctx, w.jobs.fetchPause<<(tries-1)) {
			return errGone
		}
		w.refresh(ctx, failure)
	}
}

// collecting returns the context of collect. Results that came with the answer are
// stored or kept also while the node stops: they are nowhere else, and whoever came
// next would have them made once more.
func (w *worker) collecting() context.Context {
	if inline(w.run.Results) {
		return w.life.grace
	}
	return w.life.work
}

// storeMissing fetches and stores the results that are not stored yet. ours means
// that at least one failed for no fault of the provider.
func (w *worker) storeMissing(ctx context.Context, files []media.File, stored []bool) (failure error, ours bool) {
	if _, down := w.jobs.opts.Media.Down(); down {
		return errDown, true
	}
	for i := range min(len(w.run.Results), len(files)) {
		if stored[i] {
			continue
		}
		file, err := w.fetch(ctx, i)
		if err != nil {
			failure, ours = errors.Join(failure, err), ours || !theirs(err)
			if errors.Is(err, media.ErrNotReserved) {
				w.names = nil // what is stored keeps its name
			}
			if ctx.Err() != nil || w.names == nil {
				return failure, ours
			}
			continue
		}
		files[i], stored[i] = file, true
	}
	return failure, ours
}

// partly ends the work on results of which some are stored: fewer images than asked
// for are charged as fewer. If none is stored, it returns failure.
func (w *worker) partly(files []media.File, stored []bool, failure error) error {
	kept := make([]media.File, 0, len(files))
	for i := range files {
		if stored[i] {
			kept = append(kept, files[i])
		}
	}
	if len(kept) > 0 {
		return w.stored(w.life.grace, kept)
	}
	return failure
}

// inline reports whether results came with an answer, in whole or in part, and are
// in this node's memory alone.
func inline(results []jobcall.Result) bool {
	return slices.ContainsFunc(results, func(r jobcall.Result) bool { return r.Ref == "" && r.Kept == 0 })
}

// reserve records names for the results, on a node that has taken the job over.
func (w *worker) reserve(ctx context.Context) error {
	return w.write(ctx, func(tx *store.Tx, _ int64, next *row.Run) (changed int64, err error) {
		if w.names, err = media.ReserveTx(tx, w.rec.ID, len(w.run.Results)); err != nil {
			return 0, err
		}
		return next.SaveTx(tx, w.rec.ID, row.KeptBy(next.Fence), row.ColFence)
	})
}

// inlineWait bounds the first attempt to store a result that came with the answer:
// until it is stored or kept, the death of the node would lose it.
const inlineWait = 15 * time.Second

// fetch brings one result into the media store.
func (w *worker) fetch(ctx context.Context, i int) (media.File, error) {
	leave, err := enter(ctx, w.jobs.fetches)
	if err != nil {
		return media.File{}, err
	}
	defer leave()
	r, wait := w.run.Results[i], time.Duration(fetchWait)
	if r.Ref == "" && r.Kept == 0 {
		wait = inlineWait
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	limit := media.Limit{Kind: w.rec.Kind, Size: maxImage}
	if w.rec.Kind == upstream.KindVideo {
		limit.Size = maxVideo
	}
	source := &timedReader{from: bytes.NewReader(r.Data), now: w.jobs.opts.Now}
	switch {
	case r.Kept > 0:
		name := spooled{w.rec.ID, w.run.Number, i}
		source.from = &sizedReader{from: &spoolReader{ctx: ctx, db: w.jobs.opts.DB, name: name}, left: r.Kept}
	case r.Ref != "":
		file, err := w.candidate.Generator.Fetch(ctx, w.task(), r)
		if err != nil {
			return media.File{}, err
		}
		defer file.Body.Close()
		source.from = sized(file)
	}
	file, err := w.jobs.opts.Media.Put(ctx, w.names[i], source, limit)
	switch {
	case err == nil:
		return file, nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && source.spent < wait/2:
		return media.File{}, fmt.Errorf("store a result: the media store took longer than %s", wait-source.spent)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return media.File{}, fmt.Errorf("%w: it took longer than %s", media.ErrSource, source.spent)
	}
	return media.File{}, fmt.Errorf("store a result: %w", err)
}

// timedReader measures how long reading takes.
type timedReader struct {
	from  io.Reader
	now   func() time.Time
	spent time.Duration
}

// Read implements io.Reader.
func (t *timedReader) Read(p []byte) (int, error) {
	began := t.now()
	n, err := t.from.Read(p)
	t.spent += t.now().Sub(began)
	return n, err
}

// sized returns the body of a download, which fails if it ends early.
func sized(file *jobcall.Download) io.Reader {
	if file.Size < 0 {
		return file.Body
	}
	return &sizedReader{from: file.Body, left: file.Size}
}

// sizedReader reads a body of a known length and fails when it ends before.
type sizedReader struct {
	from io.Reader
	left int64
}

// Read implements io.Reader.
func (w *sizedReader) Read(p []byte) (int, error) {
	n, err := w.from.Read(p)
	w.left -= int64(n)
	if errors.Is(err, io.EOF) && w.left > 0 {
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}

// refresh asks the provider for fresh addresses after downloads failed.
func (w *worker) refresh(ctx context.Context, failure error) {
	if w.run.Ticket == "" || !theirs(failure) {
		return
	}
	made, err := w.poll(ctx)
	if err == nil && made.Done && len(made.Results) >= len(w.run.Results) {
		w.run.Results = made.Results[:len(w.run.Results)]
	}
}

// unfetched is the failure of results that could not be fetched from the provider.
func (w *worker) unfetched(cause error) *upstream.JobFailure {
	f := upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("the result could not be fetched: %w", cause))
	if w.rec.Kind == upstream.KindVideo { // another line would render it again
		return upstream.FailJob(f, fault.ResultFetchFailed, upstream.NextNone)
	}
	return upstream.FailJob(f, fault.UpstreamError, upstream.NextLine)
}

// theirs reports whether the provider is why a result could not be stored: it did
// not send the result, or sent bytes that are no result.
func theirs(err error) bool {
	var failure *upstream.JobFailure
	return !errors.Is(err, errSpool) && (errors.As(err, &failure) || errors.Is(err, media.ErrSource) || errors.Is(err, media.ErrBroken) ||
		errors.Is(err, media.ErrForeign) || errors.Is(err, media.ErrTooLarge))
}

// stored writes which files are the results.
func (w *worker) stored(ctx context.Context, files []media.File) error {
	return w.write(ctx, func(tx *store.Tx, now int64, next *row.Run) (int64, error) {
		if inline(next.Results) {
			next.Trace.Step(row.StepRendered, now, next.Line)
		}
		next.Start(now)
		next.State, next.Files, next.Results = row.StateStored, files, nil
		next.Trace.Step(row.StepFetched, now, next.Line)
		next.Trace.Step(row.StepStored, now, next.Line)
		if !w.until.IsZero() {
			if _, err := tx.Exec(deleteSpoolOf, w.rec.ID); err != nil {
				return 0, err
			}
		}
		return next.SaveTx(tx, w.rec.ID, row.KeptBy(next.Fence), row.ColState, row.ColFiles, row.ColResults, row.ColStarted, row.ColTrace)
	})
}

// succeed ends the job with its files.
func (w *worker) succeed() error {
	e := w.jobs.ending(w.rec, w.run.Files, w.run.Fence, row.JobError{})
	model, err := w.jobs.pricedBy(w.life.work, w.rec)
	if err != nil {
		return fmt.Errorf("price the job: %w", err)
	}
	e.cost = model.PlanCost(w.rec.Plan, int64(len(w.run.Files)))
	if w.candidate != nil {
		if taken, known := w.candidate.Line.PlanCost(model, w.rec.Plan, int64(len(w.run.Files))); known {
			e.taken = &taken
		}
	}
	w.jobs.end(w.life.grace, e)
	return errGone
}

// failed decides what becomes of the job after a failure, and writes that.
func (w *worker) failed(ctx context.Context, failure *upstream.JobFailure) error {
	j := w.jobs
	failure.Conceal(jobcall.Task{Prompt: w.rec.Prompt, Params: json.RawMessage(w.rec.Params)}.Texts())
	if w.attempt != nil {
		w.attempt.JobFailed(failure)
		w.span.Status(failure.Status)
		w.span.Fail(string(failure.Code))
		w.attempt.End()
	}
	var v row.Disposition
	err := w.write(ctx, func(tx *store.Tx, now int64, next *row.Run) (int64, error) {
		next.Trace.Ended(failure, now)
		next.Trace.Step(row.StepAttemptFailed, now, next.Line)
		if v = row.After(&next.Trace, next.Number, failure, j.open(w.rec.Model, w.rec.Account)); v.Fail != nil {
			return next.SaveTx(tx, w.rec.ID, row.Unticketed(next.Fence, next.Ticket), row.ColTrace)
		}
		return stepBackTx(tx, next, w.rec.ID, now, v.Wait)
	})
	switch {
	case err != nil:
		return err
	case v.Fail != nil:
		j.end(ctx, j.ending(w.rec, nil, w.run.Fence, *v.Fail))
		return errGone
	}
	j.rouse()
	return errGone
}

// stepBackTx puts a job back into its queue, at its old place or, if the queue has
// moved on, at its beginning, unless somebody has brought a ticket meanwhile, and
// gives its slot back. A job that has started
// waits from now on; one that has not, since its submission. A line that was too
// busy to take it does not begin the wait anew, however often it says so.
func stepBackTx(tx *store.Tx, p *row.Run, id string, now int64, wait time.Duration) (int64, error) {
	fence, ticket := p.Fence, p.Ticket
	p.State, p.Epoch, p.Fence, p.WakeMS, p.Line, p.Ticket = row.StateQueued, "", p.Fence+1, now+wait.Milliseconds(), "", ""
	p.Results, p.Files = nil, nil
	if p.StartedMS > 0 && (ticket != "" || !p.Trace.TurnedAway()) {
		p.QueuedMS = now
	}
	changed, err := p.SaveTx(tx, id, row.Unticketed(fence, ticket),
		row.ColState, row.ColEpoch, row.ColFence, row.ColWake, row.ColQueued, row.ColLine, row.ColTicket, row.ColResults, row.ColFiles,
		row.ColTrace, row.ColTurn)
	if err != nil || changed == 0 {
		return 0, err
	}
	return changed, slot.GiveTx(tx, id)
}

// open names the lines that take an account's jobs of a model now or soon.
func (j *Jobs) open(model, account string) []string {
	snapshot := j.opts.Catalog.Current()
	candidates, waiting := j.opts.Lines.Candidates(snapshot, model, account)
	ids := make([]string, 0, len(candidates)+len(waiting))
	for _, b := range candidates {
		ids = append(ids, b.Line.ID)
	}
	for _, w := range waiting {
		if w.Soon {
			ids = append(ids, w.Line)
		}
	}
	return ids
}
