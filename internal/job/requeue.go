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

// Anew is how a job is to be done anew.
type Anew struct {
	// Force asks for it although the job has succeeded.
	Force bool
	// Once is the request's Idempotency-Key; nil: none.
	Once *ledger.Once
	// Show renders the answer that is given, and saved for the key.
	Show func(View) []byte
	// Note adds to the transaction that it was done; nil: nothing is.
	Note Note
}

// Requeue lets a job be done anew, and returns the answer that shows it. One
// that has not ended leaves its line, whose provider is told, forgets its
// attempts and waits in the queue at its old place. One that has ended is
// submitted once more, as a job of its own that is judged for the same key as a
// submission of today: by its models, today's catalog and prices, and
// admission. A repetition with the same Idempotency-Key does nothing and gets
// the first answer, replayed. ErrNoJob; ledger.ErrOtherBody; ledger.ErrUnknown;
// the faults of an admission, though never a 401, since the caller's own key is
// another; a fault for a job that has succeeded, without Force, and for one whose
// references are gone, as they are when a job has ended.
func (j *Jobs) Requeue(ctx context.Context, id string, o Anew) (answer []byte, replayed bool, err error) {
	if o.Once != nil {
		// Twins on this node come one after the other, as with submissions.
		unlock, waited := j.twins.Acquire(ctx, "requeue "+o.Once.Key)
		if waited != nil {
			return nil, false, fault.TryAgain(waited)
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
	rec, p, err := j.unended(ctx, id)
	var ended *fault.Error
	switch {
	case errors.As(err, &ended):
		return j.again(ctx, id, o)
	case err != nil:
		return nil, false, err
	}
	return j.backToQueue(ctx, rec, p, o)
}

// backToQueue takes a job that has not ended from its line.
func (j *Jobs) backToQueue(ctx context.Context, rec *row.Job, p *row.Run, o Anew) (answer []byte, replayed bool, err error) {
	drop, moved := j.dropper(rec.ID), false
	err = j.opts.DB.Update(ctx, func(tx *store.Tx) (err error) {
		moved, replayed = false, false
		if o.Once != nil { // a twin on another node
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
		next.Trace = p.Trace.Anew(now)
		next.Trace.Step(row.StepRequeued, now, p.Line)
		next.QueuedMS = now
		changed, err := stepBackTx(tx, &next, rec.ID, now, 0)
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
	drop()
	j.tellProvider(ctx, rec, p)
	j.rouse()
	return answer, false, nil
}

// again submits a job that has ended once more.
func (j *Jobs) again(ctx context.Context, old string, o Anew) (answer []byte, replayed bool, err error) {
	var rec *row.Job
	var caller account.Principal
	var usable bool
	err = j.opts.DB.View(ctx, func(tx *store.Tx) (err error) {
		if rec, err = row.RecordTx(tx, old); err != nil {
			return err
		}
		caller, usable, err = account.NamedTx(tx, rec.Account, rec.Key)
		return err
	})
	switch {
	case err != nil:
		return nil, false, err
	case rec.Status == row.StatusSucceeded && !o.Force:
		return nil, false, fault.At(fault.InvalidRequest, "force",
			"The job %s has succeeded. To let it be done again, at its user's expense, send {\"force\":true}.", old)
	case len(rec.Materials.References) > 0 || rec.Materials.Mask != nil:
		return nil, false, fault.New(fault.InvalidRequest,
			"The job %s had reference files, which were deleted when it ended: its user has to submit it again.", old)
	case !usable:
		return nil, false, unusableKey()
	}
	now := j.opts.Now()
	next := *rec
	model, err := j.judgeAnew(&next, caller)
	if err != nil {
		return nil, false, err
	}
	next.ID, next.Request, next.Status, next.Body, next.Trace = NewID(), id.At("req_", now), row.StatusQueued, "", row.Trace{}
	next.Cost, next.Line, next.Code, next.StartedMS, next.EndedMS = 0, "", "", 0, 0
	a := &anewAdmission{admission: admission{jobs: j, rec: &next}, show: o.Show, note: o.Note, old: old}
	if o.Once != nil {
		a.once = &ledger.OnceHook{Once: *o.Once}
	}
	err = j.opts.Ledger.AdmitJob(context.WithoutCancel(ctx), ledger.Admission{
		Request: next.Request, Account: next.Account, Key: next.Key, KeyVersion: caller.Version, Model: next.Model, Endpoint: next.Endpoint,
		Amount: next.Held, FreeDaily: model.FreeDailyRequests, Revision: next.Revision, Factor: next.Plan.Factor, Received: now,
		Job: next.ID, Advice: advice(model.Kind),
	}, a)
	var saved savedAnswer
	var known knownJob
	switch {
	case errors.As(err, &saved):
		return saved, true, nil
	case err != nil && !errors.As(err, &known): // known: it was made, by a commit whose answer was lost
		return nil, false, onBehalf(err)
	}
	j.metrics.submitted(next.Kind)
	j.rouse()
	return a.answer(), false, nil
}

// onBehalf is a refusal of a user's key as who has another one is told of it.
func onBehalf(err error) error {
	if errors.Is(err, ledger.ErrKeyChanged) {
		return fault.New(fault.InvalidRequest, "The key of the job has just changed. Try again.")
	}
	if f := (*fault.Error)(nil); errors.As(err, &f) && f.Code == fault.InvalidAPIKey {
		return unusableKey()
	}
	return err
}

func unusableKey() error {
	return fault.New(fault.InvalidRequest,
		"The key of the job, or its account, is disabled or deleted, so nothing can be submitted for it. Enable it first, "+
			"or let its user submit the job with another key.")
}

// judgeAnew judges a job that is submitted anew as the front desk would judge it now:
// by the key's models, by today's catalog, and at the account's prices of today.
func (j *Jobs) judgeAnew(rec *row.Job, caller account.Principal) (*catalog.Model, error) {
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
	plan.Factor = caller.Prices.Of(model.ID)
	rec.Plan, rec.Revision, rec.Free, rec.Held = plan, snapshot.Revision, model.FreeDailyRequests > 0, model.PlanHold(plan)
	return model, nil
}

// anewAdmission is the admission of a job that is done anew, which saves its
// answer under the Idempotency-Key of the operator's request.
type anewAdmission struct {
	admission
	once *ledger.OnceHook // nil: none
	show func(View) []byte
	note Note
	old  string // the job that it is anew
}

// savedAnswer ends an admission because it was made before.
type savedAnswer []byte

// Error implements error.
func (savedAnswer) Error() string { return "the answer to this Idempotency-Key is there already" }

// Read implements ledger.Hook.
func (a *anewAdmission) Read(q *store.Batch) {
	a.admission.Read(q)
	if a.once != nil {
		a.once.Read(q)
	}
}

// Decide implements ledger.AdmissionRider.
func (a *anewAdmission) Decide(nowMS int64) error {
	if a.once != nil && !a.there {
		saved, err := a.once.Saved(a.jobs.opts.DB.Expiry(nowMS))
		if err != nil {
			return err
		}
		if saved != nil {
			return savedAnswer(saved)
		}
	}
	return a.admission.Decide(nowMS)
}

// Write implements ledger.Hook.
func (a *anewAdmission) Write(q *store.Batch, nowMS int64) {
	a.admission.Write(q, nowMS)
	if a.note != nil {
		a.note(q, nowMS, a.rec.Account, a.old)
	}
	if a.once != nil {
		a.once.Write(q, a.answer(), nowMS)
	}
}

// Undo implements ledger.AdmissionRider: a repetition finds the job.
func (a *anewAdmission) Undo() ledger.EndHook {
	if a.once != nil {
		return nil
	}
	return a.admission.Undo()
}

// answer shows the job as it was made.
func (a *anewAdmission) answer() []byte {
	v := viewOf(a.rec, row.Trace{Steps: []row.Step{{Name: row.StepQueued, At: a.rec.CreatedMS}}})
	v.Held, v.Body = a.rec.Held, row.Render(a.rec.Base(row.StatusQueued))
	return a.show(v)
}
