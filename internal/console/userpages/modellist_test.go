package userpages_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/console"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// TestModels checks the list of models with the filters, and the page of each model.
func TestModels(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.SignedIn("ada@example.com")
		b.Get("/console/models").Want(t, http.StatusOK, "sandbox-chat", "sandbox-image", "sandbox-video", "coming soon",
			"per million tokens")
		b.Get("/console/models?kind=audio").Want(t, http.StatusOK, "No models are available to you")
		for _, m := range s.Options.Catalog.Current().Models() {
			page := b.Get("/console/models?id=" + url.QueryEscape(m.ID))
			if m.State == "retired" {
				page.Want(t, http.StatusNotFound)
				continue
			}
			page.Want(t, http.StatusOK, m.ID, consoletest.PublicURL, "Prices")
		}
		b.Get("/console/models?id=sandbox-chat").Want(t, http.StatusOK, "/v1/chat/completions", "million tokens", "Codex")
		b.Get("/console/models?id=sandbox-video").Want(t, http.StatusOK, "/v1/videos/generations", "second",
			"/console/playground?model=sandbox-video")
		b.Get("/console/models?id=sandbox-messages").Want(t, http.StatusOK, "$3.00", "$0.30", "$3.75")
		b.Get("/console/models?id=sandbox-image").Want(t, http.StatusOK, "/v1/images/edits")
		b.Get("/console/models?id=sandbox-repair").Without(t, "Try it")
		b.Get("/console/models").Want(t, http.StatusOK, "from $0.03 per image (1K)")
		results := b.Get("/console/models?name=VIDEO")
		results.Want(t, http.StatusOK, "sandbox-video", `value="VIDEO"`)
		results.Without(t, "sandbox-chat")
		b.Get("/console/models?name=nothing").Want(t, http.StatusOK, "Nothing matches these filters", "All models")
		b.Get("/console/models?id=nothing").Want(t, http.StatusNotFound)
	})
}

// TestModelsShowThePricesOfTheAccount checks that the pages of an account with factors show prices
// multiplied by the factors.
func TestModelsShowThePricesOfTheAccount(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		var chat, video *catalog.Model
		for _, m := range s.Options.Catalog.Current().Models() {
			switch m.ID {
			case "sandbox-chat":
				chat = m
			case "sandbox-video":
				video = m
			}
		}
		const increased, reduced = 1_300_000, 333_333
		factor, models := money.Factor(increased), map[string]money.Factor{video.ID: reduced}
		s.ChangeAccount("ada", account.Patch{Factor: &factor, Prices: &models})
		b := s.SignedIn("ada@example.com")
		input, second := "$"+chat.Price.Input.Times(increased), "$"+video.Tiers[0].Price.Times(reduced)
		b.Get("/console/models").Want(t, http.StatusOK, input+"<", second+" per second")
		b.Get("/console/models?id=sandbox-chat").Want(t, http.StatusOK, input+"<")
		b.Get("/console/models?id=sandbox-video").Want(t, http.StatusOK, second+"<")
	})
}

// TestSandboxIsMarked checks that sandbox models are marked in lists with other models.
func TestSandboxIsMarked(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		s.SellReal()
		s.ChangeAccount("ada", account.Patch{Test: new(true)})
		unlimited := s.Key("ada", "any")
		b, o := s.SignedIn("ada@example.com"), s.Operator()
		const badge = `title="Made-up answers, without a provider.">sandbox</span>`
		for path, b := range map[string]*consoletest.Browser{"/console/models": b, "/console/operator/catalog": o} {
			page := b.Get(path).Body.String()
			for id, isSandbox := range map[string]bool{"sandbox-chat": true, "sold": false, "both": false} {
				_, row, found := strings.Cut(page, ">"+id+"<")
				if row, _, _ = strings.Cut(row, "</tr>"); !found || strings.Contains(row, badge) != isSandbox {
					t.Errorf("%s: model %s has the sandbox badge: %v, want %v: %s", path, id, !isSandbox, isSandbox, row)
				}
			}
		}
		b.Get("/console/models?id=sandbox-chat").Want(t, http.StatusOK, badge, "<dt>Sandbox</dt>")
		b.Get("/console/models?id=sold").Without(t, "Made-up")
		b.Get("/console/playground").Want(t, http.StatusOK, ">sandbox-chat (sandbox)</option>", ">sold</option>")
		plain := s.Key("ada", "plain")
		s.ChangeKey(plain.ID, func(k *account.KeySettings) { k.AllowedModels = []string{"sandbox-free"} })
		for address, want := range map[string]string{"": "sandbox-free", "?key=" + unlimited.ID: "both", "?kind=image": "sandbox-image",
			"?model=sandbox-reasoner&key=" + plain.ID: "sandbox-free", "?model=sandbox-reasoner": "sandbox-reasoner",
			"?kind=image&key=" + plain.ID: "sandbox-image"} {
			b.Get("/console/playground"+address).Want(t, http.StatusOK, `<option value="`+want+`" selected>`)
		}
	})
}

// TestSandboxIsHidden checks that sandbox models beside real lines are hidden from customers on
// every page with models, unless a key of the account allows the model.
func TestSandboxIsHidden(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		k := s.Key("ada", "spare") // found by s too
		b := s.SignedIn("ada@example.com")
		pages := []string{"/console/models", "/console/playground", "/console/keys/new", "/console/keys/" + k.ID, "/console/find?q=s"}
		wantModel := func(model string, pages ...string) {
			t.Helper()
			for _, path := range pages {
				b.Get(path).Want(t, http.StatusOK, model)
			}
		}
		wantModel("sandbox-chat", pages...)
		s.SellReal()
		wantModel("sold", pages...)
		for _, path := range pages {
			b.Get(path).Without(t, "sandbox-chat")
		}
		b.Get("/console/models?id=sandbox-chat").Want(t, http.StatusNotFound)
		b.Get("/console/playground?kind=image").Want(t, http.StatusOK, "No models")
		s.ChangeKey(k.ID, func(k *account.KeySettings) { k.AllowedModels = []string{"sandbox-chat"} })
		wantModel("sandbox-chat", "/console/models", "/console/playground", "/console/keys/"+k.ID, "/console/models?id=sandbox-chat")
		s.ChangeAccount("ada", account.Patch{Test: new(true)})
		s.Key("ada", "another")
		wantModel("sandbox-image", "/console/models", "/console/playground?kind=image")
	})
}

// TestPublicPrices checks that everybody sees the models on sale with the catalog's prices, sorted by a
// column, and that the page does not exist without its setting.
func TestPublicPrices(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Browser()
		b.Get("/console/prices").Want(t, http.StatusOK, "No models are for sale yet")
		s.SellReal()
		page := b.Get("/console/prices?sort=input")
		page.Want(t, http.StatusOK, "sold", "$1.00", `aria-sort="ascending"`, "Models and prices")
		page.Without(t, "sandbox-chat", "coming soon", "/console/models?id=", "Sign out")
		s.Sell(soldModels, soldLines)
		b.Get("/console/prices").Want(t, http.StatusOK, "soon", "coming soon")
		b.Get("/console/sign-in").Want(t, http.StatusOK, `href="/console/prices"`)
		b.Handler = s.Console(func(o *console.Options) { o.PublicPrices = false })
		b.Get("/console/prices").Want(t, http.StatusNotFound)
		b.Get("/console/sign-in").Without(t, "/console/prices")
	})
}

// TestComingPrices checks that an announced change of prices is shown beside the models and on the public
// page, with the factor of the account, and that another scheduled change is not.
func TestComingPrices(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		s.SellReal()
		half, at := money.Factor(500_000), time.Now().UTC().Add(48*time.Hour)
		s.ChangeAccount("ada", account.Patch{Factor: &half})
		schedule := func(model string, form ...string) {
			var text string
			s.Update(func(tx *store.Tx) error {
				doc, _, err := catalog.CurrentTx(tx)
				text = string(doc.YAML())
				return err
			})
			before, after, _ := strings.Cut(text, "id: "+model+"\n")
			text = before + "id: " + model + "\n" + strings.Replace(after, "input: 1\n", "input: 3\n", 1)
			s.Operator().Post("/console/operator/catalog/changes", append(form, "yaml", text, "base", "2",
				"at", at.Format("2006-01-02T15:04"))...).Want(t, http.StatusSeeOther, "done=scheduled")
		}
		schedule("sold", "tell_customers", "on")
		schedule("both")
		from := "sold from " + at.Format("2006-01-02 15:04:00 UTC") + ": Input "
		b := s.SignedIn("ada@example.com")
		for _, path := range []string{"/console/models", "/console/models?id=sold"} {
			shown := b.Get(path)
			shown.Want(t, http.StatusOK, from+"$1.50, was $0.50")
			shown.Without(t, "both from")
		}
		b.Get("/console/models?id=both").Without(t, "will change")
		s.Browser().Get("/console/prices").Want(t, http.StatusOK, from+"$3.00, was $1.00")
	})
}
