package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/openai"
)

// Outcomes of both kinds.
var pictures, clips = conformance.OutcomesOf(upstream.KindImage), conformance.OutcomesOf(upstream.KindVideo)

// picture is a task for one image, square.
func picture(change ...task.Change) jobcall.Task {
	return task.With(task.Image("gpt-image-2", task.Prompt("a fox"), task.Shape("1:1", 1024, 1024)), change...)
}

func aJPEG(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := jpeg.Encode(&out, image.NewGray(image.Rect(0, 0, 8, 8)), nil); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestImages(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		work jobcall.Task
		sent string // without the prompt
		ref  bool   // by address
	}{
		"one": {picture(), `{"model":"gpt-image-2","n":1,"size":"1024x1024"}`, false},
		"three with fields": {picture(func(w *jobcall.Task) {
			w.Count = 3
			w.Params = json.RawMessage(`{"quality":"high","output_compression":80}`)
		}), `{"model":"gpt-image-2","n":3,"output_compression":80,"quality":"high","size":"1024x1024"}`, false},
		"another vendor": {picture(func(w *jobcall.Task) { w.Model, w.Count = "some/flux", 2 }),
			`{"model":"some/flux","n":2,"size":"1024x1024"}`, true},
		"another vendor without a ratio": {picture(func(w *jobcall.Task) { w.Model, w.Ratio, w.Width, w.Height = "flux", "", 0, 0 }),
			`{"model":"flux","n":1}`, true},
		"another vendor's larger tier without a ratio": {picture(func(w *jobcall.Task) {
			w.Model, w.Tier, w.Larger, w.Ratio, w.Width, w.Height = "flux", "2K", true, "", 0, 0
		}),
			`{"model":"flux","n":1,"size":"2048x2048"}`, true},
		"another vendor's only tier without a ratio": {
			picture(func(w *jobcall.Task) { w.Model, w.Tier, w.Ratio, w.Width, w.Height = "flux", "4K", "", 0, 0 }),
			`{"model":"flux","n":1,"size":"4096x4096"}`, true},
		"xAI": {picture(func(w *jobcall.Task) { w.Model, w.Tier, w.Ratio = "grok-imagine-image-2.0", "2K", "16:9" }),
			`{"aspect_ratio":"16:9","model":"grok-imagine-image-2.0","n":1,"resolution":"2k"}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			studio := fakestudio.NewOpenAI(t)
			a := conformance.Line(t, openai.Provider, studio.URL(), nil)
			if !a.Blocks(tt.work) {
				t.Error("images do not block")
			}
			p, err := jobcall.Submit(t.Context(), a, tt.work)
			if err != nil {
				t.Fatal(err)
			}
			if !p.Done || p.Ticket != "" || len(p.Results) != tt.work.Count {
				t.Fatalf("%+v", p)
			}
			for i, r := range p.Results {
				data, _ := conformance.Fetch(t, a, tt.work, r)
				if (r.Ref != "") != tt.ref || !bytes.Equal(data, fakestudio.Picture(i+1)) {
					t.Errorf("result %d: %q, %d bytes inline", i, r.Ref, len(r.Data))
				}
			}
			got := studio.Submissions()[0]
			var sent map[string]any
			if err := json.Unmarshal(got.Body, &sent); err != nil || sent["prompt"] != tt.work.Prompt {
				t.Fatalf("%v: %s", err, got.Body)
			}
			delete(sent, "prompt")
			if again, _ := json.Marshal(sent); string(again) != tt.sent {
				t.Errorf("sent %s\nwant %s", again, tt.sent)
			}
			if got.Header.Get("Idempotency-Key") != "sub_1" || got.Header.Get("Authorization") != "Bearer "+conformance.Secret {
				t.Errorf("headers %v", got.Header)
			}
		})
	}
}

// TestSizes tests the size fields of each model family for tier, ratio and pixels.
func TestSizes(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewOpenAI(t)
	a := conformance.Line(t, openai.Provider, studio.URL(), nil)
	const none = "" // not expressible
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
		{"gpt-image-2", "1K", "1:1", 1000, 1000, true, none}, // 16 does not divide it
		{"gpt-image-2", "1K", "1:1", 512, 512, true, none},
		{"gpt-image-2", "4K", "1:1", 3840, 3840, true, none},
		{"gpt-image-2", "1080p", "16:9", 1920, 1080, false, "1920x1088"},
		{"flux-pro", "1K", "1:1", 1000, 1000, true, "1000x1000"},
		{"grok-imagine-image", "4K", "1:1", 4096, 4096, false, none},
	} {
		w := picture(func(w *jobcall.Task) {
			w.Model, w.Tier, w.Ratio, w.Width, w.Height, w.Exact = tt.model, tt.tier, tt.ratio, tt.width, tt.height, tt.exact
		})
		before := len(studio.Submissions())
		_, err := jobcall.Submit(t.Context(), a, w)
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
				w := picture(func(w *jobcall.Task) {
					w.Tier, w.Ratio = fmt.Sprintf("%dK", tier), fmt.Sprintf("%d:%d", num, den)
					w.Width, w.Height = side*num/max(num, den), side*den/max(num, den)
				})
				before := len(studio.Submissions())
				_, err := jobcall.Submit(t.Context(), a, w)
				if err != nil {
					continue // not expressible; the fake would refuse a wrong size
				}
				var sent struct{ Size string }
				var width, height int
				_ = json.Unmarshal(studio.Submissions()[before].Body, &sent)
				if _, err := fmt.Sscanf(sent.Size, "%dx%d", &width, &height); err != nil {
					t.Fatal(err)
				}
				off := float64(width) * float64(den) / (float64(height) * float64(num))
				if off < 0.97 || off > 1.03 {
					t.Errorf("%s at %s became %s", w.Tier, w.Ratio, sent.Size)
				}
			}
		}
	}
	if refused := len(studio.Submissions()) - studio.Accepted(); refused != 0 {
		t.Errorf("%d sizes were wrong", refused)
	}
}

func TestEdits(t *testing.T) {
	t.Parallel()
	png, jpg := fakestudio.Picture(7), aJPEG(t)
	mask := task.Reference("image/png", "", string(fakestudio.Picture(8)))
	for name, tt := range map[string]struct {
		work  jobcall.Task
		files string
	}{
		"one": {picture(func(w *jobcall.Task) {
			w.References = []jobcall.Reference{task.Reference("image/png", "", string(png))}
		}),
			"image=image-1.png"},
		"two and a mask": {picture(func(w *jobcall.Task) {
			w.References = []jobcall.Reference{task.Reference("image/png", "", string(png)), task.Reference("image/jpeg", "", string(jpg))}
			w.Mask = &mask
		}), "image[]=image-1.png image[]=image-2.jpeg mask=mask.png"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			studio := fakestudio.NewOpenAI(t)
			w := tt.work
			w.Params = json.RawMessage(`{"quality":"low","user":"ü \"x\"","moderation":null,"output_compression":7}`)
			w.Count = 2
			p, err := jobcall.Submit(t.Context(), conformance.Line(t, openai.Provider, studio.URL(), nil), w)
			if err != nil || len(p.Results) != 2 {
				t.Fatal(p, err)
			}
			got := studio.Submissions()[0]
			if got.Path != "/v1/images/edits" || got.Header.Get("Content-Length") != fmt.Sprint(len(got.Body)) {
				t.Errorf("%s of %s bytes, %d came", got.Path, got.Header.Get("Content-Length"), len(got.Body))
			}
			fields, files := parts(t, got)
			want := map[string]string{"model": "gpt-image-2", "prompt": "a fox", "n": "2", "size": "1024x1024", "quality": "low", "user": `ü "x"`,
				"output_compression": "7"}
			if fmt.Sprint(fields) != fmt.Sprint(want) || strings.Join(files, " ") != tt.files {
				t.Errorf("fields %v, files %v", fields, files)
			}
		})
	}
}

// parts takes a sent form apart.
func parts(t testing.TB, s fakestudio.Submission) (fields map[string]string, files []string) {
	t.Helper()
	_, params, err := mime.ParseMediaType(s.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	fields = map[string]string{}
	reader := multipart.NewReader(bytes.NewReader(s.Body), params["boundary"])
	for {
		part, err := reader.NextPart()
		if err == io.EOF {
			return fields, files
		}
		if err != nil {
			t.Fatal(err)
		}
		if part.FileName() != "" {
			files = append(files, part.FormName()+"="+part.FileName())
			continue
		}
		value, _ := io.ReadAll(part)
		fields[part.FormName()] = string(value)
	}
}

// TestNestedFields checks that lists and objects are sent in a form like those of the official
// clients.
func TestNestedFields(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewOpenAI(t)
	w := picture(func(w *jobcall.Task) {
		w.Model, w.References = "flux", []jobcall.Reference{task.Reference("image/png", "", string(fakestudio.Picture(1)))}
		w.Params = json.RawMessage(`{"tags":["a"],"svg":{"model":"m","deep":{"on":true}},"a\r\nb\"":1}`)
	})
	if _, err := jobcall.Submit(t.Context(), conformance.Line(t, openai.Provider, studio.URL(), nil), w); err != nil {
		t.Fatal(err)
	}
	fields, _ := parts(t, studio.Submissions()[0])
	for name, value := range map[string]string{"tags[]": "a", "svg[model]": "m", "svg[deep][on]": "true"} {
		if fields[name] != value {
			t.Errorf("%s = %q in %v", name, fields[name], fields)
		}
	}
	if len(fields) != 8 {
		t.Errorf("%d fields: %v", len(fields), fields)
	}
}

// TestUnsuitable tests that tasks impossible for the provider are rejected before a call.
func TestUnsuitable(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewOpenAI(t)
	a := conformance.Line(t, openai.Provider, studio.URL(), nil)
	ref := task.Reference("image/png", "", string(fakestudio.Picture(1)))
	gif := task.Reference("image/gif", "", "GIF89a")
	large := jobcall.Reference{Type: "image/png", Size: 50 << 20}
	for name, change := range map[string]task.Change{
		"too many images":         task.Count(11),
		"too many references":     func(w *jobcall.Task) { w.References = slices.Repeat([]jobcall.Reference{ref}, 17) },
		"a gif":                   func(w *jobcall.Task) { w.References = []jobcall.Reference{gif} },
		"a large one":             func(w *jobcall.Task) { w.References = []jobcall.Reference{large} },
		"a mask alone":            func(w *jobcall.Task) { w.Mask = &ref },
		"a mask that is no png":   func(w *jobcall.Task) { w.References, w.Mask = []jobcall.Reference{ref}, &gif },
		"a reference for xAI":     func(w *jobcall.Task) { w.Model, w.References = "grok-imagine-image", []jobcall.Reference{ref} },
		"fields that are no JSON": task.Params(`[`),
		"our own field":           task.Params(`{"n":9}`),
		"our field for xAI": func(w *jobcall.Task) {
			w.Model, w.Params = "grok-imagine-image", json.RawMessage(`{"resolution":"2k"}`)
		},
		"sound": func(w *jobcall.Task) { w.Kind = "sound" },
	} {
		_, err := jobcall.Submit(t.Context(), a, picture(change))
		if m := conformance.JobFailure(t, err); m.Next != upstream.NextLine || m.Health != upstream.HealthNone || m.Lost {
			t.Errorf("%s: %+v", name, m)
		}
	}
	if n := len(studio.Submissions()); n != 0 {
		t.Errorf("%d calls", n)
	}
}

func openAIError(kind, code string) string {
	return `{"error":{"type":"` + kind + `","code":"` + code + `","message":"said ` + conformance.Secret + ` so","param":null}}`
}

func TestImageTroubles(t *testing.T) {
	t.Parallel()
	busy, cred, broken, lost := clips.Busy, clips.Account, clips.Broken, clips.Lost
	blocked, late := pictures.Flagged, pictures.Refused
	for name, tt := range map[string]struct {
		how  fakestudio.Behaviour
		want conformance.Outcome
	}{
		"moderation": {fakestudio.Behaviour{Status: 400,
			Body: `{"error":{"type":"image_generation_user_error","code":"moderation_blocked","message":"no",` +
				`"moderation_details":{"moderation_stage":"input"}}}`}, blocked},
		"policy": {fakestudio.Behaviour{Status: 400, Body: openAIError("invalid_request_error", "content_policy_violation")},
			conformance.NewOutcome(fault.ContentPolicyViolation, upstream.NextNone, upstream.HealthNone)},
		"image policy": {fakestudio.Behaviour{Status: 400, Body: openAIError("invalid_request_error", "image_content_policy_violation")},
			conformance.NewOutcome(fault.ContentPolicyViolation, upstream.NextNone, upstream.HealthNone)},
		"filtered by xAI": {fakestudio.Behaviour{Failed: `{"url":"http://x/1.png","respect_moderation":false}`}, blocked},
		"all failed": {
			fakestudio.Behaviour{Failed: `{"error":{"code":"OutputImageSensitiveContentDetected","message":"no"}}`}, blocked},
		"empty":           {fakestudio.Behaviour{Failed: `{}`}, pictures.Empty},
		"no base64":       {fakestudio.Behaviour{Failed: `{"b64_json":"*"}`}, pictures.Empty},
		"size":            {fakestudio.Behaviour{Status: 400, Body: openAIError("image_generation_user_error", "invalid_value")}, late},
		"bad reference":   {fakestudio.Behaviour{Status: 400, Body: openAIError("image_generation_user_error", "invalid_image")}, late},
		"large reference": {fakestudio.Behaviour{Status: 400, Body: openAIError("image_generation_user_error", "image_too_large")}, late},
		"type of reference": {
			fakestudio.Behaviour{Status: 400, Body: openAIError("image_generation_user_error", "unsupported_image_media_type")}, late},
		"key":     {fakestudio.Behaviour{Status: 401, Body: openAIError("invalid_request_error", "invalid_api_key")}, cred},
		"balance": {fakestudio.Behaviour{Status: 402, Body: `{}`}, cred},
		"region": {
			fakestudio.Behaviour{Status: 403, Body: openAIError("request_forbidden", "unsupported_country_region_territory")}, cred},
		"quota": {fakestudio.Behaviour{Status: 429, Body: openAIError("insufficient_quota", "insufficient_quota")}, cred},
		"hard limit": {
			fakestudio.Behaviour{Status: 400, Body: openAIError("image_generation_user_error", "billing_hard_limit_reached")}, cred},
		"model": {fakestudio.Behaviour{Status: 404, Body: openAIError("invalid_request_error", "model_not_found")},
			clips.Model},
		"rate":                  {fakestudio.Behaviour{Status: 429, Body: openAIError("requests", "rate_limit_exceeded")}, busy},
		"overload":              {fakestudio.Behaviour{Status: 529, Body: `{}`}, busy},
		"server":                {fakestudio.Behaviour{Status: 500, Body: openAIError("server_error", "server_error")}, broken},
		"page":                  {fakestudio.Behaviour{Status: 502, Body: "<html>"}, broken},
		"gateway timeout":       {fakestudio.Behaviour{Status: 504, Body: `{}`}, broken},
		"reset":                 {fakestudio.Behaviour{Reset: true}, lost},
		"lost":                  {fakestudio.Behaviour{LoseAnswer: true}, lost},
		"a page with status 2":  {fakestudio.Behaviour{Status: 203, Body: "<html>"}, broken},
		"error with status 200": {fakestudio.Behaviour{Status: 200, Body: openAIError("x", "moderation_blocked")}, blocked},
		"no data":               {fakestudio.Behaviour{Status: 200, Body: `{"data":null}`}, broken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			studio := fakestudio.NewOpenAI(t)
			studio.Expect(tt.how)
			_, err := jobcall.Submit(t.Context(), conformance.Line(t, openai.Provider, studio.URL(), nil), picture())
			conformance.CheckOutcome(t, "a submission", err, tt.want)
			if n := len(studio.Submissions()); n != 1 {
				t.Errorf("%d calls", n)
			}
		})
	}
}

// TestFewerImages tests that filtered images are missing and surplus images are left out.
func TestFewerImages(t *testing.T) {
	t.Parallel()
	reply := `{"data":[{"url":"http://127.0.0.1/1.png","respect_moderation":true},` +
		`{"url":"http://127.0.0.1/2.png","respect_moderation":false},{},` +
		`{"error":{"code":"x","message":"y"}},{"b64_json":"data:image/png;base64,iVBORw0KGgo"},{"url":"data:image/png;base64,iVBORw0KGgo="},` +
		`{"url":"http://127.0.0.1/3.png"}]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, reply)
	}))
	t.Cleanup(server.Close)
	p, err := jobcall.Submit(t.Context(), conformance.Line(t, openai.Provider, server.URL, nil), picture(task.Count(3)))
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
	gone := short
	gone.Open = func(context.Context) (io.ReadCloser, error) { return nil, errors.New("no such file") }
	for _, r := range []jobcall.Reference{short, gone} {
		w := picture(func(w *jobcall.Task) { w.References = []jobcall.Reference{r} })
		_, err := jobcall.Submit(t.Context(), conformance.Line(t, openai.Provider, studio.URL(), nil), w)
		want := conformance.NewOutcome(fault.UpstreamError, upstream.NextLater, upstream.HealthNone)
		if got := conformance.OutcomeOf(t, err); got != want {
			t.Errorf("%+v: %v", got, err)
		}
	}
	if studio.Accepted() != 0 {
		t.Error("accepted")
	}
}

// FuzzImages checks that no answer causes a panic or more images than requested.
func FuzzImages(f *testing.F) {
	for _, seed := range []string{`{"data":[{"url":"http://x/1"}]}`, `{"data":[{"b64_json":"aGk="}]}`, `{"data":{}}`, `{"error":{"code":1}}`,
		`[]`, `<html>`, ``} {
		f.Add([]byte(seed), 200)
	}
	a, answer := conformance.LineScripted(f, openai.Provider)
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
