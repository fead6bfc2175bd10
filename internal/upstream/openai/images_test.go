package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/media/formattest"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/openai"
)

// Outcomes of both kinds.
var pictures, clips = conformance.OutcomesOf(upstream.KindImage), conformance.OutcomesOf(upstream.KindVideo)

// picture returns a task for one square image.
func picture(change ...task.Change) jobcall.Task {
	return task.ApplyChanges(task.Image("gpt-image-2", task.Prompt("a fox"), task.Shape("1:1", 1024, 1024)), change...)
}

// TestImages tests the path and body of each submission.
func TestImages(t *testing.T) {
	t.Parallel()
	const path = "/v1/images/generations"
	flux := task.Model("flux")
	conformance.CheckSubmissions(t, openai.Provider, nil, map[string]conformance.Submission{
		"one": {picture(), path, `{"model":"gpt-image-2","n":1,"prompt":"a fox","size":"1024x1024"}`},
		"three with fields": {picture(task.Count(3), task.Params(`{"quality":"high","output_compression":80}`)), path,
			`{"model":"gpt-image-2","n":3,"output_compression":80,"prompt":"a fox","quality":"high","size":"1024x1024"}`},
		"another vendor": {picture(task.Model("some/flux"), task.Count(2)), path,
			`{"model":"some/flux","n":2,"prompt":"a fox","size":"1024x1024"}`},
		"another vendor without a ratio": {picture(flux, task.NoRatio()), path, `{"model":"flux","n":1,"prompt":"a fox"}`},
		"another vendor's larger tier without a ratio": {picture(flux, task.LargerTier("2K"), task.NoRatio()), path,
			`{"model":"flux","n":1,"prompt":"a fox","size":"2048x2048"}`},
		"another vendor's only tier without a ratio": {picture(flux, task.Tier("4K"), task.NoRatio()), path,
			`{"model":"flux","n":1,"prompt":"a fox","size":"4096x4096"}`},
		"xAI": {picture(task.Model("grok-imagine-image-2.0"), task.Tier("2K"), task.Ratio("16:9")), path,
			`{"aspect_ratio":"16:9","model":"grok-imagine-image-2.0","n":1,"prompt":"a fox","resolution":"2k"}`},
	})
}

// TestResults tests the order of images, inline from OpenAI and by address from another vendor.
func TestResults(t *testing.T) {
	t.Parallel()
	for model, byAddress := range map[string]bool{"gpt-image-2": false, "flux": true} {
		studio := fakestudio.NewOpenAI(t)
		a, job := conformance.Line(t, openai.Provider, studio.URL(), nil), picture(task.Model(model), task.Count(3))
		p, err := jobcall.Submit(t.Context(), a, job)
		if err != nil || len(p.Results) != 3 {
			t.Fatalf("%+v, %v", p, err)
		}
		for i, r := range p.Results {
			if data, _ := conformance.Fetch(t, a, job, r); (r.Ref != "") != byAddress || !bytes.Equal(data, fakestudio.Picture(i+1)) {
				t.Errorf("result %d: %q, %d bytes inline", i, r.Ref, len(r.Data))
			}
		}
		got := studio.Submissions()[0].Header
		if got.Get("Idempotency-Key") != "sub_1" || got.Get("Authorization") != "Bearer "+conformance.Secret {
			t.Errorf("headers %v", got)
		}
	}
}

// TestSizes tests the size fields of each model family for tier, ratio and pixels.
func TestSizes(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewOpenAI(t)
	a := conformance.Line(t, openai.Provider, studio.URL(), nil)
	const none = "" // the size cannot be expressed
	for _, tt := range []struct {
		model, tier, ratio string
		width, height      int
		exact              bool
		want               string
	}{
		{"gpt-image-1.5", "1K", "1:1", 1024, 1024, false, "1024x1024"},
		{"gpt-image-1.5", "1K", "3:2", 1254, 836, false, "1536x1024"},
		{"gpt-image-1-mini", "1K", "2:3", 836, 1254, false, "1024x1536"},
		{"chatgpt-image-latest", "1K", "", 0, 0, false, "auto"},
		{"gpt-image-1.5", "1K", "16:9", 1365, 768, false, none},
		{"gpt-image-1.5", "2K", "1:1", 2048, 2048, false, none},
		{"gpt-image-1.5", "1K", "3:2", 1536, 1024, true, "1536x1024"},
		{"gpt-image-1.5", "1K", "1:1", 1000, 1000, true, none},
		{"gpt-image-2", "1K", "", 0, 0, false, "auto"},
		{"gpt-image-2", "2K", "", 0, 0, false, "2048x2048"},
		{"openai/gpt-image-2", "1K", "16:9", 1365, 768, false, "1360x768"},
		{"gpt-image-2", "1K", "16:9", 1024, 576, false, "1088x608"}, // too few pixels
		{"gpt-image-2.6-sunburst", "4K", "16:9", 5461, 3072, false, "3840x2160"},
		{"gpt-image-2", "4K", "1:1", 4096, 4096, false, "2880x2880"},
		{"gpt-image-2", "4K", "9:16", 3072, 5461, false, "2160x3840"},
		{"gpt-image-2", "4K", "3:1", 7094, 2364, false, none}, // would be less than 2K
		{"gpt-image-2", "8K", "1:1", 8192, 8192, false, none},
		{"gpt-image-2", "1K", "4:1", 2048, 512, false, none},
		{"gpt-image-2", "1K", "3:1", 1773, 591, false, "1776x592"},
		{"gpt-image-2", "1K", "3:2", 1536, 1024, true, "1536x1024"},
		{"gpt-image-2", "1K", "1:1", 1000, 1000, true, none}, // not divisible by 16
		{"gpt-image-2", "1K", "1:1", 512, 512, true, none},
		{"gpt-image-2", "4K", "1:1", 3840, 3840, true, none},
		{"gpt-image-2", "1080p", "16:9", 1920, 1080, false, "1920x1088"},
		{"flux-pro", "1K", "1:1", 1000, 1000, true, "1000x1000"},
		{"grok-imagine-image", "4K", "1:1", 4096, 4096, false, none},
	} {
		task := picture(func(task *jobcall.Task) {
			task.Model, task.Tier, task.Ratio, task.Width, task.Height, task.Exact = tt.model, tt.tier, tt.ratio, tt.width, tt.height, tt.exact
		})
		before := len(studio.Submissions())
		_, err := jobcall.Submit(t.Context(), a, task)
		sent := studio.Submissions()[before:]
		if tt.want == none {
			if m := conformance.JobFailure(t, err); m.Next != upstream.NextLine || m.Health != upstream.HealthNone || len(sent) != 0 {
				t.Errorf("%+v: %v after %d calls", tt, m, len(sent))
			}
			continue
		}
		if err != nil || len(sent) != 1 || !strings.Contains(string(sent[0].Body), `"size":"`+tt.want+`"`) {
			t.Errorf("%+v: %v, sent %+v", tt, err, sent)
		}
	}
}

// TestTierHeld tests that every fitted size is within the bounds and within the paid tier.
func TestTierHeld(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewOpenAI(t)
	a := conformance.Line(t, openai.Provider, studio.URL(), nil)
	for _, tier := range []int{1, 2, 4} {
		for num := 1; num <= 12; num++ {
			for den := 1; den <= 12; den++ {
				side := 1024 * tier
				task := picture(func(task *jobcall.Task) {
					task.Tier, task.Ratio = fmt.Sprintf("%dK", tier), fmt.Sprintf("%d:%d", num, den)
					task.Width, task.Height = side*num/max(num, den), side*den/max(num, den)
				})
				before := len(studio.Submissions())
				_, err := jobcall.Submit(t.Context(), a, task)
				if err != nil {
					continue // cannot be expressed; the fake rejects a wrong size
				}
				var sent struct{ Size string }
				var width, height int
				_ = json.Unmarshal(studio.Submissions()[before].Body, &sent)
				if _, err := fmt.Sscanf(sent.Size, "%dx%d", &width, &height); err != nil {
					t.Fatal(err)
				}
				off := float64(width) * float64(den) / (float64(height) * float64(num))
				if off < 0.97 || off > 1.03 {
					t.Errorf("%s at %s became %s", task.Tier, task.Ratio, sent.Size)
				}
			}
		}
	}
	if rejected := len(studio.Submissions()) - studio.AcceptedCount(); rejected != 0 {
		t.Errorf("%d sizes were wrong", rejected)
	}
}

func TestEdits(t *testing.T) {
	t.Parallel()
	png, jpg := fakestudio.Picture(7), formattest.Picture(t, "image/jpeg", 8, 8, 1)
	mask := task.Reference("image/png", "", string(fakestudio.Picture(8)))
	one, square := task.Reference("image/png", "", string(png)), task.Shape("1:1", 1024, 1024)
	for name, tt := range map[string]struct {
		work  jobcall.Task
		names string
		files map[string]string
	}{
		"one": {picture(task.References(one), square), `[name="image"; filename="image-1.png"]`, map[string]string{"image": string(png)}},
		"two and a mask": {picture(task.References(one, task.Reference("image/jpeg", "", string(jpg))), task.Mask(mask), square),
			`[name="image[]"; filename="image-1.png" name="image[]"; filename="image-2.jpeg" name="mask"; filename="mask.png"]`,
			map[string]string{"image[]": string(png) + string(jpg), "mask": string(fakestudio.Picture(8))}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			studio := fakestudio.NewOpenAI(t)
			job := tt.work
			job.Params = json.RawMessage(`{"quality":"low","user":"ü \"x\"","moderation":null,"output_compression":7}`)
			job.Count = 2
			p, err := jobcall.Submit(t.Context(), conformance.Line(t, openai.Provider, studio.URL(), nil), job)
			if err != nil || len(p.Results) != 2 {
				t.Fatal(p, err)
			}
			got := studio.Submissions()[0]
			if got.Path != "/v1/images/edits" || got.Header.Get("Content-Length") != fmt.Sprint(len(got.Body)) {
				t.Errorf("%s of %s bytes, %d came", got.Path, got.Header.Get("Content-Length"), len(got.Body))
			}
			want := map[string]string{"model": "gpt-image-2", "prompt": "a fox", "n": "2", "size": "1024x1024", "quality": "low", "user": `ü "x"`,
				"output_compression": "7"}
			maps.Copy(want, tt.files)
			if form := conformance.Form(t, &got); !maps.Equal(form, want) || fileNames(got) != tt.names {
				t.Errorf("form %q, files %s", form, fileNames(got))
			}
		})
	}
}

// fileNames returns the fields and names of the files in a form.
func fileNames(s fakestudio.Submission) string {
	return fmt.Sprintf("%s", regexp.MustCompile(`name="\S+"; filename="\S+"`).FindAll(s.Body, -1))
}

// TestNestedFields checks that lists and objects are sent in a form like those of the official
// clients.
func TestNestedFields(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewOpenAI(t)
	job := picture(func(job *jobcall.Task) {
		job.Model, job.References = "flux", []jobcall.Reference{task.Reference("image/png", "", string(fakestudio.Picture(1)))}
		job.Params = json.RawMessage(`{"tags":["a"],"svg":{"model":"m","deep":{"on":true}},"a\r\nb\"":1}`)
	})
	if _, err := jobcall.Submit(t.Context(), conformance.Line(t, openai.Provider, studio.URL(), nil), job); err != nil {
		t.Fatal(err)
	}
	fields := conformance.Form(t, &studio.Submissions()[0])
	for name, value := range map[string]string{"tags[]": "a", "svg[model]": "m", "svg[deep][on]": "true"} {
		if fields[name] != value {
			t.Errorf("%s = %q in %v", name, fields[name], fields)
		}
	}
	if len(fields) != 9 { // including the image
		t.Errorf("%d fields: %v", len(fields), fields)
	}
}

// TestUnsuitable tests that tasks impossible for the provider are rejected before a call.
func TestUnsuitable(t *testing.T) {
	t.Parallel()
	xai := task.Model("grok-imagine-image")
	large := jobcall.Reference{Type: "image/png", Size: 50 << 20}
	conformance.CheckUnsuitable(t, openai.Provider, map[string]jobcall.Task{
		"too many images":          picture(task.Count(11)),
		"too many references":      picture(task.Refs(slices.Repeat([]string{"a"}, 17)...)),
		"a gif":                    picture(task.Refs("a.gif")),
		"a large one":              picture(task.References(large)),
		"a mask alone":             picture(task.Mask(task.ParseReference("a"))),
		"a mask that is not png":   picture(task.Refs("a"), task.Mask(task.ParseReference("a.gif"))),
		"a reference for xAI":      picture(xai, task.Refs("a")),
		"fields that are not JSON": picture(task.Params(`[`)),
		"our own field":            picture(task.Params(`{"n":9}`)),
		"our field for xAI":        picture(xai, task.Params(`{"resolution":"2k"}`)),
	})
}

func openAIError(kind, code string) string {
	return `{"error":{"type":"` + kind + `","code":"` + code + `","message":"said ` + conformance.Secret + ` so","param":null}}`
}

func TestImageTroubles(t *testing.T) {
	t.Parallel()
	busy, cred, broken := clips.Busy, clips.Account, clips.Broken
	blocked, late := pictures.Flagged, pictures.Refused
	conformance.CheckOutcomes(t, openai.Provider, picture(), map[string]conformance.Case{
		"moderation": {fakestudio.Refusal(400, `{"error":{"type":"image_generation_user_error","code":"moderation_blocked","message":"no",`+
			`"moderation_details":{"moderation_stage":"input"}}}`), blocked},
		"policy": {fakestudio.Refusal(400, openAIError("invalid_request_error", "content_policy_violation")),
			conformance.NewOutcome(fault.ContentPolicyViolation, upstream.NextNone, upstream.HealthNone)},
		"image policy": {fakestudio.Refusal(400, openAIError("invalid_request_error", "image_content_policy_violation")),
			conformance.NewOutcome(fault.ContentPolicyViolation, upstream.NextNone, upstream.HealthNone)},
		"filtered by xAI":       {fakestudio.Failure(`{"url":"http://x/1.png","respect_moderation":false}`), blocked},
		"all failed":            {fakestudio.Failure(`{"error":{"code":"OutputImageSensitiveContentDetected","message":"no"}}`), blocked},
		"empty":                 {fakestudio.Failure(`{}`), pictures.Empty},
		"no base64":             {fakestudio.Failure(`{"b64_json":"*"}`), pictures.Empty},
		"size":                  {fakestudio.Refusal(400, openAIError("image_generation_user_error", "invalid_value")), late},
		"bad reference":         {fakestudio.Refusal(400, openAIError("image_generation_user_error", "invalid_image")), late},
		"large reference":       {fakestudio.Refusal(400, openAIError("image_generation_user_error", "image_too_large")), late},
		"type of reference":     {fakestudio.Refusal(400, openAIError("image_generation_user_error", "unsupported_image_media_type")), late},
		"key":                   {fakestudio.Refusal(401, openAIError("invalid_request_error", "invalid_api_key")), cred},
		"balance":               {fakestudio.Refusal(402, `{}`), cred},
		"region":                {fakestudio.Refusal(403, openAIError("request_forbidden", "unsupported_country_region_territory")), cred},
		"quota":                 {fakestudio.Refusal(429, openAIError("insufficient_quota", "insufficient_quota")), cred},
		"hard limit":            {fakestudio.Refusal(400, openAIError("image_generation_user_error", "billing_hard_limit_reached")), cred},
		"model":                 {fakestudio.Refusal(404, openAIError("invalid_request_error", "model_not_found")), clips.Model},
		"rate":                  {fakestudio.Refusal(429, openAIError("requests", "rate_limit_exceeded")), busy},
		"overload":              {fakestudio.Refusal(529, `{}`), busy},
		"server":                {fakestudio.Refusal(500, openAIError("server_error", "server_error")), broken},
		"gateway timeout":       {fakestudio.Refusal(504, `{}`), broken},
		"a page with status 2":  {fakestudio.Refusal(203, "<html>"), broken},
		"error with status 200": {fakestudio.Refusal(200, openAIError("x", "moderation_blocked")), blocked},
		"no data":               {fakestudio.Refusal(200, `{"data":null}`), broken},
	})
}

// TestFewerImages tests that filtered images are missing and surplus images are left out.
func TestFewerImages(t *testing.T) {
	t.Parallel()
	reply := `{"data":[{"url":"http://127.0.0.1/1.png","respect_moderation":true},` +
		`{"url":"http://127.0.0.1/2.png","respect_moderation":false},{},` +
		`{"error":{"code":"x","message":"y"}},{"b64_json":"data:image/png;base64,iVBORw0KGgo"},{"url":"data:image/png;base64,iVBORw0KGgo="},` +
		`{"url":"http://127.0.0.1/3.png"}]}`
	p, err := jobcall.Submit(t.Context(), conformance.LineWithReply(t, openai.Provider, 200, reply), picture(task.Count(3)))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Results) != 3 || p.Results[0].Ref != "http://127.0.0.1/1.png" || p.Results[1].Type != "image/png" ||
		string(p.Results[2].Data) != "\x89PNG\r\n\x1a\n" {
		t.Errorf("%+v", p.Results)
	}
}

// TestReferenceGone tests that a failure of the gateway's own store is not blamed on the line, and
// the task counts as not accepted.
func TestReferenceGone(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewOpenAI(t)
	short := task.Reference("image/png", "", string(fakestudio.Picture(1)))
	short.Size += 9
	unreadable := short
	unreadable.Open = func(context.Context) (io.ReadCloser, error) { return nil, errors.New("no such file") }
	for _, r := range []jobcall.Reference{short, unreadable} {
		job := picture(func(job *jobcall.Task) { job.References = []jobcall.Reference{r} })
		_, err := jobcall.Submit(t.Context(), conformance.Line(t, openai.Provider, studio.URL(), nil), job)
		want := conformance.NewOutcome(fault.UpstreamError, upstream.NextLater, upstream.HealthNone)
		if got := conformance.OutcomeOf(t, err); got != want {
			t.Errorf("%+v: %v", got, err)
		}
	}
	if studio.AcceptedCount() != 0 {
		t.Error("accepted")
	}
}

// FuzzImages checks that no answer causes a panic or more images than requested.
func FuzzImages(f *testing.F) {
	for _, seed := range []string{`{"data":[{"url":"http://x/1"}]}`, `{"data":[{"b64_json":"aGk="}]}`, `{"data":{}}`, `{"error":{"code":1}}`,
		`[]`, `<html>`, ``} {
		f.Add([]byte(seed), 200)
	}
	a, answer := conformance.LineWithScript(f, openai.Provider)
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		answer(body, 200+(status%400+400)%400)
		p, err := jobcall.Submit(t.Context(), a, picture(task.Count(2)))
		if err != nil {
			_ = conformance.JobFailure(t, err).UserMessage()
			return
		}
		if len(p.Results) < 1 || len(p.Results) > 2 {
			t.Errorf("%d results", len(p.Results))
		}
	})
}
