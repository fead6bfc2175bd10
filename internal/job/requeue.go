package job

import (
	"context"
	"errors"
	"fmt"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/job/row"
	"tollgate/internal/ledger"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// RequeueOptions are the options of Requeue. Only Show is required.
type RequeueOptions struct {
	// Force allows a job that has succeeded.
	Force bool
	// Once is the request's Idempotency-Key, if any.
	Once *ledger.Once
	// Show renders the answer, which is stored with Once.
	Show func(View) []byte
	// Note logs the action, if not nil.
	Note Note
}

// Requeue runs a job again and returns the answer. An unfinished job leaves its line, loses its
// attempts and returns to its former position in the queue. Requeue submits an ended job again, as a
// new job with the same key and with today's allowed models, catalog, prices and limits. A second
// request with the same Idempotency-Key gets the stored answer, and replayed is true.
//
// Errors: ErrNoJob, ledger.ErrOtherBody, ledger.ErrUnknown, the faults of an admission except 401
// (the operator does not use the job's key), a fault for a succeeded job without Force, and a fault
// for a job with reference files, because the end of a job deletes its reference files.
func (j *Jobs) Requeue(ctx context.Context, id string, o RequeueOptions) (answer []byte, replayed bool, err error) {
	if o.Once != nil {
		// equal requests on this node run one after the other
		unlock, waitErr := j.onceLocks.Acquire(ctx, "requeue "+o.Once.Key)
		if waitErr != nil {
			return nil, false, fault.TryAgain(waitErr)
		}
		defer unlock()
		err = j.opts.DB.Update(ctx, func(tx *store.Tx) error {
			answer, err = ledger.AnswerTx(tx, *o.Once)
			return err
		})
		if err != nil || answer != nil {
			return answer, true, err
		}
	}
	rec, p, err := j.readUnfinished(ctx, id)
	var ended *fault.Error
	switch {
	case errors.As(err, &ended):
		return j.resubmit(ctx, id, o)
	case err != nil:
		return nil, false, err
	}
	return j.requeue(ctx, rec, p, o)
}

// requeue returns an unfinished job to its queue.
func (j *Jobs) requeue(ctx context.Context, rec *row.Job, p *row.Run, o RequeueOptions) (answer []byte, replayed bool, err error) {
	stopWorker, moved := j.workerStop(rec.ID), false
	err = j.opts.DB.Update(ctx, func(tx *store.Tx) (err error) {
		moved, replayed = false, false
		if o.Once != nil { // an equal request on another node may have stored an answer
			answer, err = ledger.AnswerTx(tx, *o.Once)
			if replayed = answer != nil; err != nil || replayed {
				return err
			}
		}
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		next := *p
		next.Trace = p.Trace.Reset(now)
		next.Trace.Step(row.StepRequeued, now, p.Line)
		next.QueuedMS = now
		changed, err := requeueTx(tx, &next, rec.ID, now, 0)
		if moved = changed > 0; err != nil || !moved {
			return err
		}
		if o.Note != nil {
			b := tx.Batch()
			o.Note(b, now, rec.Account, rec.ID)
			if err := tx.Run(b); err != nil {
				return err
			}
		}
		v, err := GetTx(tx, rec.ID)
		if err != nil {
			return err
		}
		if answer = o.Show(v); o.Once == nil {
			return nil
		}
		return ledger.SaveTx(tx, *o.Once, answer)
	})
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("requeue job %s: %w", rec.ID, err)
	case replayed:
		return answer, true, nil
	case !moved:
		return nil, false, fault.New(fault.InvalidRequest, "The job %s has just changed. Look at it, and try again.", rec.ID)
	}
	stopWorker()
	j.cancelAtProvider(ctx, rec, p)
	j.wakeUp()
	return answer, false, nil
}

// resubmit submits a copy of an ended job.
func (j *Jobs) resubmit(ctx context.Context, oldID string, o RequeueOptions) (answer []byte, replayed bool, err error) {
	var rec *row.Job
	var caller account.Principal
	var usable bool
	err = j.opts.DB.View(ctx, func(tx *store.Tx) (err error) {
		if rec, err = row.RecordTx(tx, oldID); err != nil {
			return err
		}
		caller, usable, err = account.PrincipalTx(tx, rec.Account, rec.Key)
		return err
	})
	switch {
	case err != nil:
		return nil, false, err
	case rec.Status == row.StatusSucceeded && !o.Force:
		return nil, false, fault.At(fault.InvalidRequest, "force",
			"The job %s has succeeded. To let it be done again, at its user's expense, send {\"force\":true}.", oldID)
	case len(rec.Materials.References) > 0 || rec.Materials.Mask != nil:
		return nil, false, fault.New(fault.InvalidRequest,
			"The job %s had reference files, which were deleted when it ended: its user has to submit it again.", oldID)
	case !usable:
		return nil, false, unusableKeyError()
	}
	now := j.opts.Now()
	next := *rec
	model, err := j.reprice(&next, caller)
	if err != nil {
		return nil, false, err
	}
	next.ID, next.Request, next.Status, next.Body, next.Trace = NewID(), id.At("req_", now), row.StatusQueued, "", row.Trace{}
	next.Cost, next.Line, next.Code, next.StartedMS, next.EndedMS = 0, "", "", 0, 0
	a := &resubmission{admission: admission{jobs: j, rec: &next}, show: o.Show, note: o.Note, oldID: oldID}
	if o.Once != nil {
		a.once = &ledger.OnceHook{Once: *o.Once}
	}
	err = j.opts.Ledger.AdmitJob(context.WithoutCancel(ctx), ledger.Admission{
		Request: next.Request, Account: next.Account, Key: next.Key, KeyVersion: caller.Version, Model: next.Model, Endpoint: next.Endpoint,
		Amount: next.Held, FreeDaily: model.FreeDailyRequests, Revision: next.Revision, Factor: next.Plan.Factor, Received: now,
		Job: next.ID, Advice: advice(model.Kind),
	}, a)
	var saved storedAnswer
	var duplicate duplicateJob
	switch {
	case errors.As(err, &saved):
		return saved, true, nil
	case err != nil && !errors.As(err, &duplicate): // a duplicate was inserted by a commit with an unknown outcome
		return nil, false, rewordForOperator(err)
	}
	j.metrics.countSubmission(next.Kind)
	j.wakeUp()
	return a.answer(), false, nil
}

// rewordForOperator rewords a rejection of the job's key, because the operator uses another key.
func rewordForOperator(err error) error {
	if errors.Is(err, ledger.ErrKeyChanged) {
		return fault.New(fault.InvalidRequest, "The key of the job has just changed. Try again.")
	}
	if f := (*fault.Error)(nil); errors.As(err, &f) && f.Code == fault.InvalidAPIKey {
		return unusableKeyError()
	}
	return err
}

func unusableKeyError() error {
	return fault.New(fault.InvalidRequest,
		"The key of the job, or its account, is disabled or deleted, so nothing can be submitted for it. Enable it first, "+
			"or let its user submit the job with another key.")
}

// reprice checks a job against the key's models and today's catalog, and applies today's prices.
func (j *Jobs) reprice(rec *row.Job, caller account.Principal) (*catalog.Model, error) {
	snapshot := j.opts.Catalog.Current()
	model, ok := snapshot.Model(rec.Model)
	switch {
	case !ok || string(model.Kind) != rec.Kind:
		return nil, fault.At(fault.InvalidRequest, "model", "The model %s of the job is not in the catalog any more.", rec.Model)
	case model.State == catalog.StateRetired, model.State == catalog.StateComingSoon, model.State == catalog.StateMaintenance:
		return nil, fault.At(fault.InvalidRequest, "model", "The model %s of the job is not open now: its state is %s.", model.ID, model.State)
	case !caller.AllowsModel(model.ID):
		return nil, fault.At(fault.InvalidRequest, "model",
			"The key of the job may not use the model %s any more. Add the model to the key's allowed models first, "+
				"or let its user submit the job with another key.", model.ID)
	}
	if snapshot.HidesSandbox(model.ID, caller.Test, caller.AllowedModels) {
		return nil, fault.At(fault.InvalidRequest, "model",
			"The model %s of the job is a sandbox model now. Add it to the key's allowed models, or mark the account as test.", model.ID)
	}
	plan, err := model.Replan(rec.Plan)
	if err != nil {
		return nil, err
	}
	plan.Factor = caller.Prices.FactorOf(model.ID)
	rec.Plan, rec.Revision, rec.Held = plan, snapshot.Revision, model.PlanHold(plan)
	return model, nil
}

// resubmission is the admission of a resubmitted job. It stores the answer with the operator's
// Idempotency-Key.
type resubmission struct {
	admission
	once  *ledger.OnceHook
	show  func(View) []byte
	note  Note
	oldID string // the ended job
}

// storedAnswer ends an admission if an earlier request had the same Idempotency-Key.
type storedAnswer []byte

// Error implements error.
func (storedAnswer) Error() string { return "an answer for this Idempotency-Key is already stored" }

// Read implements ledger.Hook.
func (a *resubmission) Read(q *store.Batch) {
	a.admission.Read(q)
	if a.once != nil {
		a.once.Read(q)
	}
}

// Decide implements ledger.AdmissionHook.
func (a *resubmission) Decide(nowMS int64) error {
	if a.once != nil && !a.exists {
		saved, err := a.once.Saved(a.jobs.opts.DB.Expiry(nowMS))
		if err != nil {
			return err
		}
		if saved != nil {
			return storedAnswer(saved)
		}
	}
	return a.admission.Decide(nowMS)
}

// Write implements ledger.Hook.
func (a *resubmission) Write(q *store.Batch, nowMS int64) {
	a.admission.Write(q, nowMS)
	if a.note != nil {
		a.note(q, nowMS, a.rec.Account, a.oldID)
	}
	if a.once != nil {
		a.once.Write(q, a.answer(), nowMS)
	}
}

// Undo implements ledger.AdmissionHook. A repeated request finds the job by the Idempotency-Key.
func (a *resubmission) Undo() ledger.EndHook {
	if a.once != nil {
		return nil
	}
	return a.admission.Undo()
}

// answer renders the new job.
func (a *resubmission) answer() []byte {
	v := viewOf(a.rec, row.Trace{Steps: []row.Step{{Name: row.StepQueued, At: a.rec.CreatedMS}}})
	v.Held, v.Body = a.rec.Held, row.Render(a.rec.Base(row.StatusQueued))
	return a.show(v)
}
