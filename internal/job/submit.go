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

// Submission is a job that may be made: every field was checked.
type Submission struct {
	Request      string // its id, req_…
	Account, Key string
	// KeyVersion is the version of the key's row that the checks were made on.
	KeyVersion int64
	Endpoint   string // the path, /v1/images/generations
	// Snapshot is the catalog that Model is of: it prices the job.
	Snapshot *catalog.Snapshot
	Model    *catalog.Model
	Plan     catalog.Plan
	Prompt   string
	// Params is a JSON object of the fields that go to the line beside those of
	// the plan; nil: none.
	Params json.RawMessage
	// References and Mask were kept for the job by media.Keep.
	References []media.File
	Mask       *media.File
	// Roles are those of the references, one each; nil: none has any.
	Roles []string
	// Job is the job's id, from NewID.
	Job string
	// Callback is where the result goes, checked; empty: to the account's own
	// address.
	Callback string
	// OnceKey is the Idempotency-Key, empty for none; Fingerprint tells requests
	// with the same key apart.
	OnceKey     string
	Fingerprint []byte
	Received    time.Time
}

// Submit holds the job's highest possible cost and puts it into the queue, in
// one transaction, and returns the body of the 202. With a known OnceKey it
// returns that of the first job, and nothing is held: then the submission's
// references are discarded, as they are with an error. Errors: those of
// ledger.AdmitJob, ErrKeyChanged and ErrUnknown among them; 400 invalid_request
// for a key that was used for another request.
func (j *Jobs) Submit(ctx context.Context, s Submission) ([]byte, error) {
	if s.OnceKey != "" {
		// Twins on this node come one after the other, so that the second finds
		// the first; on other nodes the account's lock does it.
		unlock, err := j.twins.Acquire(ctx, s.Account+" "+s.OnceKey)
		if err != nil {
			return nil, j.left(ctx, s, err)
		}
		defer unlock()
	}
	a := &admission{jobs: j, rec: s.record(), once: s.OnceKey, fingerprint: fingerprint(s.Fingerprint)}
	// The job is either there or not, whoever waits for the answer.
	err := j.opts.Ledger.AdmitJob(context.WithoutCancel(ctx), s.admission(), a)
	var known knownJob
	switch {
	case errors.As(err, &known):
		j.discard(ctx, s)
		return known.body, nil
	case errors.Is(err, ledger.ErrUnknown): // the job may be there, with its references
		return nil, err
	case err != nil:
		if !errors.Is(err, ledger.ErrKeyChanged) {
			j.discard(ctx, s)
		}
		return nil, err
	}
	j.metrics.submitted(a.rec.Kind)
	j.rouse()
	return a.rec.Submitted(), nil
}

// left ends a submission whose client has left while a twin was before it. Those
// that come back with their key again and again, while no commit is answered, must
// not wait behind all that they have given up.
func (j *Jobs) left(ctx context.Context, s Submission, err error) error {
	j.discard(ctx, s)
	j.opts.Ledger.Refused(ledger.Refusal{
		Request: s.Request, Account: s.Account, Key: s.Key, Model: s.Model.ID, Endpoint: s.Endpoint,
		Status: ledger.StatusClosed, Code: string(fault.ClientClosed), Received: s.Received, Duration: j.opts.Now().Sub(s.Received),
	})
	return fault.TryAgain(fmt.Errorf("wait for a submission with the same Idempotency-Key: %w", err))
}

// Admissible returns the error that Submit's admission would give now, nil if it
// would give none: for callers that fetch references first. Nothing is written
// and nothing is promised; see ledger.Admissible. Where it would be refused and
// the OnceKey is known by now, it returns what Known does: the twin may be what
// used the balance up.
func (j *Jobs) Admissible(ctx context.Context, s Submission) (accepted []byte, err error) {
	refusal := j.opts.Ledger.Admissible(ctx, s.admission())
	if refusal != nil && s.OnceKey != "" {
		if accepted, err = j.Known(ctx, s.Account, s.OnceKey, s.Fingerprint); accepted != nil || err != nil {
			return accepted, err
		}
	}
	return nil, refusal
}

// admission is what the submission asks of the ledger.
func (s *Submission) admission() ledger.Admission {
	return ledger.Admission{
		Request: s.Request, Account: s.Account, Key: s.Key, KeyVersion: s.KeyVersion,
		Model: s.Model.ID, Endpoint: s.Endpoint, Amount: s.cost(), FreeDaily: s.Model.FreeDailyRequests,
		Revision: s.Snapshot.Revision, Factor: s.Plan.Factor, Received: s.Received, Job: s.Job, Advice: advice(s.Model.Kind),
	}
}

// advice says how to make a job of the kind cheaper.
func advice(kind catalog.Kind) string {
	if kind == catalog.KindVideo {
		return "ask for a shorter clip or a smaller resolution"
	}
	return "ask for fewer images or a smaller resolution"
}

// cost is the highest possible cost of the job.
func (s *Submission) cost() money.Amount { return s.Model.PlanHold(s.Plan) }

// discard gives up the references of a submission that made no job.
func (j *Jobs) discard(ctx context.Context, s Submission) {
	if len(s.References) > 0 || s.Mask != nil {
		j.opts.Media.Discard(context.WithoutCancel(ctx), s.Job)
	}
}

// Known returns the body of the 202 of the job that was submitted with an
// Idempotency-Key, nil if there is none. The key lives as long as the job's
// record. 400 invalid_request: it belongs to another request. ledger.ErrUnknown:
// a job is to be seen that may still be lost with its database server.
func (j *Jobs) Known(ctx context.Context, account, onceKey string, print []byte) ([]byte, error) {
	var known knownJob
	err := j.opts.DB.View(ctx, func(tx *store.Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		known = knownJob{}
		var seen knownRow
		err = tx.QueryRow(selectOnce, account, onceKey).Scan(seen.dest()...)
		if err == nil && !seen.over(j.oldest(now)) {
			known, err = seen.judge(fingerprint(print))
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
	if known.body != nil {
		if err := j.opts.Ledger.Confirm(ctx); err != nil {
			return nil, fmt.Errorf("%w: %w", ledger.ErrUnknown, err)
		}
	}
	return known.body, nil
}

// knownRow is a row of selectOnce.
type knownRow struct {
	id, kind, model, fingerprint string
	endedMS                      int64
}

func (r *knownRow) dest() []any {
	return []any{&r.id, &r.kind, &r.model, &r.fingerprint, &r.endedMS}
}

// over tells whether the record has run out, and its key with it: only a sweep
// has not come by yet.
func (r *knownRow) over(oldest int64) bool { return r.endedMS > 0 && r.endedMS <= oldest }

// judge returns the job of the row if it was submitted with the same request.
func (r knownRow) judge(fingerprint string) (knownJob, error) {
	if r.fingerprint != fingerprint {
		return knownJob{}, fault.New(fault.InvalidRequest,
			"This Idempotency-Key was used for another request. Use a new key for a new request, and the same key only to repeat one.")
	}
	first := row.Job{ID: r.id, Kind: r.kind, Model: r.model}
	return knownJob{first.Submitted()}, nil
}

// knownJob ends an admission because its job is there already.
type knownJob struct{ body []byte }

// Error implements error.
func (knownJob) Error() string { return "the job of this Idempotency-Key is there already" }

// fingerprint is how a request is kept to be compared.
func fingerprint(of []byte) string {
	if of == nil {
		return ""
	}
	sum := sha256.Sum256(of)
	return hex.EncodeToString(sum[:])
}

// record is the job that the submission makes.
func (s *Submission) record() *row.Job {
	return &row.Job{
		ID: s.Job, Request: s.Request, Account: s.Account, Key: s.Key,
		Kind: string(s.Model.Kind), Model: s.Model.ID, Endpoint: s.Endpoint, Revision: s.Snapshot.Revision,
		Plan: s.Plan, Prompt: s.Prompt, Params: string(s.Params),
		Materials: row.Materials{References: s.References, Roles: s.Roles, Mask: s.Mask},
		Callback:  s.Callback, Free: s.Model.FreeDailyRequests > 0,
		Held: s.cost(), Status: row.StatusQueued,
	}
}

// admission writes a job in the transaction that holds its money.
type admission struct {
	jobs              *Jobs
	rec               *row.Job
	once, fingerprint string
	seen              *knownRow // the job of the Idempotency-Key
	there             bool      // the job is there already
}

// Read implements ledger.Hook.
func (a *admission) Read(q *store.Batch) {
	a.seen, a.there = nil, false
	// The answer to its commit may have been lost with the life of its node.
	q.Query(func(row store.Row) error {
		var id string
		a.there = true
		return row.Scan(&id)
	}, `SELECT id FROM job WHERE id = $1`, a.rec.ID)
	if a.once == "" {
		return
	}
	q.Query(func(row store.Row) error {
		a.seen = &knownRow{}
		return row.Scan(a.seen.dest()...)
	}, selectOnce, a.rec.Account, a.once)
}

// Decide implements ledger.AdmissionRider.
func (a *admission) Decide(nowMS int64) error {
	if a.there {
		return knownJob{a.rec.Submitted()}
	}
	if a.seen != nil && !a.seen.over(a.jobs.oldest(nowMS)) {
		known, err := a.seen.judge(a.fingerprint)
		if err != nil {
			return err
		}
		return known
	}
	a.rec.CreatedMS = nowMS
	return nil
}

// Write implements ledger.Hook.
func (a *admission) Write(q *store.Batch, nowMS int64) {
	r := a.rec
	q.Exec(nil, `INSERT INTO job (id, request, account, key, kind, model, endpoint, revision, plan, prompt, params, materials, callback,
		once_key, fingerprint,
		free, held_nano, cost_nano, status, code, line, trace, body, created_ms, started_ms, ended_ms)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, 0, $18, '', '', '', '', $19, 0, 0)`,
		r.ID, r.Request, r.Account, r.Key, r.Kind, r.Model, r.Endpoint, r.Revision, row.Text(r.Plan), r.Prompt, r.Params, row.Text(r.Materials),
		r.Callback,
		a.once, a.fingerprint, store.Bool(r.Free), int64(r.Held), r.Status, nowMS)
	q.Exec(nil, insertRun,
		r.ID, r.Model, r.Account, nowMS, row.Text(row.Trace{Steps: []row.Step{{Name: row.StepQueued, At: nowMS}}}))
	if len(r.Materials.References) > 0 || r.Materials.Mask != nil {
		media.Adopt(q, r.ID, nowMS)
	}
}

// Undo implements ledger.AdmissionRider. The client was cut off: with an
// Idempotency-Key it finds the job by repeating the submission; without one it
// has no way to the job, which is ended wherever it stands.
func (a *admission) Undo() ledger.EndHook {
	if a.once != "" {
		return nil
	}
	return a.jobs.ending(a.rec, nil, anyFence, row.JobError{Code: fault.UpstreamError, Operator: true,
		Message: "The service could not confirm this submission, so it was taken back. You were not charged. Submit it again."})
}

// oldest returns the end of the oldest record that is kept. No record is given
// up, and no Idempotency-Key with it, for a clock that is ahead for a moment.
func (j *Jobs) oldest(nowMS int64) int64 {
	return j.opts.DB.Expiry(nowMS) - j.opts.Retention.Milliseconds()
}
