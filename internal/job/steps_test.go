package job

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/job/row"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/jobcall"
)

// finish runs the node's steps until a job has ended, and returns the job's body.
func (c *cluster) finish(n *testNode, id, kind string) jobBody {
	c.t.Helper()
	var last jobBody
	started := false
	until(c.t, "the end of job "+id, func() bool {
		c.update(`UPDATE job_run SET wake_ms = 0 WHERE wake_ms > 0`) // skip the waits for busy lines
		n.runJobs()
		n.step(n.jobs.TakeOver)
		n.jobs.running.Wait()
		last = c.poll(n, kind, id)
		if started && last.Status == row.StatusQueued {
			c.t.Errorf("the started job %s is queued again", id)
		}
		started = started || last.Status != row.StatusQueued
		return final(last)
	})
	return last
}

// failPoll returns a poll with a failure.
func failPoll(t *upstream.JobFailure) func(int, string) (*jobcall.TaskStatus, error) {
	return func(int, string) (*jobcall.TaskStatus, error) {
		c, f := *t, *t.Failure
		c.Failure = &f
		return nil, &c
	}
}

// clone returns an unused generator with the same script.
func (m *generator) clone() *generator {
	if m == nil {
		return &generator{}
	}
	return &generator{blocks: m.blocks, submit: m.submit, poll: m.poll, fetch: m.fetch}
}

// failSubmit returns a submission with a failure, only for the first n calls if n > 0.
func failSubmit(n int, t *upstream.JobFailure) func(int, jobcall.Task) (*jobcall.TaskStatus, error) {
	return func(i int, _ jobcall.Task) (*jobcall.TaskStatus, error) {
		if n > 0 && i > n {
			return nil, nil
		}
		c, f := *t, *t.Failure
		c.Failure = &f
		return nil, &c
	}
}

// TestSteps checks the body, the charge and the submissions of jobs after failures of their lines.
func TestSteps(t *testing.T) {
	t.Parallel()
	image, video := upstream.KindImage, upstream.KindVideo
	results := func(n int) func(int, string) (*jobcall.TaskStatus, error) {
		return func(_ int, ticket string) (*jobcall.TaskStatus, error) {
			var results []jobcall.Result
			for range n {
				results = append(results, jobcall.Result{Ref: ticket + "/x"})
			}
			return &jobcall.TaskStatus{Done: true, Results: results}, nil
		}
	}
	empty := func(int, string) (*jobcall.TaskStatus, error) { return &jobcall.TaskStatus{Done: true}, nil }
	for _, tt := range []struct {
		name          string
		kind          string
		count         int64
		first, second *generator
		code          fault.Code // empty if the job succeeds
		param         string
		data          int
		cost          money.Amount
		submissions   [2]int
	}{
		{name: "moderated prompt", kind: image, first: &generator{submit: failSubmit(0, upstream.ModerationFailure(image, "unsafe", false))},
			code: fault.ModerationBlocked, submissions: [2]int{1, 0}},
		{name: "content policy", kind: image, first: &generator{submit: failSubmit(0, upstream.TaskFailure(image, "content_policy_violation",
			"no"))},
			code: fault.ContentPolicyViolation, submissions: [2]int{1, 0}},
		{name: "moderated sound", kind: video,
			first:  &generator{poll: failPoll(upstream.TaskFailure(video, "OutputAudioSensitiveContentDetected", "the sound"))},
			second: &generator{poll: failPoll(upstream.TaskFailure(video, "OutputAudioSensitiveContentDetected", "the sound"))},
			code:   fault.ContentPolicy, param: "audio", submissions: [2]int{2, 0}},
		{name: "moderated clip, once", kind: video, first: &generator{poll: func(n int, ticket string) (*jobcall.TaskStatus, error) {
			if n == 1 {
				return nil, upstream.ModerationFailure(video, "nudity", true)
			}
			return nil, nil
		}}, data: 1, cost: 50 * cent, submissions: [2]int{2, 0}},
		{name: "render failed", kind: video, first: &generator{poll: failPoll(upstream.TaskFailure(video, "", ""))},
			second: &generator{poll: failPoll(upstream.TaskFailure(video, "InternalServiceError", ""))}, code: fault.RenderFailed,
			submissions: [2]int{1, 1}},
		{name: "done without a clip", kind: video, first: &generator{poll: empty}, second: &generator{poll: empty}, code: fault.RenderFailed,
			submissions: [2]int{2, 2}},
		{name: "done without an image", kind: image, first: &generator{poll: empty}, second: &generator{poll: empty}, code: fault.UpstreamError,
			submissions: [2]int{2, 2}},
		{name: "invalid material", kind: video, first: &generator{poll: failPoll(upstream.TaskFailure(video, "file_download_error", "404"))},
			second: &generator{poll: failPoll(upstream.TaskFailure(video, "", ""))}, code: fault.InvalidMaterial, submissions: [2]int{1, 1}},
		{name: "render timeout", kind: video, first: &generator{poll: failPoll(upstream.ExpiredTask(video, "expired"))},
			second: &generator{poll: failPoll(upstream.ExpiredTask(video, "expired"))}, code: fault.RenderTimeout, submissions: [2]int{1, 1}},
		{name: "task unknown to the provider", kind: video, first: &generator{poll: failPoll(upstream.UnknownTask(video, "404"))},
			second: &generator{poll: failPoll(upstream.UnknownTask(video, "404"))}, code: fault.UpstreamUnstable, submissions: [2]int{1, 1}},
		{name: "not suitable", kind: video, first: &generator{submit: failSubmit(0, upstream.Unsuitable(video, "no clips of 5 s"))},
			second: &generator{submit: failSubmit(0, upstream.Unsuitable(video, "no 720p"))}, code: fault.InvalidRequest,
			submissions: [2]int{1, 1}},
		{name: "all lines fail", kind: image, first: &generator{submit: failSubmit(0, upstream.SubmitFailure(image, 500, "", nil, nil))},
			second: &generator{submit: failSubmit(0, upstream.SubmitFailure(image, 401, "", nil, nil))}, code: fault.UpstreamError,
			submissions: [2]int{1, 1}},
		{name: "the first line fails", kind: image, count: 2, first: &generator{submit: failSubmit(0, upstream.SubmitFailure(image, 500, "", nil,
			nil))},
			data: 2, cost: 6 * cent, submissions: [2]int{1, 1}},
		{name: "the first line fails during rendering", kind: video, first: &generator{poll: failPoll(upstream.TaskFailure(video, "", ""))},
			data: 1,
			cost: 50 * cent, submissions: [2]int{1, 1}},
		{name: "busy once", kind: image, first: &generator{submit: failSubmit(1, failure(fault.UpstreamError, upstream.NextLater))}, data: 1,
			cost: 3 * cent, submissions: [2]int{2, 0}},
		{name: "empty result once", kind: image, first: &generator{submit: failSubmit(1, upstream.EmptyResult(image, "no_image"))}, data: 1,
			cost: 3 * cent, submissions: [2]int{2, 0}},
		{name: "fewer images", kind: image, count: 4, first: &generator{poll: results(3)}, data: 3, cost: 9 * cent,
			submissions: [2]int{1, 0}},
		{name: "more images", kind: image, count: 2, first: &generator{poll: results(4)}, data: 2, cost: 6 * cent, submissions: [2]int{1, 0}},
		{name: "a lost answer", kind: image, first: &generator{submit: failSubmit(0, lostAnswer(upstream.NextLine))}, data: 1, cost: 3 * cent,
			submissions: [2]int{1, 1}},
		{name: "two lost answers", kind: image, first: &generator{submit: failSubmit(0, lostAnswer(upstream.NextLine))},
			second: &generator{submit: failSubmit(0, lostAnswer(upstream.NextLine))}, code: fault.UpstreamError,
			submissions: [2]int{1, 1}},
		{name: "a link in the answer", kind: image, first: &generator{submit: func(_ int, task jobcall.Task) (*jobcall.TaskStatus, error) {
			return &jobcall.TaskStatus{Done: true, Results: []jobcall.Result{{Ref: "here"}}}, nil
		}}, data: 1, cost: 3 * cent, submissions: [2]int{1, 0}},
		{name: "no ticket", kind: image,
			first: &generator{submit: func(int, jobcall.Task) (*jobcall.TaskStatus, error) { return &jobcall.TaskStatus{}, nil }}, data: 1,
			cost: 3 * cent, submissions: [2]int{1, 1}},
		{name: "invalid ticket", kind: image, first: &generator{submit: func(int, jobcall.Task) (*jobcall.TaskStatus, error) {
			return &jobcall.TaskStatus{Ticket: "a\x00b"}, nil
		}}, data: 1, cost: 3 * cent, submissions: [2]int{1, 1}},
		{name: "invalid text", kind: image,
			first: &generator{submit: failSubmit(0, upstream.TaskFailure(image, "", "odd \\u0000 \x00 \xff words"))},
			data:  1, cost: 3 * cent, submissions: [2]int{1, 1}},
		{name: "polls fail for a while", kind: video, first: &generator{poll: func(n int, _ string) (*jobcall.TaskStatus, error) {
			if n < 4 {
				return nil, later(errors.New("no route"))
			}
			return nil, nil
		}}, data: 1, cost: 50 * cent, submissions: [2]int{1, 0}},
	} {
		eachURL(t, tt.name, func(t *testing.T, url string) {
			generators := []*generator{tt.first.clone(), tt.second.clone()}
			c, n := twoLineCluster(t, url, generators[0], generators[1])
			model := map[string]string{image: "easel-1", video: "reel-1"}[tt.kind]
			id := c.submit(n, c.submission(n, model, max(tt.count, 1)))
			s := c.finish(n, id, tt.kind)
			if got := [2]int{generators[0].count(), generators[1].count()}; got != tt.submissions {
				t.Errorf("the lines got %v submissions, want %v", got, tt.submissions)
			}
			c.audit(tt.cost)
			c.checkHeld(0)
			if tt.code == "" {
				if s.Status != row.StatusSucceeded || len(s.Data) != tt.data || s.Error != nil || s.Usage["model"] != model {
					t.Errorf("the job is %+v, want succeeded with %d results", s, tt.data)
				}
				return
			}
			if s.Status != row.StatusFailed || s.Error == nil || s.Data != nil || s.Usage != nil {
				t.Fatalf("the job is %+v, want failed", s)
			}
			if s.Error.Code != string(tt.code) || s.Error.Type != fault.LookupJob(tt.code).Type || s.Error.Message == "" ||
				!strings.Contains(s.Error.Message, "not charged") {
				t.Errorf("the error is %+v, want %s and \"not charged\"", *s.Error, tt.code)
			}
			if (s.Error.Param == nil) != (tt.param == "") || s.Error.Param != nil && *s.Error.Param != tt.param {
				t.Errorf("the error's param is %v, want %q", s.Error.Param, tt.param)
			}
		})
	}
}

// TestProviderKeys checks that only a submission after a lost answer repeats the provider's
// idempotency key.
func TestProviderKeys(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		m := &generator{submit: func(n int, _ jobcall.Task) (*jobcall.TaskStatus, error) {
			switch n {
			case 1:
				return nil, failure(fault.UpstreamError, upstream.NextLater)
			case 2:
				return nil, lostAnswer(upstream.NextSame)
			}
			return nil, nil
		}}
		c, n := oneLineCluster(t, url, m)
		id := c.submit(n, c.submission(n, "easel-1", 1))
		c.finish(n, id, "image")
		var keys []string
		for _, task := range m.submitted {
			keys = append(keys, task.Key)
		}
		if want := []string{id + "-1", id + "-2", id + "-2"}; !slices.Equal(keys, want) {
			t.Errorf("the provider's idempotency keys are %v, want %v", keys, want)
		}
	})
}

// TestLineTimeout checks that jobs past their line's time limit fail and their tasks are canceled.
func TestLineTimeout(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind, model string
		blocks      bool
		code        fault.Code
		cancelled   int
	}{{"video", "reel-1", false, fault.WaitTimeout, 1}, {"image", "easel-1", false, fault.UpstreamError, 1},
		{"image", "easel-1", true, fault.UpstreamError, 0}, {"video", "reel-1", true, fault.WaitTimeout, 0}} {
		eachURL(t, tt.kind, func(t *testing.T, url string) {
			m := &generator{blocks: tt.blocks, poll: func(int, string) (*jobcall.TaskStatus, error) {
				return &jobcall.TaskStatus{Wait: time.Millisecond}, nil
			}}
			if tt.blocks {
				m.before = block("submit", nil)
			}
			c := newCluster(t, url, map[string]chatcall.Adapter{"first": m, "second": &generator{}})
			c.apply(strings.ReplaceAll(document, "total: 20s", "total: 1s"))
			n := c.idleNode()
			id := c.submit(n, c.submission(n, tt.model, 1))
			s := c.finish(n, id, tt.kind)
			if s.Status != row.StatusFailed || s.Error.Code != string(tt.code) {
				t.Errorf("the job is %+v, want failed with %s", s, tt.code)
			}
			if len(m.cancelled) != tt.cancelled || m.count() != 1 {
				t.Errorf("%d submissions, want 1; canceled tasks %v, want %d", m.count(), m.cancelled, tt.cancelled)
			}
			c.audit(0)
		})
	}
}

// TestNodeWithWrongClock expects a job to succeed on a node whose clock is a day ahead or behind.
func TestNodeWithWrongClock(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"ahead": 24 * time.Hour, "behind": -24 * time.Hour} {
		eachURL(t, name, func(t *testing.T, url string) {
			m := &generator{poll: func(n int, _ string) (*jobcall.TaskStatus, error) {
				if n < 3 {
					return &jobcall.TaskStatus{Wait: time.Millisecond}, nil
				}
				return nil, nil
			}}
			c := newCluster(t, url, map[string]chatcall.Adapter{"first": m})
			c.apply(oneLine)
			c.edit = func(o *Options) { o.Now = func() time.Time { return time.Now().Add(ahead) } }
			n := c.idleNode()
			if s := c.finish(n, c.submit(n, c.submission(n, "easel-1", 1)), "image"); s.Status != row.StatusSucceeded {
				t.Errorf("the job is %+v, want succeeded", s)
			}
			c.audit(cent)
		})
	}
}

// TestPanic expects a job to continue after a panic of its generator.
func TestPanic(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"submit", "poll", "fetch"} {
		eachURL(t, step, func(t *testing.T, url string) {
			panics := func(n int) {
				if n == 1 {
					panic("scripted")
				}
			}
			m := &generator{}
			switch step {
			case "submit":
				m.submit = func(n int, _ jobcall.Task) (*jobcall.TaskStatus, error) { panics(n); return nil, nil }
			case "poll":
				m.poll = func(n int, _ string) (*jobcall.TaskStatus, error) { panics(n); return nil, nil }
			case "fetch":
				m.fetch = func(n int, _ jobcall.Result) (*jobcall.Download, error) { panics(n); return nil, nil }
			}
			c, n := oneLineCluster(t, url, m)
			id := c.submit(n, c.submission(n, "easel-1", 1))
			if s := c.finish(n, id, "image"); s.Status != row.StatusSucceeded {
				t.Errorf("the job is %+v, want succeeded", s)
			}
			if want := map[bool]int{true: 2, false: 1}[step == "submit"]; m.count() != want {
				t.Errorf("%d submissions, want %d", m.count(), want)
			}
			c.audit(cent)
		})
	}
}

// TestTrace checks the steps and attempts that the operator sees.
func TestTrace(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c := newCluster(t, url, map[string]chatcall.Adapter{
			"first": &generator{submit: failSubmit(0, upstream.SubmitFailure("image", 500, "", nil, nil))}, "second": &generator{},
		})
		n := c.idleNode()
		id := c.submit(n, c.submission(n, "easel-1", 1))
		c.finish(n, id, "image")
		v := c.view(id)
		var names []string
		last := int64(0)
		for _, s := range v.Steps {
			names = append(names, s.Name)
			if s.At < last {
				t.Errorf("step %s has the time %d, want at least %d", s.Name, s.At, last)
			}
			last = s.At
		}
		want := []string{row.StepQueued, row.StepLine, row.StepSubmitted, row.StepAttemptFailed, row.StepLine, row.StepSubmitted, row.StepTicket,
			row.StatusProcessing, row.StepRendered, row.StepFetched, row.StepStored, row.StatusSucceeded}
		if !slices.Equal(names, want) {
			t.Errorf("steps %v\nwant  %v", names, want)
		}
		if len(v.Attempts) != 2 || v.Attempts[0].Line != "first" || v.Attempts[0].Cause == "" || v.Attempts[1].Code != "" ||
			v.Attempts[1].Ticket != "ticket-1" || v.Attempts[1].Ended == 0 {
			t.Errorf("the attempts are %+v, want a failure on first and a success on second", v.Attempts)
		}
		if v.Line != "second" || v.Cost != 3*cent || v.Account != c.account {
			t.Errorf("the view is %+v, want line second and a cost of 3 cents", v)
		}
		_ = c.db.View(t.Context(), func(tx *store.Tx) error { // no slot is left
			var slots int
			if err := tx.QueryRow(`SELECT COUNT(*) FROM line_job`).Scan(&slots); err != nil || slots != 0 {
				t.Errorf("%d slots are occupied, want none; error %v", slots, err)
			}
			return nil
		})
	})
}
