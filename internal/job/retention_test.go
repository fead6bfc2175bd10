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
		h, n := oneLineCluster(t, url, &generator{blocks: true})
		id := h.submit(n, h.submission(n, "easel-1", 1))
		kept := h.submit(n, h.submission(n, "easel-1", 1))
		for range 2 {
			n.runJobs()
		}
		old := h.submit(n, h.submission(n, "easel-1", 1)) // a queued job does not expire
		h.update(`UPDATE job SET created_ms = 1 WHERE id = $1`, old)
		s := h.poll(n, "image", id)

		h.age(id, n.jobs.opts.Retention-time.Minute)
		n.step(n.jobs.Housekeep)
		if again := h.poll(n, "image", id); again.Status != row.StatusSucceeded {
			t.Errorf("within its time: %+v", again)
		}
		h.age(id, time.Minute)
		if body, err := n.jobs.Body(t.Context(), h.account, "image", id); err == nil || fault.Of(err).Code != fault.JobNotFound {
			t.Errorf("not swept yet: %s %v", body, err)
		}
		n.step(n.jobs.Housekeep)
		if jobs, running, _ := h.rows(); jobs != 2 || running != 1 {
			t.Errorf("%d records, %d in progress", jobs, running)
		}
		if again := h.poll(n, "image", kept); again.Status != row.StatusSucceeded {
			t.Errorf("%+v", again)
		}
		if again := h.poll(n, "image", old); again.Status != row.StatusQueued {
			t.Errorf("%+v", again)
		}
		s.Data = append(s.Data, h.poll(n, "image", kept).Data...)
		h.update(`DELETE FROM media_file WHERE state <> 'public'`)
		h.onlyPublic(n, s) // the record has expired, the files have not
		h.audit(2 * cent)
	})
}

// TestDeleteManyRecords deletes more records than fit one transaction.
func TestDeleteManyRecords(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		h, n := oneLineCluster(t, url, &generator{})
		h.fill(n, maxDeleted+20)
		h.update(`DELETE FROM job_run`)
		h.update(`UPDATE job SET status = 'failed', ended_ms = 1`)
		n.step(n.jobs.Housekeep)
		if jobs, _, _ := h.rows(); jobs != 0 {
			t.Errorf("%d records are left", jobs)
		}
	})
}
