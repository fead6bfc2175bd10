package exchange

import (
	"errors"
	"testing"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// TestSubmitAndPollEach tests that a ticket of several tasks runs while any of the tasks runs, and ends
// with the results of the successful tasks or with the most severe failure.
func TestSubmitAndPollEach(t *testing.T) {
	t.Parallel()
	refused := upstream.ModerationFailure(upstream.KindImage, "no", false)
	status, err := SubmitEach(4, func(i int) (string, *upstream.JobFailure, bool) {
		if i == 1 {
			return "", refused, true
		}
		return string(rune('a' + i)), nil, true
	})
	if err != nil || status.Ticket != "a,c,d" || status.Done {
		t.Fatalf("SubmitEach = %+v, %v, want the running ticket a,c,d", status, err)
	}
	if _, err := SubmitEach(2, func(int) (string, *upstream.JobFailure, bool) { return "", refused, false }); !errors.Is(err, refused) {
		t.Errorf("SubmitEach without an accepted task returned error %v, want %v", err, refused)
	}
	silent := upstream.TaskFailure(upstream.KindImage, "", "later")
	silent.Next = upstream.NextPoll
	for name, tt := range map[string]struct {
		tasks map[string]any // for each task: a failure, true if done, or false if running
		want  any            // the number of results, false if running, or a failure
	}{
		"done":          {map[string]any{"a": true, "c": true, "d": true}, 3},
		"one continues": {map[string]any{"a": true, "c": false, "d": true}, false},
		"one failed":    {map[string]any{"a": true, "c": refused, "d": true}, 2},
		"failed poll":   {map[string]any{"a": refused, "c": silent, "d": true}, silent},
		"all failed": {map[string]any{"a": upstream.EmptyResult(upstream.KindImage, "x"), "c": refused,
			"d": upstream.EmptyResult(upstream.KindImage, "y")}, refused},
	} {
		got, err := PollEach(status.Ticket, func(one string) (*jobcall.TaskStatus, error) {
			switch fate := tt.tasks[one].(type) {
			case *upstream.JobFailure:
				return nil, fate
			case bool:
				if fate {
					return &jobcall.TaskStatus{Ticket: one, Done: true, Results: []jobcall.Result{{Ref: "https://x.example/" + one}}}, nil
				}
			}
			return &jobcall.TaskStatus{Ticket: one}, nil
		})
		switch want := tt.want.(type) {
		case int:
			if err != nil || !got.Done || len(got.Results) != want || got.Ticket != status.Ticket {
				t.Errorf("%s: PollEach = %+v, %v, want %d results", name, got, err, want)
			}
		case bool:
			if err != nil || got.Done || got.Ticket != status.Ticket {
				t.Errorf("%s: PollEach = %+v, %v, want a running task", name, got, err)
			}
		case *upstream.JobFailure:
			if !errors.Is(err, want) {
				t.Errorf("%s: PollEach returned error %v, want %v", name, err, want)
			}
		}
	}
}
