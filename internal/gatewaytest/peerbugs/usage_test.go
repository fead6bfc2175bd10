package peerbugs

import (
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
)

// askPrompt is the gateway's count for the prompt "hi". It applies if the provider sends no count.
const askPrompt = 8

// pausing returns a reply that stalls after some pieces.
func pausing(r fakeprovider.Reply, pieces int) fakeprovider.Reply {
	if len(r.Raw) > 0 {
		r.Raw = r.Raw[:pieces]
	} else {
		r.Events = r.Events[:pieces]
	}
	r.End = fakeprovider.Stall
	return r
}

// leftResponses is QuantumNous/new-api#5235 and #7062: a client that disconnects from a stream of the
// responses form pays nothing, even after it has read the complete answer.
func leftResponses(t testing.TB) peerScene {
	// The first five events are four events without text, and one with text.
	stream := func() fakeprovider.Reply { return fakeprovider.ResponsesStream(1000, 500, "one two three", " four") }
	p := fakeprovider.New(t, pausing(stream(), 5), stream())
	return peerScene{
		models: []map[string]any{scene.FormModel("bug12", nil, scene.Responses)},
		lines:  []map[string]any{scene.FormLine("bug12", "responses", p.URL(), nil, "bug12")},
		play: func(t *testing.T, g *gateway) {
			c := g.open(money.USD, nil).withForm(scene.Responses)
			body := scene.Request(scene.Responses, "bug12", true, nil)
			c.leave(body, "three")
			const part = askPrompt*perPrompt + 3*perCompletion
			c.waitForFunds(part)
			row := c.log(1)[0]
			if row.Code != "client_closed" || row.Status != http.StatusOK || row.Cost != part ||
				row.Held != holdFor(body, 500) || row.Completion != 3 {
				t.Errorf("a disconnect in the middle: %+v; want %d charged", row, part)
			}
			c.leave(body, "event: response.completed") // the complete answer, but not the end of the connection
			c.waitForFunds(part + answerCost)
			if row := c.log(2)[0]; row.Cost != answerCost || row.Prompt != 1000 || row.Completion != 500 {
				t.Errorf("a disconnect at the end: %+v; want %d charged", row, answerCost)
			}
			c.wantTotals(usageTotals{Cost: part + answerCost, Requests: 2, Billed: 2})
		},
	}
}

// incompleteAnswers is QuantumNous/new-api#7241: the gateway ignores the usage of an answer that has
// reached the limit (response.incomplete).
func incompleteAnswers(t testing.TB) peerScene {
	usage, text := fakeprovider.ResponsesUsage(1000, 500), fakeprovider.ResponsesMessage("all is")
	p := fakeprovider.New(t, fakeprovider.Reply{Body: fakeprovider.ResponsesObject("incomplete", usage, text)},
		fakeprovider.ResponsesEvents(append(fakeprovider.ResponsesBegin(),
			fakeprovider.ResponsesText("all is"), fakeprovider.ResponsesEnd("incomplete", usage, text))...))
	return peerScene{
		models: []map[string]any{scene.FormModel("bug13", nil, scene.Responses)},
		lines:  []map[string]any{scene.FormLine("bug13", "responses", p.URL(), nil, "bug13")},
		play: func(t *testing.T, g *gateway) {
			c := g.open(money.USD, nil).withForm(scene.Responses)
			for n, stream := range []bool{false, true} {
				h := c.wantChat(scene.Request(scene.Responses, "bug13", stream, nil), http.StatusOK, "")
				if !strings.Contains(h.Raw, `"status":"incomplete"`) {
					t.Errorf("the client got %s", h.Raw)
				}
				if row := c.log(n + 1)[0]; row.Cost != answerCost || row.Prompt != 1000 || row.Completion != 500 {
					t.Errorf("stream %v: %+v; want %d charged", stream, row, answerCost)
				}
			}
			c.wantFunds(2*answerCost, 0)
		},
	}
}

// abortedAnswers is BerriAI/litellm#33736 and #13245: answers aborted by the client have no log
// entry.
func abortedAnswers(t testing.TB) peerScene {
	p := fakeprovider.New(t, pausing(fakeprovider.Stream(1000, 500, "one two three"), 2), fakeprovider.Reply{Before: fakeprovider.Stall})
	return chatScene("bug14", p.URL(), nil, func(t *testing.T, g *gateway) {
		c := g.open(money.USD, nil)
		id := c.leave(scene.Request(scene.Chat, "bug14", true, nil), "three")
		const part = askPrompt*perPrompt + 3*perCompletion
		c.waitForFunds(part)
		if row := c.log(1)[0]; row.ID != id || row.Code != "client_closed" || row.Cost != part || len(row.Attempts) != 1 {
			t.Errorf("a stream: %+v; want %s with %d charged", row, id, part)
		}
		c.leaveUnanswered(scene.Request(scene.Chat, "bug14", false, nil), p)
		if row := c.log(2)[0]; row.Code != "client_closed" || row.Cost != 0 || len(row.Attempts) != 1 || row.Attempts[0].Line != "bug14" {
			t.Errorf("not streamed: %+v", row)
		}
		c.wantTotals(usageTotals{Cost: part, Requests: 2, Billed: 1})
	})
}

// cancelledStream is maximhq/bifrost#3709: a stream cancelled after 806 pieces is logged with the
// one token counted in its first event.
func cancelledStream(t testing.TB) peerScene {
	const pieces = 806
	words := make([]string, pieces)
	for i := range words {
		words[i] = " word"
	}
	words[pieces-1] = " end"
	p := fakeprovider.New(t, pausing(fakeprovider.NativeStream(1000, 1, words...), 2+pieces))
	return peerScene{
		models: []map[string]any{scene.FormModel("bug15", nil, scene.Messages)},
		lines:  []map[string]any{scene.FormLine("bug15", "messages", p.URL(), nil, "bug15")},
		play: func(t *testing.T, g *gateway) {
			c := g.open(money.USD, nil).withForm(scene.Messages)
			c.leave(scene.Request(scene.Messages, "bug15", true, map[string]any{"max_tokens": 1000}), " end")
			const cost = 1000*perPrompt + pieces*perCompletion
			c.waitForFunds(cost)
			if row := c.log(1)[0]; row.Completion != pieces || row.Prompt != 1000 || row.Cost != cost {
				t.Errorf("%+v; want %d tokens and %d", row, pieces, cost)
			}
			c.wantTotals(usageTotals{Cost: cost, Requests: 1, Billed: 1}) // equals the sum of the log
		},
	}
}

// spendThroughRestart is maximhq/bifrost#3548 and #5925: a stop loses the charges of the last
// seconds, and a start overwrites the others with zeros.
func spendThroughRestart(t testing.TB) peerScene {
	p := answering(t, "chat")
	return chatScene("bug16", p.URL(), nil, func(t *testing.T, g *gateway) {
		node := g.startSeparate(nil)
		c := node.open(money.USD, map[string]any{"total_limit_usd": 1, "daily_budget_usd": 1})
		for n := 1; n <= 2; n++ {
			c.wantChat(scene.Request(scene.Chat, "bug16", n%2 == 0, nil), http.StatusOK, "")
			// The charge must be in the database when the client has the answer.
			var charged money.Amount
			db := scene.OpenDatabase(t, node.database)
			sum := db.QueryRowContext(t.Context(), `SELECT SUM(cost_nano) FROM ledger_receipt WHERE account = $1`, c.Account)
			if err := sum.Scan(&charged); err != nil {
				t.Fatal(err)
			}
			if charged != money.Amount(n)*answerCost {
				t.Errorf("%s are in the database after %d answers", charged, n)
			}
			node = node.restart()
			node.setCatalog(g.scenario.models, g.scenario.lines)
			c = c.onNode(node)
			c.wantFunds(money.Amount(n)*answerCost, 0)
			c.wantSpent(money.Amount(n)*answerCost, 0)
			c.wantTotals(usageTotals{Cost: money.Amount(n) * answerCost, Requests: int64(n), Billed: int64(n)})
		}
		node.Audit(t)
	})
}

// nothingQueued is BerriAI/litellm#38157 and #34887: a stop, and a deadlock of two nodes, drop
// queued charges.
func nothingQueued(t testing.TB) peerScene {
	p, open := waiting(t)
	fast := answering(t, "chat")
	s := chatScene("bug17", p.URL(), nil, func(t *testing.T, g *gateway) {
		const calls, accounts = 8, 4
		node := g.startSeparate(nil)
		c := node.open(money.USD, nil)
		running := c.burst(calls, 0, scene.Request(scene.Chat, "bug17", true, nil))
		reached(t, p, calls)
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			node.stop()
		}()
		scene.Eventually(t, "the node accepts no more connections", func() bool {
			conn, err := net.Dial("tcp", strings.TrimPrefix(node.Process.URL, "http://"))
			if err == nil {
				_ = conn.Close()
			}
			return err != nil
		})
		open()
		wantOK(t, running, calls)
		<-stopped
		node = node.restart()
		c.onNode(node).wantFunds(calls*answerCost, 0)

		// Two nodes charge the same accounts in opposite order.
		other := node.secondNode()
		var all [accounts]client
		for i := range all {
			all[i] = node.open(money.USD, nil)
		}
		var group sync.WaitGroup
		for i := range 2 * calls {
			group.Go(func() {
				for n := range accounts {
					at := all[n].onNode(node)
					if i%2 == 1 {
						at = all[accounts-1-n].onNode(other)
					}
					at.wantChat(scene.Request(scene.Chat, "bug17-fast", false, nil), http.StatusOK, "")
				}
			})
		}
		group.Wait()
		for _, c := range all {
			c.wantFunds(2*calls*answerCost, 0)
			c.wantSpent(2*calls*answerCost, 0)
		}
		node.Audit(t)
	})
	s.models = append(s.models, scene.ChatModel("bug17-fast", nil))
	s.lines = append(s.lines, scene.ChatLine("bug17-fast", fast.URL(), nil, "bug17-fast"))
	return s
}

// stoppedEarly is Wei-Shaw/sub2api#5856 (retries are on the provider's bill but in no log),
// bitrouter/bitrouter#537 (the prompt of an aborted stream is free) and
// pollinations/pollinations#5594 (the whole aborted stream is free).
func stoppedEarly(t testing.TB) peerScene {
	failed := fakeprovider.Error(500, "server_error", "", "down")
	failed.Body = strings.TrimSuffix(failed.Body, "}") +
		`,"usage":{"prompt_tokens":1000,"prompt_tokens_details":{"cached_tokens":400},"completion_tokens":70}}`
	down := fakeprovider.New(t, failed)
	up := answering(t, "chat")
	native := fakeprovider.New(t, pausing(fakeprovider.NativeStream(1000, 500, "one two three"), 3))
	fal := fakestudio.Providers()[0]
	studio := fal.Open(t)
	return peerScene{
		models: []map[string]any{scene.ChatModel("bug18", nil), scene.FormModel("bug18-native", nil, scene.Messages),
			scene.VideoModel("bug18-video", nil)},
		lines: []map[string]any{
			scene.ChatLine("bug18-down", down.URL(), nil, "bug18"), scene.ChatLine("bug18", up.URL(), map[string]any{"priority": 2}, "bug18"),
			scene.FormLine("bug18-native", "messages", native.URL(), nil, "bug18-native"),
			fal.JobLine("bug18-video", studio, "video", nil, "bug18-video")},
		play: func(t *testing.T, g *gateway) {
			c := g.open(10*money.USD, nil)
			c.wantChat(scene.Request(scene.Chat, "bug18", false, nil), http.StatusOK, "")
			c.wantFunds(answerCost, 0) // the customer pays only for the answer
			if row := c.log(1)[0]; row.Prompt != 1000 || row.Completion != 500 || len(row.Attempts) != 2 ||
				row.Attempts[0].Prompt != 1000 || row.Attempts[0].Cached != 400 || row.Attempts[0].Completion != 70 || row.Attempts[1].Prompt != 0 {
				t.Errorf("%+v; want 1000 and 70 tokens for the first attempt", row)
			}
			c.withForm(scene.Messages).leave(scene.Request(scene.Messages, "bug18-native", true, nil), "three")
			const part = 1000*perPrompt + 3*perCompletion
			c.waitForFunds(answerCost + part)
			c.wantStatus(scene.PathVideo, string(scene.JobRequest("bug18-video", "a hat", nil)), http.StatusAccepted, "") // never polled
			c.waitForFunds(answerCost + part + scene.PriceClip)
		},
	}
}

// brokenStreams is QuantumNous/new-api#5288 to #5290: the tokens of a broken or failed stream are
// counted again as output, including the text of the error.
func brokenStreams(t testing.TB) peerScene {
	begin := []string{`{"id":"x","choices":[{"index":0,"delta":{"content":"one two three"},"finish_reason":null}],` +
		`"usage":{"prompt_tokens":1000,"completion_tokens":1}}`}
	errorBody := `{"error":` + fakeprovider.ErrorObject("server_error", "overloaded", strings.Repeat("what a long story ", 500)) + `}`
	failed := fakeprovider.Reply{Events: append(begin, errorBody)}
	p := fakeprovider.New(t, fakeprovider.Reply{Events: begin, End: fakeprovider.Reset}, failed,
		fakeprovider.Reply{Status: 500, Body: errorBody}, fakeprovider.Reply{Body: errorBody})
	return chatScene("bug19", p.URL(), nil, func(t *testing.T, g *gateway) {
		c := g.open(money.USD, nil)
		const part = 1000*perPrompt + 3*perCompletion
		for n, kind := range []string{"reset", "error event"} {
			h := c.Ask(scene.Request(scene.Chat, "bug19", true, nil))
			if strings.Contains(h.Raw, "[DONE]") {
				t.Errorf("%s: the stream looks complete: %s", kind, h.Raw)
			}
			c.wantFunds(money.Amount(n+1)*part, 0)
			if row := c.log(n + 1)[0]; row.Cost != part || row.Prompt != 1000 || row.Completion != 3 {
				t.Errorf("%s: %+v; want %d charged", kind, row, part)
			}
		}
		for range 2 {
			if h := c.Ask(scene.Request(scene.Chat, "bug19", false, nil)); h.Status < 400 {
				t.Errorf("%d %s", h.Status, h.Raw)
			}
		}
		c.log(4)
		c.wantTotals(usageTotals{Cost: 2 * part, Requests: 4, Billed: 2, Failed: 2})
	})
}
