package job

import (
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/job/row"
	"tollgate/internal/store/storetest"
)

// TestRetention checks that an expired record disappears at once, its row at the next sweep, and
// its files after both.
func TestRetention(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c, n := oneLineCluster(t, url, &generator{blocks: true})
		id := c.submit(n, c.submission(n, "easel-1", 1))
		kept := c.submit(n, c.submission(n, "easel-1", 1))
		for range 2 {
			n.runJobs()
		}
		old := c.submit(n, c.submission(n, "easel-1", 1)) // a queued job does not expire
		c.update(`UPDATE job SET created_ms = 1 WHERE id = $1`, old)
		s := c.poll(n, "image", id)

		c.age(id, n.jobs.opts.Retention-time.Minute)
		n.step(n.jobs.Housekeep)
		if again := c.poll(n, "image", id); again.Status != row.StatusSucceeded {
			t.Errorf("within its time: %+v", again)
		}
		c.age(id, time.Minute)
		if body, err := n.jobs.Body(t.Context(), c.account, "image", id); err == nil || fault.Of(err).Code != fault.JobNotFound {
			t.Errorf("not swept yet: %s %v", body, err)
		}
		n.step(n.jobs.Housekeep)
		if jobs, running, _ := c.rows(); jobs != 2 || running != 1 {
			t.Errorf("%d records, %d in progress", jobs, running)
		}
		if again := c.poll(n, "image", kept); again.Status != row.StatusSucceeded {
			t.Errorf("%+v", again)
		}
		if again := c.poll(n, "image", old); again.Status != row.StatusQueued {
			t.Errorf("%+v", again)
		}
		s.Data = append(s.Data, c.poll(n, "image", kept).Data...)
		c.update(`DELETE FROM media_file WHERE state <> 'public'`)
		c.onlyPublic(n, s) // the record has expired, the files have not
		c.audit(2 * cent)
	})
}

// TestDeleteManyRecords deletes more records than fit one transaction.
func TestDeleteManyRecords(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c, n := oneLineCluster(t, url, &generator{})
		c.fill(n, maxDeleted+20)
		c.update(`DELETE FROM job_run`)
		c.update(`UPDATE job SET status = 'failed', ended_ms = 1`)
		n.step(n.jobs.Housekeep)
		if jobs, _, _ := c.rows(); jobs != 0 {
			t.Errorf("%d records are left", jobs)
		}
	})
}
