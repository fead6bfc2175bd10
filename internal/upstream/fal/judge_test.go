package fal_test

import (
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// verdict is what a failure must say.
type verdict struct {
	job    fault.Code
	next   upstream.Next
	health upstream.Health
}

func check(t *testing.T, name string, got *upstream.JobFailure, want verdict) {
	t.Helper()
	if got.Job != want.job || got.Next != want.next || got.Health != want.health {
		t.Errorf("%s: %s, next %d, health %s; want %s, %d, %s (%v)", name, got.Job, got.Next, got.Health, want.job, want.next, want.health, got)
	}
	if strings.Contains(got.Error()+got.Told(), secret) {
		t.Errorf("%s: the credential is in it", name)
	}
}

func TestRefusedSubmissions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		how   fakestudio.Behaviour
		image verdict
		video verdict
	}{
		"key": {fakestudio.Behaviour{Status: 401, Body: `{"detail":"Invalid key ` + secret + `"}`},
			verdict{fault.UpstreamError, upstream.NextLine, upstream.HealthCredential},
			verdict{fault.UpstreamError, upstream.NextLine, upstream.HealthCredential}},
		"balance": {fakestudio.Behaviour{Status: 403, Body: `{"detail":"User is locked. Reason: Exhausted balance. Top up your balance"}`},
			verdict{fault.UpstreamError, upstream.NextLine, upstream.HealthCredential},
			verdict{fault.UpstreamError, upstream.NextLine, upstream.HealthCredential}},
		"model": {fakestudio.Behaviour{Status: 404, Body: `{"detail":"Application 'x' not found"}`},
			verdict{fault.UpstreamError, upstream.NextLine, upstream.HealthModel},
			verdict{fault.UpstreamError, upstream.NextLine, upstream.HealthModel}},
		"busy": {fakestudio.Behaviour{Status: 429, Body: `{"detail":"Too many concurrent requests"}`},
			verdict{fault.UpstreamError, upstream.NextLater, upstream.HealthCool},
			verdict{fault.UpstreamError, upstream.NextLater, upstream.HealthCool}},
		"own fault": {fakestudio.Behaviour{Status: 500, Body: `{"detail":"Internal","error_type":"internal_error"}`},
			verdict{fault.UpstreamError, upstream.NextLine, upstream.HealthFail},
			verdict{fault.UpstreamError, upstream.NextLine, upstream.HealthFail}},
		"page": {fakestudio.Behaviour{Status: 502, Body: `<html>Bad gateway</html>`},
			verdict{fault.UpstreamError, upstream.NextLine, upstream.HealthFail},
			verdict{fault.UpstreamError, upstream.NextLine, upstream.HealthFail}},
		"fields": {fakestudio.Behaviour{Status: 422,
			Body: `{"detail":[{"loc":["body","num_images"],"msg":"too many","type":"less_than_equal"}]}`},
			verdict{fault.UpstreamError, upstream.NextLine, upstream.HealthNone},
			verdict{fault.InvalidRequest, upstream.NextLine, upstream.HealthNone}},
		"safety": {fakestudio.Behaviour{Status: 422,
			Body: `{"detail":[{"loc":["body","prompt"],"msg":"flagged","type":"content_policy_violation"}]}`},
			verdict{fault.ContentPolicyViolation, upstream.NextNone, upstream.HealthNone},
			verdict{fault.ContentPolicy, upstream.NextNone, upstream.HealthNone}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			studio := fakestudio.NewFal(t)
			studio.Expect(tt.how, tt.how)
			a := open(t, studio.URL(), nil)
			_, err := jobcall.Submit(t.Context(), a, image(1))
			check(t, "image", jobFailure(t, err), tt.image)
			_, err = jobcall.Submit(t.Context(), a, video())
			check(t, "video", jobFailure(t, err), tt.video)
			if jobFailure(t, err).Lost || len(studio.Submissions()) != 2 {
				t.Errorf("lost %v, %d submissions", jobFailure(t, err).Lost, len(studio.Submissions()))
			}
		})
	}
}

// result writes Behaviour.Failed for fal.
func result(status int, header, body string) string {
	if header == "" {
		header = "{}"
	}
	return fmt.Sprintf(`{"status":%d,"header":%s,"body":%s}`, status, header, body)
}

// detail is a fault of a model.
func detail(kind string) string {
	return fmt.Sprintf(`{"detail":[{"loc":["body"],"msg":"what %s says","type":%q,"url":"https://docs.fal.ai/errors"}]}`, kind, kind)
}

func TestFailedWorks(t *testing.T) {
	t.Parallel()
	const (
		no    = upstream.HealthNone
		fail  = upstream.HealthFail
		half  = upstream.HealthHalf
		line  = upstream.NextLine
		same  = upstream.NextSame
		none  = upstream.NextNone
		image = fault.UpstreamError
	)
	retryable, final := `{"X-Fal-Retryable":"true"}`, `{"X-Fal-Retryable":"false"}`
	request := func(kind string) string { return fmt.Sprintf(`{"detail":"text","error_type":%q}`, kind) }
	for name, tt := range map[string]struct {
		failed string
		image  verdict
		video  verdict
	}{
		"safety": {result(422, final, detail("content_policy_violation")), verdict{fault.ContentPolicyViolation, none, no},
			verdict{fault.ContentPolicy, none, no}},
		"safety, may pass": {result(422, retryable, detail("content_policy_violation")), verdict{fault.ContentPolicyViolation, none, no},
			verdict{fault.ContentPolicy, same, no}},
		"safety, not first": {result(422, final, `{"detail":[{"msg":"a","type":"value_error"},{"msg":"b","type":"content_policy_violation"}]}`),
			verdict{fault.ContentPolicyViolation, none, no}, verdict{fault.ContentPolicy, none, no}},
		"nothing": {result(422, "", detail("no_media_generated")), verdict{image, same, half},
			verdict{fault.RenderFailed, same, half}},
		"nothing, for good": {result(422, final, detail("no_media_generated")), verdict{image, line, half},
			verdict{fault.RenderFailed, line, half}},
		"download": {result(422, final, detail("file_download_error")), verdict{image, line, no},
			verdict{fault.InvalidMaterial, line, no}},
		"load": {result(422, final, detail("image_load_error")), verdict{image, line, no},
			verdict{fault.InvalidMaterial, line, no}},
		"face": {result(422, final, detail("face_detection_error")), verdict{image, line, no},
			verdict{fault.InvalidMaterial, line, no}},
		"too large": {result(422, final, detail("image_too_large")), verdict{image, line, no}, verdict{fault.InvalidMaterial, line, no}},
		"format": {result(422, final, detail("unsupported_video_format")), verdict{image, line, no},
			verdict{fault.InvalidMaterial, line, no}},
		"value":   {result(422, final, detail("value_error")), verdict{image, line, no}, verdict{fault.InvalidRequest, line, no}},
		"missing": {result(422, final, detail("missing")), verdict{image, line, no}, verdict{fault.InvalidRequest, line, no}},
		"feature": {result(422, final, detail("feature_not_supported")), verdict{image, line, no},
			verdict{fault.InvalidRequest, line, no}},
		"unknown name": {result(422, final, detail("literal_error")), verdict{image, line, no}, verdict{fault.InvalidRequest, line, no}},
		"text of a fault": {result(422, final, `{"detail":"something about the input"}`), verdict{image, line, no},
			verdict{fault.InvalidRequest, line, no}},
		"model too slow": {result(504, retryable, detail("generation_timeout")), verdict{image, line, fail},
			verdict{fault.RenderTimeout, line, fail}},
		"request too slow": {result(504, `{"X-Fal-Error-Type":"request_timeout"}`, request("request_timeout")), verdict{image, line, fail},
			verdict{fault.RenderTimeout, line, fail}},
		"startup": {result(504, "", request("startup_timeout")), verdict{image, line, fail}, verdict{fault.RenderTimeout, line, fail}},
		"own start limit": {result(504, `{"X-Fal-Request-Timeout-Type":"user"}`, request("request_timeout")), verdict{image, line, no},
			verdict{fault.RenderTimeout, line, no}},
		"model broke": {result(500, "", detail("internal_server_error")), verdict{image, line, fail},
			verdict{fault.RenderFailed, line, fail}},
		"model broke, again": {result(500, retryable, detail("internal_server_error")), verdict{image, same, fail},
			verdict{fault.RenderFailed, same, fail}},
		"downstream": {result(502, "", detail("downstream_service_error")), verdict{image, line, fail},
			verdict{fault.RenderFailed, line, fail}},
		"downstream away": {result(503, "", detail("downstream_service_unavailable")), verdict{image, line, fail},
			verdict{fault.RenderFailed, line, fail}},
		"runner": {result(503, "", request("runner_disconnected")), verdict{image, line, fail},
			verdict{fault.RenderFailed, line, fail}},
		"runner, by header": {result(503, `{"X-Fal-Error-Type":"runner_scheduling_failure"}`, `{}`), verdict{image, line, fail},
			verdict{fault.RenderFailed, line, fail}},
		"runner, half": {result(502, "", request("runner_incomplete_response")), verdict{image, line, fail},
			verdict{fault.RenderFailed, line, fail}},
		"cancelled":      {result(499, "", request("client_cancelled")), verdict{image, line, fail}, verdict{fault.RenderFailed, line, fail}},
		"bad request":    {result(400, "", request("bad_request")), verdict{image, line, no}, verdict{fault.InvalidRequest, line, no}},
		"result is gone": {result(404, "", `{"detail":"Not found"}`), verdict{image, line, fail}, verdict{fault.UpstreamUnstable, line, fail}},
		"empty":          {result(200, "", `{"images":[]}`), verdict{image, same, half}, verdict{fault.RenderFailed, same, half}},
		"no address": {result(200, "", `{"images":[{"url":""}],"video":{"url":"file:///etc/passwd"}}`), verdict{image, same, half},
			verdict{fault.RenderFailed, same, half}},
		"black": {result(200, "",
			`{"images":[{"url":"https://v3.fal.media/a"}],"video":{"url":"https://v3.fal.media/a"},"has_nsfw_concepts":[true]}`),
			verdict{fault.ModerationBlocked, none, no}, verdict{fault.ContentPolicy, same, no}},
		"fault in a 200": {result(200, "", detail("content_policy_violation")), verdict{fault.ContentPolicyViolation, none, no},
			verdict{fault.ContentPolicy, none, no}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			studio := fakestudio.NewFal(t)
			studio.Expect(fakestudio.Behaviour{Failed: tt.failed}, fakestudio.Behaviour{Failed: tt.failed})
			a := open(t, studio.URL(), nil)
			for _, one := range []struct {
				w    jobcall.Task
				want verdict
			}{{imageWork(), tt.image}, {video(), tt.video}} {
				p, err := jobcall.Submit(t.Context(), a, one.w)
				if err != nil {
					t.Fatal(err)
				}
				_, err = finish(t, a, one.w, p.Ticket)
				check(t, one.w.Kind, jobFailure(t, err), one.want)
			}
		})
	}
}

func imageWork() jobcall.Task { return image(1) }

// TestBlackImagesAreLeftOut: what the model's check blackened is no result,
// the rest is.
func TestBlackImagesAreLeftOut(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewFal(t)
	studio.Expect(fakestudio.Behaviour{Failed: result(200, "",
		`{"images":[{"url":"https://x/0"},{"url":"https://x/1"},{"url":"https://x/2"},{"url":"https://x/3"}],`+
			`"has_nsfw_concepts":[false,true,false,false]}`)})
	a, w := open(t, studio.URL(), nil), image(2)
	p, err := jobcall.Submit(t.Context(), a, w)
	if err != nil {
		t.Fatal(err)
	}
	p, err = finish(t, a, w, p.Ticket)
	if err != nil || len(p.Results) != 2 || p.Results[0].Ref != "https://x/0" || p.Results[1].Ref != "https://x/2" {
		t.Errorf("%+v, %v", p, err)
	}
}
