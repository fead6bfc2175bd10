package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tollgate/internal/ledger/books"
	"tollgate/internal/store"
)

// Rider is another room's reads and writes in the transaction that moves money, so that both happen
// or neither. A batch that was not committed is tried again: each try begins with Read, which must
// discard earlier reads. The methods run on the committer's goroutine and must not block.
type Rider interface {
	// Read adds the statements that read the input of Decide. The account's row is locked before
	// them; use QueryLocked for rows that others change without that lock.
	Read(q *store.Batch)
	// Write adds the statements of the decision.
	Write(q *store.Batch, nowMS int64)
}

// AdmissionRider rides with the admission of a job.
type AdmissionRider interface {
	Rider
	// Decide is asked before the admission is decided. An error ends it: nothing
	// is written, and the error is Admit's.
	Decide(nowMS int64) error
	// Undo returns a rider that ends the job again if its admission was committed after its caller
	// was cut off without an answer, or nil if the job stays for a repetition.
	Undo() EndRider
}

// EndRider rides with the end of a job.
type EndRider interface {
	Rider
	// Decide returns how the job ends, or false if it is not to end now: then
	// nothing is written.
	Decide(nowMS int64) (End, bool)
	// Orphaned is called instead of Decide if the hold is gone. It reports whether the job is still
	// there and must end, which only damage can cause (its hold was quarantined). The job then ends
	// as a failure: no money moves, and Write is called.
	Orphaned() bool
}

// AdmitJob is Admit for a job: its hold stays until EndJob, whatever happens to this node. The
// rider writes the job in the same transaction. An error of the rider is returned unchanged and not
// logged. ErrUnknown means that the outcome is unknown, so the client must not get an answer.
func (l *Ledger) AdmitJob(ctx context.Context, a Admission, with AdmissionRider) error {
	if a.Job == "" {
		return errors.New("ledger: a job without an id")
	}
	_, err := l.admit(ctx, &op{kind: opAdmit, account: a.Account, key: a.Key, admission: a, admitting: with, done: make(chan struct{})})
	return err
}

// JobHold names the hold of a job.
type JobHold struct {
	Request      string // the submission's id, equal to the hold's
	Account, Key string
	Free         bool // it took a place of a free quota
}

// EndJob ends a job by its rider's decision: it releases the hold, charges a billed end, and writes
// the receipt and the rider's rows. It reports whether this happened; it returns false without an
// error if the rider declined or the job had already ended. After an error the job may have ended
// or not, and a retry is safe.
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
			return decision{} // ended before, perhaps by this batch
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
