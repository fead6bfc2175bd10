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
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/jobcall"
)

// TestMask tests that the area to change is white and the picture keeps its size.
func TestMask(t *testing.T) {
	t.Parallel()
	s := conformance.SubmitTask(t, bfl.Provider, fakestudio.NewBFL(t),
		image(task.Model("flux-pro-1.0-fill"), task.Refs("inline"), task.Mask(task.PaintedMask())))
	if s == nil {
		t.Fatal("unsuitable")
	}
	var request struct {
		Image, Mask []byte
	}
	if err := json.Unmarshal(s.Body, &request); err != nil || string(request.Image) != "abc" || s.Path != "/v1/flux-pro-1.0-fill" {
		t.Fatalf("%v, %s", err, s.Body)
	}
	if got := conformance.Pixels(t, request.Mask); got != ".#" {
		t.Errorf("the mask is %s", got)
	}
}

// TestBodies tests the body for each model. A case with an empty body must be unsuitable.
func TestBodies(t *testing.T) {
	t.Parallel()
	conformance.CheckBodies(t, bfl.Provider, func(job jobcall.Task) string { return "/v1/" + job.Model }, []conformance.Body{
		{"pixels", image(task.Params(`{"seed":7,"output_format":"png"}`)),
			`{"height":768,"output_format":"png","prompt":"a lighthouse","seed":7,"width":1344}`},
		{"pixels between steps", image(task.Shape("21:9", 1568, 670)), `{"height":656,"prompt":"a lighthouse","width":1568}`},
		{"pixels of the user between steps", image(task.Pixels(1570, 670)), ``},
		{"pixels of the user", image(task.Pixels(640, 480)), `{"height":480,"prompt":"a lighthouse","width":640}`},
		{"too many pixels", image(task.LargerTier("4K"), task.Shape("1:1", 4096, 4096)), ``},
		{"the model's own size", image(task.NoRatio()), `{"prompt":"a lighthouse"}`},
		{"a tier that is a little too many pixels", image(task.LargerTier("2K"), task.Shape("16:9", 2736, 1536)),
			`{"height":1520,"prompt":"a lighthouse","width":2720}`},
		{"pixels of the user's that are too many", image(task.LargerTier("2K"), task.Pixels(2736, 1536)), ``},
		{"a tier that is far too many pixels", image(task.LargerTier("4K"), task.Shape("16:9", 5472, 3072)), ``},
		{"a paid tier without a ratio", image(task.LargerTier("2K"), task.NoRatio()), `{"height":2048,"prompt":"a lighthouse","width":2048}`},
		{"pictures", image(task.Refs("1.png", "inline.webp")), `{"input_image":"https://media.example/1.png",` +
			`"input_image_2":"data:image/webp;base64,YWJj","prompt":"a lighthouse"}`},
		{"eight pictures", image(task.Refs("1.png", "2.png", "3.png", "4.png", "5.png", "6.png", "7.png", "8.png")),
			`{"input_image":"https://media.example/1.png","input_image_2":"https://media.example/2.png",` +
				`"input_image_3":"https://media.example/3.png","input_image_4":"https://media.example/4.png",` +
				`"input_image_5":"https://media.example/5.png","input_image_6":"https://media.example/6.png",` +
				`"input_image_7":"https://media.example/7.png","input_image_8":"https://media.example/8.png","prompt":"a lighthouse"}`},
		{"too many pictures", image(task.Refs("1.png", "2.png", "3.png", "4.png", "5.png", "6.png", "7.png", "8.png", "9.png")), ``},
		{"a picture from a video", image(task.Refs("v.mp4")), ``},
		{"a mask", image(task.Refs("1.png"), task.Mask(task.ParseReference("2.png"))), ``},
		{"a negative prompt", image(task.Params(`{"negative_prompt":"fog"}`)), ``},
		{"a model of tomorrow", image(task.Model("flux-9")), ``},
		{"a path", image(task.Model("flux-2/../x")), ``},
		{"a clip's model", image(task.Model("flux-3-video")), ``},
		{"a picture's model", video(task.Model("flux-2-pro")), ``},

		{"a name for the size", image(task.Model("flux-3-image"), task.LargerTier("2K")),
			`{"aspect_ratio":"16:9","prompt":"a lighthouse","resolution":"2k"}`},
		{"a small one", image(task.Model("flux-3-image"), task.Tier("768p"), task.NoRatio()),
			`{"prompt":"a lighthouse","resolution":"768sq"}`},
		{"no such name", image(task.Model("flux-3-image"), task.LargerTier("3K")), ``},
		{"no such ratio", image(task.Model("flux-3-image"), task.Shape("3:1", 1536, 512)), ``},
		{"no pixels", image(task.Model("flux-3-image"), task.Pixels(1000, 600)), ``},
		{"no seed", image(task.Model("flux-3-image"), task.Params(`{"seed":7}`)), ``},
		{"pictures as a list", image(task.Model("flux-3-image"), task.Refs("1.png", "2.png")),
			`{"images":["https://media.example/1.png","https://media.example/2.png"],"prompt":"a lighthouse","resolution":"1k"}`},

		{"kontext", image(task.Model("flux-kontext-pro"), task.Refs("1.png"), task.Shape("3:2", 1216, 816)),
			`{"aspect_ratio":"3:2","input_image":"https://media.example/1.png","prompt":"a lighthouse"}`},
		{"kontext, two", image(task.Model("flux-kontext-max"), task.Refs("1.png", "2.png")), ``},
		{"kontext, larger", image(task.Model("flux-kontext-max"), task.LargerTier("2K")), ``},
		{"ultra", image(task.Model("flux-pro-1.1-ultra"), task.LargerTier("2K")), `{"aspect_ratio":"16:9","prompt":"a lighthouse"}`},
		{"ultra, larger", image(task.Model("flux-pro-1.1-ultra"), task.LargerTier("4K")), ``},
		{"old", image(task.Model("flux-pro-1.1")), `{"height":768,"prompt":"a lighthouse","width":1344}`},
		{"old, larger", image(task.Model("flux-pro-1.1"), task.LargerTier("2K"), task.NoRatio()), ``},
		{"old, a picture", image(task.Model("flux-pro-1.1"), task.Refs("1.png")), ``},

		{"fill without a mask", image(task.Model("flux-pro-1.0-fill"), task.Refs("1.png"), task.Params(`{"seed":7,"guidance":30}`)),
			`{"guidance":30,"image":"YWJj","prompt":"a lighthouse","seed":7}`},
		{"fill, an invalid mask", image(task.Model("flux-pro-1.0-fill"), task.Refs("1.png"), task.Mask(task.ParseReference("2.png"))), ``},
		{"fill, two", image(task.Model("flux-pro-1.0-fill"), task.Refs("1.png", "2.png")), ``},
		{"fill, nothing", image(task.Model("flux-pro-1.0-fill"), task.NoRatio()), ``},
		{"fill, a ratio", image(task.Model("flux-pro-1.0-fill"), task.Refs("1.png"), task.Ratio("1:1")), ``},
		{"fill, larger", image(task.Model("flux-pro-1.0-fill"), task.Refs("1.png"), task.LargerTier("2K")), ``},

		{"clip", video(task.Params(`{"generate_audio":false}`)), `{"aspect_ratio":"16:9","duration":5,"generate_audio":false,"mode":"t2v",` +
			`"prompt":"waves","resolution":"hd"}`},
		{"frames", video(task.LargerTier("1080p"), task.Refs("1.png", "2.png"), task.Seconds(0)), `{"keyframes":["https://media.example/1.png",` +
			`"https://media.example/2.png"],"mode":"i2v","prompt":"waves","resolution":"fhd"}`},
		{"a video", video(task.Refs("v.mp4")), `{"duration":5,"mode":"v2v","prompt":"waves","resolution":"hd",` +
			`"start_video":"https://media.example/v.mp4"}`},
		{"three pictures", video(task.Refs("1.png", "2.png", "3.png")), ``},
		{"a video by its role", video(task.Refs("reference=v.mp4")), `{"duration":5,"mode":"v2v","prompt":"waves","resolution":"hd",` +
			`"start_video":"https://media.example/v.mp4"}`},
		{"a picture to show", video(task.Refs("reference=1.png")), ``},
		{"a first frame and a video", video(task.Refs("first_frame=1.png", "reference=v.mp4")), ``},
		{"a picture and a video", video(task.Refs("1.png", "v.mp4")), ``},
		{"a video of nowhere", video(task.Refs("inline.mp4")), ``},
		{"a clip's tier", video(task.LargerTier("4K")), ``},
		{"a clip's pixels", video(task.Pixels(1000, 600)), ``},
		{"a clip's ratio", video(task.Shape("3:2", 1080, 720)), ``},
		{"too short", video(task.Seconds(4)), ``},
		{"too long", video(task.Seconds(21)), ``},
		{"a clip's seed", video(task.Params(`{"seed":7}`)), ``},
		{"a draft", video(task.Params(`{"draft":true}`)), ``},
	})
}

// TestManyPictures tests n pictures as n tasks with different seeds, without the pictures stopped
// by the review.
func TestManyPictures(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewBFL(t)
	studio.Expect(fakestudio.Behaviour{Polls: 3}, fakestudio.Failure(`{"status":"Content Moderated"}`), fakestudio.Behaviour{})
	status, err := conformance.SubmitAndPoll(t, conformance.Line(t, bfl.Provider, studio.URL(), nil),
		image(task.Params(`{"seed":4294967294}`), task.Count(3)))
	if err != nil || len(status.Results) != 2 {
		t.Fatalf("%+v, %v", status, err)
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

// hosts is a network of vendor hosts and other hosts. It records the hosts that received the
// credential.
type hosts struct {
	polling         string
	credentialHosts []string
}

func (h *hosts) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("X-Key") != "" {
		h.credentialHosts = append(h.credentialHosts, r.URL.Scheme+"://"+r.URL.Host)
	}
	answer := `{"status":"Pending"}`
	if r.Method == http.MethodPost {
		answer = fmt.Sprintf(`{"id":"1","polling_url":%q}`, h.polling)
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
}

// TestWhereTheKeyGoes tests that the credential is only sent to the vendor's hosts by https or, if
// the line's host is not the vendor's, to the line's own host.
func TestWhereTheKeyGoes(t *testing.T) {
	t.Parallel()
	const own = "https://api.bfl.ai"
	for _, tt := range []struct{ base, polling, polled string }{
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
		status, err := jobcall.Submit(t.Context(), a, image())
		if tt.polled == "" {
			if f := upstream.AsJobFailure(err); err == nil || !f.Lost || len(net.credentialHosts) != 1 {
				t.Errorf("%s: %+v, %v, the credential was sent to %v", tt.polling, status, err, net.credentialHosts)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.polling, err)
			continue
		}
		if _, err := a.Poll(t.Context(), image(), status.Ticket); err != nil || len(net.credentialHosts) != 2 ||
			net.credentialHosts[1] != tt.polled {
			t.Errorf("%s: %v, the credential was sent to %v", tt.polling, err, net.credentialHosts)
		}
	}
}

// TestSubmissionOutcomes tests the failure for each response to a submission.
func TestSubmissionOutcomes(t *testing.T) {
	t.Parallel()
	for _, task := range []jobcall.Task{image(), video()} {
		v := conformance.OutcomesOf(task.Kind)
		conformance.CheckReplies(t, bfl.Provider, task, []conformance.Reply{
			{400, `{"detail":"Bad request"}`, v.Refused, ""},
			{402, `{"detail":"Insufficient credits"}`, v.Account, ""},
			{403, `{"detail":"Not authenticated - Invalid Authentication"}`, v.Account, ""},
			{422, `{"detail":[{"loc":["body","width"],"msg":"Input should be a multiple of 16","type":"multiple_of"}]}`, v.Refused, ""},
			{429, `{"detail":"Rate limit exceeded: 24 active tasks"}`, v.Busy, ""},
			{500, `{"detail":"Internal"}`, v.Broken, ""},
			{503, ``, v.Broken, ""},
		})
	}
}

// TestTaskOutcomes tests the outcome for each response about an ended task.
func TestTaskOutcomes(t *testing.T) {
	t.Parallel()
	for _, task := range []jobcall.Task{image(), video()} {
		v := conformance.OutcomesOf(task.Kind)
		for reason, want := range map[string]conformance.Outcome{
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
			how := fakestudio.Failure(reason)
			if got := conformance.OutcomeAfter(t, bfl.Provider, fakestudio.NewBFL(t), how, task); got != want {
				t.Errorf("%s, %s: %+v, want %+v", task.Kind, reason, got, want)
			}
		}
		a := conformance.LineWithReply(t, bfl.Provider, 200, `{"status":"Reasoning"}`)
		if status, err := a.Poll(t.Context(), task, "/v1/get_result?id=1"); err != nil || status.Done {
			t.Errorf("%s: a running task: %+v, %v", task.Kind, status, err)
		}
	}
}

// FuzzAnswers tests that every response leads to a failure or a result.
func FuzzAnswers(f *testing.F) {
	conformance.FuzzAnswers(f, bfl.Provider, "/v1/get_result?id=1", []jobcall.Task{image(), video()},
		`{"id":"1","polling_url":"https://x.example/1"}`, `{"status":"Ready","result":{"sample":"https://x.example/1"}}`,
		`{"status":"Error","details":{"Moderation Reasons":["x"]}}`)
}
