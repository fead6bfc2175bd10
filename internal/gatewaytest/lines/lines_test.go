package lines

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
)

// provider is a provider with one reply to all requests. A test can change the reply.
type provider struct {
	*fakeprovider.Server
	reply atomic.Pointer[fakeprovider.Reply]
}

func newProvider(t testing.TB, reply fakeprovider.Reply) *provider {
	p := &provider{Server: fakeprovider.New(t)}
	p.setReply(reply)
	p.Always(func(fakeprovider.Request) fakeprovider.Reply { return *p.reply.Load() })
	return p
}

func (p *provider) setReply(reply fakeprovider.Reply) { p.reply.Store(&reply) }

// checkRequests checks the number of client requests so far.
func (p *provider) checkRequests(t *testing.T, want int) {
	t.Helper()
	if n := clientRequests(p.Server); n != want {
		t.Errorf("the provider got %d requests, want %d", n, want)
	}
}

// clientRequests returns the number of requests at a provider, without the gateway's probes.
func clientRequests(p *fakeprovider.Server) (n int) {
	for _, q := range p.Requests() {
		if !bytes.Contains(q.Body, []byte(`"ping"`)) {
			n++
		}
	}
	return n
}

// working returns an answer with the cost scene.AnswerCost.
func working() fakeprovider.Reply { return fakeprovider.Answer("fine", 1000, 500) }

// lineScenes play the states of a line, as shown by the operator API.
func lineScenes(t testing.TB) []scene.Scenario {
	return []scene.Scenario{
		circuitScene(t), coolingScene(t), credentialScene(t), missingModelScene(t), drainScene(t), resumeScene(t),
		allBusyScene(t, "busy"), allBusyScene(t, "cooling"), noLineScene(t),
	}
}

// circuitScene plays five failures in a row. The circuit opens, and the line gets no further request.
func circuitScene(t testing.TB) scene.Scenario {
	dead, alive := newProvider(t, fakeprovider.Error(500, "server_error", "", "down")), newProvider(t, working())
	return scene.Scenario{
		Name:   "circuit",
		Models: []map[string]any{scene.ChatModel("circuit-solo", nil), scene.ChatModel("circuit-duo", nil)},
		Lines: []map[string]any{
			scene.ChatLine("circuit-dead", dead.URL(), nil, "circuit-solo", "circuit-duo"),
			scene.ChatLine("circuit-alive", alive.URL(), map[string]any{"priority": 2}, "circuit-duo"),
		},
		Play: func(t *testing.T, g *scene.Gateway) {
			c := newClient(t, g)
			for range 5 {
				c.expect("circuit-duo", "")
			}
			dead.checkRequests(t, 5)
			s := g.Lines.Becomes(t, "circuit-dead", "circuit_open")
			if s.Cause == "" || coolingUntil(s) == 0 || s.Attempts != 5 || *s.SuccessRate != 0 {
				t.Errorf("line: %s", s)
			}
			for range 5 {
				c.expect("circuit-duo", "")
				c.expect("circuit-solo", "upstream_unavailable")
			}
			dead.checkRequests(t, 5)
			alive.checkRequests(t, 10)
			c.checkSettled(10)
		},
	}
}

// coolingUntil returns the time of the next request or probe in Unix seconds.
func coolingUntil(s scene.LineState) int64 {
	n, _ := strconv.ParseInt(string(s.CoolingUntil), 10, 64)
	return n
}

// coolingScene plays a rate limit. The line cools for its Retry-After.
func coolingScene(t testing.TB) scene.Scenario {
	p := newProvider(t, fakeprovider.Busy(2))
	return scene.Scenario{
		Name:   "cooling",
		Models: []map[string]any{scene.ChatModel("cooling", nil)},
		Lines:  []map[string]any{scene.ChatLine("cooling", p.URL(), nil, "cooling")},
		Play: func(t *testing.T, g *scene.Gateway) {
			c := newClient(t, g)
			begin := time.Now()
			c.expect("cooling", "upstream_busy")
			p.setReply(working())
			s := g.Lines.Of(t, "cooling")
			switch took := time.Since(begin); { // a busy machine may take two seconds
			case s.State == "cooling" && coolingUntil(s) > time.Now().Unix()+3:
				t.Errorf("line: %s; want a pause of two seconds", s)
			case s.State != "cooling" && took < 2*time.Second:
				t.Errorf("after %s, line: %s", took, s)
			}
			if a := g.Send(t, c.in, c.key, c.hello("cooling")); a.Status != 200 {
				p.checkRequests(t, 1)
			}
			g.Lines.Becomes(t, "cooling", "in_service")
			if took := time.Since(begin); took < 1500*time.Millisecond {
				t.Errorf("the line was back after %s, want about two seconds", took)
			}
			c.expect("cooling", "")
		},
	}
}

// credentialScene plays a rejected credential. The line goes out of service with all models.
func credentialScene(t testing.TB) scene.Scenario {
	p := newProvider(t, fakeprovider.Error(401, "", "invalid_api_key", "no"))
	return scene.Scenario{
		Name:   "credential",
		Models: []map[string]any{scene.ChatModel("cred-one", nil), scene.ChatModel("cred-two", nil)},
		Lines:  []map[string]any{scene.ChatLine("cred", p.URL(), nil, "cred-one", "cred-two")},
		Play: func(t *testing.T, g *scene.Gateway) {
			c := newClient(t, g)
			c.expect("cred-one", "upstream_unavailable")
			if s := g.Lines.Becomes(t, "cred", "credentials_out"); s.Cause == "" || strings.Contains(s.Cause, scene.Credential) {
				t.Errorf("line: %s", s)
			}
			p.setReply(working())
			c.expect("cred-one", "upstream_unavailable")
			c.expect("cred-two", "upstream_unavailable")
			p.checkRequests(t, 1)
			c.checkSettled(0)
		},
	}
}

// missingModelScene plays a missing model. Only this model of the line goes out of service.
func missingModelScene(t testing.TB) scene.Scenario {
	p := newProvider(t, fakeprovider.Error(404, "invalid_request_error", "model_not_found", "no"))
	return scene.Scenario{
		Name:   "missing model",
		Models: []map[string]any{scene.ChatModel("missing-one", nil), scene.ChatModel("missing-two", nil)},
		Lines:  []map[string]any{scene.ChatLine("missing", p.URL(), nil, "missing-one", "missing-two")},
		Play: func(t *testing.T, g *scene.Gateway) {
			c := newClient(t, g)
			c.expect("missing-one", "upstream_unavailable")
			scene.Eventually(t, "the model is out", func() bool {
				s := g.Lines.Of(t, "missing")
				return s.State == "in_service" && len(s.ModelsOut) == 1 && s.ModelsOut[0].Model == "missing-one"
			})
			p.setReply(working())
			c.expect("missing-two", "")
			c.expect("missing-one", "upstream_unavailable")
			p.checkRequests(t, 2)
			c.checkSettled(1)
		},
	}
}

// drainScene plays a drained line. The line gets no new request until it is resumed. Running requests
// continue.
func drainScene(t testing.TB) scene.Scenario {
	first, second := newProvider(t, working()), newProvider(t, working())
	return scene.Scenario{
		Name:   "drain",
		Models: []map[string]any{scene.ChatModel("drain", nil)},
		Lines: []map[string]any{
			scene.ChatLine("drain-1", first.URL(), nil, "drain"),
			scene.ChatLine("drain-2", second.URL(), map[string]any{"priority": 2}, "drain"),
		},
		Play: func(t *testing.T, g *scene.Gateway) {
			c := newClient(t, g)
			open := make(chan struct{})
			slow := working()
			slow.Wait = open
			first.setReply(slow)
			var running sync.WaitGroup
			running.Go(func() { c.expect("drain", "") })
			first.WaitRequest()
			first.setReply(working())
			g.Process.Admin("POST", "/lines/drain-1/drain", map[string]any{}, nil)
			if s := g.Lines.Becomes(t, "drain-1", "drained"); s.InFlight != 1 {
				t.Errorf("%d requests in flight; want 1", s.InFlight)
			}
			c.expect("drain", "")
			first.checkRequests(t, 1)
			second.checkRequests(t, 1)
			close(open)
			running.Wait()
			g.Process.Admin("POST", "/lines/drain-1/resume", map[string]any{}, nil)
			g.Lines.Becomes(t, "drain-1", "in_service")
			c.expect("drain", "")
			first.checkRequests(t, 2)
			second.checkRequests(t, 1)
			c.checkSettled(3)
		},
	}
}

// resumeScene resumes a line from every state out of service.
func resumeScene(t testing.TB) scene.Scenario {
	p := newProvider(t, working())
	return scene.Scenario{
		Name:   "resume",
		Models: []map[string]any{scene.ChatModel("resume", nil)},
		Lines:  []map[string]any{scene.ChatLine("resume", p.URL(), nil, "resume")},
		Play: func(t *testing.T, g *scene.Gateway) {
			c := newClient(t, g)
			for i, tt := range []struct {
				reply fakeprovider.Reply
				times int
				code  string
				state string
				out   int // number of models out of service, after a probe
			}{
				{fakeprovider.Error(500, "server_error", "", "x"), 5, "upstream_unavailable", "circuit_open", 0},
				{fakeprovider.Busy(3600), 1, "upstream_busy", "cooling", 0},
				{fakeprovider.Error(402, "", "", "x"), 1, "upstream_unavailable", "credentials_out", 0},
				{fakeprovider.Error(404, "", "model_not_found", "x"), 1, "upstream_unavailable", "in_service", 1},
			} {
				p.setReply(tt.reply)
				for range tt.times {
					c.expect("resume", tt.code)
				}
				scene.Eventually(t, "the line is "+tt.state, func() bool {
					s := g.Lines.Of(t, "resume")
					return s.State == tt.state && len(s.ModelsOut) == tt.out
				})
				p.setReply(working())
				c.expect("resume", "upstream_unavailable")
				g.Process.Admin("POST", "/lines/resume/resume", map[string]any{}, nil)
				if s := g.Lines.Becomes(t, "resume", "in_service"); len(s.ModelsOut) != 0 {
					t.Errorf("line: %s", s)
				}
				c.expect("resume", "")
				c.checkSettled(i + 1)
			}
		},
	}
}

// allBusyScene plays two lines at max_concurrent, or a cooling line and a line at max_concurrent. A
// request is rejected: no provider gets it, and no money is on hold.
func allBusyScene(t testing.TB, kind string) scene.Scenario {
	model := "full-" + kind
	open := make(chan struct{})
	slow := working()
	slow.Wait = open
	first, second := newProvider(t, slow), newProvider(t, slow)
	if kind == "cooling" {
		first.setReply(fakeprovider.Busy(60))
	}
	capped := func(priority int) map[string]any { return map[string]any{"priority": priority, "max_concurrent": 1} }
	return scene.Scenario{
		Name:   "all lines full or " + kind,
		Models: []map[string]any{scene.ChatModel(model, nil)},
		Lines: []map[string]any{
			scene.ChatLine(model+"-1", first.URL(), capped(1), model),
			scene.ChatLine(model+"-2", second.URL(), capped(2), model),
		},
		Play: func(t *testing.T, g *scene.Gateway) {
			running, c := newClient(t, g), newClient(t, g)
			var group sync.WaitGroup
			release := sync.OnceFunc(func() { close(open) })
			t.Cleanup(release)
			arrives := func(p *provider) {
				scene.Eventually(t, "a request for "+model, func() bool { return clientRequests(p.Server) == 1 })
			}
			begin := func(p *provider) {
				group.Go(func() { running.waitForSlot(model) })
				arrives(p)
			}
			begin(first) // a cooling line: the request fails over to the second line
			answers := 1
			if kind == "cooling" {
				arrives(second)
			} else {
				begin(second)
				answers = 2
			}
			for range 3 {
				c.wantBusy(model)
			}
			first.checkRequests(t, 1)
			second.checkRequests(t, 1)
			c.checkSettled(0)
			release()
			group.Wait()
			second.setReply(working())
			c.waitForSlot(model)
			running.checkSettled(answers)
			c.checkSettled(1)
		},
	}
}

// waitForSlot sends requests until a slot is free. On a busy machine, a node learns of a free slot
// with a delay.
func (c client) waitForSlot(model string) {
	c.t.Helper()
	var a scene.Answer
	scene.Eventually(c.t, model+" has a free slot", func() bool {
		a = c.g.Send(c.t, c.in, c.key, c.hello(model))
		return a.Status != 429
	})
	if a.Status != 200 {
		c.t.Errorf("%s: the client got %d %s", model, a.Status, a.Err)
	}
}

// wantBusy sends a request and checks that it is rejected because all lines are busy.
func (c client) wantBusy(model string) {
	c.t.Helper()
	a := c.expect(model, "rate_limit_exceeded")
	wait, err := strconv.Atoi(a.RetryAfter)
	if a.Status != 429 || a.Err.Type != "rate_limit_error" || a.Err.Param() != "" || err != nil || wait < 1 {
		c.t.Errorf("the client got %d %s, Retry-After %q", a.Status, a.Err, a.RetryAfter)
	}
	var extra struct {
		Attempts []map[string]any `json:"attempts"`
	}
	if err := json.Unmarshal([]byte(a.Raw), &extra); err != nil || len(extra.Attempts) != 2 {
		c.t.Fatalf("attempts %v, %v in %s", extra.Attempts, err, a.Raw)
	}
	for i, attempt := range extra.Attempts {
		if attempt["place"] != float64(i+1) || attempt["reason"] == "" || attempt["reason"] == nil {
			c.t.Errorf("attempt %v", attempt)
		}
	}
	if strings.Contains(a.Raw, model) {
		c.t.Errorf("a line's name is in %s", a.Raw)
	}
	if r := c.g.Receipt(c.t, c.account, a.ID); r.Status != 429 || r.Code != "rate_limit_exceeded" || r.Cost != 0 || r.Line != "" {
		c.t.Errorf("receipt %+v", r)
	}
}

// noLineScene plays a model without a healthy line.
func noLineScene(t testing.TB) scene.Scenario {
	refuse := fakeprovider.Error(401, "", "invalid_api_key", "no")
	first, second := newProvider(t, refuse), newProvider(t, refuse)
	return scene.Scenario{
		Name:   "no line",
		Models: []map[string]any{scene.ChatModel("none", nil)},
		Lines: []map[string]any{
			scene.ChatLine("none-1", first.URL(), nil, "none"),
			scene.ChatLine("none-2", second.URL(), map[string]any{"priority": 2}, "none"),
		},
		Play: func(t *testing.T, g *scene.Gateway) {
			c := newClient(t, g)
			c.expect("none", "upstream_unavailable")
			for range 3 {
				a := c.expect("none", "upstream_unavailable")
				if a.Status != 502 || a.Err.Type != "upstream_error" || a.Err.Message == "" || strings.Contains(a.Raw, "none-") {
					t.Errorf("the client got %d %s", a.Status, a.Raw)
				}
				if r := g.Receipt(t, c.account, a.ID); r.Status != 502 || r.Cost != 0 || r.Line != "" {
					t.Errorf("receipt %+v", r)
				}
			}
			first.checkRequests(t, 1)
			second.checkRequests(t, 1)
			c.checkSettled(0)
		},
	}
}
