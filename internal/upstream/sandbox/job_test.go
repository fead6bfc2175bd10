package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/png"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/sandbox"
)

// newTask returns a small task of a kind.
func newTask(kind string) jobcall.Task {
	task := jobcall.Task{Kind: kind, Model: "sandbox-" + kind, Prompt: "A paper boat", Count: 1, Tier: "1K", Ratio: "1:1", Width: 256,
		Height: 256, Key: "sub_1"}
	if kind == upstream.KindVideo {
		task.Tier, task.Ratio, task.Width, task.Height, task.Seconds = "720p", "16:9", 320, 180, 1
	}
	return task
}

// runTask runs a task like a job: it submits, polls after the requested waits and fetches the
// results, with fresh links after each of up to three failures. It returns the files and the number
// of polls. Each call uses a new adapter, as after a restart of the process.
func runTask(ctx context.Context, t *testing.T, options map[string]any, task jobcall.Task) (files [][]byte, polls int, err error) {
	t.Helper()
	p, err := jobcall.Submit(ctx, open(t, options), task)
	if err != nil {
		return nil, 0, err
	}
	if blocks := open(t, options).Blocks(task); blocks != (p.Ticket == "") || blocks != p.Done {
		t.Errorf("Blocks is %v, but Submit returned %+v", blocks, p)
	}
	for failures := 0; ; failures++ {
		for !p.Done {
			if p.Wait <= 0 {
				t.Fatalf("wait %v", p.Wait)
			}
			if err := sleep(ctx, p.Wait); err != nil {
				return nil, polls, err
			}
			ticket := p.Ticket
			if p, err = open(t, options).Poll(ctx, task, ticket); err != nil {
				return nil, polls, err
			}
			if polls++; p.Ticket != ticket {
				t.Errorf("the ticket %s became %s", ticket, p.Ticket)
			}
		}
		files, err = fetchAll(ctx, open(t, options), task, p.Results)
		if err == nil || failures == 3 {
			return files, polls, err
		}
		if err := sleep(ctx, time.Second); err != nil {
			return nil, polls, err
		}
		p.Done = p.Ticket == "" // otherwise poll for fresh links
		p.Wait = 1
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d): // in fake time
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func fetchAll(ctx context.Context, a *sandbox.Adapter, task jobcall.Task, results []jobcall.Result) ([][]byte, error) {
	var files [][]byte
	for _, r := range results {
		f, err := a.Fetch(ctx, task, r)
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(f.Body)
		if err != nil {
			return nil, err
		}
		if err := f.Body.Close(); err != nil {
			return nil, err
		}
		if int64(len(data)) != f.Size || f.Type != r.Type {
			return nil, fmt.Errorf("%d bytes of %d, %s of %s", len(data), f.Size, f.Type, r.Type)
		}
		files = append(files, data)
	}
	return files, nil
}

func TestImages(t *testing.T) {
	t.Parallel()
	for _, async := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			options := map[string]any{"delay": "3s"}
			if async {
				options["async"] = true
			}
			task := newTask(upstream.KindImage)
			task.Count = 3
			start := time.Now()
			files, polls, err := runTask(t.Context(), t, options, task)
			if err != nil || len(files) != 3 {
				t.Fatalf("%d files, %v", len(files), err)
			}
			if took := time.Since(start); took != 3*time.Second {
				t.Errorf("took %v", took)
			}
			if want := map[bool]int{false: 0, true: 3}[async]; polls != want {
				t.Errorf("%d polls, want %d", polls, want)
			}
			for i, f := range files {
				img, err := png.Decode(bytes.NewReader(f))
				if err != nil || img.Bounds().Dx() != 256 || img.Bounds().Dy() != 256 {
					t.Errorf("file %d: %v", i, err)
				}
				if i > 0 && bytes.Equal(f, files[i-1]) {
					t.Errorf("images %d and %d are the same", i-1, i)
				}
			}
		})
	}
}

func TestVideos(t *testing.T) {
	t.Parallel()
	for _, async := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			options := map[string]any{"delay": "10s", "poll_wait": "4s"}
			if !async {
				options["async"] = false
			}
			start := time.Now()
			files, polls, err := runTask(t.Context(), t, options, newTask(upstream.KindVideo))
			if err != nil || len(files) != 1 || string(files[0][4:8]) != "ftyp" {
				t.Fatalf("%d files, %v", len(files), err)
			}
			if took := time.Since(start); took != 10*time.Second {
				t.Errorf("took %v", took)
			}
			if want := map[bool]int{false: 0, true: 3}[async]; polls != want {
				t.Errorf("%d polls, want %d", polls, want)
			}
		})
	}
}

// TestJobFailures checks the failure of a job for every value of fail, for both kinds of jobs, with
// and without tickets.
func TestJobFailures(t *testing.T) {
	t.Parallel()
	const noFailure = fault.Code("")
	type outcome struct {
		code  fault.Code
		param string
		next  upstream.Next
	}
	var (
		busy = outcome{fault.UpstreamError, "", upstream.NextLater}
		line = outcome{fault.UpstreamError, "", upstream.NextLine}
	)
	for _, c := range []struct {
		fail         string
		image, video outcome
	}{
		{"content_policy", outcome{fault.ModerationBlocked, "", upstream.NextNone}, outcome{fault.ContentPolicy, "", upstream.NextNone}},
		{"content_policy_audio", outcome{fault.ModerationBlocked, "", upstream.NextNone},
			outcome{fault.ContentPolicy, "audio", upstream.NextSame}},
		{"moderation_blocked", outcome{fault.ModerationBlocked, "", upstream.NextNone}, outcome{fault.ContentPolicy, "", upstream.NextNone}},
		{"content_policy_violation", outcome{fault.ContentPolicyViolation, "", upstream.NextNone},
			outcome{fault.ContentPolicy, "", upstream.NextNone}},
		{"render_failed", line, outcome{fault.RenderFailed, "", upstream.NextLine}},
		{"invalid_material", line, outcome{fault.InvalidMaterial, "", upstream.NextLine}},
		{"render_timeout", line, outcome{fault.RenderTimeout, "", upstream.NextLine}},
		{"upstream_unstable", line, outcome{fault.UpstreamUnstable, "", upstream.NextLine}},
		{"invalid_request", line, outcome{fault.InvalidRequest, "", upstream.NextLine}},
		{"upstream_error", line, line},
		{"empty", outcome{fault.UpstreamError, "", upstream.NextSame}, outcome{fault.RenderFailed, "", upstream.NextSame}},
		{"filter", outcome{fault.ModerationBlocked, "", upstream.NextNone}, outcome{fault.ContentPolicy, "", upstream.NextSame}},
		{"prompt_filter", outcome{fault.ContentPolicyViolation, "", upstream.NextNone}, outcome{fault.ContentPolicy, "", upstream.NextNone}},
		{"rejection", line, outcome{fault.InvalidRequest, "", upstream.NextLine}},
		{"busy", busy, busy},
		{"overloaded", busy, busy},
		{"unavailable", line, line},
		{"credential", line, line},
		{"quota", line, line},
		{"model", line, line},
		{"page", line, line},
		{"connection", line, line},
		{"bad_link_once", outcome{code: noFailure}, outcome{code: noFailure}},
		{"sentence", outcome{code: noFailure}, outcome{code: noFailure}}, // only affects chat, like the next two
		{"error_inside", outcome{code: noFailure}, outcome{code: noFailure}},
		{"thinking_only", outcome{code: noFailure}, outcome{code: noFailure}},
	} {
		for _, kind := range []string{upstream.KindImage, upstream.KindVideo} {
			for _, async := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%s/%v", c.fail, kind, async), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						want := map[string]outcome{upstream.KindImage: c.image, upstream.KindVideo: c.video}[kind]
						_, _, err := runTask(t.Context(), t, map[string]any{"fail": c.fail, "async": async, "delay": "1s"}, newTask(kind))
						if want.code == noFailure {
							if err != nil {
								t.Fatal(err)
							}
							return
						}
						var got *upstream.JobFailure
						if !errors.As(err, &got) {
							t.Fatalf("got %v, want a failure", err)
						}
						if got.Job != want.code || got.Param != want.param || got.Next != want.next || got.Lost != (c.fail == "connection") {
							t.Errorf("%s, param %q, next %d, lost %v; want %+v", got.Job, got.Param, got.Next, got.Lost, want)
						}
					})
				})
			}
		}
	}
}

// TestSilentFailures tests the failures after which a job must wait or try again until its own
// limit.
func TestSilentFailures(t *testing.T) {
	t.Parallel()
	oneHour := func(t *testing.T) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		t.Cleanup(cancel)
		return ctx
	}
	for _, fail := range []string{"never", "timeout"} {
		for _, async := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				_, polls, err := runTask(oneHour(t), t, map[string]any{"fail": fail, "async": async, "poll_wait": "1m"}, newTask(upstream.KindVideo))
				if err == nil || time.Since(start) != time.Hour {
					t.Errorf("%s: after %v: %v", fail, time.Since(start), err)
				}
				ticketed := fail == "never" && async
				if ticketed != (polls > 50) {
					t.Errorf("%s: %d polls: %v", fail, polls, err)
				}
				var failure *upstream.JobFailure
				if errors.As(err, &failure) && !ticketed && (!failure.Lost || failure.Code != fault.UpstreamTimeout) {
					t.Errorf("%s: %+v", fail, failure)
				}
			})
		}
	}
	for _, kind := range []string{upstream.KindImage, upstream.KindVideo} {
		options := map[string]any{"fail": "polls_break", "async": true}
		p, err := jobcall.Submit(t.Context(), open(t, options), newTask(kind))
		if err != nil {
			t.Fatal(err)
		}
		var failure *upstream.JobFailure
		if _, err = open(t, options).Poll(t.Context(), newTask(kind), p.Ticket); !errors.As(err, &failure) || failure.Next != upstream.NextPoll {
			t.Errorf("polls_break: %v", err)
		}
		synctest.Test(t, func(t *testing.T) {
			files, _, err := runTask(t.Context(), t, map[string]any{"fail": "result_fetch_failed", "delay": "1s"}, newTask(kind))
			if err == nil || len(files) > 0 {
				t.Errorf("result_fetch_failed: %d files, %v", len(files), err)
			}
		})
	}
}

// TestBadLink checks that the first link never works and that a fresh link works.
func TestBadLink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		options := map[string]any{"fail": "bad_link_once", "delay": "5s", "poll_wait": "2s"}
		task := newTask(upstream.KindVideo)
		p, err := jobcall.Submit(t.Context(), open(t, options), task)
		if err != nil {
			t.Fatal(err)
		}
		ticket := p.Ticket
		pollAfter := func(after time.Duration) jobcall.Result {
			time.Sleep(after)
			p, err := open(t, options).Poll(t.Context(), task, ticket)
			if err != nil || !p.Done {
				t.Fatalf("%+v, %v", p, err)
			}
			return p.Results[0]
		}
		first := pollAfter(5 * time.Second)
		fresh := pollAfter(2 * time.Second)
		for range 2 {
			var failure *upstream.JobFailure
			if _, err := open(t, options).Fetch(t.Context(), task, first); !errors.As(err, &failure) || failure.Next != upstream.NextPoll ||
				failure.Status != 403 {
				t.Errorf("the first link: %v", err)
			}
			time.Sleep(time.Minute)
		}
		if files, err := fetchAll(t.Context(), open(t, options), task, []jobcall.Result{fresh}); err != nil || len(files) != 1 {
			t.Errorf("the fresh link: %v", err)
		}
	})
}

// TestFailOn tests failures named in the prompt.
func TestFailOn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		options map[string]any
		prompt  string
		want    fault.Code
	}{
		{map[string]any{"fail_on": "fail:([a-z_]+)"}, "a cat", ""},
		{map[string]any{"fail_on": "fail:([a-z_]+)"}, "a cat fail:render_failed", fault.RenderFailed},
		{map[string]any{"fail_on": "fail:([a-z_]+)"}, "a cat fail:content_policy", fault.ContentPolicy},
		{map[string]any{"fail_on": "fail:([a-z_]+)"}, "a cat fail:no_such_thing", ""},
		{map[string]any{"fail_on": "fail:([a-z_]+)", "fail": "upstream_unstable"}, "a cat fail:no_such_thing", fault.UpstreamUnstable},
		{map[string]any{"fail_on": "blood", "fail": "content_policy"}, "a cat", ""},
		{map[string]any{"fail_on": "blood", "fail": "content_policy"}, "a cat in blood", fault.ContentPolicy},
		{map[string]any{"fail_on": "blood", "fail": "content_policy", "fail_rate": 0}, "a cat in blood", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			task := newTask(upstream.KindVideo)
			task.Prompt = c.prompt
			_, _, err := runTask(t.Context(), t, c.options, task)
			var failure *upstream.JobFailure
			if errors.As(err, &failure); (c.want == "") != (err == nil) || (failure != nil && failure.Job != c.want) {
				t.Errorf("%v, %q: %v, want %q", c.options, c.prompt, err, c.want)
			}
		})
	}
	// fail_on also applies to chat.
	a := open(t, map[string]any{"fail_on": "(busy|credential)"})
	for message, want := range map[string]fault.Code{"Hello!": "", "be busy": fault.UpstreamBusy} {
		answer, err := chat(t.Context(), a, false, `{"model":"m","messages":[{"role":"user","content":"`+message+`"}]}`)
		var f *upstream.Failure
		if errors.As(err, &f); (want == "") != (err == nil) || (f != nil && f.Code != want) {
			t.Errorf("%s: %v", message, err)
		}
		if err == nil {
			_ = answer.Body.Close()
		}
	}
}

// TestJobFailRate checks that fail_rate is the share of failed submissions, and that a repeated
// submission has the same result.
func TestJobFailRate(t *testing.T) {
	t.Parallel()
	options := map[string]any{"fail": "busy", "fail_rate": 0.25}
	a, failed := open(t, options), 0
	for i := range 2000 {
		task := newTask(upstream.KindVideo)
		task.Key = fmt.Sprintf("sub_%d", i)
		_, err := jobcall.Submit(t.Context(), a, task)
		if _, again := jobcall.Submit(t.Context(), open(t, options), task); (again == nil) != (err == nil) {
			t.Fatalf("submission %d: %v, then %v", i, err, again)
		}
		if err != nil {
			failed++
		}
	}
	if failed < 430 || failed > 570 {
		t.Errorf("%d of 2000 failed, want about 500", failed)
	}
}

func TestUnsuitableTasks(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(task *jobcall.Task){
		"kind":    func(task *jobcall.Task) { task.Kind = "sound" },
		"count":   func(task *jobcall.Task) { task.Kind, task.Count = upstream.KindImage, 65 },
		"seconds": func(task *jobcall.Task) { task.Seconds = 121 },
	} {
		task := newTask(upstream.KindVideo)
		change(&task)
		_, err := jobcall.Submit(t.Context(), open(t, nil), task)
		var failure *upstream.JobFailure
		if !errors.As(err, &failure) || failure.Next != upstream.NextLine || failure.Health != upstream.HealthNone || failure.Lost {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCanceledContext checks that calls with a canceled context return immediately.
func TestCanceledContext(t *testing.T) {
	t.Parallel()
	a, task := open(t, map[string]any{"delay": "1h"}), newTask(upstream.KindImage)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var failure *upstream.JobFailure
	if _, err := jobcall.Submit(ctx, a, task); !errors.As(err, &failure) || !failure.Lost {
		t.Errorf("submit: %v", err)
	}
	if _, err := a.Poll(ctx, task, "sandbox.1.well.0123456789ab"); !errors.As(err, &failure) || failure.Next != upstream.NextPoll {
		t.Errorf("poll: %v", err)
	}
	if _, err := a.Fetch(ctx, newTask(upstream.KindVideo), jobcall.Result{Ref: "sandbox:0"}); !errors.As(err, &failure) ||
		failure.Next != upstream.NextPoll {
		t.Errorf("fetch: %v", err)
	}
	if err := a.Cancel(t.Context(), task, "sandbox.1.well.0123456789ab"); err != nil {
		t.Errorf("cancel: %v", err)
	}
}

// FuzzTicket tests that a text that is not a ticket counts as the ticket of an unknown task.
func FuzzTicket(f *testing.F) {
	for _, s := range []string{"", "sandbox.1795262002123.well.0123456789ab", "sandbox.1.render_failed.0123456789ab",
		"sandbox.-1.well.0123456789ab", "sandbox.99999999999999999999.well.0123456789ab"} {
		f.Add(s)
	}
	a, err := sandbox.New(upstream.Target{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, ticket string) {
		p, err := a.Poll(t.Context(), newTask(upstream.KindVideo), ticket)
		var failure *upstream.JobFailure
		switch {
		case err == nil && (p.Ticket != ticket || strings.Count(ticket, ".") != 3):
			t.Errorf("%q: %+v", ticket, p)
		case err != nil && !errors.As(err, &failure):
			t.Errorf("%q: %v", ticket, err)
		}
	})
}

// FuzzLink tests that a text that is not a link fails like an unknown link.
func FuzzLink(f *testing.F) {
	for _, s := range []string{"", "sandbox:0", "sandbox:1", "sandbox:0:broken", "sandbox:0:from:-1", "sandbox:0:from:99999999999999",
		"sandbox:-1", "sandbox:0:"} {
		f.Add(s)
	}
	a, err := sandbox.New(upstream.Target{})
	if err != nil {
		f.Fatal(err)
	}
	task := newTask(upstream.KindImage)
	task.Width, task.Height = 16, 16
	f.Fuzz(func(t *testing.T, ref string) {
		file, err := a.Fetch(t.Context(), task, jobcall.Result{Ref: ref})
		var failure *upstream.JobFailure
		if err == nil {
			if !strings.HasPrefix(ref, "sandbox:") {
				t.Errorf("%q is a link", ref)
			}
			_ = file.Body.Close()
		} else if !errors.As(err, &failure) || failure.Next != upstream.NextPoll {
			t.Errorf("%q: %v", ref, err)
		}
	})
}
