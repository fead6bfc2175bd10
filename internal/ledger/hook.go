package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tollgate/internal/ledger/books"
	"tollgate/internal/ledger/rows"
)

// Hook adds another room's statements to the transaction of an admission or a settlement.
type Hook = rows.Hook

// AdmissionHook takes part in the admission of a job.
type AdmissionHook interface {
	Hook
	// Decide is called before the admission is decided. If it returns an error, nothing is written,
	// and AdmitJob returns the error.
	Decide(nowMS int64) error
	// Undo returns the hook that ends the job if the admission was committed after its caller got
	// ErrUnknown, or nil if the job stays for a repeated request.
	Undo() EndHook
}

// EndHook takes part in the end of a job.
type EndHook interface {
	Hook
	// Decide returns the end of the job, or false if the job does not end now. If it returns false,
	// nothing is written.
	Decide(nowMS int64) (End, bool)
	// Orphaned is called instead of Decide if the hold is missing. It reports whether the job still
	// exists and must end; then the hold was quarantined. The job ends as a failure: Write is
	// called, and no money moves.
	Orphaned() bool
}

// AdmitJob is Admit for a job. The hold stays until EndJob, even if this node dies. The hook writes
// the job in the same transaction. AdmitJob returns an error of the hook unchanged and does not log
// it. ErrUnknown means that the outcome is unknown: the client must not get an answer.
func (l *Ledger) AdmitJob(ctx context.Context, a Admission, with AdmissionHook) error {
	if a.Job == "" {
		return errors.New("ledger: a job without an id")
	}
	_, err := l.admit(ctx, &op{kind: opAdmit, account: a.Account, key: a.Key, admission: a, admitHook: with, done: make(chan struct{})})
	return err
}

// JobHold names the hold of a job.
type JobHold struct {
	Request      string // the id of the submission and of the hold
	Account, Key string
}

// EndJob ends a job as its hook decides: it releases the hold, charges a billed end, and writes the
// receipt and the hook's rows. It returns false without an error if the hook's Decide returned
// false or the job had already ended. After an error the job may have ended or not; a retry is
// safe.
func (l *Ledger) EndJob(ctx context.Context, h JobHold, with EndHook) (bool, error) {
	o := &op{kind: opJob, account: h.Account, key: h.Key, holdID: h.Request, endHook: with, done: make(chan struct{})}
	l.queue.push(o)
	select {
	case <-o.done:
		return o.hookRan, o.err
	case <-l.stopped:
		return false, errors.New("the ledger is closed")
	case <-ctx.Done():
		return false, fmt.Errorf("wait for the end of a job to be committed: %w", ctx.Err())
	}
}

func (b *batch) endJob(o *op) decision {
	if err := b.CheckHold(o.holdID); err != nil {
		return decision{err: err}
	}
	if b.Holds[o.holdID] == nil {
		if slices.Contains(b.EndedHolds, o.holdID) || !o.endHook.Orphaned() {
			return decision{} // it has already ended, perhaps in this batch
		}
		b.EndedHolds = append(b.EndedHolds, o.holdID)
		b.Hooks = append(b.Hooks, o.endHook)
		return decision{hookRan: true}
	}
	end, now := o.endHook.Decide(b.NowMS)
	if !now {
		return decision{}
	}
	attempts := attemptsJSON(end.Attempts)
	receipt, ended := b.End(o.holdID, end, attempts)
	if !ended {
		return decision{}
	}
	b.Hooks = append(b.Hooks, o.endHook)
	return decision{ended: true, hookRan: true, charged: end.Outcome == Billed, over: receipt.Over}
}

func (b *batch) admitJob(o *op, epoch string) decision {
	if err := o.admitHook.Decide(b.NowMS); err != nil {
		return decision{err: err, hookRan: true}
	}
	hold, err := b.Admit(o.admission, epoch)
	if err == nil {
		hold.Epoch, hold.Job = books.JobEpoch, o.admission.Job
		b.Hooks = append(b.Hooks, o.admitHook)
	}
	return decision{hold: hold, err: err}
}
