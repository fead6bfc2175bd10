package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/job/row"
	"tollgate/internal/loop"
	"tollgate/internal/store"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// maxStorePause is the longest pause between two attempts to store kept results.
const maxStorePause = 30 * time.Second

// maxSpool is the maximum number of parts in the spool: 4 GiB in total, so that an outage of the
// media store does not fill the database's disk.
const maxSpool = 4 << 10

// errSpoolFull means that the spool already has maxSpool parts.
var errSpoolFull = errors.New("the database already has 4 GiB of results that wait for the media store")

// errDown means that the media store is down, so the node has not tried to store a result.
var errDown = errors.New("the media store is down")

// keep saves the results in case this node dies before the media store recovers, and returns the
// remaining time for retries. It spools inline results in the database, because they exist nowhere
// else, and images, because some providers' links expire within minutes. Videos are large, so keep
// saves only their links.
func (w *worker) keep(ctx context.Context) (remaining time.Duration, err error) {
	j := w.jobs
	if !w.storeUntil.IsZero() && !hasInline(w.run.Results) {
		return w.storeUntil.Sub(j.opts.Now()), nil
	}
	results, err := w.spoolResults(ctx)
	if err != nil {
		return 0, err
	}
	var nowMS int64
	err = w.write(ctx, func(tx *store.Tx, now int64, next *row.Run) (int64, error) {
		nowMS = now
		if hasInline(next.Results) {
			next.Trace.Step(row.StepRendered, now, next.Line)
		}
		if a := next.Trace.Current(); a.KeptMS == 0 {
			a.KeptMS = now
			next.Trace.Step(row.StepKept, now, next.Line)
		}
		next.Start(now)
		next.State, next.Results = row.StateRendered, results
		return next.SaveTx(tx, w.rec.ID, row.IfFence(next.Fence), row.ColState, row.ColResults, row.ColStarted, row.ColTrace)
	})
	if err != nil {
		return 0, err
	}
	remaining = j.opts.MediaRetry - time.Duration(nowMS-w.run.Trace.Current().KeptMS)*time.Millisecond
	if w.storeUntil.IsZero() {
		w.storeUntil = j.opts.Now().Add(remaining)
		j.metrics.kept.Inc()
	}
	return remaining, nil
}

// spoolResults spools results and returns them as references to the spool.
func (w *worker) spoolResults(ctx context.Context) ([]jobcall.Result, error) {
	results := slices.Clone(w.run.Results)
	for i, r := range results {
		if r.StoredSize > 0 {
			continue
		}
		if r.Ref != "" {
			if w.rec.Kind != upstream.KindImage {
				continue
			}
			var err error
			if r.Data, err = w.download(ctx, r); err != nil { // the link may work later
				w.jobs.opts.Log.Debug("job: cannot download a result, so only its link is kept", "job", w.rec.ID, "error", err)
				continue
			}
		}
		err := w.jobs.spool(ctx, spoolName{w.rec.ID, w.run.Number, i}, r.Data)
		if errors.Is(err, errSpoolFull) && r.Ref != "" { // the provider has the result too
			continue
		}
		if err != nil {
			return nil, err
		}
		results[i] = jobcall.Result{Ref: r.Ref, Type: r.Type, StoredSize: int64(len(r.Data))}
	}
	return results, nil
}

// download reads an image from the provider into memory.
func (w *worker) download(ctx context.Context, r jobcall.Result) ([]byte, error) {
	release, err := acquire(ctx, w.jobs.fetches)
	if err != nil {
		return nil, err
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, fetchWait)
	defer cancel()
	file, err := w.candidate.Generator.Fetch(ctx, w.task(), r)
	if err != nil {
		return nil, err
	}
	defer file.Body.Close()
	data, err := io.ReadAll(io.LimitReader(newSizedReader(file), maxImage+1))
	if err == nil && (len(data) == 0 || len(data) > maxImage) {
		err = fmt.Errorf("the image has %d bytes, want 1 to %d", len(data), maxImage)
	}
	return data, err
}

// storeFailure returns the failure of a job after the last attempt to store its results. The provider
// has rendered the results, so no other line is tried.
func (w *worker) storeFailure(cause error) *upstream.JobFailure {
	if !errors.Is(cause, errSpoolFull) {
		cause = fmt.Errorf("tried for %s: %w", w.jobs.opts.MediaRetry, cause)
	}
	f := upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("the media store did not take the result: %w", cause))
	f.Health = upstream.HealthNone
	w.jobs.opts.Log.Error("job: a result could not be stored; the job fails", "job", w.rec.ID, "error", cause)
	code := fault.UpstreamError
	if w.rec.Kind == upstream.KindVideo {
		code = fault.ResultFetchFailed
	}
	return upstream.FailJob(f, code, upstream.NextNone)
}

// spoolName identifies a result in the spool.
type spoolName struct {
	job    string
	number int64 // of the submission
	result int
}

// spoolPart is the size of a spooled part in bytes.
const spoolPart = 1 << 20

// spool writes a result to the database, and retries while the database is unavailable. It returns
// errSpoolFull if the spool is full.
func (j *Jobs) spool(ctx context.Context, name spoolName, data []byte) error {
	for part := 0; part*spoolPart < len(data); {
		chunk := data[part*spoolPart : min((part+1)*spoolPart, len(data))]
		err := j.opts.DB.Update(ctx, func(tx *store.Tx) error {
			n, err := tx.Exec(insertSpool, name.job, name.number, name.result, part, chunk, j.maxSpool)
			if err == nil && n == 0 {
				err = errSpoolFull
			}
			return err
		})
		switch {
		case err == nil:
			part++
			continue
		case errors.Is(err, errSpoolFull):
			return err
		case store.Refused(err) && !store.Retryable(err):
			return fmt.Errorf("spool a result: %w", err)
		}
		j.logOutage("a result could not be saved", name.job, err)
		if !loop.Sleep(ctx, retryPause) {
			return errNotOwner
		}
	}
	return nil
}

// errSpool means that a spooled result could not be read.
var errSpool = errors.New("read a kept result")

// spoolReader reads a spooled result.
type spoolReader struct {
	ctx  context.Context
	db   *store.DB
	name spoolName
	part int
	rest []byte
}

// Read implements io.Reader.
func (s *spoolReader) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		if err := s.next(); err != nil {
			return 0, err
		}
		if len(s.rest) == 0 {
			return 0, io.EOF
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// next reads the next part. After the last part, the next part is empty.
func (s *spoolReader) next() error {
	err := s.db.View(s.ctx, func(tx *store.Tx) error {
		return tx.Each(func(r store.Row) error { return r.Scan(&s.rest) }, selectSpool, s.name.job, s.name.number, s.name.result, s.part)
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errSpool, err)
	}
	s.part++
	return nil
}

// cleanSpool deletes the spooled results of ended jobs and of earlier submissions, all in one step, so
// it never reports more to do.
func (j *Jobs) cleanSpool(ctx context.Context) (bool, error) {
	var found bool
	err := j.opts.DB.View(ctx, func(tx *store.Tx) error { return tx.QueryRow(unneededSpool).Scan(&found) })
	if err != nil || !found {
		return false, err
	}
	return false, j.opts.DB.Update(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(deleteSpool)
		return err
	})
}
