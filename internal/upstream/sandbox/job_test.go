package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/png"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/sandbox"
)

func work(kind string) jobcall.Task {
	w := jobcall.Task{Kind: kind, Model: "sandbox-" + kind, Prompt: "A paper boat", Count: 1, Tier: "1K", Ratio: "1:1", Width: 256,
		Height: 256, Key: "sub_1"}
	if kind == upstream.KindVideo {
		w.Tier, w.Ratio, w.Width, w.Height, w.Seconds = "720p", "16:9", 320, 180, 1
	}
	return w
}

// perform does a work as a job does: it submits, polls when it is told to and
// fetches, asking for fresh links up to three times. It returns the files and
// how often it polled. Every call is made by another adapter, as if the process
// had been restarted.
func perform(ctx context.Context, t *testing.T, options map[string]any, w jobcall.Task) (files [][]byte, polls int, err error) {
	t.Helper()
	p, err := jobcall.Submit(ctx, open(t, options), w)
	if err != nil {
		return nil, 0, err
	}
	if blocks := open(t, options).Blocks(w); blocks != (p.Ticket == "") || blocks != p.Done {
		t.Errorf("blocks: %v, and answers %+v", blocks, p)
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
			if p, err = open(t, options).Poll(ctx, w, ticket); err != nil {
				return nil, polls, err
			}
			if polls++; p.Ticket != ticket {
				t.Errorf("the ticket %s became %s", ticket, p.Ticket)
			}
		}
		files, err = fetchAll(ctx, open(t, options), w, p.Results)
		if err == nil || failures == 3 {
			return files, polls, err
		}
		if err := sleep(ctx, time.Second); err != nil {
			return nil, polls, err
		}
		p.Done = p.Ticket == "" // else ask for fresh links
		p.Wait = 1
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d): // in a bubble
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func fetchAll(ctx context.Context, a *sandbox.Adapter, w jobcall.Task, results []jobcall.Result) ([][]byte, error) {
	var files [][]byte
	for _, r := range results {
		f, err := a.Fetch(ctx, w, r)
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
			w := work(upstream.KindImage)
			w.Count = 3
			start := time.Now()
			files, polls, err := perform(t.Context(), t, options, w)
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
			files, polls, err := perform(t.Context(), t, options, work(upstream.KindVideo))
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

// TestJobTroubles plays every trouble on both kinds of jobs, with tickets and
// without, and compares what a job learns with the code that it must end in.
func TestJobTroubles(t *testing.T) {
	t.Parallel()
	const fine = fault.Code("")
	type end struct {
		code  fault.Code
		param string
		next  upstream.Next
	}
	var (
		busy = end{fault.UpstreamError, "", upstream.NextLater}
		line = end{fault.UpstreamError, "", upstream.NextLine}
	)
	for _, c := range []struct {
		fail         string
		image, video end
	}{
		{"content_policy", end{fault.ModerationBlocked, "", upstream.NextNone}, end{fault.ContentPolicy, "", upstream.NextNone}},
		{"content_policy_audio", end{fault.ModerationBlocked, "", upstream.NextNone}, end{fault.ContentPolicy, "audio", upstream.NextSame}},
		{"moderation_blocked", end{fault.ModerationBlocked, "", upstream.NextNone}, end{fault.ContentPolicy, "", upstream.NextNone}},
		{"content_policy_violation", end{fault.ContentPolicyViolation, "", upstream.NextNone}, end{fault.ContentPolicy, "", upstream.NextNone}},
		{"render_failed", line, end{fault.RenderFailed, "", upstream.NextLine}},
		{"invalid_material", line, end{fault.InvalidMaterial, "", upstream.NextLine}},
		{"render_timeout", line, end{fault.RenderTimeout, "", upstream.NextLine}},
		{"upstream_unstable", line, end{fault.UpstreamUnstable, "", upstream.NextLine}},
		{"invalid_request", line, end{fault.InvalidRequest, "", upstream.NextLine}},
		{"upstream_error", line, line},
		{"empty", end{fault.UpstreamError, "", upstream.NextSame}, end{fault.RenderFailed, "", upstream.NextSame}},
		{"filter", end{fault.ModerationBlocked, "", upstream.NextNone}, end{fault.ContentPolicy, "", upstream.NextSame}},
		{"prompt_filter", end{fault.ContentPolicyViolation, "", upstream.NextNone}, end{fault.ContentPolicy, "", upstream.NextNone}},
		{"rejection", line, end{fault.InvalidRequest, "", upstream.NextLine}},
		{"busy", busy, busy},
		{"overloaded", busy, busy},
		{"unavailable", line, line},
		{"credential", line, line},
		{"quota", line, line},
		{"model", line, line},
		{"page", line, line},
		{"connection", line, line},
		{"bad_link_once", end{code: fine}, end{code: fine}},
		{"sentence", end{code: fine}, end{code: fine}}, // of chat alone, as are the next two
		{"error_inside", end{code: fine}, end{code: fine}},
		{"thinking_only", end{code: fine}, end{code: fine}},
	} {
		for _, kind := range []string{upstream.KindImage, upstream.KindVideo} {
			for _, async := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%s/%v", c.fail, kind, async), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						want := map[string]end{upstream.KindImage: c.image, upstream.KindVideo: c.video}[kind]
						_, _, err := perform(t.Context(), t, map[string]any{"fail": c.fail, "async": async, "delay": "1s"}, work(kind))
						if want.code == fine {
							if err != nil {
								t.Fatal(err)
							}
							return
						}
						var got *upstream.JobFailure
						if !errors.As(err, &got) {
							t.Fatalf("no trouble: %v", err)
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

// TestSilentTroubles checks failures without an error message. They end a job only after enough
// waiting or polling.
func TestSilentTroubles(t *testing.T) {
	t.Parallel()
	patience := func(t *testing.T) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		t.Cleanup(cancel)
		return ctx
	}
	for _, fail := range []string{"never", "timeout"} {
		for _, async := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				_, polls, err := perform(patience(t), t, map[string]any{"fail": fail, "async": async, "poll_wait": "1m"}, work(upstream.KindVideo))
				if err == nil || time.Since(start) != time.Hour {
					t.Errorf("%s: after %v: %v", fail, time.Since(start), err)
				}
				ticketed := fail == "never" && async
				if ticketed != (polls > 50) {
					t.Errorf("%s: %d polls: %v", fail, polls, err)
				}
				var trouble *upstream.JobFailure
				if errors.As(err, &trouble) && !ticketed && (!trouble.Lost || trouble.Code != fault.UpstreamTimeout) {
					t.Errorf("%s: %+v", fail, trouble)
				}
			})
		}
	}
	for _, kind := range []string{upstream.KindImage, upstream.KindVideo} {
		options := map[string]any{"fail": "polls_break", "async": true}
		p, err := jobcall.Submit(t.Context(), open(t, options), work(kind))
		if err != nil {
			t.Fatal(err)
		}
		var trouble *upstream.JobFailure
		if _, err = open(t, options).Poll(t.Context(), work(kind), p.Ticket); !errors.As(err, &trouble) || trouble.Next != upstream.NextPoll {
			t.Errorf("polls_break: %v", err)
		}
		synctest.Test(t, func(t *testing.T) {
			files, _, err := perform(t.Context(), t, map[string]any{"fail": "result_fetch_failed", "delay": "1s"}, work(kind))
			if err == nil || len(files) > 0 {
				t.Errorf("result_fetch_failed: %d files, %v", len(files), err)
			}
		})
	}
}

// TestBadLink checks that the first link of a result always fails, and a new link works.
func TestBadLink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		options := map[string]any{"fail": "bad_link_once", "delay": "5s", "poll_wait": "2s"}
		w := work(upstream.KindVideo)
		p, err := jobcall.Submit(t.Context(), open(t, options), w)
		if err != nil {
			t.Fatal(err)
		}
		ticket := p.Ticket
		ask := func(after time.Duration) jobcall.Result {
			time.Sleep(after)
			p, err := open(t, options).Poll(t.Context(), w, ticket)
			if err != nil || !p.Done {
				t.Fatalf("%+v, %v", p, err)
			}
			return p.Results[0]
		}
		first := ask(5 * time.Second)
		fresh := ask(2 * time.Second)
		for range 2 {
			var trouble *upstream.JobFailure
			if _, err := open(t, options).Fetch(t.Context(), w, first); !errors.As(err, &trouble) || trouble.Next != upstream.NextPoll ||
				trouble.Status != 403 {
				t.Errorf("the first link: %v", err)
			}
			time.Sleep(time.Minute)
		}
		if files, err := fetchAll(t.Context(), open(t, options), w, []jobcall.Result{fresh}); err != nil || len(files) != 1 {
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
			w := work(upstream.KindVideo)
			w.Prompt = c.prompt
			_, _, err := perform(t.Context(), t, c.options, w)
			var trouble *upstream.JobFailure
			if errors.As(err, &trouble); (c.want == "") != (err == nil) || (trouble != nil && trouble.Job != c.want) {
				t.Errorf("%v, %q: %v, want %q", c.options, c.prompt, err, c.want)
			}
		})
	}
	// Chat heeds it too.
	a := open(t, map[string]any{"fail_on": "(busy|credential)"})
	for ask, want := range map[string]fault.Code{"Hello!": "", "be busy": fault.UpstreamBusy} {
		answer, err := chat(t.Context(), a, false, `{"model":"m","messages":[{"role":"user","content":"`+ask+`"}]}`)
		var f *upstream.Failure
		if errors.As(err, &f); (want == "") != (err == nil) || (f != nil && f.Code != want) {
			t.Errorf("%s: %v", ask, err)
		}
		if err == nil {
			_ = answer.Body.Close()
		}
	}
}

// TestJobFailRate checks that fail_rate holds over many submissions, and that equal submissions
// have equal outcomes.
func TestJobFailRate(t *testing.T) {
	t.Parallel()
	options := map[string]any{"fail": "busy", "fail_rate": 0.25}
	a, failed := open(t, options), 0
	for i := range 2000 {
		w := work(upstream.KindVideo)
		w.Key = fmt.Sprintf("sub_%d", i)
		_, err := jobcall.Submit(t.Context(), a, w)
		if _, again := jobcall.Submit(t.Context(), open(t, options), w); (again == nil) != (err == nil) {
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

func TestUnfitWork(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *jobcall.Task){
		"kind":    func(w *jobcall.Task) { w.Kind = "sound" },
		"count":   func(w *jobcall.Task) { w.Kind, w.Count = upstream.KindImage, 65 },
		"seconds": func(w *jobcall.Task) { w.Seconds = 121 },
	} {
		w := work(upstream.KindVideo)
		change(&w)
		_, err := jobcall.Submit(t.Context(), open(t, nil), w)
		var trouble *upstream.JobFailure
		if !errors.As(err, &trouble) || trouble.Next != upstream.NextLine || trouble.Health != upstream.HealthNone || trouble.Lost {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLeftWork checks that calls return at once if the caller's context has ended.
func TestLeftWork(t *testing.T) {
	t.Parallel()
	a, w := open(t, map[string]any{"delay": "1h"}), work(upstream.KindImage)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var trouble *upstream.JobFailure
	if _, err := jobcall.Submit(ctx, a, w); !errors.As(err, &trouble) || !trouble.Lost {
		t.Errorf("submit: %v", err)
	}
	if _, err := a.Poll(ctx, w, "sandbox.1.well.0123456789ab"); !errors.As(err, &trouble) || trouble.Next != upstream.NextPoll {
		t.Errorf("poll: %v", err)
	}
	if _, err := a.Fetch(ctx, work(upstream.KindVideo), jobcall.Result{Ref: "sandbox:0"}); !errors.As(err, &trouble) ||
		trouble.Next != upstream.NextPoll {
		t.Errorf("fetch: %v", err)
	}
	if err := a.Cancel(t.Context(), w, "sandbox.1.well.0123456789ab"); err != nil {
		t.Errorf("cancel: %v", err)
	}
}

// FuzzTicket tests that any other text is the ticket of an unknown task.
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
		p, err := a.Poll(t.Context(), work(upstream.KindVideo), ticket)
		var trouble *upstream.JobFailure
		switch {
		case err == nil && (p.Ticket != ticket || strings.Count(ticket, ".") != 3):
			t.Errorf("%q: %+v", ticket, p)
		case err != nil && !errors.As(err, &trouble):
			t.Errorf("%q: %v", ticket, err)
		}
	})
}

// FuzzLink tests that any other text is an unknown link.
func FuzzLink(f *testing.F) {
	for _, s := range []string{"", "sandbox:0", "sandbox:1", "sandbox:0:broken", "sandbox:0:from:-1", "sandbox:0:from:99999999999999",
		"sandbox:-1", "sandbox:0:"} {
		f.Add(s)
	}
	a, err := sandbox.New(upstream.Target{})
	if err != nil {
		f.Fatal(err)
	}
	w := work(upstream.KindImage)
	w.Width, w.Height = 16, 16
	f.Fuzz(func(t *testing.T, ref string) {
		file, err := a.Fetch(t.Context(), w, jobcall.Result{Ref: ref})
		var trouble *upstream.JobFailure
		if err == nil {
			if !strings.HasPrefix(ref, "sandbox:") {
				t.Errorf("%q is a link", ref)
			}
			_ = file.Body.Close()
		} else if !errors.As(err, &trouble) || trouble.Next != upstream.NextPoll {
			t.Errorf("%q: %v", ref, err)
		}
	})
}

func TestJobOptions(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]map[string]any{
		"async":     {"async": "yes"},
		"poll_wait": {"poll_wait": 3},
		"fail":      {"fail": "well"},
		"fail_on":   {"fail_on": "(", "fail": "busy"},
	} {
		if err := sandbox.Info().CheckOptions(options); err == nil || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%v: %v", options, err)
		}
	}
	for _, options := range []map[string]any{{"fail_on": "word"}, {"fail_on": strings.Repeat("x", 501), "fail": "busy"}, {"fail_on": ""},
		{"fail_on": 1}} {
		if err := sandbox.Info().CheckOptions(options); err == nil || !strings.HasPrefix(err.Error(), "fail_on: ") {
			t.Errorf("%v: %v", options, err)
		}
	}
	if !slices.Equal(sandbox.Info().Kinds, []string{"chat", "image", "video"}) {
		t.Error("kinds")
	}
}
