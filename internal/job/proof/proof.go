// Package proof owns the part of the audit for jobs: it compares the ledger with the rows of jobs
// and with the slots of lines.
//
// Invariant: apart from the values in the rows, it shares no code with the processing of jobs.
package proof

import (
	"encoding/json"
	"fmt"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/job/row"
	"tollgate/internal/ledger/audit"
	"tollgate/internal/money"
	"tollgate/internal/slot"
	"tollgate/internal/store"
)

// auditTime is the time after a job's end during which the audit requires the job's record. Because
// the retention may have been raised recently, the audit requires earlier records only if they are
// newer than the oldest record.
const auditTime = time.Hour

// jobAudit is one audit of the jobs.
type jobAudit struct {
	books *audit.Books
	ended map[string]endedJob // by request, until the receipt was read
	since int64               // records of jobs with an end since then must exist
}

// endedJob is the record of an ended job.
type endedJob struct {
	job, account, key string
	billed            bool
	cost, held        money.Amount
	factor            money.Factor
	ended             int64
}

// Check returns an audit.Check like AuditTx. If retention is shorter than an hour, the Check requires
// the records of ended jobs only for the retention.
func Check(retention time.Duration) audit.Check {
	return func(tx *store.Tx, books *audit.Books) error {
		return auditTx(tx, books, min(retention, auditTime))
	}
}

// AuditTx is an audit.Check. It requires, to the nano-dollar: an open hold for each running job, an
// equal receipt for each ended job, a job for each recent receipt, a slot for each submitted job, and
// no other holds and slots of jobs.
func AuditTx(tx *store.Tx, books *audit.Books) error { return auditTx(tx, books, auditTime) }

func auditTx(tx *store.Tx, books *audit.Books, retention time.Duration) error {
	if books.Rest() {
		return auditSlotsTx(tx, books)
	}
	a := &jobAudit{books: books, ended: map[string]endedJob{}}
	if err := a.running(tx); err != nil {
		return err
	}
	if err := a.read(tx, retention); err != nil {
		return err
	}
	books.JobReceipts(a.receipt)
	books.Finally(a.end)
	return nil
}

// read reads the ended jobs and reports unfinished jobs without a run.
func (a *jobAudit) read(tx *store.Tx, retention time.Duration) error {
	now, err := tx.NowMS()
	if err != nil {
		return err
	}
	var oldest int64
	if err := tx.QueryRow(`SELECT COALESCE(MIN(ended_ms), 0) FROM job WHERE ended_ms > 0`).Scan(&oldest); err != nil {
		return err
	}
	if a.since = now - retention.Milliseconds(); oldest > 0 {
		a.since = min(a.since, oldest)
	}
	where, args := a.books.Where("j.account")
	return tx.Each(func(r store.Row) error {
		var request, plan, status string
		var e endedJob
		var runs int64
		if err := r.Scan(&e.job, &request, &e.account, &e.key, &plan, (*int64)(&e.held), &status, (*int64)(&e.cost),
			&e.ended, &runs); err != nil {
			return err
		}
		a.books.Count("ended jobs", 1)
		e.factor = factorOf(plan)
		at := audit.Difference{Account: e.account, Request: request}
		switch {
		case e.ended == 0:
			at.What = "a job has not ended and does not run: " + e.job
		case runs != 0:
			at.What = "a job has ended and runs: " + e.job
		case (status != row.StatusSucceeded && status != row.StatusFailed) || e.cost < 0 || (status == row.StatusFailed && e.cost != 0):
			at.What, at.Recorded = "an ended job has an impossible state or cost: "+e.job, status+", "+e.cost.String()
		}
		if at.What != "" {
			a.books.Report(at)
		}
		if e.ended > 0 {
			e.billed = status == row.StatusSucceeded
			a.ended[request] = e
		}
		return nil
	}, `SELECT j.id, j.request, j.account, j.key, j.plan, j.held_nano, j.status, j.cost_nano, j.ended_ms,
		CASE WHEN r.id IS NULL THEN 0 ELSE 1 END
		FROM job j LEFT JOIN job_run r ON r.id = j.id WHERE (j.ended_ms > 0 OR r.id IS NULL) AND `+where, args...)
}

// receipt compares a receipt with the job's record.
func (a *jobAudit) receipt(r audit.JobReceipt) {
	at := audit.Difference{Account: r.Account, Request: r.Request, Recorded: r.Cost.String()}
	e, ok := a.ended[r.Request]
	delete(a.ended, r.Request)
	switch {
	case !ok && r.EndedMS >= a.since:
		at.What = "a receipt is of a job that does not exist or has not ended: " + r.Job
	case ok && (e.job != r.Job || e.account != r.Account || e.billed != r.Billed || e.cost != r.Cost):
		at.What, at.Computed = "the receipt of a job differs from its record: "+e.job, e.cost.String()
	case ok && (e.key != r.Key || e.held != r.Held || e.factor != r.Factor):
		at.What = "the receipt of a job has another key, hold or factor than the job: " + e.job
		at.Recorded = fmt.Sprintf("%s, %s, factor %s", r.Key, r.Held, r.Factor)
		at.Computed = fmt.Sprintf("%s, %s, factor %s", e.key, e.held, e.factor)
	default:
		return
	}
	a.books.Report(at)
}

// factorOf returns the account's price factor in a plan, or -1 if the plan is unreadable.
func factorOf(plan string) money.Factor {
	var p catalog.Plan
	if err := json.Unmarshal([]byte(plan), &p); err != nil {
		return -1
	}
	return p.Factor
}

// end reports ended jobs without a receipt.
func (a *jobAudit) end() error {
	for request, e := range a.ended {
		if a.books.MayBeDeleted(e.account, request) {
			continue
		}
		a.books.Report(audit.Difference{Account: e.account, Request: request, What: "a job has ended without a receipt: " + e.job,
			Recorded: e.cost.String()})
	}
	return nil
}

// running compares open holds and slots with the running jobs.
func (a *jobAudit) running(tx *store.Tx) error {
	holds := a.books.JobHolds()
	slots, err := slot.JobsTx(tx)
	if err != nil {
		return err
	}
	a.books.Count("holds of jobs", int64(len(holds)))
	differ := func(account, request, what, recorded, computed string) {
		a.books.Report(audit.Difference{Account: account, Request: request, What: what, Recorded: recorded, Computed: computed})
	}
	where, args := a.books.Where("COALESCE(j.account, r.account)")
	err = tx.Each(func(r store.Row) error {
		var id, account, key, request, plan, onLine string
		var held money.Amount
		var state int64
		if err := r.Scan(&id, &account, &key, &request, (*int64)(&held), &plan, &state, &onLine); err != nil {
			return err
		}
		a.books.Count("running jobs", 1)
		hold, ok := holds[id]
		switch {
		case request == "":
			differ(account, "", "a running job has no record: "+id, "", hold.Request)
		case !ok:
			differ(account, request, "a running job has no hold: "+id, held.String(), "")
		case hold.Amount != held || hold.Account != account || hold.Key != key || hold.Request != request || hold.Factor != factorOf(plan):
			differ(account, request, "the hold of a job differs from its record: "+id, held.String(), hold.Amount.String())
		}
		delete(holds, id)
		if state > row.StateQueued && slots[id] != onLine {
			differ(account, request, "a submitted job has no slot of its line: "+id, onLine, slots[id])
		}
		return nil
	}, `SELECT r.id, COALESCE(j.account, r.account), COALESCE(j.key, ''), COALESCE(j.request, ''), COALESCE(j.held_nano, 0),
		COALESCE(j.plan, ''), r.state, r.line
		FROM job_run r LEFT JOIN job j ON j.id = r.id WHERE `+where, args...)
	for id, hold := range holds {
		differ(hold.Account, hold.Request, "a hold belongs to no running job: "+id, hold.Amount.String(), "")
	}
	return err
}

// auditSlotsTx reports slots without a submitted job. It checks all slots at once, because a slot has no
// account.
func auditSlotsTx(tx *store.Tx, books *audit.Books) error {
	slots, err := slot.JobsTx(tx)
	if err != nil {
		return err
	}
	err = tx.Each(func(r store.Row) error {
		var id string
		err := r.Scan(&id)
		delete(slots, id)
		return err
	}, `SELECT id FROM job_run WHERE state > $1`, row.StateQueued)
	for id, onLine := range slots {
		books.Report(audit.Difference{Request: id, What: "a slot of a line belongs to no submitted job", Recorded: onLine})
	}
	return err
}
