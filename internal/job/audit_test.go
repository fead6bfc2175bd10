package job

import (
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/job/proof"
	"tollgate/internal/job/row"
	"tollgate/internal/ledger/audit"
	"tollgate/internal/ledger/ledgertest"
	"tollgate/internal/media"
	"tollgate/internal/store/storetest"
)

// TestAudit expects a report of each damaged row of a succeeded, a failed and a running job.
func TestAudit(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		reached := make(chan struct{}, 1)
		c, n := oneLineCluster(t, url, &generator{before: block("poll", reached)})
		failed := c.submit(n, c.submission(n, "easel-1", 1))
		rec, _ := c.read(failed)
		cancelled := n.jobs.newEnding(rec, nil, anyFence, row.JobError{Code: fault.UpstreamError, Operator: true, Message: "no"})
		if !n.jobs.end(t.Context(), cancelled) {
			t.Fatal("end did not cancel the job")
		}
		running := c.start(n, "easel-1", 1)
		<-reached
		ended := c.submit(n, c.submission(n, "easel-1", 1))
		rec, _ = c.read(ended)
		succeeded := n.jobs.newEnding(rec, []media.File{}, anyFence, row.JobError{})
		succeeded.cost = cent
		if !n.jobs.end(t.Context(), succeeded) {
			t.Fatal("end did not end the job")
		}
		c.audit(cent)
		for _, fault := range ledgertest.JobFaults(ended, failed, running) {
			fault.Check(t, c.db, proof.AuditTx)
		}
		for name, tt := range map[string]struct {
			fault  ledgertest.Fault
			reason string
		}{
			"an ended job has another key":                 {ledgertest.JobKey.Of(ended), "another key, hold or factor"},
			"an ended job has another hold":                {ledgertest.JobHeld.Of(ended), "another key, hold or factor"},
			"an ended job has another factor":              {ledgertest.JobFactor.Of(ended), "another key, hold or factor"},
			"a failed job has another hold":                {ledgertest.JobHeld.Of(failed), "another key, hold or factor"},
			"a failed job has another factor":              {ledgertest.JobFactor.Of(failed), "another key, hold or factor"},
			"a receipt of a job has another factor":        {ledgertest.JobReceiptFactor.Of(ended), "another key, hold or factor"},
			"a receipt of a job has another hold":          {ledgertest.JobReceiptHeld.Of(ended), "another key, hold or factor"},
			"a running job has another key":                {ledgertest.JobKey.Of(running), "differs from its record"},
			"a running job has another hold":               {ledgertest.JobHeld.Of(running), "differs from its record"},
			"a running job has another factor":             {ledgertest.JobFactor.Of(running), "differs from its record"},
			"the hold of a running job has another factor": {ledgertest.HoldFactor.Of(running), "differs from its record"},
		} {
			if found := ledgertest.Plant(t, c.db, tt.fault, proof.AuditTx); !ledgertest.Reports(found, tt.reason) {
				t.Errorf("%s: the audit reported %+v, want %q", name, found, tt.reason)
			}
		}
		c.audit(cent)
	})
}

// TestAuditWithoutRecords expects no difference for missing records if the retention is short.
func TestAuditWithoutRecords(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c, n := oneLineCluster(t, url, &generator{})
		c.submit(n, c.submission(n, "easel-1", 1))
		for range 2 {
			n.runJobs()
		}
		ledgertest.ForgetEndedJobs(t, c.db)
		report, err := audit.Run(t.Context(), c.db, proof.Check(-time.Minute))
		if err != nil || !report.OK {
			t.Errorf("the audit with a short retention returned %+v and error %v, want OK", report, err)
		}
		report, err = audit.Run(t.Context(), c.db, proof.AuditTx)
		if err != nil || report.OK {
			t.Errorf("the audit with a retention of an hour returned %+v and error %v, want differences", report, err)
		}
	})
}
