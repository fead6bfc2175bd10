package dashscope_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// verdict is what a failure decides.
type verdict struct {
	job    fault.Code
	next   upstream.Next
	health upstream.Health
	param  string
}

func judged(tr *upstream.JobFailure) verdict { return verdict{tr.Job, tr.Next, tr.Health, tr.Param} }

var (
	policy     = verdict{fault.ContentPolicy, upstream.NextNone, upstream.HealthNone, ""}
	flagged    = verdict{fault.ContentPolicy, upstream.NextSame, upstream.HealthNone, ""}
	parameter  = verdict{fault.InvalidRequest, upstream.NextLine, upstream.HealthNone, ""}
	material   = verdict{fault.InvalidMaterial, upstream.NextLine, upstream.HealthNone, ""}
	rendering  = verdict{fault.RenderFailed, upstream.NextLine, upstream.HealthFail, ""}
	credential = verdict{fault.UpstreamError, upstream.NextLine, upstream.HealthCredential, ""}
	noModel    = verdict{fault.UpstreamError, upstream.NextLine, upstream.HealthModel, ""}
	busy       = verdict{fault.UpstreamError, upstream.NextLater, upstream.HealthCool, ""}
	broken     = verdict{fault.UpstreamError, upstream.NextLine, upstream.HealthFail, ""}
	blocked    = verdict{fault.ModerationBlocked, upstream.NextNone, upstream.HealthNone, ""}
	refused    = verdict{fault.UpstreamError, upstream.NextLine, upstream.HealthNone, ""}
)

// TestCodes is DashScope's table of codes: what each means at the submission of
// a clip and of a picture, and at the end of a clip.
func TestCodes(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewDashScope(t)
	a := at(t, studio.URL(), nil)
	for _, r := range []struct {
		status               int
		code, message        string
		clip, picture, ended verdict
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
		how := fakestudio.Behaviour{Status: r.status, Body: body}
		studio.Expect(how, how, fakestudio.Behaviour{Failed: body})
		for _, w := range []jobcall.Task{video(), image()} {
			want := r.clip
			if w.Kind == upstream.KindImage {
				want = r.picture
			}
			_, err := jobcall.Submit(t.Context(), a, w)
			if tr := jobFailure(t, err); judged(tr) != want || tr.Lost {
				t.Errorf("%s %d %s %q: %+v, want %+v", w.Kind, r.status, r.code, r.message, judged(tr), want)
			}
		}
		if got := judged(endOf(t, studio, video())); got != r.ended {
			t.Errorf("end by %s %q: %+v, want %+v", r.code, r.message, got, r.ended)
		}
	}
}

// TestCodeInGoodAnswer: a code is an error, whatever the status says.
func TestCodeInGoodAnswer(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewDashScope(t)
	a := at(t, studio.URL(), nil)
	for said, want := range map[string]verdict{
		`{"code":"DataInspectionFailed","message":"m"}`:       blocked,
		`{"code":"DataInspectionFailed","message":""}`:        blocked,
		`{"code":"Throttling.RateQuota","message":"m"}`:       busy,
		`{"code":"Arrearage","message":"m"}`:                  credential,
		`{"code":"InternalError.Algo"}`:                       broken,
		`{"code":"","message":"","output":{"choices":[]}}`:    {fault.UpstreamError, upstream.NextSame, upstream.HealthHalf, ""},
		`{"output":{"code":"InvalidURL","message":"no url"}}`: refused,
	} {
		studio.Expect(fakestudio.Behaviour{Failed: said})
		_, err := jobcall.Submit(t.Context(), a, image())
		if tr := jobFailure(t, err); judged(tr) != want || tr.Lost {
			t.Errorf("%s: %+v (lost %t), want %+v", said, judged(tr), tr.Lost, want)
		}
	}
}

// endOf submits a clip and polls it to its bad end.
func endOf(t *testing.T, studio *fakestudio.DashScope, w jobcall.Task) *upstream.JobFailure {
	t.Helper()
	p, err := end(t, at(t, studio.URL(), nil), w)
	if err == nil {
		t.Fatalf("done: %+v", p)
	}
	return jobFailure(t, err)
}

func TestEnds(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewDashScope(t)
	for failed, want := range map[string]verdict{
		`{"status":"CANCELED"}`:  rendering,
		`{}`:                     rendering,
		`{"status":"UNKNOWN"}`:   {fault.UpstreamUnstable, upstream.NextLine, upstream.HealthFail, ""},
		`{"status":"SUCCEEDED"}`: {fault.RenderFailed, upstream.NextSame, upstream.HealthHalf, ""}, // and no clip
	} {
		studio.Expect(fakestudio.Behaviour{Failed: failed})
		if got := judged(endOf(t, studio, video())); got != want {
			t.Errorf("%s: %+v, want %+v", failed, got, want)
		}
	}
	studio.Expect(fakestudio.Behaviour{Lost: true})
	if got := judged(endOf(t, studio, video())); got.job != fault.UpstreamUnstable || got.next != upstream.NextLine {
		t.Errorf("a lost task: %+v", got)
	}
	for _, ticket := range []string{"..", "", "a/b"} {
		_, err := at(t, studio.URL(), nil).Poll(t.Context(), video(), ticket)
		if tr := jobFailure(t, err); tr.Job != fault.UpstreamUnstable {
			t.Errorf("%q: %v", ticket, tr)
		}
	}
}

// TestPollsThatSayNothing: nothing but the provider's own word ends a work.
func TestPollsThatSayNothing(t *testing.T) {
	t.Parallel()
	for _, said := range []string{`{}`, `<html>`, `{"code":"InternalError","message":"m"}`, `{"output":{"task_status"`, ``, `[]`} {
		for _, status := range []int{200, 500} {
			_, err := saying(t, status, said).Poll(t.Context(), video(), "t-1")
			if tr := jobFailure(t, err); tr.Next != upstream.NextPoll {
				t.Errorf("%d %s: %v", status, said, tr)
			}
		}
	}
	_, err := saying(t, 404, "<html>no such page</html>").Poll(t.Context(), video(), "t-1")
	if tr := jobFailure(t, err); tr.Next != upstream.NextPoll {
		t.Errorf("a page that is not there: %v", tr)
	}
	if p, err := saying(t, 200, `{"output":{"task_status":"SUSPENDED"}}`).Poll(t.Context(), video(), "t-1"); err != nil || p.Done {
		t.Errorf("a status of tomorrow: %+v, %v", p, err)
	}
}

// saying makes an adapter whose provider always says the same.
func saying(t testing.TB, status int, body string) jobcall.Generator {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return at(t, server.URL, nil)
}

func TestLostSubmissions(t *testing.T) {
	t.Parallel()
	for _, said := range []string{`{}`, `<html>`, `{"output":{"task_id":""}}`, `{"output":{"task_id":"../x"}}`, `{"output":`, ``} {
		_, err := jobcall.Submit(t.Context(), saying(t, 200, said), video())
		if tr := jobFailure(t, err); !tr.Lost {
			t.Errorf("%s: %v", said, tr)
		}
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewDashScope(t)
	a := at(t, studio.URL(), nil)
	studio.Expect(fakestudio.Behaviour{}, fakestudio.Behaviour{Polls: 9})
	waiting, err := jobcall.Submit(t.Context(), a, video())
	if err != nil {
		t.Fatal(err)
	}
	running, err := jobcall.Submit(t.Context(), a, video())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := a.Poll(t.Context(), video(), running.Ticket); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Cancel(t.Context(), video(), waiting.Ticket); err != nil {
		t.Error(err)
	}
	if err := a.Cancel(t.Context(), video(), running.Ticket); err == nil {
		t.Error("a running task was said to be cancelled")
	}
	for _, ticket := range []string{"", ".."} {
		if err := a.Cancel(t.Context(), video(), ticket); err != nil {
			t.Errorf("%q: %v", ticket, err)
		}
	}
	if got := studio.Cancelled(); len(got) != 1 || got[0] != waiting.Ticket {
		t.Errorf("cancelled %v", got)
	}
}

// FuzzAnswers: whatever a provider says, there is a verdict or a result.
func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{`{"output":{"task_id":"t-1","task_status":"PENDING"}}`,
		`{"output":{"task_status":"SUCCEEDED","video_url":"https://x.example/a.mp4"}}`,
		`{"output":{"task_status":"SUCCEEDED","results":[{"url":"u"},{"code":"X"}]}}`,
		`{"output":{"choices":[{"message":{"content":[{"image":"u"}]}}]}}`,
		`{"code":"Throttling","message":"m"}`, `{"code":5}`, `{"output":[]}`, `{"output":{"code":"InvalidURL"}}`, `<html>`, `{`, ``} {
		f.Add(200, seed)
		f.Add(400, seed)
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		if status < 200 || status > 599 {
			return
		}
		a := saying(t, status, body)
		for _, w := range []jobcall.Task{image(), video()} {
			p, err := jobcall.Submit(t.Context(), a, w)
			if err == nil && p.Ticket == "" && len(p.Results) == 0 {
				t.Errorf("%d %q: neither a ticket nor a result", status, body)
			}
			if err != nil && jobFailure(t, err).Failure == nil {
				t.Errorf("%d %q: no failure", status, body)
			}
		}
		p, err := a.Poll(t.Context(), video(), "t-1")
		if err == nil && p.Done != (len(p.Results) > 0) {
			t.Errorf("%d %q: %+v", status, body, p)
		}
		if err != nil && jobFailure(t, err).Failure == nil {
			t.Errorf("%d %q: no failure", status, body)
		}
	})
}
