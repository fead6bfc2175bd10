package ark_test

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
	sound      = verdict{fault.ContentPolicy, upstream.NextSame, upstream.HealthNone, "audio"}
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

// row is one code of Ark: what it means at the submission of a clip, at its end
// and for a picture.
type row struct {
	status               int
	code, param, message string
	clip, ended, picture verdict
	alsoAs400            bool
}

// TestCodes is Ark's table of codes, told with the status that they have, and
// with a plain 400, which a code outweighs.
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
		{429, "ServerOverloaded", "", "m", busy, verdict{fault.RenderFailed, upstream.NextLater, upstream.HealthCool, ""}, busy, true},
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
	a := at(t, studio.URL(), nil)
	for _, r := range rows {
		said := fmt.Sprintf(`{"code":%q,"message":%q,"param":%q,"type":"BadRequest"}`, r.code, r.message, r.param)
		statuses := []int{r.status}
		if r.alsoAs400 && r.status != 400 {
			statuses = append(statuses, 400)
		}
		for _, status := range statuses {
			how := fakestudio.Behaviour{Status: status, Body: `{"error":` + said + `,"request_id":"021"}`}
			studio.Expect(how, how)
			for _, w := range []jobcall.Task{video(), image()} {
				want := r.clip
				if w.Kind == upstream.KindImage {
					want = r.picture
				}
				_, err := jobcall.Submit(t.Context(), a, w)
				if tr := jobFailure(t, err); judged(tr) != want || tr.Lost {
					t.Errorf("%s %d %s %q: %+v, want %+v", w.Kind, status, r.code, r.message, judged(tr), want)
				}
			}
		}
		// The same as the end of a task, and of the only picture of an answer.
		studio.Expect(fakestudio.Behaviour{Failed: said}, fakestudio.Behaviour{Failed: said})
		if got := judged(endOf(t, studio, video())); got != r.ended {
			t.Errorf("end by %s %q: %+v, want %+v", r.code, r.message, got, r.ended)
		}
		_, err := jobcall.Submit(t.Context(), a, image())
		if got := judged(jobFailure(t, err)); r.status == 400 && got != r.picture {
			t.Errorf("a picture ended by %s: %+v, want %+v", r.code, got, r.picture)
		}
	}
}

// endOf submits a clip and polls it to its bad end.
func endOf(t *testing.T, studio *fakestudio.Ark, w jobcall.Task) *upstream.JobFailure {
	t.Helper()
	a := at(t, studio.URL(), nil)
	p, err := jobcall.Submit(t.Context(), a, w)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		got, err := a.Poll(t.Context(), w, p.Ticket)
		if err != nil {
			return jobFailure(t, err)
		}
		if got.Done {
			t.Fatalf("done: %+v", got)
		}
	}
	t.Fatal("goes on for ever")
	return nil
}

func TestEnds(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewArk(t)
	for failed, want := range map[string]verdict{
		`{"status":"expired"}`:   {fault.RenderTimeout, upstream.NextLine, upstream.HealthFail, ""},
		`{"status":"cancelled"}`: rendering,
		`null`:                   rendering,
		`{}`:                     rendering,
		`{"status":"succeeded"}`: {fault.RenderFailed, upstream.NextSame, upstream.HealthHalf, ""}, // and no clip
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
	for _, said := range []string{`{}`, `<html>`, `{"error":{"code":"InternalServiceError","message":"m"}}`, `{"id":"x","status"`, ``, `[]`} {
		for _, status := range []int{200, 500} {
			_, err := saying(t, status, said).Poll(t.Context(), video(), "cgt-1")
			if tr := jobFailure(t, err); tr.Next != upstream.NextPoll {
				t.Errorf("%d %s: %v", status, said, tr)
			}
		}
	}
	_, err := saying(t, 404, "<html>no such page</html>").Poll(t.Context(), video(), "cgt-1")
	if tr := jobFailure(t, err); tr.Next != upstream.NextPoll {
		t.Errorf("a page that is not there: %v", tr)
	}
	if p, err := saying(t, 200, `{"id":"cgt-1","status":"polishing"}`).Poll(t.Context(), video(), "cgt-1"); err != nil || p.Done {
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
	for _, said := range []string{`{}`, `<html>`, `{"id":""}`, `{"id":"../x"}`, `{"id":`, ``} {
		_, err := jobcall.Submit(t.Context(), saying(t, 200, said), video())
		if tr := jobFailure(t, err); !tr.Lost {
			t.Errorf("%s: %v", said, tr)
		}
	}
	_, err := jobcall.Submit(t.Context(), saying(t, 200, `{"error":{"code":"AccountOverdueError","message":"m"}}`), video())
	if tr := jobFailure(t, err); tr.Lost || judged(tr) != credential {
		t.Errorf("an error in a good answer: %+v", tr)
	}
	_, err = jobcall.Submit(t.Context(), saying(t, 200, `{"model":"m","data":[]}`), image())
	if tr := jobFailure(t, err); tr.Next != upstream.NextSame || tr.Health != upstream.HealthHalf || tr.Job != fault.UpstreamError {
		t.Errorf("no picture: %+v", tr)
	}
	part := `{"data":[{"url":"https://x.example/1"}],"error":{"code":"InternalServiceError","message":"the rest"}}`
	if p, err := jobcall.Submit(t.Context(), saying(t, 200, part), image()); err != nil || len(p.Results) != 1 {
		t.Errorf("a part of a set: %+v, %v", p, err)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewArk(t)
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
	for _, ticket := range []string{"", "..", "cgt-unknown"} {
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
	for _, seed := range []string{`{"id":"cgt-1"}`, `{"id":"cgt-1","status":"succeeded","content":{"video_url":"https://x.example/a.mp4"}}`,
		`{"status":"failed","error":{"code":"InvalidParameter","message":"content[0].image_url"}}`, `{"data":[{"url":"u"},{"error":{}}]}`,
		`{"data":[{"url":1}],"error":"x"}`, `{"error":{"code":5}}`, `<html>`, `{`, ``, `{"data":{"url":"x"}}`} {
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
		p, err := a.Poll(t.Context(), video(), "cgt-1")
		if err == nil && p.Done != (len(p.Results) > 0) {
			t.Errorf("%d %q: %+v", status, body, p)
		}
		if err != nil && jobFailure(t, err).Failure == nil {
			t.Errorf("%d %q: no failure", status, body)
		}
	})
}
