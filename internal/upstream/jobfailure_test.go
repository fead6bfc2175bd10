package upstream_test

import (
	"errors"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
)

func TestUnfit(t *testing.T) {
	t.Parallel()
	for kind, job := range map[string]fault.Code{upstream.KindImage: fault.UpstreamError, upstream.KindVideo: fault.InvalidMaterial} {
		tr := upstream.Unfit(kind, "Reference %d is too large.", 2)
		if tr.Job != job || tr.Next != upstream.NextLine || tr.Health != upstream.HealthNone || tr.Message != "Reference 2 is too large." {
			t.Errorf("%s: %+v", kind, tr)
		}
	}
}

func TestUnread(t *testing.T) {
	t.Parallel()
	m := upstream.UnreadableFile(errors.New("disk"))
	if m.Job != fault.UpstreamError || m.Next != upstream.NextLater || m.Health != upstream.HealthNone || m.Lost {
		t.Errorf("%+v", m)
	}
}

func TestAsJobFailure(t *testing.T) {
	t.Parallel()
	m := upstream.UnreadableFile(errors.New("disk"))
	if upstream.AsJobFailure(m) != m {
		t.Error("another failure")
	}
	if m := upstream.AsJobFailure(errors.New("odd")); m.Failure == nil || m.Next != upstream.NextLine {
		t.Errorf("%+v", m)
	}
}

// TestJobsOfOurOwnTroubles checks that a problem with the gateway's account or catalog at a vendor
// moves the job to the next line, and that the user does not see the vendor's message.
func TestJobsOfOurOwnTroubles(t *testing.T) {
	t.Parallel()
	const (
		openai, xai, gemini = "https://api.openai.com/v1", "https://api.x.ai/v1", "https://generativelanguage.googleapis.com/v1beta"
		fal, replicate      = "https://queue.fal.run", "https://api.replicate.com/v1"
		ark, dashscope      = "https://ark.ap-southeast.bytepluses.com/api/v3", "https://dashscope-intl.aliyuncs.com/api/v1"
		credential, model   = upstream.HealthCredential, upstream.HealthModel
		proven, unproven    = false, true
		team                = "16f2151a-40f4-4a80-8ad0-cae00c27e8dd"
	)
	for _, tt := range []struct {
		provider, host string
		status         int
		body           string
		health         upstream.Health
		unproven       bool
	}{
		{"openai", openai, 401, `{"error":{"message":"Incorrect API key provided: sk-ab***yz.","code":"invalid_api_key"}}`, credential, proven},
		{"openai", openai, 400, `{"error":{"message":"Billing hard limit","code":"billing_hard_limit_reached"}}`, credential, proven},
		{"openai", openai, 429, `{"error":{"message":"x","type":"insufficient_quota","code":"insufficient_quota"}}`, credential, proven},
		{"openai", openai, 400, `{"error":{"message":"Invalid model","type":"invalid_model","code":"model_not_found"}}`, model, proven},
		{"openai", xai, 400, `{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xa***yz. You can obtain an ` +
			`API key from https://console.x.ai."}`, credential, unproven},
		{"openai", xai, 429, `{"code":"x","error":"Your team ` + team + ` has either used all available credits or reached its monthly ` +
			`spending limit."}`, credential, unproven},
		{"openai", xai, 400, `{"code":"x","error":"The model grok-imagine does not exist or your team ` + team + ` does not have access to it."}`,
			model, unproven},
		{"gemini", gemini, 400, `{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"reason":` +
			`"API_KEY_INVALID"}]}}`, credential, proven},
		{"gemini", gemini, 400, `{"error":{"code":400,"message":"Enable billing.","status":"FAILED_PRECONDITION"}}`, credential, unproven},
		{"gemini", gemini, 404, `{"error":{"code":404,"message":"models/veo is not found","status":"NOT_FOUND"}}`, model, unproven},
		{"fal", fal, 403, `{"detail":"User is locked. Reason: Exhausted balance. Top up your balance."}`, credential, unproven},
		{"fal", fal, 404, `{"detail":"Application 'x' not found"}`, model, unproven},
		{"replicate", replicate, 402, `{"title":"Insufficient credit","detail":"You have insufficient credit to run this model.","status":402}`,
			credential, unproven},
		{"replicate", replicate, 422, `{"title":"Invalid version or not permitted","detail":"The specified version does not exist (or perhaps ` +
			`you don't have permission to use it?)","status":422}`, model, unproven},
		{"ark", ark, 403, `{"error":{"code":"AccountOverdueError","message":"account 2100012345 is overdue"}}`, credential, proven},
		{"ark", ark, 403, `{"error":{"code":"OperationDenied.ServiceNotOpen","message":"x"}}`, credential, proven},
		{"ark", ark, 404, `{"error":{"code":"ModelNotOpen","message":"Your account 2100012345 has not activated the model"}}`, model, proven},
		{"dashscope", dashscope, 400, `{"code":"Arrearage","message":"Access denied"}`, credential, proven},
		{"dashscope", dashscope, 403, `{"code":"Model.AccessDenied","message":"x"}`, model, proven},
	} {
		for _, kind := range []string{upstream.KindImage, upstream.KindVideo} {
			got := upstream.Source{Provider: tt.provider, BaseURL: tt.host}.SubmitFailure(kind, tt.status, "application/json", []byte(tt.body), nil)
			if got.Next != upstream.NextLine || got.Job != fault.UpstreamError || got.Health != tt.health || got.Unproven != tt.unproven {
				t.Errorf("%s of %s: %s: %v, next %d, %s, unproven %t", kind, tt.provider, tt.body, got, got.Next, got.Health, got.Unproven)
			}
			if told := got.UserMessage(); strings.Contains(told, "The provider") {
				t.Errorf("%s of %s: %s is reported as %q", kind, tt.provider, tt.body, told)
			}
		}
	}
}

// TestEndedBySource tests the scope of an account's limit in a failed task, and the wording of one
// vendor in another vendor's response.
func TestEndedBySource(t *testing.T) {
	t.Parallel()
	for provider, all := range map[string]bool{"minimax": true, "bfl": true, "replicate": true, "luma": false, "fal": false, "": false} {
		f := upstream.Source{Provider: provider}.TaskFailure(upstream.KindVideo, "rate_limit_exceeded", "slow down")
		if f.Health != upstream.HealthCool || f.AllModels != all {
			t.Errorf("%q: %v, all models %v, want %v", provider, f.Health, f.AllModels, all)
		}
	}
	const gone = "The specified version does not exist"
	if f := (upstream.Source{Provider: "replicate"}).TaskFailure(upstream.KindVideo, "", gone); f.Health != upstream.HealthModel {
		t.Errorf("replicate: %v", f.Health)
	}
	if f := (upstream.Source{Provider: "fal"}).TaskFailure(upstream.KindVideo, "", gone); f.Health != upstream.HealthFail {
		t.Errorf("fal: %v", f.Health)
	}
}
