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

// failed is the error code without a usable line.
const failed = "upstream_unavailable"

// attack is a request of a hostile client to make a working line fail.
type attack struct {
	name  string
	reply fakeprovider.Reply // of the provider
	code  string             // of the hostile client's answer, empty if it is good
}

// attacks returns failures caused by nothing but the request.
func attacks() []attack {
	return []attack{
		{"a field that is called like a notice", fakeprovider.Error(400, "invalid_request_error", "",
			"Unrecognized request argument supplied: Your credit balance is too low"), "invalid_request"},
		{"a field that is called like a notice, first", fakeprovider.Error(400, "invalid_request_error", "",
			"Your credit balance is too low: Extra inputs are not permitted"), "invalid_request"},
		{"content that is refused", fakeprovider.Error(403, "", "", "Content violates usage guidelines."), "upstream_prompt_filter"},
		{"content that is refused without a word", fakeprovider.Error(403, "", "", "Forbidden"), failed},
		{"content that a firewall refuses", fakeprovider.Page(403), failed},
		{"a body that a proxy refuses", fakeprovider.Page(413), failed},
		{"a 401 by a tool", fakeprovider.Error(401, "", "", "No access to the server of the tool"), failed},
		{"more than the balance is good for", fakeprovider.Error(402, "", "", "You can only afford 5 tokens"), failed},
		{"a file of others",
			fakeprovider.JSON(403, `{"error":{"code":403,"message":"No permission for the file","status":"PERMISSION_DENIED"}}`), failed},
		{"tools", fakeprovider.Error(404, "", "", "No endpoints found that support tool use"), "invalid_request"},
		{"pictures", fakeprovider.Error(404, "", "", "No endpoints found that support image input"), "invalid_request"},
		{"a container", fakeprovider.Error(404, "not_found_error", "", "container: x"), failed},
		{"a stop word", fakeprovider.Answer("", 1000, 0), "empty_completion"},
		{"an error sentence", fakeprovider.Answer("service overloaded", 1000, 5), "upstream_error"},
		{"a crash", fakeprovider.Error(500, "server_error", "", "x"), failed},
		{"what limits its rate", fakeprovider.Busy(0), "upstream_busy"},
		{"more than the rate alone", fakeprovider.Error(429, "tokens", "rate_limit_exceeded", "Request too large for x"), "upstream_busy"},
		{"a form that the line lacks", fakeprovider.Error(400, "", "OperationNotSupported", "x"), failed},
		{"a model that is not there", fakeprovider.Error(404, "", "model_not_found", "x"), failed},
		{"xAI's refusal of content", fakeprovider.JSON(403, `{"code":"The client does not have permission","error":"Content violates usage `+
			`guidelines. Team: 1, API key ID: 2, Model: x, Failed check: SAFETY_CHECK_TYPE_BIO"}`), "upstream_prompt_filter"},
		{"more tokens than a minute has", fakeprovider.Error(413, "tokens", "rate_limit_exceeded", "Request too large"), "rate_limit_exceeded"},
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

// hostileScene plays the attacks of one account on two lines. They change nothing for another
// account, and take no line out.
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
				for n := range 12 { // a hold may keep the hostile client away for a while
					if a := g.Send(t, scene.Chat, hostile.key, body); a.Err.Code != attack.code && (n == 0 || a.Err.Code != failed) {
						t.Errorf("%s: the hostile client got %d %s; want %q", attack.name, a.Status, a.Raw, attack.code)
					}
				}
				a := good.expect("hostile", "")
				answers++
				if r := g.Receipt(t, good.account, a.ID); r.Line != "hostile-1" || len(r.Attempts) != 1 {
					t.Errorf("after %s: receipt %+v; want an answer of the first line", attack.name, r)
				}
				// A hold on the second line applies to the hostile client only.
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

// TestHostileCaller plays the attacks of one account beside the requests of others.
func TestHostileCaller(t *testing.T) {
	eachScene(t, scene.Binary(t), func(t testing.TB) []scene.Scenario { return []scene.Scenario{hostileScene(t)} })
}
