// Package lines owns the tests of failover between the lines of a model, and of the states of lines
// over time, as clients and operators see them.
package lines

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
)

// eachScene plays new scenes on each database.
func eachScene(t *testing.T, binary string, make func(t testing.TB) []scene.Scenario) {
	t.Helper()
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		scene.Play(t, scene.Open(t, binary, database, nil), make(t))
	})
}

// TestLines plays models with several lines, and lines over time.
func TestLines(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	t.Run("failures", func(t *testing.T) { eachScene(t, binary, failureScenes) })
	t.Run("prompt filters", func(t *testing.T) { eachScene(t, binary, otherProviderScenes) })
	t.Run("limits", func(t *testing.T) { eachScene(t, binary, limitScenes) })
	t.Run("states", func(t *testing.T) { eachScene(t, binary, lineScenes) })
	t.Run("parts", func(t *testing.T) { eachScene(t, binary, partScenes) })
}

// client sends requests in one form with its own account and key.
type client struct {
	t            *testing.T
	g            *scene.Gateway
	in           scene.Form
	account, key string
}

func newClient(t *testing.T, g *scene.Gateway) client {
	t.Helper()
	account, key := g.Process.Account(10, nil)
	return client{t, g, scene.Chat, account, key}
}

// hello returns a request for a model.
func (c client) hello(model string) string { return scene.Request(c.in, model, false, nil) }

// expect sends a request and checks the error code of the answer. The code "" means success.
func (c client) expect(model string, code string) scene.Answer {
	c.t.Helper()
	a := c.g.Send(c.t, c.in, c.key, c.hello(model))
	if a.Err.Code != code || (a.Status == 200) != (code == "") {
		c.t.Errorf("%s: the client got %d %s; want %q", model, a.Status, a.Err, code)
	}
	return a
}

// checkSettled waits until exactly the given number of good answers is charged and no money is on
// hold.
func (c client) checkSettled(answers int) {
	c.t.Helper()
	want := 10*money.USD - money.Amount(answers)*scene.AnswerCost
	scene.Eventually(c.t, fmt.Sprintf("%d answers are charged and nothing is held", answers), func() bool {
		return c.g.Process.FundsOf(c.account) == scene.Funds{Balance: want}
	})
}

// failureScenes play three lines that fail in different ways, and check the client's error
// (interface.md, Errors).
func failureScenes(t testing.TB) []scene.Scenario {
	var (
		rejected = fakeprovider.Error(400, "invalid_request_error", "context_length_exceeded", "too long")
		withheld = *fakeprovider.Completion(`{"role":"assistant","content":""}`, `"content_filter"`)
		stopped  = fakeprovider.Error(400, "", "content_policy_violation", "x")
		busy     = fakeprovider.Busy(0)
		down     = fakeprovider.Error(500, "server_error", "", "x")
		key      = fakeprovider.Error(401, "", "invalid_api_key", "x")
		reset    = fakeprovider.Reply{Before: fakeprovider.Reset}
		empty    = *fakeprovider.Completion(`{"role":"assistant","content":""}`, `"stop"`)
		usedUp   = *fakeprovider.Completion(`{"role":"assistant","content":"","reasoning_content":"hm"}`, `"length"`)
	)
	var scenes []scene.Scenario
	for i, tt := range []struct {
		name     string
		lines    [3]fakeprovider.Reply
		code     string
		requests string
	}{
		{"a rejection ends the attempts", [3]fakeprovider.Reply{down, rejected, busy}, "context_length_exceeded", "1 1 0"},
		{"a rejection after a prompt filter", [3]fakeprovider.Reply{stopped, rejected, down}, "context_length_exceeded", "1 1 0"},
		{"a withheld answer ends the attempts", [3]fakeprovider.Reply{stopped, withheld, down}, "content_filter", "1 1 0"},
		{"an exhausted limit ends the attempts", [3]fakeprovider.Reply{busy, usedUp, down}, "max_tokens_too_small", "1 1 0"},
		{"prompt filter first", [3]fakeprovider.Reply{stopped, down, reset}, "upstream_prompt_filter", "1 1 1"},
		{"prompt filter in the middle", [3]fakeprovider.Reply{down, stopped, busy}, "upstream_prompt_filter", "1 1 1"},
		{"prompt filter last", [3]fakeprovider.Reply{down, busy, stopped}, "upstream_prompt_filter", "1 1 1"},
		{"the last failure, a connection", [3]fakeprovider.Reply{busy, down, reset}, "upstream_connection_error", "1 1 1"},
		{"the last failure, an empty answer", [3]fakeprovider.Reply{key, reset, empty}, "empty_completion", "1 1 1"},
		{"the last failure, our key", [3]fakeprovider.Reply{reset, empty, key}, "upstream_unavailable", "1 1 1"},
		{"the last failure, a rate limit", [3]fakeprovider.Reply{down, reset, busy}, "upstream_busy", "1 1 1"},
		{"all are busy", [3]fakeprovider.Reply{busy, busy, busy}, "upstream_busy", "1 1 1"},
		{"two are busy", [3]fakeprovider.Reply{busy, busy, down}, "upstream_unavailable", "1 1 1"},
	} {
		model := fmt.Sprintf("failure-%d", i)
		s := scene.Scenario{Name: tt.name, Models: []map[string]any{scene.ChatModel(model, nil)}}
		var providers []*fakeprovider.Server
		for n, reply := range tt.lines {
			p := fakeprovider.New(t)
			p.Always(func(fakeprovider.Request) fakeprovider.Reply { return reply }) // also to probes
			providers = append(providers, p)
			s.Lines = append(s.Lines, scene.ChatLine(fmt.Sprintf("%s-%d", model, n), p.URL(), map[string]any{"priority": n + 1}, model))
		}
		s.Play = func(t *testing.T, g *scene.Gateway) {
			c := newClient(t, g)
			a := c.expect(model, tt.code)
			var got []string
			for _, p := range providers {
				got = append(got, fmt.Sprint(clientRequests(p)))
			}
			if n := strings.Join(got, " "); n != tt.requests {
				t.Errorf("the lines got %s requests, want %s", n, tt.requests)
			}
			if r := g.Receipt(t, c.account, a.ID); r.Code != tt.code || len(r.Attempts) != strings.Count(tt.requests, "1") {
				t.Errorf("receipt %+v", r)
			}
			c.checkSettled(0)
		}
		scenes = append(scenes, s)
	}
	return scenes
}

// otherProviderScenes play a prompt that one provider's filter rejects. The prompt then goes to a
// line of another provider, and after that to the remaining lines.
func otherProviderScenes(t testing.TB) []scene.Scenario {
	stopped := fakeprovider.Error(400, "", "content_policy_violation", "x")
	good := fakeprovider.Answer("fine", 1000, 500)
	var scenes []scene.Scenario
	for i, tt := range []struct {
		name string
		// again is the reply of the second line of the first provider, and other is the reply of
		// the other provider.
		again, other fakeprovider.Reply
		code         string
		order        string // of the lines
	}{
		{"another provider answers", good, good, "", "one-a other"},
		{"every other line is tried", good, stopped, "", "one-a other one-b"},
		{"all providers filter the prompt", stopped, stopped, "upstream_prompt_filter", "one-a other one-b"},
		{"another provider fails", good, fakeprovider.Error(500, "", "", "x"), "", "one-a other one-b"},
	} {
		model := fmt.Sprintf("filter-%d", i)
		line := func(name string) string { return model + "-" + name }
		one, other := fakeprovider.New(t), fakeprovider.New(t, tt.other)
		one.Always(func(q fakeprovider.Request) fakeprovider.Reply {
			if bytes.Contains(q.Body, []byte(`"vendor-a"`)) {
				return stopped
			}
			return tt.again
		})
		s := scene.Scenario{Name: tt.name, Models: []map[string]any{scene.ChatModel(model, nil)}}
		for priority, l := range []struct{ name, url, vendor string }{
			{"one-a", one.URL(), "vendor-a"}, {"one-b", one.URL(), "vendor-b"}, {"other", other.URL(), "vendor-c"},
		} {
			s.Lines = append(s.Lines, scene.ChatLine(line(l.name), l.url,
				map[string]any{"priority": priority + 1, "models": map[string]string{model: l.vendor}}))
		}
		s.Play = func(t *testing.T, g *scene.Gateway) {
			c := newClient(t, g)
			a := c.expect(model, tt.code)
			var order []string
			for _, attempt := range g.Receipt(t, c.account, a.ID).Attempts {
				order = append(order, strings.TrimPrefix(attempt.Line, model+"-"))
			}
			if got := strings.Join(order, " "); got != tt.order {
				t.Errorf("the order was %s; want %s", got, tt.order)
			}
			for _, name := range []string{"one-a", "one-b", "other"} {
				if s := g.Lines.Of(t, line(name)); s.State != "in_service" {
					t.Errorf("line %s: %s", name, s)
				}
			}
		}
		scenes = append(scenes, s)
	}
	return scenes
}
