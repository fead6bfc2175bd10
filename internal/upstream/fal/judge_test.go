package fal_test

import (
	"fmt"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/fal"
	"tollgate/internal/upstream/jobcall"
)

func TestRefusedSubmissions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		how   fakestudio.Behaviour
		image conformance.Outcome
		video conformance.Outcome
	}{
		"key": {fakestudio.Behaviour{Status: 401, Body: `{"detail":"Invalid key ` + conformance.Secret + `"}`},
			clips.Account,
			clips.Account},
		"balance": {fakestudio.Behaviour{Status: 403, Body: `{"detail":"User is locked. Reason: Exhausted balance. Top up your balance"}`},
			clips.Account,
			clips.Account},
		"model": {fakestudio.Behaviour{Status: 404, Body: `{"detail":"Application 'x' not found"}`},
			clips.Model,
			clips.Model},
		"busy": {fakestudio.Behaviour{Status: 429, Body: `{"detail":"Too many concurrent requests"}`},
			clips.Busy,
			clips.Busy},
		"own fault": {fakestudio.Behaviour{Status: 500, Body: `{"detail":"Internal","error_type":"internal_error"}`},
			clips.Broken,
			clips.Broken},
		"page": {fakestudio.Behaviour{Status: 502, Body: `<html>Bad gateway</html>`},
			clips.Broken,
			clips.Broken},
		"fields": {fakestudio.Behaviour{Status: 422,
			Body: `{"detail":[{"loc":["body","num_images"],"msg":"too many","type":"less_than_equal"}]}`},
			pictures.Refused,
			clips.Refused},
		"safety": {fakestudio.Behaviour{Status: 422,
			Body: `{"detail":[{"loc":["body","prompt"],"msg":"flagged","type":"content_policy_violation"}]}`},
			conformance.NewOutcome(fault.ContentPolicyViolation, upstream.NextNone, upstream.HealthNone),
			clips.Flagged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			studio := fakestudio.NewFal(t)
			studio.Expect(tt.how, tt.how)
			a := conformance.Line(t, fal.Provider, studio.URL(), nil)
			_, err := jobcall.Submit(t.Context(), a, image(1))
			conformance.CheckOutcome(t, "image", err, tt.image)
			_, err = jobcall.Submit(t.Context(), a, video())
			conformance.CheckOutcome(t, "video", err, tt.video)
			if conformance.JobFailure(t, err).Lost || len(studio.Submissions()) != 2 {
				t.Errorf("lost %v, %d submissions", conformance.JobFailure(t, err).Lost, len(studio.Submissions()))
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
		image  conformance.Outcome
		video  conformance.Outcome
	}{
		"safety": {result(422, final, detail("content_policy_violation")), conformance.NewOutcome(fault.ContentPolicyViolation, none, no),
			clips.Flagged},
		"safety, may pass": {result(422, retryable, detail("content_policy_violation")),
			conformance.NewOutcome(fault.ContentPolicyViolation, none, no),
			clips.FlaggedOutput},
		"safety, not first": {result(422, final, `{"detail":[{"msg":"a","type":"value_error"},{"msg":"b","type":"content_policy_violation"}]}`),
			conformance.NewOutcome(fault.ContentPolicyViolation, none, no), clips.Flagged},
		"nothing": {result(422, "", detail("no_media_generated")), pictures.Empty,
			clips.Empty},
		"nothing, for good": {result(422, final, detail("no_media_generated")), conformance.NewOutcome(image, line, half),
			conformance.NewOutcome(fault.RenderFailed, line, half)},
		"download": {result(422, final, detail("file_download_error")), pictures.Refused,
			clips.Material},
		"load": {result(422, final, detail("image_load_error")), pictures.Refused,
			clips.Material},
		"face": {result(422, final, detail("face_detection_error")), pictures.Refused,
			clips.Material},
		"too large": {result(422, final, detail("image_too_large")), pictures.Refused, clips.Material},
		"format": {result(422, final, detail("unsupported_video_format")), pictures.Refused,
			clips.Material},
		"value":   {result(422, final, detail("value_error")), pictures.Refused, clips.Refused},
		"missing": {result(422, final, detail("missing")), pictures.Refused, clips.Refused},
		"feature": {result(422, final, detail("feature_not_supported")), pictures.Refused,
			clips.Refused},
		"unknown name": {result(422, final, detail("literal_error")), pictures.Refused, clips.Refused},
		"text of a fault": {result(422, final, `{"detail":"something about the input"}`), pictures.Refused,
			clips.Refused},
		"model too slow": {result(504, retryable, detail("generation_timeout")), clips.Broken,
			conformance.NewOutcome(fault.RenderTimeout, line, fail)},
		"request too slow": {result(504, `{"X-Fal-Error-Type":"request_timeout"}`, request("request_timeout")), clips.Broken,
			conformance.NewOutcome(fault.RenderTimeout, line, fail)},
		"startup": {result(504, "", request("startup_timeout")), clips.Broken, conformance.NewOutcome(fault.RenderTimeout, line, fail)},
		"own start limit": {result(504, `{"X-Fal-Request-Timeout-Type":"user"}`, request("request_timeout")), pictures.Refused,
			conformance.NewOutcome(fault.RenderTimeout, line, no)},
		"model broke": {result(500, "", detail("internal_server_error")), clips.Broken,
			clips.Failed},
		"model broke, again": {result(500, retryable, detail("internal_server_error")), conformance.NewOutcome(image, same, fail),
			conformance.NewOutcome(fault.RenderFailed, same, fail)},
		"downstream": {result(502, "", detail("downstream_service_error")), clips.Broken,
			clips.Failed},
		"downstream away": {result(503, "", detail("downstream_service_unavailable")), clips.Broken,
			clips.Failed},
		"runner": {result(503, "", request("runner_disconnected")), clips.Broken,
			clips.Failed},
		"runner, by header": {result(503, `{"X-Fal-Error-Type":"runner_scheduling_failure"}`, `{}`), clips.Broken,
			clips.Failed},
		"runner, half": {result(502, "", request("runner_incomplete_response")), clips.Broken,
			clips.Failed},
		"cancelled":      {result(499, "", request("client_cancelled")), clips.Broken, clips.Failed},
		"bad request":    {result(400, "", request("bad_request")), pictures.Refused, clips.Refused},
		"result is gone": {result(404, "", `{"detail":"Not found"}`), clips.Broken, clips.Gone},
		"empty":          {result(200, "", `{"images":[]}`), pictures.Empty, clips.Empty},
		"no address": {result(200, "", `{"images":[{"url":""}],"video":{"url":"file:///etc/passwd"}}`), pictures.Empty,
			clips.Empty},
		"black": {result(200, "",
			`{"images":[{"url":"https://v3.fal.media/a"}],"video":{"url":"https://v3.fal.media/a"},"has_nsfw_concepts":[true]}`),
			pictures.Flagged, clips.FlaggedOutput},
		"fault in a 200": {result(200, "", detail("content_policy_violation")), conformance.NewOutcome(fault.ContentPolicyViolation, none, no),
			clips.Flagged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			studio := fakestudio.NewFal(t)
			studio.Expect(fakestudio.Behaviour{Failed: tt.failed}, fakestudio.Behaviour{Failed: tt.failed})
			a := conformance.Line(t, fal.Provider, studio.URL(), nil)
			for _, c := range []struct {
				w    jobcall.Task
				want conformance.Outcome
			}{{imageWork(), tt.image}, {video(), tt.video}} {
				p, err := jobcall.Submit(t.Context(), a, c.w)
				if err != nil {
					t.Fatal(err)
				}
				_, err = conformance.PollToEnd(t, a, c.w, p.Ticket)
				conformance.CheckOutcome(t, c.w.Kind, err, c.want)
			}
		})
	}
}

func imageWork() jobcall.Task { return image(1) }

// TestBlackImagesAreLeftOut tests that images blackened by the model's safety check are left out,
// and the rest are results.
func TestBlackImagesAreLeftOut(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewFal(t)
	studio.Expect(fakestudio.Behaviour{Failed: result(200, "",
		`{"images":[{"url":"https://x/0"},{"url":"https://x/1"},{"url":"https://x/2"},{"url":"https://x/3"}],`+
			`"has_nsfw_concepts":[false,true,false,false]}`)})
	a, w := conformance.Line(t, fal.Provider, studio.URL(), nil), image(2)
	p, err := jobcall.Submit(t.Context(), a, w)
	if err != nil {
		t.Fatal(err)
	}
	p, err = conformance.PollToEnd(t, a, w, p.Ticket)
	if err != nil || len(p.Results) != 2 || p.Results[0].Ref != "https://x/0" || p.Results[1].Ref != "https://x/2" {
		t.Errorf("%+v, %v", p, err)
	}
}
