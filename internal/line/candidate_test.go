package line_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/line"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/jobcall"
)

// fakeGenerator is an adapter for jobs with empty results.
type fakeGenerator struct{ chatcall.NoChat }

func (fakeGenerator) ParamRule(jobcall.Task) jobcall.ParamRule { return jobcall.AllParamsExcept() }
func (fakeGenerator) Blocks(jobcall.Task) bool                 { return false }
func (fakeGenerator) Submit(context.Context, jobcall.Task) (*jobcall.TaskStatus, error) {
	return nil, nil
}

func (fakeGenerator) Poll(context.Context, jobcall.Task, string) (*jobcall.TaskStatus, error) {
	return nil, nil
}

func (fakeGenerator) Fetch(context.Context, jobcall.Task, jobcall.Result) (*jobcall.Download, error) {
	return nil, nil
}
func (fakeGenerator) Cancel(context.Context, jobcall.Task, string) error { return nil }

// TestFailedJobsBlockOnlyTheirAccount checks that failed jobs of one account block the line only for
// this account. Other accounts may submit one job at a time until the line accepts a job. The
// accepted job then no longer occupies the half-open line, although it runs for minutes.
func TestFailedJobsBlockOnlyTheirAccount(t *testing.T) {
	t.Parallel()
	s := snapshot(1, spec("a"))
	now := time.Unix(1_790_000_000, 0)
	l := line.New(line.Options{Now: func() time.Time { return now }, Catalog: catalog.NewStaticWatcher(s),
		Open: func(upstream.Target) (chatcall.Adapter, error) { return fakeGenerator{}, nil }})
	begin := func(account string) *line.Attempt {
		t.Helper()
		candidates, unavailable := l.Candidates(s, "swift", account)
		if len(candidates) != 1 {
			t.Fatalf("the line takes no job of %s: %v", account, unavailable)
		}
		return candidates[0].Begin(account)
	}
	checkTakes := func(want bool, accounts ...string) {
		t.Helper()
		candidates, _ := l.Candidates(s, "swift", line.AnyAccount)
		for _, account := range accounts {
			ownCandidates, _ := l.Candidates(s, "swift", account)
			accepts := slices.ContainsFunc(candidates, func(c *line.Candidate) bool { return c.Takes(account) })
			if accepts != want || len(ownCandidates) > 0 != want {
				t.Errorf("the line takes a job of %s: %t and %t, want %t", account, accepts, len(ownCandidates) > 0, want)
			}
		}
	}
	failJobs := func() {
		t.Helper()
		attempts := make([]*line.Attempt, 5)
		for i := range attempts {
			attempts[i] = begin("hostile")
		}
		for _, a := range attempts {
			a.RecordFailure(connectionRefused())
			a.End()
		}
		if state := l.Statuses()[0].State; state != "in_service" { // the line has no probes
			t.Fatalf("state %s before a probe has failed, want in_service", state)
		}
	}
	failJobs()
	checkTakes(false, "hostile")
	checkTakes(true, "good", "other")
	longJob := begin("good")
	checkTakes(false, "hostile", "other") // while the job occupies the line
	longJob.RecordSuccess()
	checkTakes(true, "hostile", "good", "other")
	now = now.Add(2 * time.Minute)
	failJobs()
	checkTakes(false, "hostile")
	checkTakes(true, "good", "other") // although the longer pause continues
	longJob.End()
	begin("other").End()
	checkTakes(true, "good", "other")
}
