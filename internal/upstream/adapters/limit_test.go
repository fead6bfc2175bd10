package adapters_test

import (
	"testing"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/jobcall"
)

// TestLimitOfTheAccount tests the reach of failures: a rate limit of a whole account covers all
// models of the line; an overload or a limit of one model does not.
func TestLimitOfTheAccount(t *testing.T) {
	t.Parallel()
	const limited = `{"message":"too many requests"}`
	for _, c := range []struct {
		provider, model string
		status          int
		body            string
		all             bool
	}{
		{"minimax", "image-01", 200, `{"base_resp":{"status_code":1002,"status_msg":"rate limit"}}`, true},
		{"minimax", "image-01", 200, `{"base_resp":{"status_code":1039,"status_msg":"tokens limit"}}`, true},
		{"minimax", "image-01", 529, `{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`, false},
		{"bfl", "flux-2-pro", 429, `{"detail":"24 active tasks"}`, true},
		{"ideogram", "ideogram-4-5", 429, `{"error":"too many images","reject_reason":"inflight_limit"}`, true},
		{"ideogram", "ideogram-4-5", 402, `{"error":"too many images","reject_reason":"inflight_limit"}`, true},
		{"recraft", "recraftv4_1", 429, limited, true},
		{"stability", "ultra", 429, `{"id":"1","name":"rate_limit_exceeded","errors":["150 requests in 10 seconds"]}`, true},
		{"replicate", "easel/flux", 429, `{"detail":"Request was throttled.","status":429}`, true},
		{"xai", "grok-imagine-image", 429, `{"code":"rate","error":"too many requests"}`, false},
	} {
		_, err := jobcall.Submit(t.Context(), conformance.LineWithReply(t, c.provider, c.status, c.body), task.Image(c.model))
		f := conformance.JobFailure(t, err)
		if f.Health != upstream.HealthCool || f.Next != upstream.NextLater || f.AllModels != c.all {
			t.Errorf("%s, %d %s: health %v, next %v, all models %v; want cool, %v, %v (%v)",
				c.provider, c.status, c.body, f.Health, f.Next, f.AllModels, upstream.NextLater, c.all, err)
		}
	}
}
