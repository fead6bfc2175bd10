package commit

import (
	"context"
	"slices"

	"tollgate/internal/ledger/books"
	"tollgate/internal/ledger/rows"
)

// AdmissionHook takes part in the admission of a job.
type AdmissionHook interface {
	rows.Hook
	// Decide is called before the admission is decided. If it returns an error, nothing is written,
	// and the caller of the admission gets the error.
	Decide(nowMS int64) error
	// Undo returns the hook that ends the job if the admission was committed after its caller got
	// ErrUnknown, or nil if the job stays for a repeated request.
	Undo() EndHook
}

// EndHook takes part in the end of a job.
type EndHook interface {
	rows.Hook
	// Decide returns the end of the job, or false if the job does not end now. If it returns false,
	// nothing is written.
	Decide(nowMS int64) (books.End, bool)
	// Orphaned is called instead of Decide if the hold is missing. It reports whether the job still
	// exists and must end, because its hold was quarantined. Such a job ends as a failure: Write is
	// called, and no money moves.
	Orphaned() bool
}

// JobHold names the hold of a job.
type JobHold struct {
	Request      string // the id of the submission and of the hold
	Account, Key string
}

// EndJob ends a job as its hook decides, and waits for the commit. It reports whether the job has
// ended now. After an error the job may have ended or not; a retry is safe.
func (c *Committer) EndJob(ctx context.Context, h JobHold, hook EndHook) (bool, error) {
	o := &Op{kind: opJob, account: h.Account, key: h.Key, holdID: h.Request, endHook: hook, Done: make(chan struct{})}
	if err := c.wait(ctx, o, "wait for the end of a job to be committed"); err != nil {
		return false, err
	}
	return o.ended, nil
}

func (b *batch) endJob(o *Op) decision {
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
	return decision{ended: true, hookRan: true, charged: end.Outcome == books.Billed, over: receipt.Over}
}

func (b *batch) admitJob(o *Op, epoch string) decision {
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
