package job

import (
	"context"
	"errors"
	"fmt"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/job/row"
	"tollgate/internal/media"
	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// Bounds of taking over.
const (
	maxTakeOvers = 100 // of one node, in one step
	maxGroup     = 32  // in one transaction
	maxFences    = 100 // a job that has changed hands so often fails, whatever is the matter with it
)

// abandoned is the epoch of jobs that their node has given up.
const abandoned = "-"

// orphan is a job whose node is gone.
type orphan struct{ id, epoch string }

// TakeOver takes over the jobs of nodes that are dead or gone, as far as this
// node has room, many in one transaction. It is one step of Run.
func (j *Jobs) TakeOver(ctx context.Context) error {
	orphans, err := j.orphans(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for len(orphans) > 0 && ctx.Err() == nil {
		places, done := j.promise(min(len(orphans), maxGroup), j.spare)
		if places == 0 {
			break
		}
		failed, err := j.takeGroup(ctx, orphans[:places])
		done()
		if errs = append(errs, failed...); err != nil {
			errs = append(errs, fmt.Errorf("take over jobs: %w", err))
			break
		}
		orphans = orphans[places:]
	}
	return errors.Join(errs...)
}

// takeGroup takes over some jobs in one transaction, and lets them go on. failed
// are the errors of single jobs, which keep no other from being taken over.
func (j *Jobs) takeGroup(ctx context.Context, group []orphan) (failed []error, err error) {
	taken, failed, err := j.takeOver(ctx, group)
	for _, w := range taken {
		if err := j.goOn(ctx, w); err != nil {
			failed = append(failed, fmt.Errorf("take over job %s: %w", w.rec.ID, err))
		}
	}
	return failed, err
}

// orphans lists some of the jobs of nodes that are gone.
func (j *Jobs) orphans(ctx context.Context) ([]orphan, error) {
	var orphans []orphan
	err := j.opts.DB.View(ctx, func(tx *store.Tx) error {
		orphans = nil
		epochs, err := row.DistinctTx(tx, nextEpoch)
		if err != nil || len(epochs) == 0 {
			return err
		}
		nodes, err := node.MembersTx(tx)
		if err != nil {
			return err
		}
		for _, epoch := range epochs {
			if nodes.Lives(epoch) {
				continue
			}
			ids, err := row.IDsTx(tx, ofEpoch, epoch, maxTakeOvers)
			if err != nil {
				return err
			}
			for _, id := range ids {
				orphans = append(orphans, orphan{id, epoch})
			}
		}
		return nil
	})
	return orphans, err
}

// takeOver is the transaction of takeGroup. damaged are the jobs whose rows cannot
// be read.
func (j *Jobs) takeOver(ctx context.Context, group []orphan) (taken []*worker, damaged []error, err error) {
	var moved []*worker
	epoch := j.opts.Node.Epoch()
	taken, err = j.assign(ctx, func(tx *store.Tx) error {
		moved, damaged = nil, nil
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		for _, o := range group {
			w, err := j.adoptTx(tx, o, epoch, now)
			switch {
			case errors.Is(err, row.ErrDamaged):
				damaged = append(damaged, fmt.Errorf("take over job %s: %w", o.id, err))
			case err != nil:
				return err
			case w != nil:
				moved = append(moved, w)
			}
		}
		return nil
	}, func() []*worker { return moved })
	return taken, damaged, err
}

// adoptTx raises a job's fence, so that its former keeper can change nothing any
// more. nil: another node was faster, or the job has ended.
func (j *Jobs) adoptTx(tx *store.Tx, o orphan, epoch string, now int64) (*worker, error) {
	rec, p, err := row.ReadTx(tx, o.id)
	if err != nil || rec == nil || p.State == row.StateQueued || p.Epoch != o.epoch {
		return nil, err
	}
	before := p.Fence
	p.Epoch, p.Fence = epoch, p.Fence+1
	p.Trace.Step(row.StepTakenOver, now, p.Line)
	if p.State == row.StateStored {
		if _, err := media.RenewTx(tx, o.id); err != nil {
			return nil, err
		}
	}
	changed, err := p.SaveTx(tx, o.id, row.KeptBy(before), row.ColEpoch, row.ColFence, row.ColTrace)
	if err != nil || changed == 0 {
		return nil, err
	}
	return &worker{jobs: j, rec: rec, run: p, adopted: true}, nil
}

// goOn lets a job that was taken over go on where it stands.
func (j *Jobs) goOn(ctx context.Context, w *worker) (err error) {
	j.metrics.step(row.StepTakenOver)
	if w.run.Fence > maxFences {
		j.endAll(ctx, []*ending{j.ending(w.rec, nil, w.run.Fence, row.JobError{Code: fault.UpstreamError,
			Message: "The job could not be brought to an end. You were not charged. Submit it again."})})
		return nil
	}
	if w.snapshot, err = j.opts.Catalog.At(ctx, w.run.Revision); err != nil {
		w.abandon(context.WithoutCancel(ctx))
		return err
	}
	w.candidate = j.opts.Lines.CandidateFor(w.snapshot, w.run.Line, w.rec.Model)
	j.take(w)
	return nil
}

// found goes on with a submission whose keeper died before its answer was
// written: with the ticket, if the provider can be asked for it or somebody has
// written it meanwhile, else as with an answer that was lost.
func (w *worker) found() error {
	ctx, cancel := context.WithTimeout(w.life.work, submitWait)
	defer cancel()
	if finder, ok := w.candidate.Generator.(jobcall.Finder); ok {
		ticket, err := finder.Find(ctx, w.task())
		switch {
		case w.life.stopped():
			return errGone
		case err == nil && ticket != "":
			return w.accepted(w.life.grace, ticket)
		case err != nil:
			w.jobs.opts.Log.Warn("job: the provider could not be asked for a lost submission", "job", w.rec.ID, "error", err)
		}
	}
	f := upstream.Fail(fault.UpstreamConnectionError, errors.New("the node ended during the submission"))
	f.Health = upstream.HealthNone
	failure := upstream.FailJob(f, fault.UpstreamError, upstream.NextSame)
	failure.Lost = true
	err := w.failed(w.life.grace, failure)
	if !w.ticketed() {
		return err
	}
	return nil
}

// ticketed tells whether the submission has a ticket after all, brought by the
// keeper that was thought dead, and takes it.
func (w *worker) ticketed() bool {
	has := false
	err := w.jobs.opts.DB.View(w.life.work, func(tx *store.Tx) error {
		_, p, err := row.ReadTx(tx, w.rec.ID)
		if err == nil && p != nil && p.Fence == w.run.Fence && p.State == row.StateRendering {
			w.run, has = p, true
		}
		return err
	})
	return err == nil && has
}

// pricedBy returns the model of a job as of its submission.
func (j *Jobs) pricedBy(ctx context.Context, r *row.Job) (*catalog.Model, error) {
	snapshot, err := j.opts.Catalog.At(ctx, r.Revision)
	if err != nil {
		return nil, err
	}
	m, ok := snapshot.Model(r.Model)
	if !ok {
		return nil, fmt.Errorf("catalog revision %d has no model %s", r.Revision, r.Model)
	}
	return m, nil
}
