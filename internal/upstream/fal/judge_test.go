package fal_test

import (
	"cmp"
	"fmt"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/fal"
)

func TestRefusedSubmissions(t *testing.T) {
	t.Parallel()
	conformance.CheckKinds(t, fal.Provider, image(1), video(), map[string]conformance.KindsCase{
		"key": {fakestudio.Refusal(401, `{"detail":"Invalid key `+conformance.Secret+`"}`), clips.Account, clips.Account},
		"balance": {fakestudio.Refusal(403, `{"detail":"User is locked. Reason: Exhausted balance. Top up your balance"}`),
			clips.Account, clips.Account},
		"model":     {fakestudio.Refusal(404, `{"detail":"Application 'x' not found"}`), clips.Model, clips.Model},
		"busy":      {fakestudio.Refusal(429, `{"detail":"Too many concurrent requests"}`), clips.Busy, clips.Busy},
		"own fault": {fakestudio.Refusal(500, `{"detail":"Internal","error_type":"internal_error"}`), clips.Broken, clips.Broken},
		"fields": {fakestudio.Refusal(422, `{"detail":[{"loc":["body","num_images"],"msg":"too many","type":"less_than_equal"}]}`),
			pictures.Refused, clips.Refused},
		"safety": {fakestudio.Refusal(422, `{"detail":[{"loc":["body","prompt"],"msg":"flagged","type":"content_policy_violation"}]}`),
			conformance.NewOutcome(fault.ContentPolicyViolation, upstream.NextNone, upstream.HealthNone), clips.Flagged},
	})
}

// fails returns the behaviour of a task whose result query gets this response.
func fails(status int, header, body string) fakestudio.Behaviour {
	return fakestudio.Failure(fmt.Sprintf(`{"status":%d,"header":%s,"body":%s}`, status, cmp.Or(header, "{}"), body))
}

// detail returns the error list of a model.
func detail(kind string) string {
	return fmt.Sprintf(`{"detail":[{"loc":["body"],"msg":"what %s says","type":%q,"url":"https://docs.fal.ai/errors"}]}`, kind, kind)
}

func TestFailedWorks(t *testing.T) {
	t.Parallel()
	const (
		no   = upstream.HealthNone
		fail = upstream.HealthFail
		half = upstream.HealthHalf
		line = upstream.NextLine
		same = upstream.NextSame
		none = upstream.NextNone
	)
	unknown := conformance.NewOutcome(fault.UpstreamError, upstream.NextPoll, fail)
	running := conformance.NewOutcome(fault.UpstreamError, upstream.NextPoll, no)
	retryable, final := `{"X-Fal-Retryable":"true"}`, `{"X-Fal-Retryable":"false"}`
	request := func(kind string) string { return fmt.Sprintf(`{"detail":"text","error_type":%q}`, kind) }
	conformance.CheckKinds(t, fal.Provider, image(1), video(), map[string]conformance.KindsCase{
		"safety": {fails(422, final, detail("content_policy_violation")),
			conformance.NewOutcome(fault.ContentPolicyViolation, none, no), clips.Flagged},
		"safety, may pass": {fails(422, retryable, detail("content_policy_violation")),
			conformance.NewOutcome(fault.ContentPolicyViolation, none, no), clips.FlaggedOutput},
		"safety, not first": {fails(422, final, `{"detail":[{"msg":"a","type":"value_error"},{"msg":"b","type":"content_policy_violation"}]}`),
			conformance.NewOutcome(fault.ContentPolicyViolation, none, no), clips.Flagged},
		"nothing": {fails(422, "", detail("no_media_generated")), pictures.Empty, clips.Empty},
		"nothing, for good": {fails(422, final, detail("no_media_generated")), conformance.NewOutcome(fault.UpstreamError, line, half),
			conformance.NewOutcome(fault.RenderFailed, line, half)},
		"download":        {fails(422, final, detail("file_download_error")), pictures.Refused, clips.Material},
		"load":            {fails(422, final, detail("image_load_error")), pictures.Refused, clips.Material},
		"face":            {fails(422, final, detail("face_detection_error")), pictures.Refused, clips.Material},
		"too large":       {fails(422, final, detail("image_too_large")), pictures.Refused, clips.Material},
		"format":          {fails(422, final, detail("unsupported_video_format")), pictures.Refused, clips.Material},
		"value":           {fails(422, final, detail("value_error")), pictures.Refused, clips.Refused},
		"missing":         {fails(422, final, detail("missing")), pictures.Refused, clips.Refused},
		"feature":         {fails(422, final, detail("feature_not_supported")), pictures.Refused, clips.Refused},
		"unknown name":    {fails(422, final, detail("literal_error")), pictures.Refused, clips.Refused},
		"text of a fault": {fails(422, final, `{"detail":"something about the input"}`), pictures.Refused, clips.Refused},
		"model too slow": {fails(504, retryable, detail("generation_timeout")), clips.Broken,
			conformance.NewOutcome(fault.RenderTimeout, line, fail)},
		"request too slow": {fails(504, `{"X-Fal-Error-Type":"request_timeout"}`, request("request_timeout")), clips.Broken,
			conformance.NewOutcome(fault.RenderTimeout, line, fail)},
		"startup": {fails(504, "", request("startup_timeout")), clips.Broken, conformance.NewOutcome(fault.RenderTimeout, line, fail)},
		"own start limit": {fails(504, `{"X-Fal-Request-Timeout-Type":"user"}`, request("request_timeout")), pictures.Refused,
			conformance.NewOutcome(fault.RenderTimeout, line, no)},
		"model broke": {fails(500, "", detail("internal_server_error")), clips.Broken, clips.Failed},
		"model broke, again": {fails(500, retryable, detail("internal_server_error")), conformance.NewOutcome(fault.UpstreamError, same, fail),
			conformance.NewOutcome(fault.RenderFailed, same, fail)},
		"downstream":        {fails(502, "", detail("downstream_service_error")), clips.Broken, clips.Failed},
		"downstream away":   {fails(503, "", detail("downstream_service_unavailable")), clips.Broken, clips.Failed},
		"runner":            {fails(503, "", request("runner_disconnected")), clips.Broken, clips.Failed},
		"runner, by header": {fails(503, `{"X-Fal-Error-Type":"runner_scheduling_failure"}`, `{}`), clips.Broken, clips.Failed},
		"runner, half":      {fails(502, "", request("runner_incomplete_response")), clips.Broken, clips.Failed},
		"cancelled":         {fails(499, "", request("client_cancelled")), clips.Broken, clips.Failed},
		"bad request":       {fails(400, "", request("bad_request")), pictures.Refused, clips.Refused},
		"result is gone":    {fails(404, "", `{"detail":"Not found"}`), clips.Broken, clips.Gone},
		"empty":             {fails(200, "", `{"images":[]}`), pictures.Empty, clips.Empty},
		"no address":        {fails(200, "", `{"images":[{"url":""}],"video":{"url":"file:///etc/passwd"}}`), pictures.Empty, clips.Empty},
		"black": {fails(200, "",
			`{"images":[{"url":"https://v3.fal.media/a"}],"video":{"url":"https://v3.fal.media/a"},"has_nsfw_concepts":[true]}`),
			pictures.Flagged, clips.FlaggedOutput},
		"fault in a 200": {fails(200, "", detail("content_policy_violation")),
			conformance.NewOutcome(fault.ContentPolicyViolation, none, no), clips.Flagged},
		"no word of fal": {fails(400, "", `{"x":1}`), unknown, unknown},
		"still running":  {fails(400, "", `{"detail":"Request is still in progress"}`), running, running},
		"forgotten":      {fakestudio.Behaviour{Lost: true}, clips.Broken, clips.Gone},
	})
}

// TestBlackImagesAreLeftOut tests that images blackened by the model's safety check are left out,
// and the rest are results.
func TestBlackImagesAreLeftOut(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewFal(t)
	studio.Expect(fails(200, "",
		`{"images":[{"url":"https://x/0"},{"url":"https://x/1"},{"url":"https://x/2"},{"url":"https://x/3"}],`+
			`"has_nsfw_concepts":[false,true,false,false]}`))
	p, err := conformance.SubmitAndPoll(t, conformance.Line(t, fal.Provider, studio.URL(), nil), image(2))
	if err != nil || len(p.Results) != 2 || p.Results[0].Ref != "https://x/0" || p.Results[1].Ref != "https://x/2" {
		t.Errorf("%+v, %v", p, err)
	}
}
