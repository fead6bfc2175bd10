package ledger

import (
	"context"
	"errors"

	"tollgate/internal/ledger/commit"
	"tollgate/internal/ledger/rows"
)

// Hook adds another room's statements to the transaction of an admission or a settlement.
type Hook = rows.Hook

// AdmissionHook takes part in the admission of a job.
type AdmissionHook = commit.AdmissionHook

// EndHook takes part in the end of a job.
type EndHook = commit.EndHook

// JobHold names the hold of a job.
type JobHold = commit.JobHold

// AdmitJob is Admit for a job. The hold stays until EndJob, even if this node dies. The hook writes
// the job in the same transaction. AdmitJob returns an error of the hook unchanged and does not log
// it. ErrUnknown means that the outcome is unknown: the client must not get an answer.
func (l *Ledger) AdmitJob(ctx context.Context, a Admission, hook AdmissionHook) error {
	if a.Job == "" {
		return errors.New("ledger: a job without an id")
	}
	_, err := l.admit(ctx, a, hook)
	return err
}

// EndJob ends a job as its hook decides: it releases the hold, charges a billed end, and writes the
// receipt and the hook's rows. It returns false without an error if the hook's Decide returned
// false or the job had already ended. After an error the job may have ended or not; a retry is
// safe.
func (l *Ledger) EndJob(ctx context.Context, h JobHold, hook EndHook) (bool, error) {
	return l.committer.EndJob(ctx, h, hook)
}
