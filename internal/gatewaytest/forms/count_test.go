package forms

import (
	"encoding/json"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
)

// countScene counts tokens. The provider counts, or else the gateway estimates. Counts are free.
func countScene(t testing.TB) scene.Scenario {
	native, chat, gemini := fakeprovider.New(t), fakeprovider.New(t), fakeprovider.New(t)
	return scene.Scenario{
		Name: "count_tokens",
		Models: []map[string]any{scene.FormModel("count", nil, scene.Messages), scene.FormModel("count-chat", nil, scene.Messages),
			scene.FormModel("count-gemini", nil, scene.Messages),
			scene.FormModel("count-listed", nil, scene.Chat), scene.FormModel("count-broken", map[string]any{"state": "maintenance"},
				scene.Messages)},
		Lines: []map[string]any{
			scene.FormLine("count-0", "chat", chat.URL(), nil, "count", "count-chat"),
			scene.FormLine("count-1", "messages", native.URL(), map[string]any{"priority": 2}, "count"),
			scene.FormLine("count-2", "gemini", gemini.URL(), nil, "count-gemini"),
		},
		Play: func(t *testing.T, f *scene.Gateway) {
			const path = "/native/v1/messages/count_tokens"
			// A count needs no balance and is not rate limited.
			account, key := f.Process.Account(0,
				map[string]any{"rpm": 1, "allowed_models": []string{"count", "count-chat", "count-gemini", "count-broken"}})
			ask := func(body string) scene.FormAnswer { return scene.Call(t, f, "POST", path, body, "x-api-key", key) }
			count := func(a scene.FormAnswer) int {
				var counts map[string]int
				if err := json.Unmarshal([]byte(a.Raw), &counts); err != nil || a.Status != 200 || len(counts) != 1 {
					t.Errorf("%d %s", a.Status, a.Raw)
				}
				return counts["input_tokens"]
			}
			bodyFor := func(model string) string {
				return `{"messages": [{"role":"user","content":"one two three"}] ,"model":"` + model + `"}`
			}
			native.Expect(fakeprovider.NativeCount(4711))
			if n := count(ask(bodyFor("count"))); n != 4711 {
				t.Errorf("%d tokens; the provider counted 4711", n)
			}
			q := native.Requests()[0]
			if q.URI != "/v1/messages/count_tokens" || string(q.Body) != strings.Replace(bodyFor("count"), `"count"`, `"vendor-count"`, 1) {
				t.Errorf("the provider got %s %s", q.URI, q.Body)
			}
			// The gateway removes fields that the provider's count does not accept.
			native.Expect(fakeprovider.NativeCount(4711))
			whole := strings.Replace(bodyFor("count"), "{", `{"max_tokens":5,"stream":true,"metadata":{"user_id":"u"},`, 1)
			if n := count(ask(whole)); n != 4711 {
				t.Errorf("%d tokens; the provider counted 4711", n)
			}
			if got := string(native.Requests()[1].Body); got != strings.Replace(bodyFor("count"), `"count"`, `"vendor-count"`, 1) {
				t.Errorf("the provider got %s", got)
			}
			// The answer names the ignored fields.
			native.Expect(fakeprovider.NativeCount(4711))
			unknown := strings.Replace(bodyFor("count"), "{", `{"frobnicate":1,`, 1)
			answer := scene.Call(t, f, "POST", path, unknown, "x-api-key", key, "anthropic-beta", "a-1,context-900m-2025-08-07")
			const ignored = "frobnicate, anthropic-beta:context-900m-2025-08-07"
			if got := answer.Header.Get("x-tollgate-ignored"); count(answer) != 4711 || got != ignored {
				t.Errorf("ignored %q", got)
			}
			if q := native.Requests()[2]; strings.Contains(string(q.Body), "frobnicate") || q.Header.Get("anthropic-beta") != "a-1" {
				t.Errorf("the provider got %s, %v", q.Body, q.Header)
			}
			// If the provider cannot count, or fails, the gateway estimates.
			for _, reply := range []fakeprovider.Reply{fakeprovider.NativeError(404, "not_found_error", "x"),
				fakeprovider.NativeError(429, "rate_limit_error", "x"), fakeprovider.NativeError(529, "overloaded_error", "x"),
				fakeprovider.NativeError(500, "api_error", "x"),
				fakeprovider.Page(404), fakeprovider.JSON(200, `{"input_tokens":-1}`), {Before: fakeprovider.Reset}} {
				native.Expect(reply)
				if n := count(ask(bodyFor("count"))); n < 3 || n > 30 {
					t.Errorf("an estimate of %d tokens", n)
				}
			}
			if n := count(ask(bodyFor("count-chat"))); n < 3 || n > 30 {
				t.Errorf("an estimate of %d tokens", n)
			}
			// A line of another form counts the translated request. If the line fails, the client gets
			// the estimate.
			gemini.Expect(fakeprovider.JSON(200, `{"totalTokens":1234}`), fakeprovider.Error(400, "x", "x", "no"))
			if n := count(ask(bodyFor("count-gemini"))); n != 1234 {
				t.Errorf("%d tokens; the provider counted 1234", n)
			}
			if n := count(ask(bodyFor("count-gemini"))); n < 3 || n > 30 {
				t.Errorf("an estimate of %d tokens", n)
			}
			if uri := gemini.Requests()[0].URI; !strings.HasSuffix(uri, ":countTokens") {
				t.Errorf("path %s", uri)
			}
			native.Expect(fakeprovider.NativeError(400, "invalid_request_error", "messages: no"))
			if message := nativeFault(t, ask(bodyFor("count")), 400, "invalid_request_error"); message != "messages: no" {
				t.Errorf("message %q", message)
			}
			for _, c := range []struct {
				body   string
				status int
				kind   string
			}{
				{`{"model":"count"}`, 400, "invalid_request_error"},
				{`{"model":"count","messages":[]}`, 400, "invalid_request_error"},
				{`{`, 400, "invalid_request_error"},
				{bodyFor("nope"), 404, "not_found_error"},
				{bodyFor("count-listed"), 404, "not_found_error"},
				{bodyFor("count-broken"), 503, "api_error"},
				{bodyFor("full"), 403, "permission_error"},
			} {
				nativeFault(t, ask(c.body), c.status, c.kind)
			}
			if len(chat.Requests()) != 0 {
				t.Error("a line that cannot count got a request")
			}
			checkFree(t, f, account, money.Amount(0))
			if all := f.Receipts(account); len(all) != 0 {
				t.Errorf("receipts %+v", all)
			}
			if s := f.Lines.Of(t, "count-1"); s.State != "in_service" || len(s.ModelsOut) != 0 || s.Attempts != 0 {
				t.Errorf("line: %s", s)
			}
		},
	}
}
