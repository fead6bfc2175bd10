package luma_test

import (
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/luma"
)

// TestBodies: what each kind is asked; empty: the line is unsuitable.
func TestBodies(t *testing.T) {
	t.Parallel()
	link := func(n int) jobcall.Reference {
		return conformance.Reference("image/png", fmt.Sprintf("https://media.example/%d.png", n), "abc")
	}
	inline, film := conformance.Reference("image/webp", "", "abc"), conformance.Reference("video/mp4", "https://media.example/v.mp4", "abc")
	tier := func(name string, larger bool) func(*jobcall.Task) {
		return func(w *jobcall.Task) { w.Tier, w.Larger = name, larger }
	}
	size := func(ratio string, width, height int, exact bool) func(*jobcall.Task) {
		return func(w *jobcall.Task) { w.Ratio, w.Width, w.Height, w.Exact = ratio, width, height, exact }
	}
	seconds := func(n int64) func(*jobcall.Task) { return func(w *jobcall.Task) { w.Seconds = n } }
	prompt := func(s string) func(*jobcall.Task) { return func(w *jobcall.Task) { w.Prompt = s } }
	ten := make([]jobcall.Reference, 10)
	for i := range ten {
		ten[i] = link(i)
	}
	for _, tt := range []struct {
		name string
		w    jobcall.Task
		want string
	}{
		{"picture", image(params(`{"output_format":"png","style":"manga"}`)), `{"aspect_ratio":"16:9","model":"uni-1","output_format":"png",` +
			`"prompt":"a lighthouse","style":"manga","type":"image"}`},
		{"a paid tier that it makes", image(tier("2K", true), size("", 0, 0, false)),
			`{"model":"uni-1","prompt":"a lighthouse","type":"image"}`},
		{"a larger tier", image(tier("4K", true)), ``},
		{"pixels", image(size("", 1000, 600, true)), ``},
		{"another ratio", image(size("5:4", 1152, 896, false)), ``},
		{"an edit", image(refs(inline)), `{"model":"uni-1","prompt":"a lighthouse","source":{"data":"YWJj","media_type":"image/webp"},` +
			`"type":"image_edit"}`},
		{"an edit with references", image(refs(link(1), link(2))), `{"image_ref":[{"url":"https://media.example/2.png"}],"model":"uni-1",` +
			`"prompt":"a lighthouse","source":{"url":"https://media.example/1.png"},"type":"image_edit"}`},
		{"ten pictures", image(refs(ten...)), ``},
		{"from a video", image(refs(film)), ``},
		{"a mask", image(refs(link(1)), func(w *jobcall.Task) { m := link(2); w.Mask = &m }), ``},
		{"a seed", image(params(`{"seed":7}`)), ``},
		{"a negative prompt", image(params(`{"negative_prompt":"fog"}`)), ``},
		{"a search", image(params(`{"web_search":true}`)), ``},
		{"no prompt", image(prompt("")), ``},
		{"a long prompt", image(prompt(strings.Repeat("a", 6001))), ``},
		{"a prompt of so many letters", image(prompt(strings.Repeat("é", 6000)), size("", 0, 0, false)),
			`{"model":"uni-1","prompt":"` + strings.Repeat("é", 6000) + `","type":"image"}`},

		{"clip", video(params(`{"loop":true}`)), `{"aspect_ratio":"16:9","model":"ray-3.2","prompt":"waves","type":"video",` +
			`"video":{"duration":"5s","loop":true,"resolution":"720p"}}`},
		{"frames", video(refs(link(1), inline), tier("1080p", true)), `{"model":"ray-3.2","prompt":"waves","type":"video",` +
			`"video":{"duration":"5s","end_frame":{"data":"YWJj","media_type":"image/webp"},"resolution":"1080p",` +
			`"start_frame":{"url":"https://media.example/1.png"}}}`},
		{"its own length", video(seconds(0)), `{"aspect_ratio":"16:9","model":"ray-3.2","prompt":"waves","type":"video",` +
			`"video":{"resolution":"720p"}}`},
		{"ten seconds", video(seconds(10)), `{"aspect_ratio":"16:9","model":"ray-3.2","prompt":"waves","type":"video",` +
			`"video":{"duration":"10s","resolution":"720p"}}`},
		{"ten seconds with a frame", video(seconds(10), refs(link(1))), ``},
		{"ten seconds of a loop", video(seconds(10), params(`{"loop":true}`)), ``},
		{"six seconds", video(seconds(6)), ``},
		{"three frames", video(refs(link(1), link(2), link(3))), ``},
		{"a video", video(refs(film)), ``},
		{"a clip's tier", video(tier("4K", true)), ``},
		{"a clip's pixels", video(size("16:9", 1000, 600, true)), ``},
		{"a clip's ratio", video(size("3:1", 1536, 512, false)), ``},
		{"a dearer clip", video(params(`{"hdr":true}`)), ``},
		{"sound", video(params(`{"generate_audio":true}`)), ``},
		{"a clip's seed", video(params(`{"seed":7}`)), ``},
	} {
		studio := fakestudio.NewLuma(t)
		_, err := jobcall.Submit(t.Context(), conformance.Line(t, luma.Provider, studio.URL(), nil), tt.w)
		sent := studio.Submissions()
		if tt.want == "" {
			if v := conformance.VerdictOf(t, err); v != conformance.VerdictsOf(tt.w.Kind).Refused || len(sent) != 0 {
				t.Errorf("%s: %+v (%v), %d submissions", tt.name, v, err, len(sent))
			}
			continue
		}
		if err != nil || len(sent) != 1 {
			t.Errorf("%s: %v, %d submissions", tt.name, err, len(sent))
		} else if got := string(sent[0].Body); got != tt.want {
			t.Errorf("%s:\n%s, want\n%s", tt.name, got, tt.want)
		}
	}
}

// TestSubmissionVerdicts is the table of what a submission is answered with.
func TestSubmissionVerdicts(t *testing.T) {
	t.Parallel()
	for _, w := range []jobcall.Task{image(), video()} {
		v := conformance.VerdictsOf(w.Kind)
		for _, tt := range []struct {
			status int
			body   string
			want   conformance.Verdict
		}{
			{400, `{"detail":"model is unknown"}`, v.Refused},
			{401, `{"detail":"Invalid API key"}`, v.Account},
			{402, `{"detail":"Insufficient funds"}`, v.Account},
			{403, `{"detail":"Account suspended"}`, v.Account},
			{413, `{"detail":"Media of more than 50 MB"}`, v.Refused},
			{422, `{"detail":"start_frame goes with 5s"}`, v.Refused},
			{429, `{"detail":"Too many concurrent jobs"}`, v.Busy},
			{502, ``, v.Broken},
			{503, `{"detail":"Could not ingest the media"}`, v.Broken},
		} {
			_, err := jobcall.Submit(t.Context(), conformance.Answering(t, luma.Provider, tt.status, tt.body), w)
			if got := conformance.VerdictOf(t, err); got != tt.want {
				t.Errorf("%s, %d %s: %+v, want %+v", w.Kind, tt.status, tt.body, got, tt.want)
			}
			if f := upstream.AsJobFailure(err); tt.status > 500 && f.Unproven != strings.Contains(tt.body, "ingest") {
				t.Errorf("%d %s: unproven %t", tt.status, tt.body, f.Unproven)
			}
		}
	}
}

// TestEndVerdicts is the table of how a task ends.
func TestEndVerdicts(t *testing.T) {
	t.Parallel()
	for _, w := range []jobcall.Task{image(), video()} {
		v := conformance.VerdictsOf(w.Kind)
		again := v.Failed
		again.Next = upstream.NextSame
		for code, want := range map[string]conformance.Verdict{
			"content_moderated": v.Flagged, "invalid_request": v.Refused, "image_too_large": v.Material, "unsupported_format": v.Material,
			"corrupt_input": v.Material, "generation_failed": again, "output_not_found": v.Empty, "rate_limited": v.Busy,
			"budget_exhausted": v.Account, "a word of tomorrow": v.Failed, "": v.Failed,
		} {
			studio := fakestudio.NewLuma(t)
			studio.Expect(fakestudio.Behaviour{Failed: fmt.Sprintf(`{"state":"failed","failure_code":%q,"failure_reason":"because"}`, code)})
			_, err := conformance.Polled(t, conformance.Line(t, luma.Provider, studio.URL(), nil), w)
			if got := conformance.VerdictOf(t, err); got != want {
				t.Errorf("%s, %s: %+v, want %+v", w.Kind, code, got, want)
			}
		}
		a := conformance.Answering(t, luma.Provider, 200, `{"id":"1","state":"completed","output":[]}`)
		if _, err := a.Poll(t.Context(), w, "1"); conformance.VerdictOf(t, err) != v.Empty {
			t.Errorf("%s: nothing came: %v", w.Kind, err)
		}
	}
}

// TestFreshLink: links hold for an hour. One that is over is asked about again,
// and the ticket still leads to the result.
func TestFreshLink(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewLuma(t)
	studio.Expect(fakestudio.Behaviour{BadLinks: 1})
	a, w := conformance.Line(t, luma.Provider, studio.URL(), nil), video()
	made, err := conformance.Polled(t, a, w)
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Fetch(t.Context(), w, made.Results[0])
	if f := upstream.AsJobFailure(err); err == nil || f.Next != upstream.NextPoll || f.Job != fault.UpstreamError {
		t.Errorf("a link that is over: %v", err)
	}
	made, err = a.Poll(t.Context(), w, made.Ticket)
	if err != nil || !made.Done {
		t.Fatalf("%+v, %v", made, err)
	}
	file, err := a.Fetch(t.Context(), w, made.Results[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Body.Close(); err != nil {
		t.Error(err)
	}
}

// FuzzAnswers: whatever the provider says, there is a verdict or a result.
func FuzzAnswers(f *testing.F) {
	conformance.Answers(f, luma.Provider, "t-1", []jobcall.Task{image(), video()},
		`{"id":"t-1"}`, `{"state":"completed","output":[{"url":7},{"url":"https://x.example/1"}]}`,
		`{"state":"failed","failure_code":"rate_limited"}`, `{"detail":"could not ingest"}`)
}
