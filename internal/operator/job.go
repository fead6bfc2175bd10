package operator

import (
	"context"

	"tollgate/internal/job"
	"tollgate/internal/store"
)

// CancelJob cancels a job; see job.Jobs.Cancel.
func CancelJob(ctx context.Context, jobs *job.Jobs, by Actor, id string) error {
	return jobs.Cancel(ctx, id, noteOf(by, JobCancel))
}

// RequeueJob requeues a job; see job.Jobs.Requeue.
func RequeueJob(ctx context.Context, jobs *job.Jobs, by Actor, id string, o job.RequeueOptions) (answer []byte, replayed bool, err error) {
	o.Note = noteOf(by, JobRequeue)
	return jobs.Requeue(ctx, id, o)
}

// noteOf returns a function that adds the row of act to the log of operators.
func noteOf(by Actor, act string) job.Note {
	return func(q *store.Batch, nowMS int64, account, id string) {
		writeLog(q, nowMS, by, LogRow{Act: act, Object: id, Account: account})
	}
}
