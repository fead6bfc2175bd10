package job

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/job/row"
	"tollgate/internal/ledger"
	"tollgate/internal/media"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// Submission is a valid request for a job.
type Submission struct {
	Request      string // the request's id, req_…
	Account, Key string
	// KeyVersion is the version of the key's row during the checks.
	KeyVersion int64
	Endpoint   string // the path, such as /v1/images/generations
	// Snapshot is the catalog with the model. It determines the prices.
	Snapshot *catalog.Snapshot
	Model    *catalog.Model
	Plan     catalog.Plan
	Prompt   string
	// Params is a JSON object with the other fields for the line, or nil.
	Params json.RawMessage
	// References and Mask are files kept by media.Keep.
	References []media.File
	Mask       *media.File
	// Roles are the roles of the references, in order, or nil.
	Roles []string
	// Job is the job's id from NewID.
	Job string
	// Callback is the valid callback address, or empty for the account's own address.
	Callback string
	// OnceKey is the Idempotency-Key, or empty. Fingerprint distinguishes requests with the same
	// key.
	OnceKey     string
	Fingerprint []byte
	Received    time.Time
}

// Submit reserves the job's maximum cost and queues the job, in one transaction, and returns the
// body of the 202 response. If a job with the OnceKey exists, Submit returns the body of that job and
// reserves nothing; Submit then discards the submission's references, as after an error. It returns
// the errors of ledger.AdmitJob, including ErrKeyChanged and ErrUnknown, and 400 invalid_request if
// the OnceKey belongs to another request.
func (j *Jobs) Submit(ctx context.Context, s Submission) ([]byte, error) {
	if s.OnceKey != "" {
		// Submissions with one key run one after the other on this node, so that a repetition
		// finds the first job. The account's lock does the same between nodes.
		unlock, err := j.onceLocks.Acquire(ctx, s.Account+" "+s.OnceKey)
		if err != nil {
			return nil, j.abandon(ctx, s, err)
		}
		defer unlock()
	}
	a := &admission{jobs: j, rec: s.record(), onceKey: s.OnceKey, fingerprint: fingerprint(s.Fingerprint)}
	// A client that disconnects does not cancel the transaction.
	err := j.opts.Ledger.AdmitJob(context.WithoutCancel(ctx), s.admission(), a)
	var duplicate duplicateJob
	switch {
	case errors.As(err, &duplicate):
		j.discard(ctx, s)
		return duplicate.body, nil
	case errors.Is(err, ledger.ErrUnknown): // the job may exist and need its references
		return nil, err
	case err != nil:
		if !errors.Is(err, ledger.ErrKeyChanged) {
			j.discard(ctx, s)
		}
		return nil, err
	}
	j.metrics.countSubmission(a.rec.Kind)
	j.wakeUp()
	return a.rec.SubmittedBody(), nil
}

// abandon records a submission whose client disconnected while it waited for another request with
// the same Idempotency-Key. A client that retries during an outage therefore does not wait for all
// its former requests.
func (j *Jobs) abandon(ctx context.Context, s Submission, err error) error {
	j.discard(ctx, s)
	j.opts.Ledger.Refused(ledger.Refusal{
		Request: s.Request, Account: s.Account, Key: s.Key, Model: s.Model.ID, Endpoint: s.Endpoint,
		Status: ledger.StatusClosed, Code: string(fault.ClientClosed), Received: s.Received, Duration: j.opts.Now().Sub(s.Received),
	})
	return fault.TryAgain(fmt.Errorf("wait for a submission with the same Idempotency-Key: %w", err))
}

// Admissible returns the error that Submit would return now, for callers that download references
// first. It writes and guarantees nothing (ledger.Admissible). If a job with the OnceKey exists,
// Admissible returns the job's body instead of an error, because the job may have used up the balance.
func (j *Jobs) Admissible(ctx context.Context, s Submission) (body []byte, err error) {
	refusal := j.opts.Ledger.Admissible(ctx, s.admission())
	if refusal != nil && s.OnceKey != "" {
		if body, err = j.FindOnce(ctx, s.Account, s.OnceKey, s.Fingerprint); body != nil || err != nil {
			return body, err
		}
	}
	return nil, refusal
}

func (s *Submission) admission() ledger.Admission {
	return ledger.Admission{
		Request: s.Request, Account: s.Account, Key: s.Key, KeyVersion: s.KeyVersion,
		Model: s.Model.ID, Endpoint: s.Endpoint, Amount: s.cost(), FreeDaily: s.Model.FreeDailyRequests,
		Revision: s.Snapshot.Revision, Factor: s.Plan.Factor, Received: s.Received, Job: s.Job, Advice: advice(s.Model.Kind),
	}
}

// advice returns advice for a cheaper job.
func advice(kind catalog.Kind) string {
	if kind == catalog.KindVideo {
		return "ask for a shorter clip or a smaller resolution"
	}
	return "ask for fewer images or a smaller resolution"
}

// cost returns the maximum cost.
func (s *Submission) cost() money.Amount { return s.Model.PlanHold(s.Plan) }

// discard deletes the references of a submission without a job.
func (j *Jobs) discard(ctx context.Context, s Submission) {
	if len(s.References) > 0 || s.Mask != nil {
		j.opts.Media.Discard(context.WithoutCancel(ctx), s.Job)
	}
}

// FindOnce returns the 202 body of the job with an Idempotency-Key, or nil if no job has the key.
// A key expires with the job's record. FindOnce returns 400 invalid_request if the key belongs to
// another request, and ledger.ErrUnknown if the job may still be lost with its database server.
func (j *Jobs) FindOnce(ctx context.Context, account, onceKey string, request []byte) ([]byte, error) {
	var duplicate duplicateJob
	err := j.opts.DB.View(ctx, func(tx *store.Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		duplicate = duplicateJob{}
		var r onceRow
		err = tx.QueryRow(selectOnce, account, onceKey).Scan(r.dest()...)
		if err == nil && !r.expired(j.retentionStart(now)) {
			duplicate, err = r.match(fingerprint(request))
		}
		if errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
		return err
	})
	if err != nil {
		var f *fault.Error
		if errors.As(err, &f) {
			return nil, err
		}
		return nil, fault.TryAgain(fmt.Errorf("look for an Idempotency-Key: %w", err))
	}
	if duplicate.body != nil {
		if err := j.opts.Ledger.Confirm(ctx); err != nil {
			return nil, fmt.Errorf("%w: %w", ledger.ErrUnknown, err)
		}
	}
	return duplicate.body, nil
}

// onceRow is a row of selectOnce.
type onceRow struct {
	id, kind, model, fingerprint string
	endedMS                      int64
}

func (r *onceRow) dest() []any {
	return []any{&r.id, &r.kind, &r.model, &r.fingerprint, &r.endedMS}
}

// expired reports whether the record and its key have expired, even if the row is not deleted yet.
func (r *onceRow) expired(startMS int64) bool { return r.endedMS > 0 && r.endedMS <= startMS }

// match returns the row's job if the fingerprint is the same.
func (r onceRow) match(fingerprint string) (duplicateJob, error) {
	if r.fingerprint != fingerprint {
		return duplicateJob{}, fault.New(fault.InvalidRequest,
			"This Idempotency-Key was used for another request. Use a new key for a new request, and the same key only to repeat one.")
	}
	first := row.Job{ID: r.id, Kind: r.kind, Model: r.model}
	return duplicateJob{first.SubmittedBody()}, nil
}

// duplicateJob ends an admission because the job exists.
type duplicateJob struct{ body []byte }

// Error implements error.
func (duplicateJob) Error() string { return "a job with this Idempotency-Key already exists" }

// fingerprint returns the hash of a request, or "" if body is nil.
func fingerprint(body []byte) string {
	if body == nil {
		return ""
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// record returns the row of the new job.
func (s *Submission) record() *row.Job {
	return &row.Job{
		ID: s.Job, Request: s.Request, Account: s.Account, Key: s.Key,
		Kind: string(s.Model.Kind), Model: s.Model.ID, Endpoint: s.Endpoint, Revision: s.Snapshot.Revision,
		Plan: s.Plan, Prompt: s.Prompt, Params: string(s.Params),
		Materials: row.Materials{References: s.References, Roles: s.Roles, Mask: s.Mask},
		Callback:  s.Callback,
		Held:      s.cost(), Status: row.StatusQueued,
	}
}

// admission inserts a job in the transaction that reserves its cost.
type admission struct {
	jobs                 *Jobs
	rec                  *row.Job
	onceKey, fingerprint string
	byKey                *onceRow // the job with the Idempotency-Key
	exists               bool     // an earlier commit has inserted this job
}

// Read implements ledger.Hook.
func (a *admission) Read(q *store.Batch) {
	a.byKey, a.exists = nil, false
	// an earlier commit with an unknown outcome may have succeeded
	q.Query(func(row store.Row) error {
		var id string
		a.exists = true
		return row.Scan(&id)
	}, `SELECT id FROM job WHERE id = $1`, a.rec.ID)
	if a.onceKey == "" {
		return
	}
	q.Query(func(row store.Row) error {
		a.byKey = &onceRow{}
		return row.Scan(a.byKey.dest()...)
	}, selectOnce, a.rec.Account, a.onceKey)
}

// Decide implements ledger.AdmissionHook.
func (a *admission) Decide(nowMS int64) error {
	if a.exists {
		return duplicateJob{a.rec.SubmittedBody()}
	}
	if a.byKey != nil && !a.byKey.expired(a.jobs.retentionStart(nowMS)) {
		duplicate, err := a.byKey.match(a.fingerprint)
		if err != nil {
			return err
		}
		return duplicate
	}
	a.rec.CreatedMS = nowMS
	return nil
}

// Write implements ledger.Hook.
func (a *admission) Write(q *store.Batch, nowMS int64) {
	r := a.rec
	q.Exec(nil, `INSERT INTO job (id, request, account, key, kind, model, endpoint, revision, plan, prompt, params, materials, callback,
		once_key, fingerprint,
		held_nano, cost_nano, status, code, line, trace, body, created_ms, started_ms, ended_ms)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, 0, $17, '', '', '', '', $18, 0, 0)`,
		r.ID, r.Request, r.Account, r.Key, r.Kind, r.Model, r.Endpoint, r.Revision, row.Text(r.Plan), r.Prompt, r.Params, row.Text(r.Materials),
		r.Callback,
		a.onceKey, a.fingerprint, int64(r.Held), r.Status, nowMS)
	q.Exec(nil, insertRun,
		r.ID, r.Model, r.Account, nowMS, row.Text(row.Trace{Steps: []row.Step{{Name: row.StepQueued, At: nowMS}}}))
	if len(r.Materials.References) > 0 || r.Materials.Mask != nil {
		media.Adopt(q, r.ID, nowMS)
	}
}

// Undo implements ledger.AdmissionHook. The client has no answer. A client with an Idempotency-Key can
// repeat the request and find the job. Without a key, the client never finds the job, so Undo ends the
// job.
func (a *admission) Undo() ledger.EndHook {
	if a.onceKey != "" {
		return nil
	}
	return a.jobs.newEnding(a.rec, nil, anyFence, row.JobError{Code: fault.UpstreamError, Operator: true,
		Message: "The service could not confirm this submission, so it was taken back. You were not charged. Submit it again."})
}

// retentionStart returns the beginning of the retention in Unix milliseconds. Records of jobs that ended
// earlier have expired. A clock that is ahead for a moment expires no record and no Idempotency-Key.
func (j *Jobs) retentionStart(nowMS int64) int64 {
	return j.opts.DB.Expiry(nowMS) - j.opts.Retention.Milliseconds()
}
