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

// fakeGenerator is an adapter for jobs. It does nothing.
type fakeGenerator struct{ chatcall.NoChat }

func (fakeGenerator) ParamRule(jobcall.Task) jobcall.ParamRule { return jobcall.AllBut() }
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

// TestWhoseJobsALineTakes checks that failed jobs of one account keep only this account from the
// line. Other accounts try one job at a time until the line accepts one: a job runs for minutes and
// does not occupy the half-open line.
func TestWhoseJobsALineTakes(t *testing.T) {
	t.Parallel()
	s := snapshot(1, spec("a"))
	now := time.Unix(1_790_000_000, 0)
	l := line.New(line.Options{Now: func() time.Time { return now }, Catalog: catalog.NewStaticWatcher(s),
		Open: func(upstream.Target) (chatcall.Adapter, error) { return fakeGenerator{}, nil }})
	begin := func(account string) *line.Attempt {
		t.Helper()
		candidates, why := l.Candidates(s, "swift", account)
		if len(candidates) != 1 {
			t.Fatalf("the line takes no job of %s: %v", account, why)
		}
		return candidates[0].Begin(account)
	}
	takes := func(want bool, accounts ...string) {
		t.Helper()
		anybodys, _ := l.Candidates(s, "swift", line.AnyAccount)
		for _, account := range accounts {
			own, _ := l.Candidates(s, "swift", account)
			taken := slices.ContainsFunc(anybodys, func(c *line.Candidate) bool { return c.Takes(account) })
			if taken != want || len(own) > 0 != want {
				t.Errorf("the line takes a job of %s: %t and %t, want %t", account, taken, len(own) > 0, want)
			}
		}
	}
	spoil := func() {
		t.Helper()
		attempts := make([]*line.Attempt, 5)
		for i := range attempts {
			attempts[i] = begin("hostile")
		}
		for _, a := range attempts {
			a.RecordFailure(down())
			a.End()
		}
		if state := l.Statuses()[0].State; state != "in_service" { // until a probe has met it
			t.Fatalf("the line is %s", state)
		}
	}
	spoil()
	takes(false, "hostile")
	takes(true, "good", "other")
	long := begin("good")
	takes(false, "hostile", "other") // during the deciding attempt
	long.RecordSuccess()
	takes(true, "hostile", "good", "other")
	now = now.Add(2 * time.Minute)
	spoil()
	takes(false, "hostile")
	takes(true, "good", "other") // although the longer pause continues
	long.End()
	begin("other").End()
	takes(true, "good", "other")
}
