package upstream

import (
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire/rawjson"
)

// secretRequest is a request whose texts must not appear in a log.
const secretRequest = `{"model":"vendor/long-model-name-1","stream":true,"messages":[` +
	`{"role":"system","content":"Die Übergabe findet am alten Hafen statt"},` +
	`{"role":"user","content":[{"type":"text","text":"Ask Dr. Weber about the\nbiopsy of Mrs. Keller"}]},` +
	`{"role":"user","content":"пароль от сейфа лежит дома"},` +
	`{"role":"user","content":"\u65b0\u3057\u3044\u5de5\u5834\u306e\u5834\u6240\u306f\u79d8\u5bc6\u3067\u3059"},` +
	`{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{\"q\":\"K\\u00fcndigung von Anna Schmidt\"}"}}]}],` +
	`"metadata":{"ref":"PRJ00112233445566778899"}}`

// TestConcealLeavesMessagesOut checks the known ways in which providers repeat a request.
func TestConcealLeavesMessagesOut(t *testing.T) {
	t.Parallel()
	for _, message := range []string{
		"Invalid prompt: biopsy of Mrs. Keller",
		"invalid prompt: BIOPSY OF MRS KELLER.",
		"about the\nbiopsy of",
		"messages.1: about the\\nbiopsy of Mrs. Keller",
		"blocked: biopsyofMrsKeller",
		"blocked: biopsy+of+Mrs.+Keller",
		"blocked: biopsy%20of%20Mrs%2E%20Keller",
		"blocked: <b>biopsy</b> <b>of</b> <b>Mrs</b>",
		"blocked: biopsy&nbsp;of&nbsp;Mrs",
		`input {"content":"Die \u00dcbergabe findet"}`,
		`input {\"content\":\"Die \\u00dcbergabe findet\"}`,
		"blocked: Die &Uuml;bergabe findet",
		`b'Die \xc3\x9cbergabe findet'`,
		"пароль от сейфа",
		"blocked: 工場の場所は秘密",
		`blocked: \u5de5\u5834\u306e\u5834\u6240\u306f\u79d8\u5bc6`,
		"tool call failed: Kündigung von Anna",
		"unknown reference PRJ00112233445566778899",
		"unknown reference 0112233445566778",
	} {
		f := Classify(400, "application/json", []byte(openAI("invalid_request_error", "bad_value", message)), nil)
		f.Conceal(rawjson.Pieces{[]byte(secretRequest[:100]), []byte(secretRequest[100:])})
		if got, want := f.Error(), "bad_value (status 400): invalid_request_error: bad_value: "+concealedMessage; got != want {
			t.Errorf("%q is reported as %q", message, got)
		}
		if f.Rejection == nil || f.Rejection.Message() != strings.TrimSpace(message) {
			t.Errorf("the client reads %+v instead of %q", f.Rejection, message)
		}
		f = concealedFrom(Classify(502, "text/html", []byte("<html>"+message+"</html>"), nil), rawjson.Pieces{[]byte(secretRequest)})
		if got := f.Cause.Error(); got != "text/html: "+concealedMessage {
			t.Errorf("a page with %q is reported as %q", message, got)
		}
		task := TaskFailure(KindVideo, "E77", message)
		if f := concealedFrom(task.Failure, rawjson.Pieces{[]byte(secretRequest)}); f.Cause.Error() != "E77: "+concealedMessage {
			t.Errorf("a task with %q is reported as %q", message, f.Cause)
		}
	}
}

// TestConcealKeepsMessages checks messages that an operator needs.
func TestConcealKeepsMessages(t *testing.T) {
	t.Parallel()
	for _, message := range []string{
		"The model `vendor/long-model-name-1` does not exist or you do not have access to it.",
		"Unsupported parameter: 'max_completion_tokens' is not supported with this model.",
		"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
		"Incorrect API key provided: [redacted].",
		"You exceeded your current quota, please check your plan and billing details.",
		"biopsy of",
		"",
	} {
		f := Classify(400, "application/json", []byte(openAI("invalid_request_error", "some_code", message)), nil)
		want := f.Cause.Error()
		if got := concealedFrom(f, rawjson.Pieces{[]byte(secretRequest)}).Cause.Error(); got != want || !strings.HasSuffix(got, message) {
			t.Errorf("%q is reported as %q", message, got)
		}
	}
	f := Fail(fault.UpstreamConnectionError, nil)
	if concealedFrom(f, rawjson.Pieces{[]byte(secretRequest)}).Cause != nil {
		t.Error("a failure got a cause")
	}
	f = Classify(500, "", []byte(openAI("a", "b", "It broke down completely.")), nil)
	if got := concealedFrom(f, nil).Cause.Error(); got != "a: b: It broke down completely." {
		t.Errorf("without a request the cause is %q", got)
	}
}

// TestConcealWithoutComparison checks that a message is omitted if the request cannot be compared.
func TestConcealWithoutComparison(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]string{
		"too long":  `{"messages":[{"content":"` + strings.Repeat("x", maxCompared) + `"}]}`,
		"no JSON":   `--boundary`,
		"too deep":  strings.Repeat("[", 100000) + strings.Repeat("]", 100000),
		"cut short": secretRequest[:50],
	} {
		f := Classify(500, "", []byte(openAI("a", "b", "It broke down completely.")), nil)
		if got := concealedFrom(f, rawjson.Pieces{[]byte(request)}).Cause.Error(); got != "a: b: "+concealedMessage {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestRedactKeepsNames checks that the names are still known after secrets were removed.
func TestRedactKeepsNames(t *testing.T) {
	t.Parallel()
	f := Classify(400, "", []byte(openAI("a", "b", "key sk-1234567890 sent biopsy of Mrs. Keller")), nil)
	if got := concealedFrom(f.Redact("sk-1234567890"), rawjson.Pieces{[]byte(secretRequest)}).Cause.Error(); got != "a: b: "+concealedMessage {
		t.Errorf("%q", got)
	}
}

// concealedFrom conceals a failure and returns it.
func concealedFrom(f *Failure, request rawjson.Pieces) *Failure {
	f.Conceal(request)
	return f
}

// TestConcealLeavesNamesOut checks type and code, in which some providers also repeat a request.
// Identifiers stay, even those that occur in the request.
func TestConcealLeavesNamesOut(t *testing.T) {
	t.Parallel()
	for name, stays := range map[string]bool{
		"biopsy of Mrs. Keller":             false,
		"invalid: BIOPSY OF MRS KELLER":     false,
		"biopsy%20of%20Mrs%2E%20Keller":     false,
		"PRJ00112233445566778899":           false,
		"пароль от сейфа":                   false,
		"工場の場所は秘密":                          false,
		"bad_value":                         true,
		"E77":                               true,
		"400":                               true,
		"rate limit":                        true,
		"InvalidParameter.DataInspection/x": true,
	} {
		for _, body := range []string{openAI(name, "code", "no"), openAI("kind", name, "no")} {
			f := concealedFrom(Classify(400, "application/json", []byte(body), nil), rawjson.Pieces{[]byte(secretRequest)})
			if has := strings.Contains(f.Error(), name); has != stays {
				t.Errorf("%s is reported as %q", body, f)
			}
		}
	}
}
