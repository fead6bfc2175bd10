package ark_test

import (
	"fmt"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/ark"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/jobcall"
)

var (
	pictures, clips = conformance.OutcomesOf(upstream.KindImage), conformance.OutcomesOf(upstream.KindVideo)

	policy, flagged, parameter, material = clips.Flagged, clips.FlaggedOutput, clips.Refused, clips.Material
	rendering, credential, noModel       = clips.Failed, clips.Account, clips.Model
	busy, broken                         = clips.Busy, clips.Broken
	blocked, refused                     = pictures.Flagged, pictures.Refused
)

// sound is the failure of a clip with flagged sound.
var sound = conformance.Outcome{Job: fault.ContentPolicy, Next: upstream.NextSame, Health: upstream.HealthNone, Param: "audio"}

// row is one error code of Ark with its expected failures: at the submission of a clip, at the end
// of a clip, and for a picture.
type row struct {
	status               int
	code, param, message string
	clip, ended, picture conformance.Outcome
	alsoAs400            bool
}

// TestCodes tests Ark's table of error codes, with the documented status and with a plain 400: the
// code outweighs the status.
func TestCodes(t *testing.T) {
	t.Parallel()
	rows := []row{
		{400, "InputTextSensitiveContentDetected", "", "m", policy, policy, blocked, true},
		{400, "InputTextSensitiveContentDetected.PolicyViolation", "", "m", policy, policy, blocked, true},
		{400, "InputImageSensitiveContentDetected", "", "m", policy, policy, blocked, true},
		{400, "InputImageSensitiveContentDetected.PrivacyInformation", "", "m", policy, policy, blocked, true},
		{400, "InputImageSensitiveContentDetected.PolicyViolation", "", "m", policy, policy, blocked, true},
		{400, "InputVideoSensitiveContentDetected", "", "m", policy, policy, blocked, true},
		{400, "SensitiveContentDetected", "", "m", policy, policy, blocked, true},
		{400, "SensitiveContentDetected.SevereViolation", "", "m", policy, policy, blocked, true},
		{400, "OutputVideoSensitiveContentDetected", "", "m", flagged, flagged, blocked, true},
		{400, "OutputVideoSensitiveContentDetected.PolicyViolation", "", "m", flagged, flagged, blocked, true},
		{400, "OutputImageSensitiveContentDetected", "", "m", flagged, flagged, blocked, true},
		{400, "OutputAudioSensitiveContentDetected", "", "m", sound, sound, blocked, true},
		{400, "OutputAudioSensitiveContentDetected.PolicyViolation", "", "m", sound, sound, blocked, true},
		{400, "InvalidParameter", "duration", "The parameter `duration` is not valid.", parameter, parameter, refused, true},
		{400, "InvalidParameter.TaskTypeConstraint", "ratio", "no ratio here", parameter, parameter, refused, true},
		{400, "MissingParameter", "prompt", "m", parameter, parameter, refused, true},
		{400, "OutofContextError", "", "m", parameter, parameter, refused, true},
		{400, "InvalidParameter", "content[1].image_url", "download failed", material, material, refused, true},
		{400, "InvalidParameter", "", "The parameter `content[0].video_url` specified in the request is not valid: cannot decode.", material,
			material, refused, true},
		{400, "InvalidParameter.UnsupportedImageFormat", "content[1].image_url.url", "m", material, material, refused, true},
		{400, "InvalidParameter", "content[0].video_url", "video_url is not supported by the model", parameter, parameter, refused, true},
		{400, "InvalidImageURL.InvalidFormat", "", "m", material, material, refused, true},
		{500, "InternalServiceError", "", "m", broken, rendering, broken, true},
		{429, "ServerOverloaded", "", "m", busy, conformance.NewOutcome(fault.RenderFailed, upstream.NextLater, upstream.HealthCool), busy, true},
		{404, "ModelNotOpen", "", "m", noModel, noModel, noModel, true},
		{404, "InvalidEndpointOrModel.NotFound", "", "m", noModel, noModel, noModel, true},
		{403, "AccessDenied", "", "m", credential, credential, credential, true},
		{403, "AccountOverdueError", "", "m", credential, credential, credential, true},
		{401, "AuthenticationError", "", "m", credential, credential, credential, true},
		{429, "SetLimitExceeded", "", "m", credential, credential, credential, true},
		{429, "QuotaExceeded", "", "m", credential, credential, credential, true},
		{429, "RateLimitExceeded.EndpointRPMExceeded", "", "m", busy, busy, busy, true},
		{429, "ModelAccountIpmRateLimitExceeded", "", "m", busy, busy, busy, true},
		{429, "ModelLoadingError", "", "m", busy, busy, busy, true},
		{429, "RequestBurstTooFast", "", "m", busy, rendering, busy, false},
		{502, "", "", "m", broken, rendering, broken, false},
		{504, "", "", "m", broken, rendering, broken, false},
	}
	studio := fakestudio.NewArk(t)
	a := conformance.Line(t, ark.Provider, studio.URL(), nil)
	for _, r := range rows {
		body := fmt.Sprintf(`{"code":%q,"message":%q,"param":%q,"type":"BadRequest"}`, r.code, r.message, r.param)
		statuses := []int{r.status}
		if r.alsoAs400 && r.status != 400 {
			statuses = append(statuses, 400)
		}
		for _, status := range statuses {
			how := fakestudio.Refusal(status, `{"error":`+body+`,"request_id":"021"}`)
			studio.Expect(how, how)
			for _, task := range []jobcall.Task{video(), image()} {
				want := r.clip
				if task.Kind == upstream.KindImage {
					want = r.picture
				}
				_, err := jobcall.Submit(t.Context(), a, task)
				if got := conformance.OutcomeOf(t, err); got != want {
					t.Errorf("%s %d %s %q: %+v, want %+v", task.Kind, status, r.code, r.message, got, want)
				}
			}
		}
		// The same error at the end of a task, and for the only picture of a response.
		how := fakestudio.Failure(body)
		if got := conformance.OutcomeAfter(t, ark.Provider, studio, how, video()); got != r.ended {
			t.Errorf("end by %s %q: %+v, want %+v", r.code, r.message, got, r.ended)
		}
		if got := conformance.OutcomeAfter(t, ark.Provider, studio, how, image()); r.status == 400 && got != r.picture {
			t.Errorf("a picture ended by %s: %+v, want %+v", r.code, got, r.picture)
		}
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	conformance.CheckOutcomes(t, ark.Provider, video(), map[string]conformance.Case{
		"expired": {fakestudio.Failure(`{"status":"expired"}`),
			conformance.NewOutcome(fault.RenderTimeout, upstream.NextLine, upstream.HealthFail)},
		"cancelled": {fakestudio.Failure(`{"status":"cancelled"}`), rendering},
		"no error":  {fakestudio.Failure(`null`), rendering},
		"no code":   {fakestudio.Failure(`{}`), rendering},
		"no clip":   {fakestudio.Failure(`{"status":"succeeded"}`), clips.Empty},
		"lost":      {fakestudio.Behaviour{Lost: true}, clips.Gone},
	})
	for _, ticket := range []string{"..", "", "a/b"} {
		_, err := conformance.LineWithReply(t, ark.Provider, 200, "").Poll(t.Context(), video(), ticket)
		if tr := conformance.JobFailure(t, err); tr.Job != fault.UpstreamUnstable {
			t.Errorf("%q: %v", ticket, tr)
		}
	}
}

func TestLostSubmissions(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{}`, `<html>`, `{"id":""}`, `{"id":"../x"}`, `{"id":`, ``} {
		_, err := jobcall.Submit(t.Context(), conformance.LineWithReply(t, ark.Provider, 200, body), video())
		if tr := conformance.JobFailure(t, err); !tr.Lost {
			t.Errorf("%s: %v", body, tr)
		}
	}
	owing := `{"error":{"code":"AccountOverdueError","message":"m"}}`
	_, err := jobcall.Submit(t.Context(), conformance.LineWithReply(t, ark.Provider, 200, owing), video())
	conformance.CheckOutcome(t, "an error in a good answer", err, credential)
	_, err = jobcall.Submit(t.Context(), conformance.LineWithReply(t, ark.Provider, 200, `{"model":"m","data":[]}`), image())
	conformance.CheckOutcome(t, "no picture", err, pictures.Empty)
	part := `{"data":[{"url":"https://x.example/1"}],"error":{"code":"InternalServiceError","message":"the rest"}}`
	line := conformance.LineWithReply(t, ark.Provider, 200, part)
	if p, err := jobcall.Submit(t.Context(), line, image()); err != nil || len(p.Results) != 1 {
		t.Errorf("a part of a set: %+v, %v", p, err)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	conformance.CheckCancel(t, ark.Provider, fakestudio.NewArk(t), video(), "cgt-unknown")
}

// FuzzAnswers tests that every response leads to a failure or a result.
func FuzzAnswers(f *testing.F) {
	conformance.FuzzAnswers(f, ark.Provider, "cgt-1", []jobcall.Task{image(), video()},
		`{"id":"cgt-1"}`, `{"id":"cgt-1","status":"succeeded","content":{"video_url":"https://x.example/a.mp4"}}`,
		`{"status":"failed","error":{"code":"InvalidParameter","message":"content[0].image_url"}}`, `{"data":[{"url":"u"},{"error":{}}]}`,
		`{"data":[{"url":1}],"error":"x"}`, `{"data":{"url":"x"}}`)
}
