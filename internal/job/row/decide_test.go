package row

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
)

// attempt is an attempt on a line and its failure.
type attempt struct {
	line    string
	failure *upstream.JobFailure
}

func traceOf(attempts ...attempt) *Trace {
	t := &Trace{}
	for i, a := range attempts {
		t.Begin(a.line, int64(i))
		t.End(a.failure, int64(i)+1)
	}
	return t
}

func failure(job fault.Code, next upstream.Next) *upstream.JobFailure {
	return upstream.FailJob(upstream.Fail(fault.UpstreamUnavailable, errors.New("scripted")), job, next)
}

// lostAnswer returns the failure of a submission with a lost answer.
func lostAnswer(next upstream.Next) *upstream.JobFailure {
	t := failure(fault.UpstreamError, next)
	t.Lost = true
	return t
}

// TestAfter checks whether a job ends or which line gets the job after failed attempts, and the error
// and the wait.
func TestAfter(t *testing.T) {
	t.Parallel()
	image, video := upstream.KindImage, upstream.KindVideo
	both := []string{"a", "b"}
	flaggedSound := upstream.TaskFailure(video, "OutputAudioSensitiveContentDetected", "the sound")
	for _, c := range []struct {
		name     string
		attempts []attempt
		lines    []string
		code     fault.Code // empty if the job continues
		param    string
		first    string // the next line
		wait     time.Duration
	}{
		// Images.
		{name: "moderated image", attempts: []attempt{{"a", upstream.TaskFailure(image, "moderation_blocked", "no")}}, lines: both,
			code: fault.ModerationBlocked},
		{name: "image policy", attempts: []attempt{{"a", upstream.TaskFailure(image, "content_policy_violation", "no")}}, lines: both,
			code: fault.ContentPolicyViolation},
		{name: "no image", attempts: []attempt{{"a", upstream.EmptyResult(image, "no_image")}}, lines: both, first: "a"},
		{name: "no image twice", attempts: []attempt{{"a", upstream.EmptyResult(image, "no_image")},
			{"a", upstream.EmptyResult(image, "no_image")}}, lines: both, first: "b"},
		{name: "no image on all lines", attempts: []attempt{{"a", upstream.EmptyResult(image, "")}, {"a", upstream.EmptyResult(image, "")},
			{"b", upstream.EmptyResult(image, "")}, {"b", upstream.EmptyResult(image, "")}}, lines: both, code: fault.UpstreamError},
		{name: "image unsuitable for a line", attempts: []attempt{{"a", upstream.Unsuitable(image, "no mask")}}, lines: both, first: "b"},
		{name: "image unsuitable for all lines", attempts: []attempt{{"a", upstream.Unsuitable(image, "no mask")}}, lines: []string{"a"},
			code: fault.UpstreamError},
		{name: "rejected line key", attempts: []attempt{{"a", upstream.SubmitFailure(image, 401, "", nil, nil)}}, lines: both, first: "b"},
		{name: "rejected line key, one line", attempts: []attempt{{"a", upstream.SubmitFailure(image, 402, "", nil, nil)}}, lines: []string{"a"},
			code: fault.UpstreamError},
		{name: "busy", attempts: []attempt{{"a", upstream.SubmitFailure(image, 429, "", nil, nil)}}, lines: both, first: "a",
			wait: 2 * time.Second},
		{name: "server error", attempts: []attempt{{"a", upstream.SubmitFailure(image, 500, "", nil, nil)}}, lines: both, first: "b"},
		{name: "image expired", attempts: []attempt{{"a", upstream.ExpiredTask(image, "expired")}}, lines: both, first: "b"},
		{name: "image task unknown", attempts: []attempt{{"a", upstream.UnknownTask(image, "404")}}, lines: both, first: "b"},
		{name: "image task unknown on all lines", attempts: []attempt{{"a", upstream.UnknownTask(image, "404")}, {"b", upstream.UnknownTask(image,
			"404")}},
			lines: both, code: fault.UpstreamError},

		// Videos.
		{name: "moderated prompt", attempts: []attempt{{"a", upstream.TaskFailure(video, "InputTextSensitiveContentDetected", "no")}},
			lines: both,
			code:  fault.ContentPolicy},
		{name: "moderated clip", attempts: []attempt{{"a", upstream.TaskFailure(video, "OutputVideoSensitiveContentDetected", "no")}},
			lines: both,
			first: "a"},
		{name: "moderated clip again", attempts: []attempt{{"a", upstream.TaskFailure(video, "OutputVideoSensitiveContentDetected", "no")},
			{"a", upstream.TaskFailure(video, "OutputVideoSensitiveContentDetected", "no")}},
			lines: []string{"a"}, code: fault.ContentPolicy},
		{name: "moderated clip again, another line",
			attempts: []attempt{{"a", upstream.TaskFailure(video, "OutputVideoSensitiveContentDetected", "no")},
				{"a", upstream.TaskFailure(video, "OutputVideoSensitiveContentDetected", "no")}},
			lines: both, code: fault.ContentPolicy},
		{name: "moderated clip, busy, moderated again",
			attempts: []attempt{{"a", upstream.TaskFailure(video, "OutputVideoSensitiveContentDetected", "no")},
				{"a", upstream.SubmitFailure(video, 429, "", nil, nil)}, {"b", upstream.TaskFailure(video, "OutputVideoSensitiveContentDetected",
					"no")}},
			lines: both, code: fault.ContentPolicy},
		{name: "bad material twice", attempts: []attempt{{"a", upstream.TaskFailure(video, "file_download_error", "no file")},
			{"b", upstream.TaskFailure(video, "file_download_error", "no file")}}, lines: []string{"a", "b", "c"}, code: fault.InvalidMaterial},
		{name: "moderated sound, no line", attempts: []attempt{{"a", flaggedSound}, {"a", flaggedSound}}, lines: []string{"a"},
			code: fault.ContentPolicy, param: "audio"},
		{name: "invalid parameter", attempts: []attempt{
			{"a", upstream.SubmitFailure(video, 400, "application/json",
				[]byte(`{"error":{"code":"InvalidParameter.Duration","message":"5 or 10"}}`),
				nil)}}, lines: both, first: "b"},
		{name: "invalid parameter on all lines",
			attempts: []attempt{
				{"a", upstream.SubmitFailure(video, 400, "application/json",
					[]byte(`{"error":{"code":"InvalidParameter.Duration","message":"5 or 10"}}`),
					nil)}}, lines: []string{"a"}, code: fault.InvalidRequest},
		{name: "bad file", attempts: []attempt{{"a", upstream.TaskFailure(video, "file_download_error", "no file")}}, lines: both, first: "b"},
		{name: "bad material on all lines", attempts: []attempt{{"a", upstream.TaskFailure(video, "file_download_error", "no file")},
			{"b", upstream.TaskFailure(video, "image_load_error", "no image")}}, lines: both, code: fault.InvalidMaterial},
		{name: "no clip", attempts: []attempt{{"a", upstream.TaskFailure(video, "", "")}}, lines: both, first: "b"},
		{name: "no clip on all lines", attempts: []attempt{{"a", upstream.TaskFailure(video, "", "")},
			{"b", upstream.TaskFailure(video, "InternalServiceError", "")}}, lines: both, code: fault.RenderFailed},
		{name: "clip expired", attempts: []attempt{{"a", upstream.ExpiredTask(video, "expired")}, {"b", upstream.ExpiredTask(video, "expired")}},
			lines: both, code: fault.RenderTimeout},
		{name: "clip task unknown", attempts: []attempt{{"a", upstream.UnknownTask(video, "404")}, {"b", upstream.UnknownTask(video, "404")}},
			lines: both, code: fault.UpstreamUnstable},
		{name: "wait timeout", attempts: []attempt{{"a", failure(fault.WaitTimeout, upstream.NextNone)}}, lines: both,
			code: fault.WaitTimeout},
		{name: "failed download", attempts: []attempt{{"a", failure(fault.ResultFetchFailed, upstream.NextNone)}}, lines: both,
			code: fault.ResultFetchFailed},

		// Both.
		{name: "an error of the user's input wins over a later failure",
			attempts: []attempt{{"a", upstream.TaskFailure(video, "file_download_error", "no file")}, {"b", upstream.TaskFailure(video, "", "")}},
			lines:    both,
			code:     fault.InvalidMaterial},
		{name: "a final failure wins over an error of the user's input",
			attempts: []attempt{{"a", upstream.TaskFailure(video, "file_download_error", "no file")},
				{"b", failure(fault.WaitTimeout, upstream.NextNone)}}, lines: both, code: fault.WaitTimeout},
		{name: "lost answer", attempts: []attempt{{"a", lostAnswer(upstream.NextLine)}}, lines: both, first: "b"},
		{name: "lost answer, one line", attempts: []attempt{{"a", lostAnswer(upstream.NextLine)}}, lines: []string{"a"}, first: "a"},
		{name: "two lost answers", attempts: []attempt{{"a", lostAnswer(upstream.NextLine)}, {"b", lostAnswer(upstream.NextLine)}},
			lines: []string{"a", "b", "c"}, code: fault.UpstreamError},
		{name: "busy three times",
			attempts: []attempt{{"a", failure(fault.UpstreamError, upstream.NextLater)}, {"b", failure(fault.UpstreamError, upstream.NextLater)},
				{"a", failure(fault.UpstreamError, upstream.NextLater)}}, lines: nil, wait: 8 * time.Second},
		{name: "no line left", attempts: []attempt{{"a", failure(fault.UpstreamError, upstream.NextLine)}}, lines: nil,
			code: fault.UpstreamError},
	} {
		tr := traceOf(c.attempts...)
		v := After(tr, int64(len(c.attempts)), c.attempts[len(c.attempts)-1].failure, c.lines)
		switch {
		case c.code == "" && v.Fail != nil:
			t.Errorf("%s: the job fails with %+v, want a retry", c.name, *v.Fail)
		case c.code != "" && (v.Fail == nil || v.Fail.Code != c.code || v.Fail.Param != c.param || v.Fail.Message == ""):
			t.Errorf("%s: the job's error is %+v, want %s with param %q", c.name, v.Fail, c.code, c.param)
		case v.Wait != c.wait:
			t.Errorf("%s: the wait is %s, want %s", c.name, v.Wait, c.wait)
		}
		if next := tr.Order(c.lines); c.first != "" && (len(next) == 0 || next[0] != c.first) {
			t.Errorf("%s: the next lines are %v, want %s first", c.name, next, c.first)
		}
	}
}

// TestBusyWait checks that the wait for a busy line doubles up to 30 s and follows Retry-After up to a
// minute.
func TestBusyWait(t *testing.T) {
	t.Parallel()
	busyFor := func(d time.Duration) *upstream.JobFailure {
		busy := failure(fault.UpstreamError, upstream.NextLater)
		busy.RetryAfter = d
		return busy
	}
	var attempts []attempt
	for i, want := range []time.Duration{2, 4, 8, 16, 30, 30, 30} {
		attempts = append(attempts, attempt{"a", busyFor(0)})
		if v := After(traceOf(attempts...), int64(i), busyFor(0), nil); v.Fail != nil || v.Wait != want*time.Second {
			t.Errorf("busy %d times: the wait is %s, want %d s", i+1, v.Wait, want)
		}
	}
	for retryAfter, want := range map[time.Duration]time.Duration{time.Second: 2 * time.Second, 7 * time.Second: 7 * time.Second,
		45 * time.Second: 45 * time.Second, time.Hour: time.Minute} {
		if v := After(traceOf(attempt{"a", busyFor(retryAfter)}), 1, busyFor(retryAfter), nil); v.Wait != want {
			t.Errorf("Retry-After %s: the wait is %s, want %s", retryAfter, v.Wait, want)
		}
	}
}

// TestEndlessJob checks that a job ends although its line is busy again and again.
func TestEndlessJob(t *testing.T) {
	t.Parallel()
	busy := failure(fault.UpstreamError, upstream.NextLater)
	tr := &Trace{}
	for number := int64(1); ; number++ {
		tr.Begin("a", number)
		tr.End(busy, number)
		if v := After(tr, number, busy, []string{"a"}); v.Fail != nil {
			return
		}
		if number > 200 {
			t.Fatal("the job never ends")
		}
	}
}

// TestTraceProperties checks with random failures that each job ends, that a line gets a job at most
// twice, that one submission at most follows a lost answer, and that only such a submission repeats a
// provider's idempotency key.
func TestTraceProperties(t *testing.T) {
	t.Parallel()
	lines := []string{"a", "b", "c"}
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 7))
		tr := &Trace{}
		keys := map[int64]bool{} // true if the key may be repeated
		tries := map[string]int{}
		for number := int64(1); ; number++ {
			if number > 200 {
				t.Fatalf("seed %d: the job has not ended after 200 submissions", seed)
			}
			open := slices.DeleteFunc(slices.Clone(lines), func(string) bool { return r.IntN(4) == 0 })
			next := tr.Order(open)
			for _, line := range next {
				if !slices.Contains(open, line) || !tr.allowed(line) {
					t.Fatalf("seed %d: Order(%v) = %v, want only allowed lines", seed, open, next)
				}
			}
			if len(next) == 0 {
				if len(open) == len(lines) {
					break // all lines were used
				}
				continue
			}
			tr.Begin(next[0], number)
			key := tr.KeyNumber(number)
			if repeatable, used := keys[key]; used && !repeatable {
				t.Fatalf("seed %d: key %d is used for another submission: %+v", seed, key, tr.Attempts)
			}
			f := failure(fault.UpstreamError,
				[]upstream.Next{upstream.NextLater, upstream.NextSame, upstream.NextLine, upstream.NextNone}[r.IntN(4)])
			f.Lost = f.Next != upstream.NextLater && r.IntN(3) == 0
			keys[key] = f.Lost
			tr.End(f, number)
			if f.Next != upstream.NextLater {
				tries[next[0]]++
			}
			v := After(tr, number, f, open)
			if v.Fail != nil {
				break
			}
		}
		lost := 0
		for _, a := range tr.Attempts {
			if a.Lost {
				lost++
			}
		}
		if lost > maxLostAnswers+1 {
			t.Errorf("seed %d: %d lost submissions, want at most %d", seed, lost, maxLostAnswers+1)
		}
		for line, n := range tries {
			if n > 2 {
				t.Errorf("seed %d: %d attempts on line %s, want at most 2", seed, n, line)
			}
		}
	}
}

// TestKeysOfManySubmissions checks that a trace that drops attempts repeats no key.
func TestKeysOfManySubmissions(t *testing.T) {
	t.Parallel()
	tr := &Trace{}
	seen := map[int64]bool{}
	for number := int64(1); number <= 3*maxAttempts; number++ {
		tr.Begin("a", number)
		key := tr.KeyNumber(number)
		if seen[key] {
			t.Fatalf("submission %d has the key of an earlier submission", number)
		}
		seen[key] = true
		tr.End(failure(fault.UpstreamError, upstream.NextLater), number)
	}
	if len(tr.Attempts) > maxAttempts {
		t.Errorf("the trace has %d attempts, want at most %d", len(tr.Attempts), maxAttempts)
	}
}
