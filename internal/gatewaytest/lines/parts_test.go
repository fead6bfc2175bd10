package lines

import (
	"bytes"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
)

// partScenes play lines with one model, or one form of a model, out of service.
func partScenes(t testing.TB) []scene.Scenario {
	return []scene.Scenario{
		modelLimitScene(t), accountLimitScene(t),
		otherFormScene(t, "another form of the line", "form", fakeprovider.JSON(404, `{"detail":"Not Found"}`), false),
		otherFormScene(t, "form named in the rejection", "form-named", fakeprovider.Error(400, "", "unsupported_api_for_model", "x"), true),
	}
}

// newLimitedProvider returns a provider that answers requests for one model with busy.
func newLimitedProvider(t testing.TB, model string, busy fakeprovider.Reply) *fakeprovider.Server {
	p := fakeprovider.New(t)
	p.Always(func(q fakeprovider.Request) fakeprovider.Reply {
		if bytes.Contains(q.Body, []byte(model)) {
			return busy
		}
		return working()
	})
	return p
}

// modelLimitScene plays a rate limit of one model. The limit has no effect on the line's other
// models. Rate limits of two models cool the line.
func modelLimitScene(t testing.TB) scene.Scenario {
	p := newLimitedProvider(t, "vendor-part-limited", fakeprovider.Busy(60))
	return scene.Scenario{
		Name: "one model is limited",
		Models: []map[string]any{
			scene.ChatModel("part-limited", nil), scene.ChatModel("part-limited-too", nil), scene.ChatModel("part-free", nil)},
		Lines: []map[string]any{scene.ChatLine("part", p.URL(), nil, "part-limited", "part-limited-too", "part-free")},
		Play: func(t *testing.T, g *scene.Gateway) {
			c := newClient(t, g)
			c.expect("part-limited", "upstream_busy")
			s := g.Lines.Becomes(t, "part", "in_service")
			if len(s.ModelsCooling) != 1 || s.ModelsCooling[0].Model != "part-limited" || s.ModelsCooling[0].Cause == "" ||
				s.ModelsCooling[0].Until == 0 || len(s.ModelsOut) > 0 {
				t.Errorf("line: %s", s)
			}
			c.expect("part-free", "")
			c.expect("part-limited", failed)
			if n := len(p.Requests()); n != 2 {
				t.Errorf("the provider got %d requests", n)
			}
			c.expect("part-limited-too", "upstream_busy")
			g.Lines.Becomes(t, "part", "cooling")
			c.expect("part-free", failed)
			c.checkSettled(1)
		},
	}
}

// accountLimitScene plays a rate limit of the provider account. All models of the line cool.
func accountLimitScene(t testing.TB) scene.Scenario {
	p := newLimitedProvider(t, "vendor-ours", fakeprovider.Error(429, "", "", "Your account has reached its rate limit"))
	return scene.Scenario{
		Name:   "the account is limited",
		Models: []map[string]any{scene.ChatModel("ours-limited", nil), scene.ChatModel("others-free", nil)},
		Lines:  []map[string]any{scene.ChatLine("ours", p.URL(), nil, "ours-limited", "others-free")},
		Play: func(t *testing.T, g *scene.Gateway) {
			c := newClient(t, g)
			c.expect("ours-limited", "upstream_busy")
			c.expect("others-free", failed)
			g.Lines.Becomes(t, "ours", "in_service")
			c.expect("others-free", "")
			c.checkSettled(1)
		},
	}
}

// otherFormScene plays a line that lacks one form for a model. The line serves the model in the other
// form, immediately if the rejection names the form, otherwise after a probe.
func otherFormScene(t testing.TB, name, id string, refusal fakeprovider.Reply, named bool) scene.Scenario {
	p := fakeprovider.New(t)
	p.Always(func(q fakeprovider.Request) fakeprovider.Reply {
		if strings.HasSuffix(q.Path, "/responses") {
			return refusal
		}
		return working()
	})
	return scene.Scenario{
		Name:   name,
		Models: []map[string]any{scene.FormModel(id, nil, scene.Chat, scene.Responses)},
		Lines:  []map[string]any{scene.ChatLine(id, p.URL(), nil, id)},
		Play: func(t *testing.T, g *scene.Gateway) {
			c := newClient(t, g)
			c.in = scene.Responses
			code, attempts, answers := failed, 1, 1
			if named {
				code, attempts, answers = "", 2, 2
			}
			a := c.expect(id, code)
			if r := g.Receipt(t, c.account, a.ID); len(r.Attempts) != attempts || r.Line != id {
				t.Errorf("receipt %+v", r)
			}
			scene.Eventually(t, "the form is out", func() bool {
				s := g.Lines.Of(t, id)
				return s.State == "in_service" && len(s.FormsOut) == 1 && s.FormsOut[0].Form == "responses" && len(s.ModelsOut) == 0
			})
			before := len(p.Requests())
			c.expect(id, "")
			for _, q := range p.Requests()[before:] {
				if strings.HasSuffix(q.Path, "/responses") {
					t.Errorf("%s got another request", q.Path)
				}
			}
			c.checkSettled(answers)
		},
	}
}
