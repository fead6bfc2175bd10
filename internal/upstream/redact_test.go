package upstream

import (
	"strings"
	"testing"

	"tollgate/internal/fault"
)

func TestRedact(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Incorrect API key provided: sk-ab***yz. You can":               "Incorrect API key provided: [redacted]. You can",
		"Incorrect API key provided: sk-proj-********************abcd.": "Incorrect API key provided: [redacted].",
		"key sk-...WxYz is out":                                         "key [redacted] is out",
		"na***ys and xai-ab****":                                        "[redacted] and [redacted]",
		"Your api key: ****abcd is invalid":                             "Your api key: [redacted] is invalid",
		"use sk-proj-Ab12Cd34Ef56Gh78Ij90":                              "use [redacted]",
		"AKIAIOSFODNN7EXAMPLE signed":                                   "[redacted] signed",
		"key AIzaSyA1234567890abcdefghijklmn":                           "key [redacted]",
		"in organization org-AbCdEfGhIj1234567890 on":                   "in organization [redacted] on",
		"organization `org_01jxyz0123456789abcdefghij` service":         "organization `[redacted]` service",
		"Project proj_abcDEF1234567890 has no":                          "Project [redacted] has no",
		"Your team 16f2151a-40f4-4a80-8ad0-cae00c27e8dd has":            "Your team [redacted] has",
		"Team: 16f2151a-40f4-4a80-8ad0-cae00c27e8dd, API key ID: 26f2151a-40f4-4a80-8ad0-cae00c27e8dd, Model: m": "Team: [redacted], " +
			"API key ID: [redacted], Model: m",
		"https://console.x.ai/team/481c7584-ab46-4974-b86b-a4978384e229.": "https://console.x.ai/team/[redacted].",
		"User: arn:aws:iam::123456789012:user/u is not":                   "User: [redacted] is not",
		"on resource: arn:aws-us-gov:bedrock:us-east-1:123456789012:x/y.": "on resource: [redacted].",
		"Model `projects/740989871600/locations/l/models/m` was":          "Model `projects/[redacted]/locations/l/models/m` was",
		"projects/our-project":                                       "projects/[redacted]",
		"Project `our-project` is not allowed":                       "Project `[redacted]` is not allowed",
		"consumer 'project_number:123456789'":                        "consumer 'project_number:[redacted]'",
		"Not found for account 'Qawmu2vUw3rdcREnubcAVqe1c55nUTb1hC'": "Not found for account '[redacted]'",
		"account 123456789012 has":                                   "account [redacted] has",
		"Account our-company is suspended":                           "Account [redacted] is suspended",
		"https://our-co.openai.azure.com/openai/v1":                  "https://[redacted].openai.azure.com/openai/v1",
		"by me@our-project.iam.gserviceaccount.com":                  "by [redacted]",
	} {
		if got := redact(text); got != want {
			t.Errorf("%q\nbecomes %q\nwant    %q", text, got, want)
		}
	}
	// Text about the request stays unchanged.
	for _, text := range []string{
		"This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8000 in the messages, 1000 in the completion).",
		"Invalid value for 'messages[2].tool_calls[0].id': 'call_Ab12Cd34Ef56Gh78Ij90Kl12' was not found.",
		"No tool output found for function call call_9f8e7d6c5b4a39281706f5e4.",
		"Previous response with id 'resp_68a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5' not found.",
		"file-Ab12Cd34Ef56Gh78Ij90 and req_011CaWDzTjCygKryF7ETTuZk and id 3f2504e0-4f89-11d3-9a0c-0305e82c3301",
		"The model `gpt-4o-mini-2024-07-18` does not support **kwargs, x**2 or **bold** text...",
		"Unknown parameter: 'team.project'. Did you mean 'account_id' or 'organization'?",
		"Invalid schema for function 'get_team': property 'account': expected a string, got 12345678.",
		"Failed to read src/projects/tollgate/main.go: the organization of the task-force risk-assessment is unclear",
		"Invalid 'tools[0].function.name': string does not match pattern '^[a-zA-Z0-9_-]+$'.",
		"max_tokens: 200000 > 128000, which is the maximum allowed number of output tokens for claude-opus-5-5",
		"https://example.com/team/photos/2024/picture1.png is not a valid picture",
		"Your account balance question in messages.3 is too long; user_message_0123 is unknown",
	} {
		if got := redact(text); got != text {
			t.Errorf("%q\nbecomes %q", text, got)
		}
	}
}

// TestRedactOwnKey checks that no part of the line's own key remains, however a provider masks the
// key.
func TestRedactOwnKey(t *testing.T) {
	t.Parallel()
	const secret = "tollkey-abcdef123456wxyz"
	for _, masked := range []string{secret, "toll****wxyz", "tollkey-ab*wxyz", "tollke…xyz", "to..yz", "…6wxyz",
		"tollkey-***", "tollkey-abc..."} {
		f := Classify(400, "", []byte(openAI("", "", "Bad key: "+masked+", sir.")), nil).Redact(secret)
		if got := f.Fault().Message(); got != "Bad key: [redacted], sir." {
			t.Errorf("%s: %q", masked, got)
		}
		if strings.Contains(f.Error(), "wxyz") {
			t.Errorf("%s: in the log: %v", masked, f)
		}
	}
	for text, want := range map[string]string{
		"The key ending in wxyz is revoked":   "The key ending in [redacted] is revoked",
		"the key that starts with 'tollkey-'": "the key that starts with '[redacted]'",
		"a name ending with s or in a digit":  "a name ending with s or in a digit",
	} {
		if got := hideSecrets(text, []string{secret}); got != want {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	for _, text := range []string{"wait... a bit", "to... be", "**kwargs", "f(*, x)", "…and so on"} {
		f := Classify(400, "", []byte(openAI("", "", text)), nil).Redact(secret)
		if got := f.Fault().Message(); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

// TestJobsTellNoIdentity checks that the messages for the user of a job contain no part of the
// gateway's identity.
func TestJobsTellNoIdentity(t *testing.T) {
	t.Parallel()
	const text = "Project `our-project-1` of arn:aws:iam::123456789012:user/u"
	for _, failure := range []*JobFailure{
		SubmitFailure(KindVideo, 400, "application/json", []byte(openAI("", "", text)), nil),
		SubmitFailure(KindImage, 400, "application/json", []byte(openAI("", "moderation_blocked", text)), nil),
		TaskFailure(KindVideo, "InvalidParameter", text),
		Unfit(KindVideo, "%s", text),
	} {
		message := failure.UserMessage()
		if strings.Contains(message, "our-project") || strings.Contains(message, "arn:") || !strings.Contains(message, redaction) {
			t.Errorf("the message of %s is %q", failure.Job, message)
		}
	}
	if got := SubmitFailure(KindImage, 400, "", []byte(openAI("", "", "x")), nil); got.Job != fault.UpstreamError {
		t.Errorf("%s", got.Job)
	}
}
