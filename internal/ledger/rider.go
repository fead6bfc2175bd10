package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tollgate/internal/ledger/books"
	"tollgate/internal/store"
)

// Rider is what another room reads and writes in the transaction that moves
// money, so that both happen or neither. A batch that was not committed is
// tried again: each time it begins with Read, which must forget what was read
// before. Its methods run on the committer's goroutine and must not wait.
type Rider interface {
	// Read adds the statements that read what Decide needs. The account's row
	// is locked before them; rows that others change without that lock are to be
	// read with QueryLocked.
	Read(q *store.Batch)
	// Write adds the statements of what was decided.
	Write(q *store.Batch, nowMS int64)
}

// AdmissionRider rides with the admission of a job.
type AdmissionRider interface {
	Rider
	// Decide is asked before the admission is decided. An error ends it: nothing
	// is written, and the error is Admit's.
	Decide(nowMS int64) error
	// Undo ends the job again if its admission was committed after its caller
	// was cut off without an answer; nil: the job stays, for a repetition to find.
	Undo() EndRider
}

// EndRider rides with the end of a job.
type EndRider interface {
	Rider
	// Decide returns how the job ends, or false if it is not to end now: then
	// nothing is written.
	Decide(nowMS int64) (End, bool)
	// Orphaned is asked instead of Decide where the hold is gone. True: the job is
	// there and is to end, which only damage can have brought about (its hold was
	// quarantined). Then it ends as a failure: no money moves, and Write is called.
	Orphaned() bool
}

// AdmitJob is Admit for a job: its hold stays until EndJob ends it, whatever
// becomes of this node. The rider writes the job in the same transaction. An
// error of the rider's is returned as it is and logged by nobody. ErrUnknown: it
// is not known whether the job was made, so its client must be told nothing.
func (l *Ledger) AdmitJob(ctx context.Context, a Admission, with AdmissionRider) error {
	if a.Job == "" {
		return errors.New("ledger: a job without an id")
	}
	_, err := l.admit(ctx, &op{kind: opAdmit, account: a.Account, key: a.Key, admission: a, admitting: with, done: make(chan struct{})})
	return err
}

// JobHold names the hold of a job.
type JobHold struct {
	Request      string // the submission's id, which is the hold's
	Account, Key string
	Free         bool // it took a place of a free quota
}

// EndJob ends a job as its rider decides: the hold is given back, a billed end
// is charged and the receipt written, and with them what the rider writes. It
// returns whether that happened; false without an error if the rider decided
// against it or the job had ended before. An error tells nothing: the job has
// ended or not, and asking again is safe.
func (l *Ledger) EndJob(ctx context.Context, h JobHold, with EndRider) (bool, error) {
	o := &op{kind: opJob, account: h.Account, key: h.Key, free: h.Free, holdID: h.Request, ending: with, done: make(chan struct{})}
	l.queue.push(o)
	select {
	case <-o.done:
		return o.ridden, o.err
	case <-l.stopped:
		return false, errors.New("the ledger is closed")
	case <-ctx.Done():
		return false, fmt.Errorf("wait for the end of a job to be committed: %w", ctx.Err())
	}
}

// endJob decides the end of a job.
func (b *batch) endJob(o *op) decision {
	if err := b.Broken(o.holdID); err != nil {
		return decision{err: err}
	}
	if b.Holds[o.holdID] == nil {
		if slices.Contains(b.GoneHolds, o.holdID) || !o.ending.Orphaned() {
			return decision{} // ended before, be it by this batch
		}
		b.GoneHolds = append(b.GoneHolds, o.holdID)
		b.riders = append(b.riders, o.ending)
		return decision{rode: true}
	}
	end, now := o.ending.Decide(b.NowMS)
	if !now {
		return decision{}
	}
	attempts := attemptsJSON(end.Attempts)
	receipt, ended := b.End(o.holdID, end, attempts)
	if !ended {
		return decision{}
	}
	b.riders = append(b.riders, o.ending)
	return decision{ended: true, rode: true, charged: end.Outcome == Billed, over: receipt.Over}
}

// admitJob lets the rider of a job decide before its admission.
func (b *batch) admitJob(o *op, epoch string) decision {
	if err := o.admitting.Decide(b.NowMS); err != nil {
		return decision{err: err, rode: true}
	}
	hold, err := b.Admit(o.admission, epoch)
	if err == nil {
		hold.Epoch, hold.Job = books.JobEpoch, o.admission.Job
		b.riders = append(b.riders, o.admitting)
	}
	return decision{hold: hold, err: err}
}
