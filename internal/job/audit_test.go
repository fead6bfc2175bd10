package job

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/job/proof"
	"tollgate/internal/job/row"
	"tollgate/internal/ledger/audit"
	"tollgate/internal/ledger/ledgertest"
	"tollgate/internal/media"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
	"tollgate/internal/upstream/chatcall"
)

// TestAuditFindsEveryFault plants one fault after the other beside a job that
// has succeeded, one that has failed and one that runs, and mends it again.
func TestAuditFindsEveryFault(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		reached := make(chan struct{}, 1)
		h := newHouse(t, url, map[string]chatcall.Adapter{"first": &generator{hold: stuck("poll", reached)}})
		h.apply(oneLine)
		n := h.still()
		failed := h.submit(n, h.submission(n, "easel-1", 1))
		rec, _ := h.stand(failed)
		cancelled := n.jobs.ending(rec, nil, anyFence, row.JobError{Code: fault.UpstreamError, Operator: true, Message: "no"})
		if !n.jobs.end(t.Context(), cancelled) {
			t.Fatal("the job was not cancelled")
		}
		running := h.submit(n, h.submission(n, "easel-1", 1))
		n.step(n.jobs.Start)
		<-reached
		done := h.submit(n, h.submission(n, "easel-1", 1))
		rec, _ = h.stand(done)
		succeeded := n.jobs.ending(rec, []media.File{}, anyFence, row.JobError{})
		succeeded.cost = cent
		if !n.jobs.end(t.Context(), succeeded) {
			t.Fatal("the job was not ended")
		}
		h.audit(cent)
		for _, c := range []struct{ name, breaks, finds string }{
			{"a hold is gone", `DELETE FROM ledger_hold`, "a running job has no hold"},
			{"a hold is of another amount", `UPDATE ledger_hold SET amount_nano = amount_nano + 1`, "is another one"},
			{"a hold is of another request", `UPDATE ledger_hold SET id = 'req_x'`, "is another one"},
			{"a hold is of another key", `UPDATE ledger_hold SET key = 'key_x'`, "is another one"},
			{"a job does not run any more", `DELETE FROM job_run`, "belongs to no running job"},
			{"a job neither runs nor has ended", `DELETE FROM job_run`, "has not ended and does not run"},
			{"a running job has no record", `DELETE FROM job WHERE id = '` + running + `'`, "a running job has no record"},
			{"a slot is gone", `DELETE FROM line_job`, "no slot"},
			{"a slot is of another line", `UPDATE line_job SET line = 'second'`, "no slot"},
			{"a slot too many", `INSERT INTO line_job (job, line) VALUES ('job_x', 'first')`, "belongs to no submitted job"},
			{"a slot of a queued job", `UPDATE job_run SET state = 0, line = ''`, "belongs to no submitted job"},
			{"an ended job is gone", `DELETE FROM job WHERE id = '` + done + `'`, "of a job that does not exist"},
			{"all ended jobs are gone", `DELETE FROM job WHERE ended_ms > 0`, "of a job that does not exist"},
			{"a receipt is of another job", `UPDATE ledger_receipt SET job = 'job_x' WHERE job = '` + done + `'`, "is not what the job says"},
			{"a receipt of a chat is said to be a job's", `UPDATE ledger_receipt SET id = 'req_x' WHERE job = '` + failed + `'`,
				"of a job that does not exist"},
			{"a receipt of a job is gone", `DELETE FROM ledger_receipt WHERE job = '` + failed + `'`, "has ended without a receipt"},
			{"a receipt of a job is said to be a chat's", `UPDATE ledger_receipt SET job = '' WHERE job = '` + done + `'`,
				"has ended without a receipt"},
			{"a receipt is of a running job", `UPDATE job SET ended_ms = 0 WHERE id = '` + done + `'`,
				"of a job that does not exist or has not ended"},
			{"a running job has ended", `UPDATE job SET ended_ms = 5 WHERE id = '` + running + `'`, "has ended and runs"},
			{"a job cost something else", `UPDATE job SET cost_nano = cost_nano - 1 WHERE id = '` + done + `'`, "is not what the job says"},
			{"a charged job is said to have failed", `UPDATE job SET status = 'failed', cost_nano = 0 WHERE id = '` + done + `'`,
				"is not what the job says"},
			{"an uncharged job is said to have succeeded", `UPDATE job SET status = 'succeeded' WHERE id = '` + failed + `'`,
				"is not what the job says"},
			{"a failed job has a cost", `UPDATE job SET cost_nano = 1 WHERE id = '` + failed + `'`, "cannot have"},
			{"an ended job is queued", `UPDATE job SET status = 'queued' WHERE id = '` + done + `'`, "cannot have"},
			{"a job is another account's", `UPDATE job SET account = 'x' WHERE id = '` + done + `'`, "is not what the job says"},
		} {
			found := h.planted(c.breaks)
			if !slices.ContainsFunc(found, func(d audit.Difference) bool { return strings.Contains(d.What, c.finds) }) {
				t.Errorf("%s: %q was not reported, but %+v", c.name, c.finds, found)
			}
		}
		for name, c := range map[string]struct {
			fault ledgertest.Fault
			finds string
		}{
			"an ended job has another key":                 {ledgertest.JobKey(done), "another key, hold or factor"},
			"an ended job has another hold":                {ledgertest.JobHeld(done), "another key, hold or factor"},
			"an ended job has another factor":              {ledgertest.JobFactor(done), "another key, hold or factor"},
			"a failed job has another hold":                {ledgertest.JobHeld(failed), "another key, hold or factor"},
			"a failed job has another factor":              {ledgertest.JobFactor(failed), "another key, hold or factor"},
			"a receipt of a job has another factor":        {ledgertest.JobReceiptFactor(done), "another key, hold or factor"},
			"a receipt of a job has another hold":          {ledgertest.JobReceiptHeld(done), "another key, hold or factor"},
			"a running job has another key":                {ledgertest.JobKey(running), "is another one"},
			"a running job has another hold":               {ledgertest.JobHeld(running), "is another one"},
			"a running job has another factor":             {ledgertest.JobFactor(running), "is another one"},
			"the hold of a running job has another factor": {ledgertest.HoldFactor(running), "is another one"},
		} {
			if found := ledgertest.Plant(t, h.db, c.fault, proof.AuditTx); !ledgertest.Says(found, c.finds) {
				t.Errorf("%s: %q was not reported, but %+v", name, c.finds, found)
			}
		}
		h.audit(cent)
	})
}

// planted audits within a transaction that has changed something and is undone.
func (h *house) planted(breaks string) (found []audit.Difference) {
	h.t.Helper()
	undo := errors.New("undo")
	err := h.db.Update(h.t.Context(), func(tx *store.Tx) error {
		if n, err := tx.Exec(breaks); err != nil || n == 0 {
			return fmt.Errorf("%d rows changed: %w", n, err)
		}
		report, err := audit.RunTx(tx, proof.AuditTx)
		if err != nil {
			return err
		}
		found = report.Differences
		return undo
	})
	if !errors.Is(err, undo) {
		h.t.Fatalf("%s: %v", breaks, err)
	}
	return found
}

// TestAuditWithoutRecords finds nothing where records are kept for a moment only.
func TestAuditWithoutRecords(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHouse(t, url, map[string]chatcall.Adapter{"first": &generator{}})
		h.apply(oneLine)
		n := h.still()
		h.submit(n, h.submission(n, "easel-1", 1))
		for range 2 {
			n.step(n.jobs.Start)
			n.jobs.running.Wait()
		}
		h.update(`DELETE FROM job WHERE ended_ms > 0`)
		report, err := audit.Run(t.Context(), h.db, proof.Check(-time.Minute))
		if err != nil || !report.OK {
			t.Errorf("%v %+v", err, report)
		}
		report, err = audit.Run(t.Context(), h.db, proof.AuditTx)
		if err != nil || report.OK {
			t.Errorf("kept for an hour: %v %+v", err, report)
		}
	})
}
