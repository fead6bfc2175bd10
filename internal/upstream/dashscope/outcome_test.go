package dashscope_test

import (
	"fmt"
	"testing"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/dashscope"
	"tollgate/internal/upstream/jobcall"
)

var (
	pictures, clips = conformance.OutcomesOf(upstream.KindImage), conformance.OutcomesOf(upstream.KindVideo)

	policy, flagged, parameter, material = clips.Flagged, clips.FlaggedOutput, clips.Refused, clips.Material
	rendering, credential, noModel       = clips.Failed, clips.Account, clips.Model
	busy, broken                         = clips.Busy, clips.Broken
	blocked, refused                     = pictures.Flagged, pictures.Refused
)

// TestCodes tests DashScope's table of codes: at the submission of a clip, at the submission of a
// picture, and at the end of a clip.
func TestCodes(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewDashScope(t)
	a := conformance.Line(t, dashscope.Provider, studio.URL(), nil)
	for _, r := range []struct {
		status               int
		code, message        string
		clip, picture, ended conformance.Outcome
	}{
		{400, "DataInspectionFailed", "Input data may contain inappropriate content.", policy, blocked, policy},
		{400, "DataInspectionFailed", "Output data may contain inappropriate content.", flagged, blocked, flagged},
		{400, "data_inspection_failed", "Input text may be inappropriate", policy, blocked, policy},
		{400, "IPInfringementSuspect", "Input data is suspected of infringement.", policy, blocked, policy},
		{400, "CustomRoleBlocked", "m", policy, blocked, policy},
		{400, "FaqRuleBlocked", "m", policy, blocked, policy},
		{400, "InvalidParameter", "duration is out of range", parameter, refused, parameter},
		{400, "InvalidParameter.NotSupportEnumValue", "m", parameter, refused, parameter},
		{400, "UnsupportedOperation", "m", parameter, refused, parameter},
		{400, "InvalidParameter.DataInspection", "Unable to fetch the media.", material, refused, material},
		{400, "InvalidParameter", "download image failed", material, refused, material},
		{400, "InvalidURL", "url error, please check url!", material, refused, material},
		{400, "InvalidURL.ConnectionRefused", "m", material, refused, material},
		{400, "BadRequest.InputDownloadFailed", "m", material, refused, material},
		{413, "BadRequest.TooLarge", "m", material, refused, material},
		{415, "BadRequest.UnsupportedFileFormat", "m", material, refused, material},
		{400, "Arrearage", "m", credential, credential, credential},
		{401, "InvalidApiKey", "m", credential, credential, credential},
		{403, "AccessDenied", "m", credential, credential, credential},
		{403, "AccessDenied.Unpurchased", "m", credential, credential, credential},
		{403, "Workspace.AccessDenied", "m", credential, credential, credential},
		{404, "ModelNotFound", "m", noModel, noModel, noModel},
		{429, "Throttling", "m", busy, busy, busy},
		{429, "Throttling.RateQuota", "m", busy, busy, busy},
		{429, "Throttling.BurstRate", "m", busy, busy, busy},
		{429, "LimitRequests", "m", busy, busy, busy},
		{429, "Throttling.AllocationQuota", "m", credential, credential, credential},
		{429, "PrepaidBillOverdue", "m", credential, credential, credential},
		{429, "PostpaidBillOverdue", "m", credential, credential, credential},
		{429, "CommodityNotPurchased", "m", credential, credential, credential},
		{408, "RequestTimeOut", "m", broken, broken, rendering},
		{500, "InternalError", "m", broken, broken, rendering},
		{500, "InternalError.Algo", "m", broken, broken, rendering},
		{500, "InternalError.Timeout", "m", broken, broken, rendering},
		{400, "InternalError.Algo", "m", broken, broken, rendering},
		{500, "SystemError", "m", broken, broken, rendering},
		{500, "ModelServiceFailed", "m", broken, broken, rendering},
		{503, "ModelUnavailable", "m", broken, broken, rendering},
	} {
		body := fmt.Sprintf(`{"code":%q,"message":%q,"request_id":"r"}`, r.code, r.message)
		how := fakestudio.Refusal(r.status, body)
		studio.Expect(how, how)
		for _, task := range []jobcall.Task{video(), image()} {
			want := r.clip
			if task.Kind == upstream.KindImage {
				want = r.picture
			}
			_, err := jobcall.Submit(t.Context(), a, task)
			if got := conformance.OutcomeOf(t, err); got != want {
				t.Errorf("%s %d %s %q: %+v, want %+v", task.Kind, r.status, r.code, r.message, got, want)
			}
		}
		how = fakestudio.Failure(body)
		if got := conformance.OutcomeAfter(t, dashscope.Provider, studio, how, video()); got != r.ended {
			t.Errorf("end by %s %q: %+v, want %+v", r.code, r.message, got, r.ended)
		}
	}
}

// TestCodeInGoodAnswer tests that a code is an error, even with a good status.
func TestCodeInGoodAnswer(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewDashScope(t)
	a := conformance.Line(t, dashscope.Provider, studio.URL(), nil)
	for body, want := range map[string]conformance.Outcome{
		`{"code":"DataInspectionFailed","message":"m"}`:       blocked,
		`{"code":"DataInspectionFailed","message":""}`:        blocked,
		`{"code":"Throttling.RateQuota","message":"m"}`:       busy,
		`{"code":"Arrearage","message":"m"}`:                  credential,
		`{"code":"InternalError.Algo"}`:                       broken,
		`{"code":"","message":"","output":{"choices":[]}}`:    pictures.Empty,
		`{"output":{"code":"InvalidURL","message":"no url"}}`: refused,
	} {
		studio.Expect(fakestudio.Failure(body))
		_, err := jobcall.Submit(t.Context(), a, image())
		if got := conformance.OutcomeOf(t, err); got != want {
			t.Errorf("%s: %+v, want %+v", body, got, want)
		}
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	conformance.CheckOutcomes(t, dashscope.Provider, video(), map[string]conformance.Case{
		"cancelled": {fakestudio.Failure(`{"status":"CANCELED"}`), rendering},
		"no code":   {fakestudio.Failure(`{}`), rendering},
		"unknown":   {fakestudio.Failure(`{"status":"UNKNOWN"}`), clips.Gone},
		"no clip":   {fakestudio.Failure(`{"status":"SUCCEEDED"}`), clips.Empty},
		"lost":      {fakestudio.Behaviour{Lost: true}, clips.Gone},
	})
}

func TestLostSubmissions(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{}`, `<html>`, `{"output":{"task_id":""}}`, `{"output":{"task_id":"../x"}}`, `{"output":`, ``} {
		_, err := jobcall.Submit(t.Context(), conformance.LineWithReply(t, dashscope.Provider, 200, body), video())
		if tr := conformance.JobFailure(t, err); !tr.Lost {
			t.Errorf("%s: %v", body, tr)
		}
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	conformance.CheckCancel(t, dashscope.Provider, fakestudio.NewDashScope(t), video())
}

// FuzzAnswers tests that every response leads to a failure or a result.
func FuzzAnswers(f *testing.F) {
	conformance.FuzzAnswers(f, dashscope.Provider, "t-1", []jobcall.Task{image(), video()},
		`{"output":{"task_id":"t-1","task_status":"PENDING"}}`,
		`{"output":{"task_status":"SUCCEEDED","video_url":"https://x.example/a.mp4"}}`,
		`{"output":{"task_status":"SUCCEEDED","results":[{"url":"u"},{"code":"X"}]}}`,
		`{"output":{"choices":[{"message":{"content":[{"image":"u"}]}}]}}`,
		`{"code":"Throttling","message":"m"}`, `{"code":5}`, `{"output":[]}`, `{"output":{"code":"InvalidURL"}}`)
}
