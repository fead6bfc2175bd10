package job

import (
	"context"
	"errors"
	"fmt"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/media"
	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// Bounds of taking over.
const (
	maxTakeOvers = 100
	maxFences    = 100 // a job that has changed hands so often fails, whatever is the matter with it
)

// abandoned is the epoch of jobs that their node has given up.
const abandoned = "-"

// TakeOver takes over the jobs of nodes that are dead or gone, as far as this
// node has room. It is one step of Run.
func (j *Jobs) TakeOver(ctx context.Context) error {
	type orphan struct{ id, epoch string }
	var orphans []orphan
	err := j.opts.DB.View(ctx, func(tx *store.Tx) error {
		orphans = nil
		epochs, err := distinctTx(tx, nextEpoch)
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
			ids, err := idsTx(tx, ofEpoch, epoch, maxTakeOvers)
			if err != nil {
				return err
			}
			for _, id := range ids {
				orphans = append(orphans, orphan{id, epoch})
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, o := range orphans {
		if j.spare() == 0 || ctx.Err() != nil {
			return nil
		}
		if err := j.takeOver(ctx, o.id, o.epoch); err != nil {
			return fmt.Errorf("take over job %s: %w", o.id, err)
		}
	}
	return nil
}

// takeOver raises a job's fence, so that its former keeper can change nothing
// any more, and goes on where it stands. from is the epoch that is gone: another
// node may have been faster.
func (j *Jobs) takeOver(ctx context.Context, id, from string) error {
	w := &worker{jobs: j}
	epoch := j.opts.Epoch()
	var moved []*worker
	taken, err := j.assign(ctx, func(tx *store.Tx) error {
		moved = nil
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		rec, p, err := readTx(tx, id)
		if err != nil || rec == nil || p.state == stateQueued || p.epoch != from {
			return err
		}
		before := p.fence
		p.epoch, p.fence = epoch, p.fence+1
		p.trace.step(stepTakenOver, now, p.line)
		if p.state == stateStored {
			if _, err := media.RenewTx(tx, id); err != nil {
				return err
			}
		}
		changed, err := p.saveTx(tx, id, keptBy(before), colEpoch, colFence, colTrace)
		if w.rec, w.run = rec, p; changed > 0 {
			moved = []*worker{w}
		}
		return err
	}, func() []*worker { return moved })
	if err != nil || len(taken) == 0 {
		return err
	}
	j.metrics.step(stepTakenOver)
	if w.run.fence > maxFences {
		j.end(ctx, j.ending(w.rec, nil, w.run.fence, jobError{code: fault.UpstreamError,
			message: "The job could not be brought to an end. You were not charged. Please submit it again."}))
		return nil
	}
	if w.snapshot, err = j.opts.Catalog.At(ctx, w.run.revision); err != nil {
		w.abandon(context.WithoutCancel(ctx))
		return err
	}
	w.candidate, w.adopted = j.opts.Lines.CandidateFor(w.snapshot, w.run.line, w.rec.model), true
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
			w.jobs.opts.Log.Warn("job: the provider could not be asked for a lost submission", "job", w.rec.id, "error", err)
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
		_, p, err := readTx(tx, w.rec.id)
		if err == nil && p != nil && p.fence == w.run.fence && p.state == stateRendering {
			w.run, has = p, true
		}
		return err
	})
	return err == nil && has
}

// pricedBy returns the model of a job as of its submission.
func (j *Jobs) pricedBy(ctx context.Context, r *record) (*catalog.Model, error) {
	snapshot, err := j.opts.Catalog.At(ctx, r.revision)
	if err != nil {
		return nil, err
	}
	m, ok := snapshot.Model(r.model)
	if !ok {
		return nil, fmt.Errorf("catalog revision %d has no model %s", r.revision, r.model)
	}
	return m, nil
}
