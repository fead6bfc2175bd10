package job

import (
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/job/row"
	"tollgate/internal/store/storetest"
)

// TestRetention checks that the record of an ended job disappears after the retention, that the next
// Housekeep deletes the row and the result files stay.
func TestRetention(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c, n := oneLineCluster(t, url, &generator{blocks: true})
		id := c.submit(n, c.submission(n, "easel-1", 1))
		recent := c.submit(n, c.submission(n, "easel-1", 1))
		for range 2 {
			n.runJobs()
		}
		queued := c.submit(n, c.submission(n, "easel-1", 1)) // a queued job does not expire
		c.update(`UPDATE job SET created_ms = 1 WHERE id = $1`, queued)
		s := c.poll(n, "image", id)

		c.age(id, n.jobs.opts.Retention-time.Minute)
		n.step(n.jobs.Housekeep)
		c.checkStatus(n, id, row.StatusSucceeded, "within the retention")
		c.age(id, time.Minute)
		if body, err := n.jobs.Body(t.Context(), c.account, "image", id); err == nil || fault.Of(err).Code != fault.JobNotFound {
			t.Errorf("Body of an expired record returned %s and error %v, want %s", body, err, fault.JobNotFound)
		}
		n.step(n.jobs.Housekeep)
		if jobs, running, _ := c.rows(); jobs != 2 || running != 1 {
			t.Errorf("%d records and %d runs, want 2 and 1", jobs, running)
		}
		c.checkStatus(n, recent, row.StatusSucceeded, "the recent record")
		c.checkStatus(n, queued, row.StatusQueued, "the queued job")
		s.Data = append(s.Data, c.poll(n, "image", recent).Data...)
		c.update(`DELETE FROM media_file WHERE state <> 'public'`)
		c.checkFiles(n, s) // the record has expired, the files have not
		c.audit(2 * cent)
	})
}

// TestDeleteManyRecords makes Housekeep delete more records than fit in one transaction.
func TestDeleteManyRecords(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c, n := oneLineCluster(t, url, &generator{})
		c.fill(n, maxDeleted+20)
		c.update(`DELETE FROM job_run`)
		c.update(`UPDATE job SET status = 'failed', ended_ms = 1`)
		n.step(n.jobs.Housekeep)
		if jobs, _, _ := c.rows(); jobs != 0 {
			t.Errorf("%d records exist after Housekeep, want none", jobs)
		}
	})
}
