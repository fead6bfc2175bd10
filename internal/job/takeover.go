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

// Limits of take-overs.
const (
	maxTakeOvers = 100 // per dead node and step
	maxGroup     = 32  // per transaction
	maxFence     = 100 // take-overs of a job before it fails
)

// noOwner is the epoch of a job that its node has released.
const noOwner = "-"

// orphan is a job of a dead node.
type orphan struct{ id, epoch string }

// TakeOver takes over jobs of dead nodes while this node has capacity. It is one step of Run.
func (j *Jobs) TakeOver(ctx context.Context) error {
	orphans, err := j.orphans(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for len(orphans) > 0 && ctx.Err() == nil {
		n, release := j.reserveCapacity(min(len(orphans), maxGroup), j.takeOverCapacityLocked)
		if n == 0 {
			break
		}
		failed, err := j.takeOverGroup(ctx, orphans[:n])
		release()
		if errs = append(errs, failed...); err != nil {
			errs = append(errs, fmt.Errorf("take over jobs: %w", err))
			break
		}
		orphans = orphans[n:]
	}
	return errors.Join(errs...)
}

// takeOverGroup takes over jobs in one transaction and begins their workers. failed has an error for
// each job that could not be taken over.
func (j *Jobs) takeOverGroup(ctx context.Context, group []orphan) (failed []error, err error) {
	workers, failed, err := j.moveGroup(ctx, group)
	for _, w := range workers {
		if err := j.resume(ctx, w); err != nil {
			failed = append(failed, fmt.Errorf("take over job %s: %w", w.rec.ID, err))
		}
	}
	return failed, err
}

// orphans returns some of the jobs of dead nodes.
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
			ids, err := store.Column[string](tx, jobsOfEpoch, epoch, maxTakeOvers)
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

// moveGroup moves jobs to this node. damaged has an error for each job with an unreadable row.
func (j *Jobs) moveGroup(ctx context.Context, group []orphan) (workers []*worker, damaged []error, err error) {
	var moved []*worker
	epoch := j.opts.Node.Epoch()
	workers, err = j.assign(ctx, func(tx *store.Tx) error {
		moved, damaged = nil, nil
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		for _, o := range group {
			w, err := j.moveTx(tx, o, epoch, now)
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
	return workers, damaged, err
}

// moveTx moves a job to this node and raises its fence, so that its former owner cannot write. It
// returns nil if another node was faster or the job has ended.
func (j *Jobs) moveTx(tx *store.Tx, o orphan, epoch string, now int64) (*worker, error) {
	rec, p, err := row.ReadTx(tx, o.id)
	if err != nil || rec == nil || p.State == row.StateQueued || p.Epoch != o.epoch {
		return nil, err
	}
	oldFence := p.Fence
	p.Epoch, p.Fence = epoch, p.Fence+1
	p.Trace.Step(row.StepTakenOver, now, p.Line)
	if p.State == row.StateStored {
		if _, err := media.RenewTx(tx, o.id); err != nil {
			return nil, err
		}
	}
	changed, err := p.SaveTx(tx, o.id, row.IfFence(oldFence), row.ColEpoch, row.ColFence, row.ColTrace)
	if err != nil || changed == 0 {
		return nil, err
	}
	return &worker{jobs: j, rec: rec, run: p, takenOver: true}, nil
}

// resume begins the worker of a job that was taken over.
func (j *Jobs) resume(ctx context.Context, w *worker) (err error) {
	j.metrics.countStep(row.StepTakenOver)
	if w.run.Fence > maxFence {
		j.endAll(ctx, []*ending{j.newEnding(w.rec, nil, w.run.Fence, row.JobError{Code: fault.UpstreamError,
			Message: "The job could not be brought to an end. You were not charged. Submit it again."})})
		return nil
	}
	if w.snapshot, err = j.opts.Catalog.SnapshotAt(ctx, w.run.Revision); err != nil {
		w.release(context.WithoutCancel(ctx))
		return err
	}
	w.candidate = j.opts.Lines.CandidateFor(w.snapshot, w.run.Line, w.rec.Model)
	j.begin(w)
	return nil
}

// recoverTicket continues after a submission without a recorded answer. The ticket comes from the
// provider if the provider can look up submissions, or from the job's row if the former owner has
// recorded the ticket in the meantime. Otherwise the attempt fails with a lost answer.
func (w *worker) recoverTicket() error {
	ctx, cancel := context.WithTimeout(w.life.work, submitWait)
	defer cancel()
	if finder, ok := w.candidate.Generator.(jobcall.Finder); ok {
		ticket, err := finder.Find(ctx, w.task())
		switch {
		case w.life.stopped():
			return errNotOwner
		case err == nil && ticket != "":
			return w.writeTicket(w.life.grace, ticket)
		case err != nil:
			w.jobs.opts.Log.Warn("job: cannot look up a lost submission at the provider", "job", w.rec.ID, "error", err)
		}
	}
	f := upstream.Fail(fault.UpstreamConnectionError, errors.New("the node ended during the submission"))
	f.Health = upstream.HealthNone
	failure := upstream.FailJob(f, fault.UpstreamError, upstream.NextSame)
	failure.Lost = true
	err := w.fail(w.life.grace, failure)
	if !w.loadTicket() {
		return err
	}
	return nil
}

// loadTicket reloads the run and reports whether the former owner has recorded a ticket.
func (w *worker) loadTicket() bool {
	found := false
	err := w.jobs.opts.DB.View(w.life.work, func(tx *store.Tx) error {
		found = false
		_, p, err := row.ReadTx(tx, w.rec.ID)
		if err == nil && p != nil && p.Fence == w.run.Fence && p.State == row.StateRendering {
			w.run, found = p, true
		}
		return err
	})
	return err == nil && found
}

// modelAtSubmission returns a job's model from the catalog of its submission.
func (j *Jobs) modelAtSubmission(ctx context.Context, r *row.Job) (*catalog.Model, error) {
	snapshot, err := j.opts.Catalog.SnapshotAt(ctx, r.Revision)
	if err != nil {
		return nil, err
	}
	m, ok := snapshot.Model(r.Model)
	if !ok {
		return nil, fmt.Errorf("catalog revision %d has no model %s", r.Revision, r.Model)
	}
	return m, nil
}
