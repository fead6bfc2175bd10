package peerbugs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
)

// waiting starts a provider that gives good answers after open is called.
func waiting(t testing.TB) (p *fakeprovider.Server, open func()) {
	gate := make(chan struct{})
	p = fakeprovider.New(t)
	p.Always(func(q fakeprovider.Request) fakeprovider.Reply {
		reply := fakeprovider.Good("chat", q.IsStream())
		reply.Wait = gate
		return reply
	})
	return p, func() { close(gate) }
}

// answering starts a provider that gives good answers in a form.
func answering(t testing.TB, form string) *fakeprovider.Server {
	p := fakeprovider.New(t)
	p.Always(func(q fakeprovider.Request) fakeprovider.Reply { return fakeprovider.Good(form, q.IsStream()) })
	return p
}

// reached waits until a provider has got a number of requests.
func reached(t *testing.T, p *fakeprovider.Server, requests int) {
	t.Helper()
	scene.Eventually(t, fmt.Sprintf("%d requests reach the provider", requests), func() bool { return len(p.Requests()) >= requests })
}

// chatScene returns a scenario with one chat model on one line. name is the id of both.
func chatScene(name, url string, more map[string]any, play func(t *testing.T, g *gateway)) peerScene {
	return peerScene{[]map[string]any{scene.ChatModel(name, more)}, []map[string]any{scene.ChatLine(name, url, nil, name)}, play}
}

// oneBalance is QuantumNous/new-api#6609: concurrent requests are checked against the same balance,
// and accounts with a large balance are not checked.
func oneBalance(t testing.TB) peerScene {
	p, open := waiting(t)
	return chatScene("bug01", p.URL(), nil, func(t *testing.T, g *gateway) {
		const calls, fit = 30, 3
		body := scene.Request(scene.Chat, "bug01", false, nil)
		hold := holdFor(body, 500)
		poor, rich := g.open(fit*hold+hold-1, nil), g.open(1_000_000*money.USD, nil)
		rest := poor.burst(calls, calls-fit, body)
		poor.wantFunds(0, fit*hold)
		trusted := rich.burst(1, 0, body)
		reached(t, p, fit+1)
		rich.wantFunds(0, hold)
		open()
		wantOK(t, rest, fit)
		wantOK(t, trusted, 1)
		poor.wantFunds(fit*answerCost, 0)
		rich.wantFunds(answerCost, 0)
		if n := len(p.Requests()); n != fit+1 {
			t.Errorf("%d requests reached the provider, want %d", n, fit+1)
		}
	})
}

// oneKey is songquanpeng/one-api#2440: concurrent requests are checked against the same limit of a
// key, while the account has a large balance.
func oneKey(t testing.TB) peerScene {
	p, open := waiting(t)
	return chatScene("bug02", p.URL(), nil, func(t *testing.T, g *gateway) {
		const calls, fit = 30, 4
		body := scene.Request(scene.Chat, "bug02", true, nil)
		hold := holdFor(body, 500)
		c := g.open(100*money.USD, map[string]any{"total_limit_usd": fit*hold + hold - 1})
		rest := c.burst(calls, calls-fit, body)
		c.wantSpent(0, fit*hold)
		open()
		wantOK(t, rest, fit)
		c.wantSpent(fit*answerCost, 0)
		c.wantFunds(fit*answerCost, 0)
		if n := len(p.Requests()); n != fit {
			t.Errorf("%d requests reached the provider, want %d", n, fit)
		}
	})
}

// budgetWhileRunning is BerriAI/litellm#34732: a budget is checked before a request and charged
// after it, so running requests do not count.
func budgetWhileRunning(t testing.TB) peerScene {
	p, open := waiting(t)
	return chatScene("bug03", p.URL(), nil, func(t *testing.T, g *gateway) {
		body := scene.Request(scene.Chat, "bug03", false, nil)
		hold := holdFor(body, 500)
		c := g.open(10*money.USD, map[string]any{"daily_budget_usd": hold + answerCost})
		running := c.burst(1, 0, body)
		reached(t, p, 1)
		h := c.wantChat(body, http.StatusPaymentRequired, "insufficient_quota")
		if answer := fmt.Sprintf("(0 USD spent, %s USD held by running requests)", hold); !strings.Contains(h.Raw, answer) {
			t.Errorf("%s does not contain %q", h.Raw, answer)
		}
		open()
		wantOK(t, running, 1)
		c.wantSpent(answerCost, 0)
		c.wantChat(body, http.StatusOK, "") // the rest is exactly the hold
		c.wantSpent(2*answerCost, 0)
		c.wantChat(body, http.StatusPaymentRequired, "insufficient_quota")
	})
}

// newcomers is BerriAI/litellm#40095: the first concurrent requests of a customer without a
// database row count in no budget.
func newcomers(t testing.TB) peerScene {
	p, open := waiting(t)
	free := map[string]any{"free_daily_requests": 3, "price": map[string]any{"input": 0, "output": 0}}
	s := chatScene("bug04", p.URL(), nil, func(t *testing.T, g *gateway) {
		body := scene.Request(scene.Chat, "bug04", false, nil)
		hold := holdFor(body, 500)
		c, guest := g.open(100*money.USD, map[string]any{"daily_budget_usd": 2*hold + 1}), g.open(0, nil)
		rest := c.burst(20, 18, body)
		freeCalls := make(chan int, 20)
		for range cap(freeCalls) {
			go func() { freeCalls <- guest.outcome(scene.Request(scene.Chat, "bug04-free", false, nil)) }()
		}
		for range cap(freeCalls) - 3 {
			if status := <-freeCalls; status != http.StatusTooManyRequests {
				t.Errorf("a call above the free quota was answered with %d", status)
			}
		}
		open()
		wantOK(t, rest, 2)
		wantOK(t, freeCalls, 3)
		c.wantSpent(2*answerCost, 0)
		guest.wantFunds(0, 0)
		guest.wantTotals(usageTotals{Requests: 3, Billed: 3})
	})
	s.models = append(s.models, scene.ChatModel("bug04-free", free))
	s.lines = append(s.lines, scene.ChatLine("bug04-free", p.URL(), nil, "bug04-free"))
	return s
}

// unknownCosts is BerriAI/litellm#35524: nothing is held for requests of unknown cost (files,
// audio, images by pixels, models without a price).
func unknownCosts(t testing.TB) peerScene {
	p, fal := answering(t, "chat"), fakestudio.Providers()[0]
	studio := fal.Open(t)
	gate := make(chan struct{})
	studio.Always(func([]byte) fakestudio.Behaviour { return fakestudio.Behaviour{Until: gate} })
	s := chatScene("bug05", p.URL(), nil, func(t *testing.T, g *gateway) {
		requestWith := func(part string) string {
			return scene.Request(scene.Chat, "bug05", false,
				map[string]any{"messages": json.RawMessage(`[{"role":"user","content":[` + part + `]}]`)})
		}
		const window = 100000*perPrompt + 500*perCompletion // a file counts as the model's context window
		file := requestWith(`{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0x"}}`)
		poor, c := g.open(window-1, nil), g.open(window, nil)
		poor.wantChat(file, http.StatusPaymentRequired, "insufficient_quota")
		c.wantChat(requestWith(`{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}`), http.StatusBadRequest, "invalid_request")
		c.wantChat(scene.Request(scene.Chat, "unlisted", false, nil), http.StatusBadRequest, "model_not_found")
		priority := scene.Request(scene.Chat, "bug05", false, map[string]any{"service_tier": "priority"})
		c.wantChat(priority, http.StatusBadRequest, "invalid_request")
		if n := len(p.Requests()); n != 0 {
			t.Errorf("%d calls without a price reached the provider", n)
		}
		c.wantChat(file, http.StatusOK, "")
		if rows := c.log(4); rows[0].Held != window || rows[0].Cost != answerCost {
			t.Errorf("a call with a file: %+v; want %d held", rows[0], window)
		}
		artist := g.open(money.USD, nil)
		artist.wantStatus(scene.PathGenerate, string(scene.JobRequest("bug05-image", "a hat", map[string]any{"size": "1000x1000"})),
			http.StatusAccepted, "")
		artist.wantFunds(0, scene.PricePicture)
		close(gate)
		artist.waitForFunds(scene.PricePicture)

		model := scene.ChatModel("unpriced", nil)
		delete(model, "price")
		status, answer := g.operate("PUT", "/catalog?dry_run=true", map[string]any{"models": []any{model}, "lines": []any{}})
		if status != http.StatusBadRequest || !strings.Contains(answer, "models[0].price") {
			t.Errorf("a model without a price: %d %s", status, answer)
		}
	})
	s.models = append(s.models, scene.ImageModel("bug05-image", nil))
	s.lines = append(s.lines, fal.JobLine("bug05-image", studio, "image", nil, "bug05-image"))
	return s
}

// longPrompts is BerriAI/litellm#40002: the hold is calculated with the base price, so a key with 45
// cents spends 60 cents on a prompt of 300,000 tokens.
func longPrompts(t testing.TB) peerScene {
	p := fakeprovider.New(t, fakeprovider.Answer("long", 300_000, 500))
	more := map[string]any{"context_window": 1_000_000, "price": map[string]any{"input": 1, "output": 2,
		"above": []any{map[string]any{"prompt_tokens": 272_000, "input": 2, "output": 3}}}}
	return chatScene("bug06", p.URL(), more, func(t *testing.T, g *gateway) {
		prompt := map[string]any{"role": "user", "content": strings.Repeat("long ", 60_000)}
		body := scene.Request(scene.Chat, "bug06", false, map[string]any{"messages": []any{prompt}})
		hold := money.Amount((len(body)+1000)*2000 + 500*3000)
		if ordinary := holdFor(body, 500); ordinary > 450_000_000 || hold < 600_000_000 {
			t.Fatalf("the hold is %s, at the base price %s", hold, ordinary)
		}
		short := g.open(10*money.USD, map[string]any{"total_limit_usd": 0.45})
		short.wantChat(body, http.StatusPaymentRequired, "insufficient_quota")
		c := g.open(10*money.USD, map[string]any{"total_limit_usd": hold})
		c.wantChat(body, http.StatusOK, "")
		const cost = 300_000*2000 + 500*3000
		if row := c.log(1)[0]; row.Held != hold || row.Cost != cost {
			t.Errorf("%+v; want %s held and %d charged", row, hold, cost)
		}
		c.wantSpent(cost, 0)
		short.wantSpent(0, 0)
	})
}

// budgetsThroughRestart is BerriAI/litellm#26672: budgets are not enforced after an upgrade.
func budgetsThroughRestart(t testing.TB) peerScene {
	p := answering(t, "chat")
	return chatScene("bug07", p.URL(), nil, func(t *testing.T, g *gateway) {
		body := scene.Request(scene.Chat, "bug07", false, nil)
		limit := holdFor(body, 500) + 2*answerCost // three answers fit
		first := g.startSeparate(nil)
		daily := first.open(money.USD, map[string]any{"daily_budget_usd": limit})
		total := first.open(money.USD, map[string]any{"total_limit_usd": limit})
		for _, c := range []client{daily, total} {
			c.wantChat(body, http.StatusOK, "")
			c.wantChat(body, http.StatusOK, "")
		}
		second := first.restart()
		second.setCatalog(append(g.scenario.models, scene.ChatModel("new", nil)), g.scenario.lines)
		for _, c := range []client{daily.onNode(second), total.onNode(second)} {
			second.admin("PATCH", "/keys/"+c.onlyKey().ID, map[string]any{"name": "renamed"}, nil)
			c.wantChat(body, http.StatusOK, "")
			c.wantChat(body, http.StatusPaymentRequired, "insufficient_quota")
			c.wantSpent(3*answerCost, 0)
		}
		second.Audit(t)
	})
}

// everyPath returns a request for each path that costs money, by path. The names of the models
// begin with bug.
func everyPath(bug string) map[string]string {
	return map[string]string{
		scene.Chat.Path():      scene.Request(scene.Chat, bug, false, nil),
		scene.Responses.Path(): scene.Request(scene.Responses, bug, false, nil),
		scene.Messages.Path():  scene.Request(scene.Messages, bug, false, nil),
		scene.PathGenerate:     string(scene.JobRequest(bug+"-image", "a hat", nil)),
		scene.PathVideo:        string(scene.JobRequest(bug+"-video", "a hat", nil)),
	}
}

// everyScene returns a scenario with a model for each path. sent returns the number of requests at
// the providers.
func everyScene(t testing.TB, bug string, p *fakeprovider.Server, play func(t *testing.T, g *gateway, sent func() int)) peerScene {
	fal := fakestudio.Providers()[0]
	studio := fal.Open(t)
	return peerScene{
		models: []map[string]any{scene.FormModel(bug, nil, scene.ClientForms()...), scene.ImageModel(bug+"-image", nil),
			scene.VideoModel(bug+"-video", nil)},
		lines: []map[string]any{scene.FormLine(bug, "chat", p.URL(), nil, bug),
			fal.JobLine(bug+"-image", studio, "image", nil, bug+"-image"), fal.JobLine(bug+"-video", studio, "video", nil, bug+"-video")},
		play: func(t *testing.T, g *gateway) {
			play(t, g, func() int { return len(p.Requests()) + len(studio.Submissions()) })
		},
	}
}

// everyLimit is BerriAI/litellm#27381: a limit can be set but has no effect. The scenario checks each
// limit of a key and of an account on each path.
func everyLimit(t testing.TB) peerScene {
	return everyScene(t, "bug08", answering(t, "chat"), func(t *testing.T, g *gateway, sent func() int) {
		const tiny = money.NanoUSD
		for _, limit := range []struct {
			name   string
			limits map[string]any
			credit money.Amount
			status int
		}{
			{"balance", nil, tiny, http.StatusPaymentRequired},
			{"daily budget", map[string]any{"daily_budget_usd": tiny}, money.USD, http.StatusPaymentRequired},
			{"total limit", map[string]any{"total_limit_usd": tiny}, money.USD, http.StatusPaymentRequired},
			{"models", map[string]any{"allowed_models": []string{"another"}}, money.USD, http.StatusForbidden},
			{"addresses", map[string]any{"allowed_ips": []string{"192.0.2.1"}}, money.USD, http.StatusForbidden},
			{"rate", map[string]any{"rpm": 1}, money.USD, http.StatusTooManyRequests},
			{"disabled", nil, money.USD, http.StatusUnauthorized},
		} {
			c := g.open(limit.credit, limit.limits)
			before := sent()
			switch limit.name {
			case "rate":
				c.wantChat(scene.Request(scene.Chat, "bug08", false, nil), http.StatusOK, "")
				before++
			case "disabled":
				g.admin("PATCH", "/accounts/"+c.Account, map[string]any{"disabled": true}, nil)
			}
			for path, body := range everyPath("bug08") {
				if h := c.Post(path, body); h.Status != limit.status {
					t.Errorf("%s on %s: %d %s; want %d", limit.name, path, h.Status, h.Raw, limit.status)
				}
			}
			if n := sent() - before; n != 0 {
				t.Errorf("%s: %d requests reached a provider", limit.name, n)
			}
		}
	})
}

// longStreams is Wei-Shaw/sub2api#3384: long and parallel streams lead to balances of -99 dollars
// and exceed daily limits.
func longStreams(t testing.TB) peerScene {
	const claimed = 50_000 // tokens, a hundred times the request's limit
	gate := make(chan struct{})
	p := fakeprovider.New(t)
	p.Always(func(fakeprovider.Request) fakeprovider.Reply {
		reply := fakeprovider.Stream(1000, claimed, strings.Split(strings.Repeat("on and ", 200), " ")...)
		reply.Wait = gate
		return reply
	})
	return chatScene("bug09", p.URL(), nil, func(t *testing.T, g *gateway) {
		const calls, fit = 12, 2
		body := scene.Request(scene.Chat, "bug09", true, nil)
		hold := holdFor(body, 500)
		byBalance := g.open(fit*hold+hold/2, nil)
		byBudget := g.open(100*money.USD, map[string]any{"daily_budget_usd": fit*hold + hold/2})
		waiting := []<-chan int{byBalance.burst(calls, calls-fit, body), byBudget.burst(calls, calls-fit, body)}
		close(gate)
		const over = 1000*perPrompt + claimed*perCompletion
		for i, c := range []client{byBalance, byBudget} {
			wantOK(t, waiting[i], fit)
			c.wantFunds(fit*hold, 0) // at most the holds, so the balance never falls below zero
			c.wantSpent(fit*hold, 0)
			for _, row := range c.log(calls) {
				if row.Status == http.StatusOK && (row.Cost != hold || row.Over != over-hold) {
					t.Errorf("%+v; want %s charged and %s above it", row, hold, over-hold)
				}
			}
			if k := c.onlyKey(); k.Over != fit*(over-hold) {
				t.Errorf("the key shows %s above its holds", k.Over)
			}
		}
	})
}

// noLag is theopenco/llmgateway#3751: credits are spent again while debits are pending. Here, the
// answer ends after its charge, so the next request sees the new balance.
func noLag(t testing.TB) peerScene {
	p := answering(t, "chat")
	return chatScene("bug10", p.URL(), nil, func(t *testing.T, g *gateway) {
		const fit = 6
		for _, stream := range []bool{false, true} {
			body := scene.Request(scene.Chat, "bug10", stream, nil)
			c := g.open(holdFor(body, 500)+(fit-1)*answerCost, nil)
			for n := 1; n <= fit; n++ {
				c.wantChat(body, http.StatusOK, "")
				c.wantTotals(usageTotals{Cost: money.Amount(n) * answerCost, Requests: int64(n), Billed: int64(n)})
			}
			c.wantChat(body, http.StatusPaymentRequired, "insufficient_quota")
			c.wantFunds(fit*answerCost, 0)
		}
	})
}

// replicas is maximhq/bifrost#3547: each replica has the whole budget. It also covers #5673, where a
// budget of the wrong type is accepted silently, and #2873, where some paths have no budget.
func replicas(t testing.TB) peerScene {
	p, open := waiting(t)
	return everyScene(t, "bug11", p, func(t *testing.T, g *gateway, sent func() int) {
		const calls, fit = 12, 3
		body := scene.Request(scene.Chat, "bug11", false, nil)
		hold := holdFor(body, 500)
		other := g.secondNode()
		c := g.open(100*money.USD, map[string]any{"daily_budget_usd": fit*hold + hold/2})
		here, there := c.burst(calls, 0, body), c.onNode(other).burst(calls, 0, body)
		for range 2*calls - fit { // the rejected requests of both nodes; the others wait at the provider
			status := 0
			select {
			case status = <-here:
			case status = <-there:
			}
			if status != http.StatusPaymentRequired {
				t.Errorf("a call of the burst was answered with %d; want 402", status)
			}
		}
		c.wantSpent(0, fit*hold)
		open()
		for range fit {
			select {
			case <-here:
			case <-there:
			}
		}
		c.wantSpent(fit*answerCost, 0)
		c.wantTotals(usageTotals{Cost: fit * answerCost, Requests: fit, Billed: fit})
		spent := g.open(money.USD, map[string]any{"total_limit_usd": money.NanoUSD})
		for _, node := range []*gateway{g, other} {
			for path, body := range everyPath("bug11") {
				spent.onNode(node).wantStatus(path, body, http.StatusPaymentRequired, "insufficient_quota")
			}
		}
		if n := sent(); n != fit {
			t.Errorf("%d requests reached a provider, want %d", n, fit)
		}
		for _, misplaced := range []map[string]any{
			{"budget": map[string]any{"max_limit": 1}}, {"daily_budget": 1}, {"total_limit_usd": map[string]any{"usd": 1}},
		} {
			if status, answer := g.operate("POST", "/accounts/"+c.Account+"/keys", misplaced); status != http.StatusBadRequest {
				t.Errorf("a key with %v: %d %s", misplaced, status, answer)
			}
			if status, answer := g.operate("PATCH", "/keys/"+c.onlyKey().ID, misplaced); status != http.StatusBadRequest {
				t.Errorf("a change to %v: %d %s", misplaced, status, answer)
			}
		}
		model := scene.ChatModel("m", map[string]any{"budget": 1})
		status, answer := g.operate("PUT", "/catalog?dry_run=true", map[string]any{"models": []any{model}, "lines": []any{}})
		if status != http.StatusBadRequest {
			t.Errorf("a model with a budget: %d %s", status, answer)
		}
	})
}
