package kling_test

import (
	"strings"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/credential"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/kling"
)

const access = "AccessKey0123456789"

// openWithKeyPair opens a line with a pair of keys at an account with the same keys. Both clocks are
// ahead of now by later.
func openWithKeyPair(t *testing.T, secret string, later *time.Duration) (*kling.Adapter, *fakestudio.Kling) {
	t.Helper()
	studio := fakestudio.NewKling(t)
	studio.Access, studio.Secret = access, "SecretKey0123456789"
	transport := conformance.Transport(t)
	studio.Now = func() time.Time { return time.Now().Add(*later) }
	keeper := &credential.Keeper{Now: studio.Now}
	t.Cleanup(keeper.Close)
	a, err := kling.New(upstream.Target{Line: "main", Provider: kling.Provider, BaseURL: studio.URL(), Key: secret, PublicTransport: transport,
		Options: map[string]any{"access_key": access}}, transport, keeper)
	if err != nil {
		t.Fatal(err)
	}
	return a, studio
}

// TestPairOfKeys tests the submissions of a line with a pair of keys, through the older interface.
// A case without a path must be unsuitable.
func TestPairOfKeys(t *testing.T) {
	t.Parallel()
	older := func(change ...task.Change) jobcall.Task {
		return clip(append([]task.Change{task.Model("kling-v3")}, change...)...)
	}
	for name, tt := range map[string]struct {
		work       jobcall.Task
		path, body string
	}{
		"text": {older(task.Params(`{"audio":true,"negative_prompt":"fog"}`)), "/v1/videos/text2video", `{"aspect_ratio":"16:9","duration":"5",` +
			`"external_task_id":"sub_1","mode":"std","model_name":"kling-v3","negative_prompt":"fog","prompt":"waves","sound":"on"}`},
		"frames": {older(task.Refs("last_frame=b", "first_frame=inline"), task.Tier("4K"), task.Seconds(15)), "/v1/videos/image2video",
			`{"duration":"15","external_task_id":"sub_1","image":"YWJj","image_tail":"https://media.example/b","mode":"4k",` +
				`"model_name":"kling-v3","prompt":"waves"}`},
		"silence of what makes none": {older(task.Model("kling-v2-5-turbo"), task.Refs("a"), task.Params(`{"audio":false}`)),
			"/v1/videos/image2video", `{"duration":"5","external_task_id":"sub_1","image":"https://media.example/a","mode":"std",` +
				`"model_name":"kling-v2-5-turbo","prompt":"waves"}`},
		"a picture": {picture(), "/v1/images/generations", `{"aspect_ratio":"16:9","external_task_id":"sub_1","model_name":"kling-v3","n":1,` +
			`"prompt":"a lighthouse","resolution":"1k"}`},

		"a model of the newer":   {work: clip()},
		"a reference":            {work: older(task.Refs("reference=a"))},
		"a video":                {work: older(task.Refs("a.mp4"))},
		"a last frame alone":     {work: older(task.Refs("last_frame=a"))},
		"a ratio beside a frame": {work: older(task.Refs("a"), task.Ratio("16:9"))},
		"4K of 2.6":              {work: older(task.Model("kling-v2-6"), task.Tier("4K"))},
		"six seconds of 2.6":     {work: older(task.Model("kling-v2-6"), task.Seconds(6))},
		"sound of 2.6 in 720p":   {work: older(task.Model("kling-v2-6"), task.Params(`{"audio":true}`))},
		"sound of 2.5":           {work: older(task.Model("kling-v2-5-turbo"), task.Params(`{"audio":true}`))},
		"a seed":                 {work: older(task.Params(`{"seed":7}`))},
		"several shots":          {work: older(task.Params(`{"multi_shot":true}`))},
	} {
		a, studio := openWithKeyPair(t, "SecretKey0123456789", new(time.Duration))
		status, err := jobcall.Submit(t.Context(), a, tt.work)
		sent := studio.Submissions()
		if tt.path == "" {
			if v := conformance.OutcomeOf(t, err); v != conformance.OutcomesOf(tt.work.Kind).Refused || len(sent) != 0 {
				t.Errorf("%s: %+v, %d submissions", name, v, len(sent))
			}
			continue
		}
		if err != nil || len(sent) != 1 || sent[0].Path != tt.path || string(sent[0].Body) != tt.body {
			t.Errorf("%s: %v, %+v", name, err, sent)
			continue
		}
		if found, err := a.Find(t.Context(), tt.work); found != status.Ticket || err != nil {
			t.Errorf("%s: Find returned %q, %v; want %q", name, found, err, status.Ticket)
		}
		for range 3 {
			if err == nil && !status.Done {
				status, err = a.Poll(t.Context(), tt.work, status.Ticket)
			}
		}
		if err != nil || !status.Done || len(status.Results) != 1 {
			t.Errorf("%s: %+v, %v", name, status, err)
		}
	}
}

// TestTokens tests tokens, valid for half an hour: a new token is created before the end, a rejected
// token takes the line out of use, and no failure contains a token.
func TestTokens(t *testing.T) {
	t.Parallel()
	later := time.Duration(0)
	a, studio := openWithKeyPair(t, "SecretKey0123456789", &later)
	tokens := map[string]bool{}
	for _, later = range []time.Duration{0, 20 * time.Minute, 30*time.Minute - time.Second, time.Hour} {
		job := task.ApplyChanges(clip(task.Model("kling-v3")), func(job *jobcall.Task) { job.Key = later.String() })
		if _, err := jobcall.Submit(t.Context(), a, job); err != nil {
			t.Errorf("%s later: %v", later, err)
		}
	}
	for _, s := range studio.Submissions() {
		tokens[s.Header.Get("Authorization")] = true
	}
	if len(tokens) != 3 {
		t.Errorf("%d tokens in an hour", len(tokens))
	}
	other, _ := openWithKeyPair(t, "AnotherSecret0123456789", new(time.Duration))
	_, err := jobcall.Submit(t.Context(), other, clip(task.Model("kling-v3")))
	if v := conformance.OutcomeOf(t, err); v != conformance.OutcomesOf(upstream.KindVideo).Account {
		t.Errorf("a wrong pair: %+v, %v", v, err)
	}
	if secrets := other.Secrets(); len(secrets) != 1 || strings.Contains(err.Error(), secrets[0]) {
		t.Errorf("the failure has the secret: %v", err)
	}
}
