package bfl_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/bfl"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/jobcall"
)

// TestBodies: what each model is asked; empty: the line is unsuitable.
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
	for _, tt := range []struct {
		name string
		w    jobcall.Task
		want string
	}{
		{"pixels", image(params(`{"seed":7,"output_format":"png"}`)),
			`{"height":768,"output_format":"png","prompt":"a lighthouse","seed":7,"width":1344}`},
		{"pixels between steps", image(size("21:9", 1568, 670, false)), `{"height":656,"prompt":"a lighthouse","width":1568}`},
		{"pixels of the user between steps", image(size("", 1570, 670, true)), ``},
		{"pixels of the user", image(size("", 640, 480, true)), `{"height":480,"prompt":"a lighthouse","width":640}`},
		{"too many pixels", image(tier("4K", true), size("1:1", 4096, 4096, false)), ``},
		{"the model's own size", image(size("", 0, 0, false)), `{"prompt":"a lighthouse"}`},
		{"a paid tier without a ratio", image(tier("2K", true), size("", 0, 0, false)), `{"height":2048,"prompt":"a lighthouse","width":2048}`},
		{"pictures", image(refs(link(1), inline)), `{"input_image":"https://media.example/1.png",` +
			`"input_image_2":"data:image/webp;base64,YWJj","prompt":"a lighthouse"}`},
		{"eight pictures", image(refs(link(1), link(2), link(3), link(4), link(5), link(6), link(7), link(8))),
			`{"input_image":"https://media.example/1.png","input_image_2":"https://media.example/2.png",` +
				`"input_image_3":"https://media.example/3.png","input_image_4":"https://media.example/4.png",` +
				`"input_image_5":"https://media.example/5.png","input_image_6":"https://media.example/6.png",` +
				`"input_image_7":"https://media.example/7.png","input_image_8":"https://media.example/8.png","prompt":"a lighthouse"}`},
		{"too many pictures", image(refs(link(1), link(2), link(3), link(4), link(5), link(6), link(7), link(8), link(9))), ``},
		{"a picture from a video", image(refs(film)), ``},
		{"a mask", image(refs(link(1)), func(w *jobcall.Task) { m := link(2); w.Mask = &m }), ``},
		{"a negative prompt", image(params(`{"negative_prompt":"fog"}`)), ``},
		{"a model of tomorrow", image(model("flux-9")), ``},
		{"a path", image(model("flux-2/../x")), ``},
		{"a clip's model", image(model("flux-3-video")), ``},
		{"a picture's model", video(model("flux-2-pro")), ``},

		{"a name for the size", image(model("flux-3-image"), tier("2K", true)),
			`{"aspect_ratio":"16:9","prompt":"a lighthouse","resolution":"2k"}`},
		{"a small one", image(model("flux-3-image"), tier("768p", false), size("", 0, 0, false)),
			`{"prompt":"a lighthouse","resolution":"768sq"}`},
		{"no such name", image(model("flux-3-image"), tier("3K", true)), ``},
		{"no such ratio", image(model("flux-3-image"), size("3:1", 1536, 512, false)), ``},
		{"no pixels", image(model("flux-3-image"), size("", 1000, 600, true)), ``},
		{"no seed", image(model("flux-3-image"), params(`{"seed":7}`)), ``},
		{"pictures as a list", image(model("flux-3-image"), refs(link(1), link(2))),
			`{"images":["https://media.example/1.png","https://media.example/2.png"],"prompt":"a lighthouse","resolution":"1k"}`},

		{"kontext", image(model("flux-kontext-pro"), refs(link(1)), size("3:2", 1216, 816, false)),
			`{"aspect_ratio":"3:2","input_image":"https://media.example/1.png","prompt":"a lighthouse"}`},
		{"kontext, two", image(model("flux-kontext-max"), refs(link(1), link(2))), ``},
		{"kontext, larger", image(model("flux-kontext-max"), tier("2K", true)), ``},
		{"ultra", image(model("flux-pro-1.1-ultra"), tier("2K", true)), `{"aspect_ratio":"16:9","prompt":"a lighthouse"}`},
		{"ultra, larger", image(model("flux-pro-1.1-ultra"), tier("4K", true)), ``},
		{"old", image(model("flux-pro-1.1")), `{"height":768,"prompt":"a lighthouse","width":1344}`},
		{"old, larger", image(model("flux-pro-1.1"), tier("2K", true), size("", 0, 0, false)), ``},
		{"old, a picture", image(model("flux-pro-1.1"), refs(link(1))), ``},

		{"clip", video(params(`{"generate_audio":false}`)), `{"aspect_ratio":"16:9","duration":5,"generate_audio":false,"mode":"t2v",` +
			`"prompt":"waves","resolution":"hd"}`},
		{"frames", video(tier("1080p", true), refs(link(1), link(2)), seconds(0)), `{"keyframes":["https://media.example/1.png",` +
			`"https://media.example/2.png"],"mode":"i2v","prompt":"waves","resolution":"fhd"}`},
		{"a video", video(refs(film)), `{"duration":5,"mode":"v2v","prompt":"waves","resolution":"hd",` +
			`"start_video":"https://media.example/v.mp4"}`},
		{"three pictures", video(refs(link(1), link(2), link(3))), ``},
		{"a picture and a video", video(refs(link(1), film)), ``},
		{"a video of nowhere", video(refs(conformance.Reference("video/mp4", "", "abc"))), ``},
		{"a clip's tier", video(tier("4K", true)), ``},
		{"a clip's pixels", video(size("", 1000, 600, true)), ``},
		{"a clip's ratio", video(size("3:2", 1080, 720, false)), ``},
		{"too short", video(seconds(4)), ``},
		{"too long", video(seconds(21)), ``},
		{"a clip's seed", video(params(`{"seed":7}`)), ``},
		{"a draft", video(params(`{"draft":true}`)), ``},
	} {
		studio := fakestudio.NewBFL(t)
		_, err := jobcall.Submit(t.Context(), conformance.Line(t, bfl.Provider, studio.URL(), nil), tt.w)
		sent := studio.Submissions()
		if tt.want == "" {
			if v := conformance.VerdictOf(t, err); v != conformance.VerdictsOf(tt.w.Kind).Refused || len(sent) != 0 {
				t.Errorf("%s: %+v (%v), %d submissions", tt.name, v, err, len(sent))
			}
			continue
		}
		if err != nil || len(sent) != 1 {
			t.Errorf("%s: %v, %d submissions", tt.name, err, len(sent))
		} else if got := string(sent[0].Body); got != tt.want || sent[0].Path != "/v1/"+tt.w.Model {
			t.Errorf("%s: %s\n%s, want\n%s", tt.name, sent[0].Path, got, tt.want)
		}
	}
}

// TestManyPictures: n pictures are n tasks with seeds of their own, and those
// that the review stopped are missing.
func TestManyPictures(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewBFL(t)
	studio.Expect(fakestudio.Behaviour{Polls: 3}, fakestudio.Behaviour{Failed: `{"status":"Content Moderated"}`}, fakestudio.Behaviour{})
	made, err := conformance.Polled(t, conformance.Line(t, bfl.Provider, studio.URL(), nil),
		image(params(`{"seed":4294967294}`), func(w *jobcall.Task) { w.Count = 3 }))
	if err != nil || len(made.Results) != 2 {
		t.Fatalf("%+v, %v", made, err)
	}
	var seeds []string
	for _, s := range studio.Submissions() {
		var body struct{ Seed json.Number }
		if err := json.Unmarshal(s.Body, &body); err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, body.Seed.String())
	}
	if slices.Sort(seeds); strings.Join(seeds, " ") != "0 4294967294 4294967295" {
		t.Errorf("seeds %v", seeds)
	}
}

// hosts is a network in which every host is the vendor's or a stranger's, and
// notes who got the credential.
type hosts struct {
	polling string
	keyed   []string
}

func (h *hosts) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("X-Key") != "" {
		h.keyed = append(h.keyed, r.URL.Scheme+"://"+r.URL.Host)
	}
	said := `{"status":"Pending"}`
	if r.Method == http.MethodPost {
		said = fmt.Sprintf(`{"id":"1","polling_url":%q}`, h.polling)
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(said)), Request: r}, nil
}

// TestWhereTheKeyGoes: to the vendor's hosts by https, and, where the line is
// not at the vendor's, to its own host alone.
func TestWhereTheKeyGoes(t *testing.T) {
	t.Parallel()
	const own = "https://api.bfl.ai"
	for _, tt := range []struct{ base, polling, asked string }{
		{"", "https://api.us4.bfl.ai/v1/get_result?id=a-1", "https://api.us4.bfl.ai"},
		{"", own + "/v1/get_result?id=a-1", own},
		{"", "http://api.us4.bfl.ai/v1/get_result?id=a", ""},
		{"", "https://api.us4.bfl.ai:8443/v1/get_result?id=a", ""},
		{"", "https://bfl.ai.example/v1/get_result?id=a", ""},
		{"", "https://notbfl.ai/v1/get_result?id=a", ""},
		{"", "https://api.bfl.ai@evil.example/v1/get_result", ""},
		{"", "//evil.example/v1/get_result", ""},
		{"", "https://api.us4.bfl.ai/v1/get_result?id=a,b", ""},
		{"https://relay.example/v1", "https://api.us4.bfl.ai/v1/get_result?id=a", ""},
		{"https://relay.example/v1", "https://relay.example/v1/get_result?id=a", "https://relay.example"},
	} {
		net := &hosts{polling: tt.polling}
		a, err := bfl.New(upstream.Target{Line: "main", Provider: bfl.Provider, BaseURL: tt.base, Key: conformance.Secret}, net)
		if err != nil {
			t.Fatal(err)
		}
		made, err := jobcall.Submit(t.Context(), a, image())
		if tt.asked == "" {
			if f := upstream.AsJobFailure(err); err == nil || !f.Lost || len(net.keyed) != 1 {
				t.Errorf("%s: %+v, %v, the credential went to %v", tt.polling, made, err, net.keyed)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.polling, err)
			continue
		}
		if _, err := a.Poll(t.Context(), image(), made.Ticket); err != nil || len(net.keyed) != 2 || net.keyed[1] != tt.asked {
			t.Errorf("%s: %v, the credential went to %v", tt.polling, err, net.keyed)
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
			{400, `{"detail":"Bad request"}`, v.Refused},
			{402, `{"detail":"Insufficient credits"}`, v.Account},
			{403, `{"detail":"Not authenticated - Invalid Authentication"}`, v.Account},
			{422, `{"detail":[{"loc":["body","width"],"msg":"Input should be a multiple of 16","type":"multiple_of"}]}`, v.Refused},
			{429, `{"detail":"Rate limit exceeded: 24 active tasks"}`, v.Busy},
			{500, `{"detail":"Internal"}`, v.Broken},
			{503, ``, v.Broken},
		} {
			_, err := jobcall.Submit(t.Context(), conformance.Answering(t, bfl.Provider, tt.status, tt.body), w)
			if got := conformance.VerdictOf(t, err); got != tt.want {
				t.Errorf("%s, %d %s: %+v, want %+v", w.Kind, tt.status, tt.body, got, tt.want)
			}
		}
	}
}

// TestEndVerdicts is the table of how a task ends.
func TestEndVerdicts(t *testing.T) {
	t.Parallel()
	for _, w := range []jobcall.Task{image(), video()} {
		v := conformance.VerdictsOf(w.Kind)
		for said, want := range map[string]conformance.Verdict{
			`{"status":"Request Moderated","details":{"Moderation Reasons":["Derivative Works Filter"]}}`: v.Flagged,
			`{"status":"request moderated"}`:                                          v.Flagged,
			`{"status":null,"state":"Request Moderated"}`:                             v.Flagged,
			`{"status":"Content Moderated","details":{"Moderation Reasons":["x"]}}`:   v.FlaggedOutput,
			`{"status":"Error","details":"worker lost"}`:                              v.Failed,
			`{"status":"Failed"}`:                                                     v.Failed,
			`{"status":"Failed","details":{"Moderation Reasons":["Safety Filter"]}}`:  v.Flagged,
			`{"status":"Task not found"}`:                                             v.Gone,
			`{"status":"Ready","result":null}`:                                        v.Empty,
			`{"status":"Ready","result":{"draft_cache":"https://x.example/1.cache"}}`: v.Empty,
		} {
			studio := fakestudio.NewBFL(t)
			studio.Expect(fakestudio.Behaviour{Failed: said})
			_, err := conformance.Polled(t, conformance.Line(t, bfl.Provider, studio.URL(), nil), w)
			if got := conformance.VerdictOf(t, err); got != want {
				t.Errorf("%s, %s: %+v, want %+v", w.Kind, said, got, want)
			}
		}
		a := conformance.Answering(t, bfl.Provider, 200, `{"status":"Reasoning"}`)
		if made, err := a.Poll(t.Context(), w, "/v1/get_result?id=1"); err != nil || made.Done {
			t.Errorf("%s: a task that goes on: %+v, %v", w.Kind, made, err)
		}
	}
}

// FuzzAnswers: whatever the provider says, there is a verdict or a result.
func FuzzAnswers(f *testing.F) {
	conformance.Answers(f, bfl.Provider, "/v1/get_result?id=1", []jobcall.Task{image(), video()},
		`{"id":"1","polling_url":"https://x.example/1"}`, `{"status":"Ready","result":{"sample":"https://x.example/1"}}`,
		`{"status":"Error","details":{"Moderation Reasons":["x"]}}`)
}
