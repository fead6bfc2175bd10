package lines

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
)

// failed is the error code if no line could answer.
const failed = "upstream_unavailable"

// attack is a request of a hostile client that makes a working line fail.
type attack struct {
	name  string
	reply fakeprovider.Reply // from the provider
	code  string             // in the hostile client's answer; "" means success
}

// attacks returns failures that only the request causes.
func attacks() []attack {
	return []attack{
		{"a field named like a billing notice", fakeprovider.Error(400, "invalid_request_error", "",
			"Unrecognized request argument supplied: Your credit balance is too low"), "invalid_request"},
		{"a message that begins with a billing notice", fakeprovider.Error(400, "invalid_request_error", "",
			"Your credit balance is too low: Extra inputs are not permitted"), "invalid_request"},
		{"rejected content", fakeprovider.Error(403, "", "", "Content violates usage guidelines."), "upstream_prompt_filter"},
		{"rejected content without a reason", fakeprovider.Error(403, "", "", "Forbidden"), failed},
		{"content rejected by a firewall", fakeprovider.Page(403), failed},
		{"a body rejected by a proxy", fakeprovider.Page(413), failed},
		{"a 401 from a tool's server", fakeprovider.Error(401, "", "", "No access to the server of the tool"), failed},
		{"a request above the provider's balance", fakeprovider.Error(402, "", "", "You can only afford 5 tokens"), failed},
		{"a file of another account",
			fakeprovider.JSON(403, `{"error":{"code":403,"message":"No permission for the file","status":"PERMISSION_DENIED"}}`), failed},
		{"tools", fakeprovider.Error(404, "", "", "No endpoints found that support tool use"), "invalid_request"},
		{"pictures", fakeprovider.Error(404, "", "", "No endpoints found that support image input"), "invalid_request"},
		{"a container", fakeprovider.Error(404, "not_found_error", "", "container: x"), failed},
		{"an empty answer", fakeprovider.Answer("", 1000, 0), "empty_completion"},
		{"an error sentence", fakeprovider.Answer("service overloaded", 1000, 5), "upstream_error"},
		{"a crash", fakeprovider.Error(500, "server_error", "", "x"), failed},
		{"a rate limit", fakeprovider.Busy(0), "upstream_busy"},
		{"a 429 above the limit", fakeprovider.Error(429, "tokens", "rate_limit_exceeded", "Request too large for x"), "upstream_busy"},
		{"a missing form", fakeprovider.Error(400, "", "OperationNotSupported", "x"), failed},
		{"a missing model", fakeprovider.Error(404, "", "model_not_found", "x"), failed},
		{"content rejected by xAI", fakeprovider.JSON(403, `{"code":"The client does not have permission","error":"Content violates usage `+
			`guidelines. Team: 1, API key ID: 2, Model: x, Failed check: SAFETY_CHECK_TYPE_BIO"}`), "upstream_prompt_filter"},
		{"a 413 above the limit", fakeprovider.Error(413, "tokens", "rate_limit_exceeded", "Request too large"), "rate_limit_exceeded"},
	}
}

// attackable returns a working provider that fails for attacks.
func attackable(t testing.TB) *fakeprovider.Server {
	p := fakeprovider.New(t)
	p.Always(func(q fakeprovider.Request) fakeprovider.Reply {
		if strings.HasSuffix(q.Path, "/responses") {
			return fakeprovider.Error(400, "", "OperationNotSupported", "x")
		}
		for i, attack := range attacks() {
			if bytes.Contains(q.Body, fmt.Appendf(nil, `"attack":%d}`, i)) {
				return attack.reply
			}
		}
		return working()
	})
	return p
}

// hostileScene plays the attacks of one account on two lines. The attacks have no effect on another
// account, and take no line out of service.
func hostileScene(t testing.TB) scene.Scenario {
	first, second := attackable(t), attackable(t)
	sentences := map[string]any{"error_sentences": []string{"^service overloaded"}, "pass": []string{"attack"}}
	return scene.Scenario{
		Name:   "hostile",
		Models: []map[string]any{scene.ChatModel("hostile", nil)},
		Lines: []map[string]any{
			scene.ChatLine("hostile-1", first.URL(), sentences, "hostile"),
			scene.ChatLine("hostile-2", second.URL(), map[string]any{"priority": 2, "error_sentences": sentences["error_sentences"],
				"pass": sentences["pass"]}, "hostile"),
		},
		Play: func(t *testing.T, g *scene.Gateway) {
			hostile, good := newClient(t, g), newClient(t, g)
			good.expect("hostile", "")
			answers := 1
			for i, attack := range attacks() {
				body := hostile.hello("hostile")
				body = fmt.Sprintf(`%s,"attack":%d}`, body[:len(body)-1], i)
				for n := range 12 { // a pause may exclude the hostile client from the lines
					if a := g.Send(t, scene.Chat, hostile.key, body); a.Err.Code != attack.code && (n == 0 || a.Err.Code != failed) {
						t.Errorf("%s: the hostile client got %d %s; want %q", attack.name, a.Status, a.Raw, attack.code)
					}
				}
				a := good.expect("hostile", "")
				answers++
				if r := g.Receipt(t, good.account, a.ID); r.Line != "hostile-1" || len(r.Attempts) != 1 {
					t.Errorf("after %s: receipt %+v; want an answer from the first line", attack.name, r)
				}
				// A pause of the second line applies only to the hostile client.
				s := g.Lines.Of(t, "hostile-1")
				s.FormsOut = slices.DeleteFunc(s.FormsOut, func(p scene.PartOut) bool { return p.Form == "responses" }) // the line lacks the form
				if s.State != "in_service" || len(s.ModelsOut)+len(s.FormsOut)+len(s.ModelsCooling) > 0 {
					t.Errorf("after %s: line: %s", attack.name, s)
				}
				scene.Eventually(t, "the second line's circuit is closed after "+attack.name, func() bool {
					return g.Lines.Of(t, "hostile-2").State != "circuit_open"
				})
				g.Process.Admin("POST", "/lines/hostile-2/resume", map[string]any{}, nil)
			}
			good.checkSettled(answers)
			hostile.checkSettled(0)
		},
	}
}

// TestHostileCaller plays the attacks of one account between the requests of another account.
func TestHostileCaller(t *testing.T) {
	eachScene(t, scene.Binary(t), func(t testing.TB) []scene.Scenario { return []scene.Scenario{hostileScene(t)} })
}
