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

// Limits of a job's downloads.
const (
	fetchTries = 5
	fetchFirst = 500 * time.Millisecond // before the second attempt, then doubled each time
	fetchWait  = 5 * time.Minute        // per file
	maxImage   = 64 << 20
	maxVideo   = 1 << 30
)

// collect downloads and stores the results. It repeats interrupted downloads, asks the provider for
// new addresses after failed downloads, and retries for MediaRetry if the media store fails.
func (w *worker) collect() error {
	files := make([]media.File, len(w.run.Results))
	stored := make([]bool, len(files))
	for tries, mediaRetries := 0, 0; ; {
		ctx := w.collectContext()
		if len(w.names) < len(w.run.Results) {
			if err := w.reserve(ctx); err != nil {
				return err
			}
		}
		failure, ownFault := w.storeMissing(ctx, files, stored)
		switch {
		case failure == nil:
			return w.writeStored(w.life.grace, files)
		case ctx.Err() != nil:
			return errNotOwner
		case ownFault:
			remaining, err := w.keep(ctx)
			switch {
			case errors.Is(err, errSpoolFull):
				return w.storePartial(files, stored, w.storeFailure(err))
			case err != nil:
				return err
			case remaining <= 0:
				return w.storePartial(files, stored, w.storeFailure(failure))
			case !loop.Sleep(w.life.work, min(w.jobs.fetchPause<<min(mediaRetries, 16), maxStorePause, remaining)):
				return errNotOwner
			}
			mediaRetries++
			continue
		}
		if tries++; tries == fetchTries {
			return w.storePartial(files, stored, w.fetchFailure(failure))
		}
		if !loop.Sleep(ctx, w.jobs.fetchPause<<(tries-1)) {
			return errNotOwner
		}
		w.refresh(ctx, failure)
	}
}

// collectContext returns the context of collect. A stopping node still stores or spools inline
// results, because another node could not get them without a new submission.
func (w *worker) collectContext() context.Context {
	if hasInline(w.run.Results) {
		return w.life.grace
	}
	return w.life.work
}

// storeMissing downloads and stores the missing results. ownFault is true if at least one failure was
// not caused by the provider.
func (w *worker) storeMissing(ctx context.Context, files []media.File, stored []bool) (failure error, ownFault bool) {
	if _, down := w.jobs.opts.Media.Down(); down {
		return errDown, true
	}
	for i := range min(len(w.run.Results), len(files)) {
		if stored[i] {
			continue
		}
		file, err := w.fetch(ctx, i)
		if err != nil {
			failure, ownFault = errors.Join(failure, err), ownFault || !providerFault(err)
			if errors.Is(err, media.ErrNotReserved) {
				w.names = nil // stored files keep their names
			}
			if ctx.Err() != nil || w.names == nil {
				return failure, ownFault
			}
			continue
		}
		files[i], stored[i] = file, true
	}
	return failure, ownFault
}

// storePartial continues with the stored files, so that the job is charged for fewer images. Without
// a stored file, it returns failure.
func (w *worker) storePartial(files []media.File, stored []bool, failure error) error {
	partial := make([]media.File, 0, len(files))
	for i := range files {
		if stored[i] {
			partial = append(partial, files[i])
		}
	}
	if len(partial) > 0 {
		return w.writeStored(w.life.grace, partial)
	}
	return failure
}

// hasInline reports whether some results came with the provider's answer and exist only in this node's
// memory.
func hasInline(results []jobcall.Result) bool {
	return slices.ContainsFunc(results, func(r jobcall.Result) bool { return r.Ref == "" && r.StoredSize == 0 })
}

// reserve reserves file names for the results after a take-over.
func (w *worker) reserve(ctx context.Context) error {
	return w.write(ctx, func(tx *store.Tx, _ int64, next *row.Run) (changed int64, err error) {
		if w.names, err = media.ReserveTx(tx, w.rec.ID, len(w.run.Results)); err != nil {
			return 0, err
		}
		return next.SaveTx(tx, w.rec.ID, row.IfFence(next.Fence), row.ColFence)
	})
}

// inlineWait bounds the first attempt to store an inline result, because the result is lost if the
// node dies before it is stored or spooled.
const inlineWait = 15 * time.Second

// fetch copies a result to the media store.
func (w *worker) fetch(ctx context.Context, i int) (media.File, error) {
	release, err := acquire(ctx, w.jobs.fetches)
	if err != nil {
		return media.File{}, err
	}
	defer release()
	r, wait := w.run.Results[i], time.Duration(fetchWait)
	if r.Ref == "" && r.StoredSize == 0 {
		wait = inlineWait
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	limit := media.Limit{Kind: w.rec.Kind, Size: maxImage}
	if w.rec.Kind == upstream.KindVideo {
		limit.Size = maxVideo
	}
	reader := &timedReader{source: bytes.NewReader(r.Data), now: w.jobs.opts.Now}
	switch {
	case r.StoredSize > 0:
		name := spoolName{w.rec.ID, w.run.Number, i}
		reader.source = &sizedReader{source: &spoolReader{ctx: ctx, db: w.jobs.opts.DB, name: name}, remaining: r.StoredSize}
	case r.Ref != "":
		file, err := w.candidate.Generator.Fetch(ctx, w.task(), r)
		if err != nil {
			return media.File{}, err
		}
		defer file.Body.Close()
		reader.source = newSizedReader(file)
	}
	file, err := w.jobs.opts.Media.Put(ctx, w.names[i], reader, limit)
	switch {
	case err == nil:
		return file, nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && reader.spent < wait/2:
		return media.File{}, fmt.Errorf("store a result: the media store took longer than %s", wait-reader.spent)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return media.File{}, fmt.Errorf("%w: the download took longer than %s", media.ErrSource, reader.spent)
	}
	return media.File{}, fmt.Errorf("store a result: %w", err)
}

// timedReader measures the time spent in Read.
type timedReader struct {
	source io.Reader
	now    func() time.Time
	spent  time.Duration
}

// Read implements io.Reader.
func (t *timedReader) Read(p []byte) (int, error) {
	start := t.now()
	n, err := t.source.Read(p)
	t.spent += t.now().Sub(start)
	return n, err
}

// newSizedReader returns a reader of a download's body that checks the size, if known.
func newSizedReader(file *jobcall.Download) io.Reader {
	if file.Size < 0 {
		return file.Body
	}
	return &sizedReader{source: file.Body, remaining: file.Size}
}

// sizedReader returns io.ErrUnexpectedEOF if the source ends too early.
type sizedReader struct {
	source    io.Reader
	remaining int64
}

// Read implements io.Reader.
func (s *sizedReader) Read(p []byte) (int, error) {
	n, err := s.source.Read(p)
	s.remaining -= int64(n)
	if errors.Is(err, io.EOF) && s.remaining > 0 {
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}

// refresh asks the provider for new addresses after failed downloads.
func (w *worker) refresh(ctx context.Context, failure error) {
	if w.run.Ticket == "" || !providerFault(failure) {
		return
	}
	answer, err := w.poll(ctx)
	if err == nil && answer.Done && len(answer.Results) >= len(w.run.Results) {
		w.run.Results = answer.Results[:len(w.run.Results)]
	}
}

// fetchFailure returns the failure of a job after failed downloads.
func (w *worker) fetchFailure(cause error) *upstream.JobFailure {
	f := upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("the result could not be fetched: %w", cause))
	if w.rec.Kind == upstream.KindVideo { // another line would have to render the video again
		return upstream.FailJob(f, fault.ResultFetchFailed, upstream.NextNone)
	}
	return upstream.FailJob(f, fault.UpstreamError, upstream.NextLine)
}

// providerFault reports whether the provider caused err by not sending the result or by sending
// invalid bytes.
func providerFault(err error) bool {
	var failure *upstream.JobFailure
	return !errors.Is(err, errSpool) && (errors.As(err, &failure) || errors.Is(err, media.ErrSource) || errors.Is(err, media.ErrBroken) ||
		errors.Is(err, media.ErrWrongKind) || errors.Is(err, media.ErrTooLarge))
}

// writeStored records the stored files.
func (w *worker) writeStored(ctx context.Context, files []media.File) error {
	return w.write(ctx, func(tx *store.Tx, now int64, next *row.Run) (int64, error) {
		if hasInline(next.Results) {
			next.Trace.Step(row.StepRendered, now, next.Line)
		}
		next.Start(now)
		next.State, next.Files, next.Results = row.StateStored, files, nil
		next.Trace.Step(row.StepFetched, now, next.Line)
		next.Trace.Step(row.StepStored, now, next.Line)
		if !w.storeUntil.IsZero() {
			if _, err := tx.Exec(deleteSpoolOf, w.rec.ID); err != nil {
				return 0, err
			}
		}
		return next.SaveTx(tx, w.rec.ID, row.IfFence(next.Fence), row.ColState, row.ColFiles, row.ColResults, row.ColStarted, row.ColTrace)
	})
}

// succeed ends the job with its stored files.
func (w *worker) succeed() error {
	e := w.jobs.newEnding(w.rec, w.run.Files, w.run.Fence, row.JobError{})
	model, err := w.jobs.modelAtSubmission(w.life.work, w.rec)
	if err != nil {
		return fmt.Errorf("price the job: %w", err)
	}
	e.cost = model.PlanCost(w.rec.Plan, int64(len(w.run.Files)))
	if w.candidate != nil {
		if lineCost, ok := w.candidate.Line.PlanCost(model, w.rec.Plan, int64(len(w.run.Files))); ok {
			e.lineCost = &lineCost
		}
	}
	w.jobs.end(w.life.grace, e)
	return errNotOwner
}

// fail records a failed attempt and either ends the job or returns it to the queue.
func (w *worker) fail(ctx context.Context, failure *upstream.JobFailure) error {
	j := w.jobs
	failure.Conceal(jobcall.Task{Prompt: w.rec.Prompt, Params: json.RawMessage(w.rec.Params)}.Texts())
	if w.attempt != nil {
		w.attempt.RecordJobFailure(failure)
		w.span.Status(failure.Status)
		w.span.Fail(string(failure.Code))
		w.attempt.End()
	}
	var decision row.Disposition
	err := w.write(ctx, func(tx *store.Tx, now int64, next *row.Run) (int64, error) {
		next.Trace.End(failure, now)
		next.Trace.Step(row.StepAttemptFailed, now, next.Line)
		if decision = row.After(&next.Trace, next.Number, failure, j.usableLines(w.rec.Model, w.rec.Account)); decision.Fail != nil {
			return next.SaveTx(tx, w.rec.ID, row.IfTicket(next.Fence, next.Ticket), row.ColTrace)
		}
		return requeueTx(tx, next, w.rec.ID, now, decision.Wait)
	})
	switch {
	case err != nil:
		return err
	case decision.Fail != nil:
		j.end(ctx, j.newEnding(w.rec, nil, w.run.Fence, *decision.Fail))
		return errNotOwner
	}
	j.wakeUp()
	return errNotOwner
}

// requeueTx returns a job to its queue and frees the slot of its line. The job keeps its position, or
// becomes the first if the queue has moved on. The start limit of a started job begins again, unless
// the line was only busy. If another worker has recorded a different ticket, requeueTx is a no-op.
func requeueTx(tx *store.Tx, p *row.Run, id string, now int64, wait time.Duration) (int64, error) {
	fence, ticket := p.Fence, p.Ticket
	p.State, p.Epoch, p.Fence, p.WakeMS, p.Line, p.Ticket = row.StateQueued, "", p.Fence+1, now+wait.Milliseconds(), "", ""
	p.Results, p.Files = nil, nil
	if p.StartedMS > 0 && (ticket != "" || !p.Trace.WasBusy()) {
		p.QueuedMS = now
	}
	changed, err := p.SaveTx(tx, id, row.IfTicket(fence, ticket),
		row.ColState, row.ColEpoch, row.ColFence, row.ColWake, row.ColQueued, row.ColLine, row.ColTicket, row.ColResults, row.ColFiles,
		row.ColTrace, row.ColTurn)
	if err != nil || changed == 0 {
		return 0, err
	}
	return changed, slot.GiveTx(tx, id)
}

// usableLines returns the ids of the lines that accept the account's jobs of a model now or soon.
func (j *Jobs) usableLines(model, account string) []string {
	snapshot := j.opts.Catalog.Current()
	candidates, waiting := j.opts.Lines.Candidates(snapshot, model, account)
	ids := make([]string, 0, len(candidates)+len(waiting))
	for _, c := range candidates {
		ids = append(ids, c.Line.ID)
	}
	for _, w := range waiting {
		if w.Soon {
			ids = append(ids, w.Line)
		}
	}
	return ids
}
