package vertex_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/fakecloud"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/credential"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/vertex"
)

func picture(change ...task.Change) jobcall.Task {
	return task.ApplyChanges(task.Image("gemini-3-pro-image"), change...)
}

func clip(change ...task.Change) jobcall.Task {
	return task.ApplyChanges(task.Video("veo-3.1-generate-001", task.Seconds(8)), change...)
}

// TestTasks tests the path and body of tasks, with a key and with a token for the line's project. The
// line must reject a task without a path here.
func TestTasks(t *testing.T) {
	t.Parallel()
	const models = "/v1/projects/p1/locations/us-central1/publishers/google/models/"
	for name, tt := range map[string]struct {
		w          jobcall.Task
		path, body string
	}{
		"picture": {picture(), models + "gemini-3-pro-image:generateContent",
			`{"contents":[{"parts":[{"text":"a lighthouse"}],"role":"user"}],` +
				`"generationConfig":{"imageConfig":{"aspectRatio":"16:9","imageSize":"1K"},"responseModalities":["IMAGE"]}}`},
		"clip": {clip(task.Refs("first_frame=inline"), task.Params(`{"audio":false,"negative_prompt":"dogs","seed":7}`)),
			models + "veo-3.1-generate-001:predictLongRunning",
			`{"instances":[{"image":{"bytesBase64Encoded":"YWJj","mimeType":"image/png"},"prompt":"waves"}],` +
				`"parameters":{"durationSeconds":8,"generateAudio":false,"negativePrompt":"dogs","resolution":"720p",` +
				`"sampleCount":1,"seed":7}}`},
		"a clip of Omni":        {w: clip(task.Model("gemini-omni-1.1-flash"))},
		"another folder":        {w: picture(task.Model("tunedModels/x"))},
		"a picture with a mask": {w: picture(task.Refs("inline"), task.Mask(task.ParseReference("inline")))},
	} {
		for _, auth := range []string{"api_key", "service_account"} {
			studio := fakestudio.NewVertex(t)
			a, _ := openLine(t, studio, auth)
			status, err := jobcall.Submit(t.Context(), a, tt.w)
			sent := studio.Submissions()
			if tt.path == "" {
				var failure *upstream.JobFailure
				if !errors.As(err, &failure) || failure.Next != upstream.NextLine || len(sent) != 0 {
					t.Errorf("%s: %v, %d submissions", name, err, len(sent))
				}
				continue
			}
			if err != nil || sent[0].Path != tt.path || string(sent[0].Body) != tt.body {
				t.Errorf("%s, %s: %v, %+v", name, auth, err, sent)
				continue
			}
			for range 2 {
				if !status.Done {
					status, err = a.Poll(t.Context(), tt.w, status.Ticket)
				}
			}
			if err != nil || !status.Done || len(status.Results) != 1 || len(status.Results[0].Data) == 0 {
				t.Errorf("%s, %s: %+v, %v", name, auth, status, err)
			}
		}
	}
}

// openLine opens a line for the studio's project. It returns the line's adapter and token issuer.
func openLine(t *testing.T, studio *fakestudio.Gemini, auth string) (*vertex.Adapter, *fakecloud.Tokens) {
	t.Helper()
	tokens, secret := fakecloud.NewPlainTokens(t), key
	if auth == "service_account" {
		secret = tokens.ServiceAccount(t)
	}
	transport, keeper := conformance.Transport(t), &credential.Keeper{Now: time.Now}
	t.Cleanup(keeper.Close)
	a, err := vertex.New(upstream.Target{Line: "main", Provider: vertex.Provider, BaseURL: studio.Host() + "/v1", Key: secret,
		Options: map[string]any{"auth": auth, "project": "p1", "location": "us-central1"}}, transport, keeper)
	if err != nil {
		t.Fatal(err)
	}
	return a, tokens
}

// TestTasksWithoutToken tests that a failed token request is the line's failure, makes no call to
// the provider, and does not show the token.
func TestTasksWithoutToken(t *testing.T) {
	t.Parallel()
	studio := fakestudio.NewVertex(t)
	a, tokens := openLine(t, studio, "service_account")
	tokens.Refuse(400, `{"error":"invalid_grant","error_description":"Invalid JWT"}`)
	for _, task := range []jobcall.Task{picture(), clip()} {
		_, err := jobcall.Submit(t.Context(), a, task)
		var failure *upstream.JobFailure
		if !errors.As(err, &failure) || failure.Lost || failure.Next != upstream.NextLine || failure.Health != upstream.HealthCredential {
			t.Errorf("%s: %+v", task.Kind, err)
		}
	}
	tokens.Refuse(0, "")
	status, err := jobcall.Submit(t.Context(), a, clip())
	if err != nil {
		t.Fatal(err)
	}
	studio.Expect(fakestudio.Behaviour{Status: 400, Body: `{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"` +
		tokens.Current() + `"}}`})
	if _, err := jobcall.Submit(t.Context(), a, clip()); err == nil || strings.Contains(err.Error(), tokens.Current()) {
		t.Errorf("the failure contains the token: %v", err)
	}
	if _, err := a.Poll(t.Context(), clip(), "models/veo/operations/../x"); err == nil {
		t.Error("Poll accepts an invalid ticket")
	}
	if err := a.Cancel(t.Context(), clip(), status.Ticket); err != nil {
		t.Error(err)
	}
}
