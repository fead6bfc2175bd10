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

func lost(next upstream.Next) *upstream.JobFailure {
	t := failure(fault.UpstreamError, next)
	t.Lost = true
	return t
}

// TestAfter checks the decisions after failed images and videos.
func TestAfter(t *testing.T) {
	t.Parallel()
	image, video := upstream.KindImage, upstream.KindVideo
	both := []string{"a", "b"}
	flaggedSound := upstream.TaskFailure(video, "OutputAudioSensitiveContentDetected", "the sound")
	for _, c := range []struct {
		name     string
		attempts []attempt
		lines    []string
		fail     fault.Code // empty if the job continues
		param    string
		first    string // the next line
		wait     time.Duration
	}{
		// Images.
		{name: "moderated image", attempts: []attempt{{"a", upstream.TaskFailure(image, "moderation_blocked", "no")}}, lines: both,
			fail: fault.ModerationBlocked},
		{name: "policy of an image", attempts: []attempt{{"a", upstream.TaskFailure(image, "content_policy_violation", "no")}}, lines: both,
			fail: fault.ContentPolicyViolation},
		{name: "no image came", attempts: []attempt{{"a", upstream.EmptyResult(image, "no_image")}}, lines: both, first: "a"},
		{name: "no image came twice", attempts: []attempt{{"a", upstream.EmptyResult(image, "no_image")},
			{"a", upstream.EmptyResult(image, "no_image")}}, lines: both, first: "b"},
		{name: "no image came anywhere", attempts: []attempt{{"a", upstream.EmptyResult(image, "")}, {"a", upstream.EmptyResult(image, "")},
			{"b", upstream.EmptyResult(image, "")}, {"b", upstream.EmptyResult(image, "")}}, lines: both, fail: fault.UpstreamError},
		{name: "an image is not suitable", attempts: []attempt{{"a", upstream.Unsuitable(image, "no mask")}}, lines: both, first: "b"},
		{name: "an image suits nobody", attempts: []attempt{{"a", upstream.Unsuitable(image, "no mask")}}, lines: []string{"a"},
			fail: fault.UpstreamError},
		{name: "the line's account", attempts: []attempt{{"a", upstream.SubmitFailure(image, 401, "", nil, nil)}}, lines: both, first: "b"},
		{name: "the line's account, no other", attempts: []attempt{{"a", upstream.SubmitFailure(image, 402, "", nil, nil)}}, lines: []string{"a"},
			fail: fault.UpstreamError},
		{name: "busy", attempts: []attempt{{"a", upstream.SubmitFailure(image, 429, "", nil, nil)}}, lines: both, first: "a",
			wait: 2 * time.Second},
		{name: "broken", attempts: []attempt{{"a", upstream.SubmitFailure(image, 500, "", nil, nil)}}, lines: both, first: "b"},
		{name: "image expired", attempts: []attempt{{"a", upstream.ExpiredTask(image, "expired")}}, lines: both, first: "b"},
		{name: "image vanished", attempts: []attempt{{"a", upstream.UnknownTask(image, "404")}}, lines: both, first: "b"},
		{name: "image vanished everywhere", attempts: []attempt{{"a", upstream.UnknownTask(image, "404")}, {"b", upstream.UnknownTask(image,
			"404")}},
			lines: both, fail: fault.UpstreamError},

		// Videos.
		{name: "moderated prompt", attempts: []attempt{{"a", upstream.TaskFailure(video, "InputTextSensitiveContentDetected", "no")}},
			lines: both,
			fail:  fault.ContentPolicy},
		{name: "moderated clip", attempts: []attempt{{"a", upstream.TaskFailure(video, "OutputVideoSensitiveContentDetected", "no")}},
			lines: both,
			first: "a"},
		{name: "moderated clip again", attempts: []attempt{{"a", upstream.TaskFailure(video, "OutputVideoSensitiveContentDetected", "no")},
			{"a", upstream.TaskFailure(video, "OutputVideoSensitiveContentDetected", "no")}},
			lines: []string{"a"}, fail: fault.ContentPolicy},
		{name: "moderated clip again, another line",
			attempts: []attempt{{"a", upstream.TaskFailure(video, "OutputVideoSensitiveContentDetected", "no")},
				{"a", upstream.TaskFailure(video, "OutputVideoSensitiveContentDetected", "no")}},
			lines: both, fail: fault.ContentPolicy},
		{name: "moderated clip, busy, moderated again",
			attempts: []attempt{{"a", upstream.TaskFailure(video, "OutputVideoSensitiveContentDetected", "no")},
				{"a", upstream.SubmitFailure(video, 429, "", nil, nil)}, {"b", upstream.TaskFailure(video, "OutputVideoSensitiveContentDetected",
					"no")}},
			lines: both, fail: fault.ContentPolicy},
		{name: "material twice", attempts: []attempt{{"a", upstream.TaskFailure(video, "file_download_error", "no file")},
			{"b", upstream.TaskFailure(video, "file_download_error", "no file")}}, lines: []string{"a", "b", "c"}, fail: fault.InvalidMaterial},
		{name: "moderated sound, no line", attempts: []attempt{{"a", flaggedSound}, {"a", flaggedSound}}, lines: []string{"a"},
			fail: fault.ContentPolicy, param: "audio"},
		{name: "parameter", attempts: []attempt{
			{"a", upstream.SubmitFailure(video, 400, "application/json",
				[]byte(`{"error":{"code":"InvalidParameter.Duration","message":"5 or 10"}}`),
				nil)}}, lines: both, first: "b"},
		{name: "parameter everywhere",
			attempts: []attempt{
				{"a", upstream.SubmitFailure(video, 400, "application/json",
					[]byte(`{"error":{"code":"InvalidParameter.Duration","message":"5 or 10"}}`),
					nil)}}, lines: []string{"a"}, fail: fault.InvalidRequest},
		{name: "material", attempts: []attempt{{"a", upstream.TaskFailure(video, "file_download_error", "no file")}}, lines: both, first: "b"},
		{name: "material everywhere", attempts: []attempt{{"a", upstream.TaskFailure(video, "file_download_error", "no file")},
			{"b", upstream.TaskFailure(video, "image_load_error", "no image")}}, lines: both, fail: fault.InvalidMaterial},
		{name: "no clip", attempts: []attempt{{"a", upstream.TaskFailure(video, "", "")}}, lines: both, first: "b"},
		{name: "no clip anywhere", attempts: []attempt{{"a", upstream.TaskFailure(video, "", "")},
			{"b", upstream.TaskFailure(video, "InternalServiceError", "")}}, lines: both, fail: fault.RenderFailed},
		{name: "clip expired", attempts: []attempt{{"a", upstream.ExpiredTask(video, "expired")}, {"b", upstream.ExpiredTask(video, "expired")}},
			lines: both, fail: fault.RenderTimeout},
		{name: "clip vanished", attempts: []attempt{{"a", upstream.UnknownTask(video, "404")}, {"b", upstream.UnknownTask(video, "404")}},
			lines: both, fail: fault.UpstreamUnstable},
		{name: "waited long enough", attempts: []attempt{{"a", failure(fault.WaitTimeout, upstream.NextNone)}}, lines: both,
			fail: fault.WaitTimeout},
		{name: "not fetched", attempts: []attempt{{"a", failure(fault.ResultFetchFailed, upstream.NextNone)}}, lines: both,
			fail: fault.ResultFetchFailed},

		// Both.
		{name: "what the user can change wins over what the last line said",
			attempts: []attempt{{"a", upstream.TaskFailure(video, "file_download_error", "no file")}, {"b", upstream.TaskFailure(video, "", "")}},
			lines:    both,
			fail:     fault.InvalidMaterial},
		{name: "but not over a final word", attempts: []attempt{{"a", upstream.TaskFailure(video, "file_download_error", "no file")},
			{"b", failure(fault.WaitTimeout, upstream.NextNone)}}, lines: both, fail: fault.WaitTimeout},
		{name: "an answer was lost", attempts: []attempt{{"a", lost(upstream.NextLine)}}, lines: both, first: "b"},
		{name: "an answer was lost, one line", attempts: []attempt{{"a", lost(upstream.NextLine)}}, lines: []string{"a"}, first: "a"},
		{name: "two answers were lost", attempts: []attempt{{"a", lost(upstream.NextLine)}, {"b", lost(upstream.NextLine)}},
			lines: []string{"a", "b", "c"}, fail: fault.UpstreamError},
		{name: "busy for the third time",
			attempts: []attempt{{"a", failure(fault.UpstreamError, upstream.NextLater)}, {"b", failure(fault.UpstreamError, upstream.NextLater)},
				{"a", failure(fault.UpstreamError, upstream.NextLater)}}, lines: nil, wait: 8 * time.Second},
		{name: "no line left", attempts: []attempt{{"a", failure(fault.UpstreamError, upstream.NextLine)}}, lines: nil,
			fail: fault.UpstreamError},
	} {
		tr := traceOf(c.attempts...)
		v := After(tr, int64(len(c.attempts)), c.attempts[len(c.attempts)-1].failure, c.lines)
		switch {
		case c.fail == "" && v.Fail != nil:
			t.Errorf("%s: failed with %+v", c.name, *v.Fail)
		case c.fail != "" && (v.Fail == nil || v.Fail.Code != c.fail || v.Fail.Param != c.param || v.Fail.Message == ""):
			t.Errorf("%s: %+v, want %s %q", c.name, v.Fail, c.fail, c.param)
		case v.Wait != c.wait:
			t.Errorf("%s: waits %s, want %s", c.name, v.Wait, c.wait)
		}
		if next := tr.Order(c.lines); c.first != "" && (len(next) == 0 || next[0] != c.first) {
			t.Errorf("%s: the next line is %v, want %s", c.name, next, c.first)
		}
	}
}

// TestBusyWait checks the waits for busy lines.
func TestBusyWait(t *testing.T) {
	t.Parallel()
	asks := func(d time.Duration) *upstream.JobFailure {
		busy := failure(fault.UpstreamError, upstream.NextLater)
		busy.RetryAfter = d
		return busy
	}
	var attempts []attempt
	for i, want := range []time.Duration{2, 4, 8, 16, 30, 30, 30} {
		attempts = append(attempts, attempt{"a", asks(0)})
		if v := After(traceOf(attempts...), int64(i), asks(0), nil); v.Fail != nil || v.Wait != want*time.Second {
			t.Errorf("after %d times: %s, want %ds", i+1, v.Wait, want)
		}
	}
	for ask, want := range map[time.Duration]time.Duration{time.Second: 2 * time.Second, 7 * time.Second: 7 * time.Second,
		45 * time.Second: 45 * time.Second, time.Hour: time.Minute} {
		if v := After(traceOf(attempt{"a", asks(ask)}), 1, asks(ask), nil); v.Wait != want {
			t.Errorf("asked for %s: %s, want %s", ask, v.Wait, want)
		}
	}
}

// TestEndlessJob ends a job that lines accept and return again and again.
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

// TestTraceProperties plays random failures: each job ends, a line gets it at most twice, at most
// one submission follows lost answers, and only a submission after a lost answer repeats a key.
func TestTraceProperties(t *testing.T) {
	t.Parallel()
	lines := []string{"a", "b", "c"}
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 7))
		tr := &Trace{}
		named := map[int64]bool{} // true if the key may be repeated
		tries := map[string]int{}
		for number := int64(1); ; number++ {
			if number > 200 {
				t.Fatalf("seed %d: no end", seed)
			}
			open := slices.DeleteFunc(slices.Clone(lines), func(string) bool { return r.IntN(4) == 0 })
			next := tr.Order(open)
			for _, line := range next {
				if !slices.Contains(open, line) || !tr.allowed(line) {
					t.Fatalf("seed %d: prefers %v of %v", seed, next, open)
				}
			}
			if len(next) == 0 {
				if len(open) == len(lines) {
					break // all lines were used
				}
				continue
			}
			tr.Begin(next[0], number)
			name := tr.KeyNumber(number)
			if again, known := named[name]; known && !again {
				t.Fatalf("seed %d: the name %d is used for another submission: %+v", seed, name, tr.Attempts)
			}
			how := failure(fault.UpstreamError,
				[]upstream.Next{upstream.NextLater, upstream.NextSame, upstream.NextLine, upstream.NextNone}[r.IntN(4)])
			how.Lost = how.Next != upstream.NextLater && r.IntN(3) == 0
			named[name] = how.Lost
			tr.End(how, number)
			if how.Next != upstream.NextLater {
				tries[next[0]]++
			}
			v := After(tr, number, how, open)
			if v.Fail != nil {
				break
			}
		}
		lostOnes := 0
		for _, a := range tr.Attempts {
			if a.Lost {
				lostOnes++
			}
		}
		if lostOnes > maxLostAnswers+1 {
			t.Errorf("seed %d: %d lost submissions", seed, lostOnes)
		}
		for line, n := range tries {
			if n > 2 {
				t.Errorf("seed %d: %d tries on %s", seed, n, line)
			}
		}
	}
}

// TestKeysOfManySubmissions drops attempts from a long trace. No key is repeated.
func TestKeysOfManySubmissions(t *testing.T) {
	t.Parallel()
	tr := &Trace{}
	seen := map[int64]bool{}
	for number := int64(1); number <= 3*maxAttempts; number++ {
		tr.Begin("a", number)
		name := tr.KeyNumber(number)
		if seen[name] {
			t.Fatalf("submission %d has the name of an earlier one", number)
		}
		seen[name] = true
		tr.End(failure(fault.UpstreamError, upstream.NextLater), number)
	}
	if len(tr.Attempts) > maxAttempts {
		t.Errorf("%d attempts are kept", len(tr.Attempts))
	}
}
