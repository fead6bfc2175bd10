package lines

import (
	"bytes"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
)

// partScenes are lines of which a part is out: a model, or a form of it.
func partScenes(t testing.TB) []scene.Scenario {
	return []scene.Scenario{
		modelLimitScene(t), accountLimitScene(t),
		otherFormScene(t, "another form of the line", "form", fakeprovider.JSON(404, `{"detail":"Not Found"}`), false),
		otherFormScene(t, "another form, as the line says", "form-told", fakeprovider.Error(400, "", "unsupported_api_for_model", "x"), true),
	}
}

// limiting is a provider that limits the rate of one of its models.
func limiting(t testing.TB, model string, busy fakeprovider.Reply) *fakeprovider.Server {
	p := fakeprovider.New(t)
	p.Always(func(q fakeprovider.Request) fakeprovider.Reply {
		if bytes.Contains(q.Body, []byte(model)) {
			return busy
		}
		return working()
	})
	return p
}

// modelLimitScene: a rate limit of one model leaves the others of its line as they
// were; two at once are the line's.
func modelLimitScene(t testing.TB) scene.Scenario {
	p := limiting(t, "vendor-part-limited", fakeprovider.Busy(60))
	return scene.Scenario{
		Name: "one model is limited",
		Models: []map[string]any{
			scene.ChatModel("part-limited", nil), scene.ChatModel("part-limited-too", nil), scene.ChatModel("part-free", nil)},
		Lines: []map[string]any{scene.ChatLine("part", p.URL(), nil, "part-limited", "part-limited-too", "part-free")},
		Play: func(t *testing.T, f *scene.Gateway) {
			c := newCaller(t, f)
			c.wants("part-limited", "upstream_busy")
			s := f.Lines.Becomes(t, "part", "in_service")
			if len(s.ModelsCooling) != 1 || s.ModelsCooling[0].Model != "part-limited" || s.ModelsCooling[0].Cause == "" ||
				s.ModelsCooling[0].Until == 0 || len(s.ModelsOut) > 0 {
				t.Errorf("line: %s", s)
			}
			c.wants("part-free", "")
			c.wants("part-limited", failed)
			if n := len(p.Requests()); n != 2 {
				t.Errorf("the provider was asked %d times", n)
			}
			c.wants("part-limited-too", "upstream_busy")
			f.Lines.Becomes(t, "part", "cooling")
			c.wants("part-free", failed)
			c.settled(1)
		},
	}
}

// accountLimitScene: a rate limit of our account is that of all models.
func accountLimitScene(t testing.TB) scene.Scenario {
	p := limiting(t, "vendor-ours", fakeprovider.Error(429, "", "", "Your account has reached its rate limit"))
	return scene.Scenario{
		Name:   "the account is limited",
		Models: []map[string]any{scene.ChatModel("ours-limited", nil), scene.ChatModel("others-free", nil)},
		Lines:  []map[string]any{scene.ChatLine("ours", p.URL(), nil, "ours-limited", "others-free")},
		Play: func(t *testing.T, f *scene.Gateway) {
			c := newCaller(t, f)
			c.wants("ours-limited", "upstream_busy")
			c.wants("others-free", failed)
			f.Lines.Becomes(t, "ours", "in_service")
			c.wants("others-free", "")
			c.settled(1)
		},
	}
}

// otherFormScene: a model that is not there in one form is served in the other, and
// asked for in that alone once it is known. Where the line says so, at once; where
// anything may be missing, once a probe has found out.
func otherFormScene(t testing.TB, name, id string, refusal fakeprovider.Reply, told bool) scene.Scenario {
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
		Play: func(t *testing.T, f *scene.Gateway) {
			c := newCaller(t, f)
			c.in = scene.Responses
			code, attempts, served := failed, 1, 1
			if told {
				code, attempts, served = "", 2, 2
			}
			a := c.wants(id, code)
			if r := f.Receipt(t, c.account, a.ID); len(r.Attempts) != attempts || r.Line != id {
				t.Errorf("receipt %+v", r)
			}
			scene.Eventually(t, "the form is out", func() bool {
				s := f.Lines.Of(t, id)
				return s.State == "in_service" && len(s.FormsOut) == 1 && s.FormsOut[0].Form == "responses" && len(s.ModelsOut) == 0
			})
			before := len(p.Requests())
			c.wants(id, "")
			for _, q := range p.Requests()[before:] {
				if strings.HasSuffix(q.Path, "/responses") {
					t.Errorf("%s is asked again", q.Path)
				}
			}
			c.settled(served)
		},
	}
}
