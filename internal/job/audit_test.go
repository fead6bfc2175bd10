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

// TestAudit damages one row at a time and expects a difference. There is a job that has succeeded,
// one that has failed and one that runs.
func TestAudit(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		reached := make(chan struct{}, 1)
		c, n := oneLineCluster(t, url, &generator{before: block("poll", reached)})
		failed := c.submit(n, c.submission(n, "easel-1", 1))
		rec, _ := c.read(failed)
		cancelled := n.jobs.newEnding(rec, nil, anyFence, row.JobError{Code: fault.UpstreamError, Operator: true, Message: "no"})
		if !n.jobs.end(t.Context(), cancelled) {
			t.Fatal("the job was not cancelled")
		}
		running := c.start(n, "easel-1", 1)
		<-reached
		done := c.submit(n, c.submission(n, "easel-1", 1))
		rec, _ = c.read(done)
		succeeded := n.jobs.newEnding(rec, []media.File{}, anyFence, row.JobError{})
		succeeded.cost = cent
		if !n.jobs.end(t.Context(), succeeded) {
			t.Fatal("the job was not ended")
		}
		c.audit(cent)
		for _, fault := range ledgertest.JobFaults(done, failed, running) {
			fault.Check(t, c.db, proof.AuditTx)
		}
		for name, tt := range map[string]struct {
			fault ledgertest.Fault
			finds string
		}{
			"an ended job has another key":                 {ledgertest.JobKey.Of(done), "another key, hold or factor"},
			"an ended job has another hold":                {ledgertest.JobHeld.Of(done), "another key, hold or factor"},
			"an ended job has another factor":              {ledgertest.JobFactor.Of(done), "another key, hold or factor"},
			"a failed job has another hold":                {ledgertest.JobHeld.Of(failed), "another key, hold or factor"},
			"a failed job has another factor":              {ledgertest.JobFactor.Of(failed), "another key, hold or factor"},
			"a receipt of a job has another factor":        {ledgertest.JobReceiptFactor.Of(done), "another key, hold or factor"},
			"a receipt of a job has another hold":          {ledgertest.JobReceiptHeld.Of(done), "another key, hold or factor"},
			"a running job has another key":                {ledgertest.JobKey.Of(running), "differs from its record"},
			"a running job has another hold":               {ledgertest.JobHeld.Of(running), "differs from its record"},
			"a running job has another factor":             {ledgertest.JobFactor.Of(running), "differs from its record"},
			"the hold of a running job has another factor": {ledgertest.HoldFactor.Of(running), "differs from its record"},
		} {
			if found := ledgertest.Plant(t, c.db, tt.fault, proof.AuditTx); !ledgertest.Reports(found, tt.finds) {
				t.Errorf("%s: %q was not reported, but %+v", name, tt.finds, found)
			}
		}
		c.audit(cent)
	})
}

// TestAuditWithoutRecords expects no difference with a retention near zero.
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
			t.Errorf("%v %+v", err, report)
		}
		report, err = audit.Run(t.Context(), c.db, proof.AuditTx)
		if err != nil || report.OK {
			t.Errorf("kept for an hour: %v %+v", err, report)
		}
	})
}
