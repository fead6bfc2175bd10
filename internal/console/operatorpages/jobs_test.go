package operatorpages_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"tollgate/internal/console/consoletest"
	gateway "tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/operator"
)

// heldAmount returns the amount on hold for an account.
func heldAmount(s *consoletest.Scene, name string) money.Amount {
	return readAccount(s, s.Accounts[name].ID).Money.Held
}

// TestCancelJob checks that an operator can cancel a waiting job, and that the hold is released.
func TestCancelJob(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b, id, before := s.Operator(), s.Job("ada", "a boat"), balance(s, s.Accounts["ada"].ID)
		path := "/console/operator/jobs/" + id
		if heldAmount(s, "ada") == 0 {
			t.Fatal("nothing is held for the job")
		}
		b.Get("/console/operator/jobs?status=queued").Want(t, http.StatusOK, id, "Waiting", "waiting")
		b.Get(path).Want(t, http.StatusOK, "Cancel the job", `action="`+path+`/cancel"`, "its user gets $")
		b.Post(path+"/cancel", "sure", "yes").Want(t, http.StatusBadRequest) // more than a button
		b.Post(path+"/cancel").Want(t, http.StatusSeeOther, path+"?done=cancelled")
		page := b.Get(path + "?done=cancelled")
		page.Want(t, http.StatusOK, "The job is cancelled", "failed: upstream_error", "cancelled by the operator. You were not charged.")
		page.Without(t, "Cancel the job")
		if heldAmount(s, "ada") != 0 || balance(s, s.Accounts["ada"].ID) != before {
			t.Errorf("on hold %s, want 0; balance %s, want %s", heldAmount(s, "ada"), balance(s, s.Accounts["ada"].ID), before)
		}
		b.Post(path+"/cancel").Want(t, http.StatusBadRequest, "has ended")
		b.Post("/console/operator/jobs/job_none/cancel").Want(t, http.StatusNotFound, "There is no such job.")
		if rows := logged(t, s, operator.JobCancel, 1); rows[0].Object != id || rows[0].Account != s.Accounts["ada"].ID {
			t.Errorf("the log has %+v, want job %s of ada", rows, id)
		}
	})
}

// TestRequeueJob checks that requeueing a waiting job keeps the job, that requeueing an ended
// job creates a new one, and that a successful job is requeued only with force.
func TestRequeueJob(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b, good, bad := s.Operator(), s.Job("ada", "a boat"), s.Job("ada", "fail:render_failed")
		const path = "/console/operator/jobs/"
		b.Get(path+good).Want(t, http.StatusOK, "waits again at its old place")
		b.Post(path+good+"/requeue").Want(t, http.StatusSeeOther, path+good+"?done=requeued")
		b.Get(path+good+"?done=requeued").Want(t, http.StatusOK, "The job was requeued", "Waiting again")

		s.Run()
		waitFor := func(id, state string) {
			t.Helper()
			gateway.Eventually(t, "a job is "+state, func() bool {
				return strings.Contains(b.Get("/console/operator/jobs?status="+state).Body.String(), id)
			})
		}
		waitFor(good, "succeeded")
		waitFor(bad, "failed")
		page := b.Get(path + good)
		page.Want(t, http.StatusOK, ">ada</a>", ">for a job</a>", `href="/console/operator/lines/sandbox-studio"`, "Line chosen")
		request := regexp.MustCompile(`/console/operator/requests/req_[0-9a-z]+`).FindString(page.Body.String())
		b.Get(request).Want(t, http.StatusOK, "its job has succeeded", "1 image", ">succeeded<")
		requeue := func(id string, fields ...string) string {
			t.Helper()
			got := b.Post(path+id+"/requeue", fields...)
			got.Want(t, http.StatusSeeOther, "done=requeued")
			return strings.TrimSuffix(strings.TrimPrefix(got.Header().Get("Location"), path), "?done=requeued")
		}
		if next := requeue(bad); next == bad {
			t.Error("requeueing a failed job returned the same job")
		}
		b.Get(path+good).Want(t, http.StatusOK, "at its user&#39;s expense", `name="force"`)
		b.Post(path+good+"/requeue").Want(t, http.StatusBadRequest, "succeeded")
		before := balance(s, s.Accounts["ada"].ID)
		next := requeue(good, "force", "on")
		if next == good {
			t.Error("requeueing a successful job returned the same job")
		}
		gateway.Eventually(t, "the requeued job succeeds", func() bool {
			return strings.Contains(b.Get(path+next).Body.String(), "Done")
		})
		if now := balance(s, s.Accounts["ada"].ID); now >= before {
			t.Errorf("the balance after the requeued job is %s, want less than %s", now, before)
		}
		b.Post(path+"job_none/requeue").Want(t, http.StatusNotFound, "There is no such job.")
		logged(t, s, operator.JobRequeue, 3)
	})
}
