package job

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"tollgate/internal/fault"
	"tollgate/internal/job/row"
	"tollgate/internal/store"
)

// Body returns the body for the job's endpoint. For an ended job, the job's event has the same body.
// Body returns 404 job_not_found if the account has no such job of this kind or the record has expired,
// and 503 if the database is unavailable.
func (j *Jobs) Body(ctx context.Context, account, kind, id string) ([]byte, error) {
	var r row.Job
	var fetchedMS int64
	var state, turn, started sql.NullInt64
	err := j.opts.DB.QueryRow(ctx, `SELECT j.account, j.kind, j.model, j.status, j.body, j.created_ms, j.ended_ms, j.fetched_ms,
			r.state, r.turn, r.started_ms
		FROM job j LEFT JOIN job_run r ON r.id = j.id WHERE j.id = $1`, id).
		Scan(&r.Account, &r.Kind, &r.Model, &r.Status, &r.Body, &r.CreatedMS, &r.EndedMS, &fetchedMS, &state, &turn, &started)
	var now int64
	if err == nil && r.EndedMS > 0 {
		now, err = store.Read(ctx, j.opts.DB, (*store.Tx).NowMS)
	}
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, notFound(id)
	case err != nil:
		return nil, fault.TryAgain(fmt.Errorf("read a job: %w", err))
	case r.Account != account || r.Kind != kind || (r.EndedMS > 0 && r.EndedMS <= j.retentionStart(now)):
		return nil, notFound(id)
	case r.EndedMS > 0:
		if fetchedMS == 0 {
			j.fetched.add(id)
		}
		return []byte(r.Body), nil
	case !state.Valid:
		return nil, fault.TryAgain(fmt.Errorf("job %s has not ended and has no row in job_run", id))
	}
	r.ID = id
	if started.Int64 > 0 {
		return r.ProcessingBody(), nil
	}
	return j.queuedBody(ctx, &r, state.Int64, turn.Int64)
}

// queuedBody returns the body of a job that has not started.
func (j *Jobs) queuedBody(ctx context.Context, r *row.Job, state, turn int64) ([]byte, error) {
	if state != row.StateQueued { // the submission to a line has begun
		return r.QueuedBody(0, 1), nil
	}
	position, eta, err := j.queues.position(ctx, r, turn)
	if err != nil {
		return nil, fault.TryAgain(fmt.Errorf("read a queue: %w", err))
	}
	return r.QueuedBody(position, eta), nil
}

func notFound(id string) error {
	const maxShown = 64
	if len(id) > maxShown {
		id = id[:maxShown] + "…"
	}
	return fault.New(fault.JobNotFound,
		"There is no job %q here. Job records are kept for a limited time after the job has ended; check the id, "+
			"and that images and videos are asked for at their own endpoint.", id)
}
