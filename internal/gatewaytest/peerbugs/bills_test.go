package peerbugs

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
)

// countedOnce is QuantumNous/new-api#3512, #3519 and #2608: the number of images is multiplied
// twice, and amounts are rounded up to a smallest unit.
func countedOnce(t testing.TB) peerScene {
	fal := fakestudio.Providers()[0]
	studio := fal.Open(t)
	p := fakeprovider.New(t, fakeprovider.Answer("hi", 1000, 1500))
	dust := fakeprovider.New(t, fakeprovider.Answer("hi", 3, 1), fakeprovider.Answer("hi", 4, 1), fakeprovider.Answer("hi", 14, 0))
	cheap := map[string]any{"price": map[string]any{"input": 0.0001, "output": 0.0001}} // a tenth of a nano-dollar per token
	return peerScene{
		models: []map[string]any{scene.ImageModel("bug20-image", nil), scene.ChatModel("bug20", nil), scene.ChatModel("bug20-dust", cheap)},
		lines: []map[string]any{fal.JobLine("bug20-image", studio, "image", nil, "bug20-image"), scene.ChatLine("bug20", p.URL(), nil, "bug20"),
			scene.ChatLine("bug20-dust", dust.URL(), nil, "bug20-dust")},
		play: func(t *testing.T, g *gateway) {
			artist := g.open(money.USD, nil)
			request := scene.JobRequest("bug20-image", "a hat", map[string]any{"n": 3})
			job := artist.wantStatus(scene.PathGenerate, string(request), http.StatusAccepted, "")
			if j := artist.waitForJob(t, "image", job); j.Status != "succeeded" || len(j.Data) != 3 {
				t.Errorf("the job is %s", j.Raw)
			}
			artist.wantFunds(3*scene.PricePicture, 0)
			if row := artist.log(1)[0]; row.Held != 3*scene.PricePicture || row.Cost != 3*scene.PricePicture {
				t.Errorf("three images: %+v; want %d held and charged", row, 3*scene.PricePicture)
			}

			c := g.open(money.USD, nil)
			body := scene.Request(scene.Chat, "bug20", false, map[string]any{"n": 3})
			c.wantChat(body, http.StatusOK, "")
			const cost = 1000*perPrompt + 1500*perCompletion // the provider counts three choices once
			if row := c.log(1)[0]; row.Held != holdFor(body, 3*500) || row.Cost != cost {
				t.Errorf("three choices: %+v; want %s held and %d charged", row, holdFor(body, 3*500), cost)
			}

			d := g.open(money.USD, nil)
			for n, want := range []money.Amount{0, 1, 1} { // 0.4, 0.5 and 1.4 nano-dollars
				d.wantChat(scene.Request(scene.Chat, "bug20-dust", false, nil), http.StatusOK, "")
				if row := d.log(n + 1)[0]; row.Cost != want {
					t.Errorf("%+v; want %d nano-dollars", row, want)
				}
			}
			d.wantFunds(2, 0)
		},
	}
}

// usageOnce is BerriAI/litellm#15740, #9812, #40016 and #37992: a request in the responses form is
// logged twice, cached tokens count as cached and as ordinary tokens, and a usage of zero is
// treated as missing and estimated.
func usageOnce(t testing.TB) peerScene {
	const (
		usage = `{"input_tokens":100,"cache_creation_input_tokens":30,"cache_read_input_tokens":50,"output_tokens":7}`
		zero  = `{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`
	)
	once := answering(t, "responses")
	cached := fakeprovider.New(t, fakeprovider.Reply{Body: fakeprovider.NativeBill(usage)},
		fakeprovider.NativeEvents(fakeprovider.NativeBillStream(usage, `{"output_tokens":7}`)...))
	nothing := fakeprovider.New(t, fakeprovider.Reply{Body: fakeprovider.ChatBill(zero)},
		fakeprovider.Reply{ContentType: "text/event-stream", Raw: fakeprovider.ChatBillStream(zero)})
	return peerScene{
		models: []map[string]any{scene.FormModel("bug21", nil, scene.Responses),
			scene.FormModel("bug21-cached", scene.PriceList(), scene.Messages, scene.Chat), scene.ChatModel("bug21-zero", nil)},
		lines: []map[string]any{scene.FormLine("bug21", "responses", once.URL(), nil, "bug21"),
			scene.FormLine("bug21-cached", "messages", cached.URL(), nil, "bug21-cached"),
			scene.ChatLine("bug21-zero", nothing.URL(), nil, "bug21-zero")},
		play: func(t *testing.T, g *gateway) {
			r := g.open(money.USD, nil).withForm(scene.Responses)
			for n, stream := range []bool{false, true} {
				r.wantChat(scene.Request(scene.Responses, "bug21", stream, nil), http.StatusOK, "")
				r.log(n + 1)
				r.wantTotals(usageTotals{Cost: money.Amount(n+1) * answerCost, Requests: int64(n + 1), Billed: int64(n + 1)})
			}
			if n := len(once.Requests()); n != 2 {
				t.Errorf("%d requests reached the provider, want 2", n)
			}
			// in dollars per million: 100 tokens at 1, 50 cached at 0.1, 30 written at 1.25, 7 at 10
			const cost = 100*1000 + 50*100 + 30*1250 + 7*10000
			m := g.open(money.USD, nil)
			m.withForm(scene.Messages).wantChat(scene.Request(scene.Messages, "bug21-cached", false, nil), http.StatusOK, "")
			m.wantChat(scene.Request(scene.Chat, "bug21-cached", true, nil), http.StatusOK, "")
			for _, row := range m.log(2) {
				if row.Cost != cost || row.Prompt != 180 || row.Cached != 50 || row.Completion != 7 {
					t.Errorf("%+v; want %d", row, cost)
				}
			}
			z := g.open(money.USD, nil)
			for _, stream := range []bool{false, true} {
				z.wantChat(scene.Request(scene.Chat, "bug21-zero", stream, nil), http.StatusOK, "")
			}
			z.wantTotals(usageTotals{Requests: 2, Billed: 2})
		},
	}
}

// everyEnding is BerriAI/litellm#27639 and similar reports: holds of requests with an unusual end
// remain, until the gateway rejects requests of customers with money.
func everyEnding(t testing.TB) peerScene {
	begin := []string{fakeprovider.Text("one two three")}
	endings := []struct {
		name  string
		reply fakeprovider.Reply
	}{
		{"rejected", fakeprovider.Error(400, "invalid_request_error", "context_length_exceeded", "too long")},
		{"down", fakeprovider.Error(500, "server_error", "", "x")},
		{"busy", fakeprovider.Busy(0)},
		{"page", fakeprovider.Page(502)},
		{"empty", fakeprovider.Answer("", 1000, 0)},
		{"reset", fakeprovider.Reply{Before: fakeprovider.Reset}},
		{"broken", fakeprovider.Reply{Events: begin, End: fakeprovider.Reset}},
		{"unfinished", fakeprovider.Reply{Events: begin}},
		{"whole", fakeprovider.Answer("all is well", 1000, 500)},
		{"streamed", fakeprovider.Stream(1000, 500, "all is well")},
		{"left", fakeprovider.Reply{Events: begin, End: fakeprovider.Stall}},
		{"unanswered", fakeprovider.Reply{Before: fakeprovider.Stall}},
	}
	s := peerScene{}
	providers := map[string]*fakeprovider.Server{}
	for _, e := range append(endings, endings[8]) {
		if providers[e.name] == nil {
			providers[e.name] = fakeprovider.New(t)
			id := "bug22-" + e.name
			s.models, s.lines = append(s.models, scene.ChatModel(id, nil)), append(s.lines, scene.ChatLine(id, providers[e.name].URL(), nil, id))
		}
		providers[e.name].Expect(e.reply)
	}
	s.play = func(t *testing.T, g *gateway) {
		c := g.open(money.USD, map[string]any{"total_limit_usd": money.USD, "daily_budget_usd": money.USD})
		for _, e := range endings {
			body := scene.Request(scene.Chat, "bug22-"+e.name, len(e.reply.Events) > 0, nil)
			switch e.name {
			case "left":
				c.leave(body, "three")
			case "unanswered":
				c.leaveUnanswered(body, providers[e.name])
			default:
				c.Ask(body)
			}
		}
		c.wantChat(scene.Request(scene.Chat, "bug22-whole", false, map[string]any{"messages": "hi"}), http.StatusBadRequest, "invalid_messages")
		// two good answers and three incomplete streams
		const cost = 2*answerCost + 3*(askPrompt*perPrompt+3*perCompletion)
		c.waitForFunds(cost)
		c.wantSpent(cost, 0)
		// The remaining money of the account and of the key is enough for exactly one hold.
		body := scene.Request(scene.Chat, "bug22-whole", false, nil)
		withdrawn := money.USD - cost - holdFor(body, 500)
		g.admin("POST", "/accounts/"+c.Account+"/credits", map[string]any{"usd": -withdrawn}, nil)
		limit := cost + holdFor(body, 500)
		g.admin("PATCH", "/keys/"+c.onlyKey().ID, map[string]any{"total_limit_usd": limit, "daily_budget_usd": limit}, nil)
		c.credit -= withdrawn
		c.wantChat(body, http.StatusOK, "")
		c.wantFunds(cost+answerCost, 0)
	}
	return s
}

// smallHolds is can1357/oh-my-pi#9569 and BerriAI/litellm#38647: a request without a limit holds
// 65,536 tokens, and bursts of cheap requests are rejected.
func smallHolds(t testing.TB) peerScene {
	p, open := waiting(t)
	more := map[string]any{"context_window": 200_000, "max_output_tokens": 65_536, "default_output_tokens": 2_000}
	return chatScene("bug27", p.URL(), more, func(t *testing.T, g *gateway) {
		const burst = 10
		body := scene.Request(scene.Chat, "bug27", false, map[string]any{"max_tokens": nil})
		hold := holdFor(body, 2_000)
		c := g.open(burst*hold, nil)
		if c.credit > holdFor(body, 65_536) {
			t.Fatalf("a balance of %s covers a hold for the model's maximum", c.credit)
		}
		running := c.burst(burst, 0, body)
		reached(t, p, burst)
		c.wantFunds(0, burst*hold)
		open()
		wantOK(t, running, burst)
		c.wantFunds(burst*answerCost, 0) // the holds are released with the answers
		for _, q := range p.Requests() {
			if !strings.Contains(string(q.Body), fmt.Sprintf(`"max_tokens":%d`, 2_000)) {
				t.Errorf("the line got no limit: %s", q.Body)
			}
		}
		// Sequential requests can spend the balance until it is below one hold.
		left := burst * (hold - answerCost)
		for ; left >= hold; left -= answerCost {
			c.wantChat(body, http.StatusOK, "")
		}
		c.wantChat(body, http.StatusPaymentRequired, "insufficient_quota")
		c.wantFunds(burst*hold-left, 0)
	})
}

// leftBeforeTheFirst is Wei-Shaw/sub2api#4408 and QuantumNous/new-api#7231: a client that disconnects
// before the first token pays for the complete answer.
func leftBeforeTheFirst(t testing.TB) peerScene {
	p := fakeprovider.New(t)
	head := fakeprovider.Reply{Events: []string{fakeprovider.Frame(`{"role":"assistant","content":""}`, "")}, End: fakeprovider.Stall}
	p.Expect(fakeprovider.Reply{Before: fakeprovider.Stall}, head, fakeprovider.Reply{Before: fakeprovider.Stall})
	return chatScene("bug23", p.URL(), nil, func(t *testing.T, g *gateway) {
		c := g.open(money.USD, nil)
		for n, stream := range []bool{true, true, false} {
			c.leaveUnanswered(scene.Request(scene.Chat, "bug23", stream, nil), p)
			if row := c.log(n + 1)[0]; row.Code != "client_closed" || row.Cost != 0 || row.Prompt != 0 || row.Completion != 0 {
				t.Errorf("a disconnect before the first token: %+v", row)
			}
			c.wantFunds(0, 0)
		}
		scene.Eventually(t, "the gateway disconnects from the provider", func() bool { return p.Disconnects() == 3 })
		c.wantTotals(usageTotals{Requests: 3})
	})
}
