package gatewaytest_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/fakeprovider"
)

// moody is a provider whose answers a test changes as it goes.
type moody struct {
	*fakeprovider.Server
	says atomic.Pointer[fakeprovider.Reply]
}

func newMoody(t testing.TB, reply fakeprovider.Reply) *moody {
	m := &moody{Server: fakeprovider.New(t)}
	m.turn(reply)
	m.Always(func(fakeprovider.Request) fakeprovider.Reply { return *m.says.Load() })
	return m
}

// turn makes the provider say something else from now on.
func (m *moody) turn(reply fakeprovider.Reply) { m.says.Store(&reply) }

// asked checks how often the provider was asked so far.
func (m *moody) asked(t *testing.T, want int) {
	t.Helper()
	if n := len(m.Requests()); n != want {
		t.Errorf("the provider was asked %d times, want %d", n, want)
	}
}

// becomes waits until a line is in a state, and returns it.
func (f *fixture) becomes(t *testing.T, line, state string) lineState {
	t.Helper()
	var s lineState
	eventually(t, line+" is "+state, func() bool {
		s = f.lines.of(t, line)
		return s.State == state
	})
	return s
}

// working is the answer that costs healthyCost.
func working() fakeprovider.Reply { return fakeprovider.Answer("fine", 1000, 500) }

// lineScenes are the lives of lines as the operator's API shows them.
func lineScenes(t testing.TB) []scene {
	return []scene{
		circuitScene(t), coolingScene(t), credentialScene(t), missingModelScene(t), drainScene(t), resumeScene(t),
		allBusyScene(t, "busy"), allBusyScene(t, "cooling"), noLineScene(t), responsesScene(t),
	}
}

// circuitScene: five failures in a row open the circuit; then no request
// touches the line.
func circuitScene(t testing.TB) scene {
	dead, alive := newMoody(t, fakeprovider.Error(500, "server_error", "", "down")), newMoody(t, working())
	return scene{
		name:   "circuit",
		models: []map[string]any{chatModel("circuit-solo", nil), chatModel("circuit-duo", nil)},
		lines: []map[string]any{
			chatLine("circuit-dead", dead.URL(), nil, "circuit-solo", "circuit-duo"),
			chatLine("circuit-alive", alive.URL(), map[string]any{"priority": 2}, "circuit-duo"),
		},
		play: func(t *testing.T, f *fixture) {
			c := f.caller(t)
			for range 5 {
				c.wants("circuit-duo", "")
			}
			dead.asked(t, 5)
			s := f.becomes(t, "circuit-dead", "circuit_open")
			if s.Cause == "" || s.until() == 0 || s.Attempts != 5 || *s.SuccessRate != 0 {
				t.Errorf("line: %s", s)
			}
			for range 5 {
				c.wants("circuit-duo", "")
				c.wants("circuit-solo", "upstream_unavailable")
			}
			dead.asked(t, 5)
			alive.asked(t, 10)
			c.settled(10)
		},
	}
}

// until is when a line is asked or probed again, in Unix seconds.
func (s lineState) until() int64 {
	n, _ := strconv.ParseInt(string(s.CoolingUntil), 10, 64)
	return n
}

// coolingScene: a rate limit that asks for two seconds gives the line a rest
// of two seconds.
func coolingScene(t testing.TB) scene {
	p := newMoody(t, fakeprovider.Busy(2))
	return scene{
		name:   "cooling",
		models: []map[string]any{chatModel("cooling", nil)},
		lines:  []map[string]any{chatLine("cooling", p.URL(), nil, "cooling")},
		play: func(t *testing.T, f *fixture) {
			c := f.caller(t)
			begin := time.Now()
			c.wants("cooling", "upstream_busy")
			p.turn(working())
			s := f.lines.of(t, "cooling")
			if took := time.Since(begin); s.State != "cooling" && took < 2*time.Second {
				t.Errorf("after %s, line: %s", took, s)
			}
			if a := f.send(t, c.key, hello("cooling", false)); a.status != 200 { // a slow machine may take two seconds
				p.asked(t, 1)
			}
			f.becomes(t, "cooling", "in_service")
			// The bound is whole seconds in the list, so a little less is right.
			if took := time.Since(begin); took < 1500*time.Millisecond || took > 20*time.Second {
				t.Errorf("the line was back after %s, want about two seconds", took)
			}
			c.wants("cooling", "")
		},
	}
}

// credentialScene: a refused credential takes the whole line out, with all of
// its models.
func credentialScene(t testing.TB) scene {
	p := newMoody(t, fakeprovider.Error(401, "", "invalid_api_key", "no"))
	return scene{
		name:   "credential",
		models: []map[string]any{chatModel("cred-one", nil), chatModel("cred-two", nil)},
		lines:  []map[string]any{chatLine("cred", p.URL(), nil, "cred-one", "cred-two")},
		play: func(t *testing.T, f *fixture) {
			c := f.caller(t)
			c.wants("cred-one", "upstream_unavailable")
			if s := f.becomes(t, "cred", "credentials_out"); s.Cause == "" || strings.Contains(s.Cause, credential) {
				t.Errorf("line: %s", s)
			}
			p.turn(working())
			c.wants("cred-one", "upstream_unavailable")
			c.wants("cred-two", "upstream_unavailable")
			p.asked(t, 1)
			c.settled(0)
		},
	}
}

// missingModelScene: a model that the provider does not have is out on its
// line alone.
func missingModelScene(t testing.TB) scene {
	p := newMoody(t, fakeprovider.Error(404, "invalid_request_error", "model_not_found", "no"))
	return scene{
		name:   "missing model",
		models: []map[string]any{chatModel("missing-one", nil), chatModel("missing-two", nil)},
		lines:  []map[string]any{chatLine("missing", p.URL(), nil, "missing-one", "missing-two")},
		play: func(t *testing.T, f *fixture) {
			c := f.caller(t)
			c.wants("missing-one", "upstream_unavailable")
			p.turn(working())
			s := f.becomes(t, "missing", "in_service")
			if len(s.ModelsOut) != 1 || s.ModelsOut[0].Model != "missing-one" {
				t.Errorf("line: %s", s)
			}
			c.wants("missing-two", "")
			c.wants("missing-one", "upstream_unavailable")
			p.asked(t, 2)
			c.settled(1)
		},
	}
}

// drainScene: a drained line is not asked until the operator resumes it; what
// runs on it goes on.
func drainScene(t testing.TB) scene {
	first, second := newMoody(t, working()), newMoody(t, working())
	return scene{
		name:   "drain",
		models: []map[string]any{chatModel("drain", nil)},
		lines: []map[string]any{
			chatLine("drain-1", first.URL(), nil, "drain"),
			chatLine("drain-2", second.URL(), map[string]any{"priority": 2}, "drain"),
		},
		play: func(t *testing.T, f *fixture) {
			c := f.caller(t)
			open := make(chan struct{})
			slow := working()
			slow.Wait = open
			first.turn(slow)
			var running sync.WaitGroup
			running.Go(func() { c.wants("drain", "") })
			first.Arrived()
			first.turn(working())
			f.process.Admin("POST", "/lines/drain-1/drain", map[string]any{}, nil)
			if s := f.becomes(t, "drain-1", "drained"); s.InFlight != 1 {
				t.Errorf("%d calls in flight", s.InFlight)
			}
			c.wants("drain", "")
			first.asked(t, 1)
			second.asked(t, 1)
			close(open)
			running.Wait()
			f.process.Admin("POST", "/lines/drain-1/resume", map[string]any{}, nil)
			f.becomes(t, "drain-1", "in_service")
			c.wants("drain", "")
			first.asked(t, 2)
			second.asked(t, 1)
			c.settled(3)
		},
	}
}

// resumeScene: resume clears whatever took a line out.
func resumeScene(t testing.TB) scene {
	p := newMoody(t, working())
	return scene{
		name:   "resume",
		models: []map[string]any{chatModel("resume", nil)},
		lines:  []map[string]any{chatLine("resume", p.URL(), nil, "resume")},
		play: func(t *testing.T, f *fixture) {
			c := f.caller(t)
			for i, tt := range []struct {
				reply fakeprovider.Reply
				times int
				code  string
				state string
			}{
				{fakeprovider.Error(500, "server_error", "", "x"), 5, "upstream_unavailable", "circuit_open"},
				{fakeprovider.Busy(3600), 1, "upstream_busy", "cooling"},
				{fakeprovider.Error(402, "", "", "x"), 1, "upstream_unavailable", "credentials_out"},
				{fakeprovider.Error(404, "", "model_not_found", "x"), 1, "upstream_unavailable", "in_service"},
			} {
				p.turn(tt.reply)
				for range tt.times {
					c.wants("resume", tt.code)
				}
				f.becomes(t, "resume", tt.state)
				p.turn(working())
				c.wants("resume", "upstream_unavailable")
				f.process.Admin("POST", "/lines/resume/resume", map[string]any{}, nil)
				if s := f.becomes(t, "resume", "in_service"); len(s.ModelsOut) != 0 {
					t.Errorf("line: %s", s)
				}
				c.wants("resume", "")
				c.settled(i + 1)
			}
		},
	}
}

// allBusyScene: with every line at its cap, or cooling beside one that is,
// nothing is sent and nothing held.
func allBusyScene(t testing.TB, kind string) scene {
	model := "full-" + kind
	open := make(chan struct{})
	slow := working()
	slow.Wait = open
	first, second := newMoody(t, slow), newMoody(t, slow)
	if kind == "cooling" {
		first.turn(fakeprovider.Busy(60))
	}
	capped := func(priority int) map[string]any { return map[string]any{"priority": priority, "max_concurrent": 1} }
	return scene{
		name:   "all lines full or " + kind,
		models: []map[string]any{chatModel(model, nil)},
		lines: []map[string]any{
			chatLine(model+"-1", first.URL(), capped(1), model),
			chatLine(model+"-2", second.URL(), capped(2), model),
		},
		play: func(t *testing.T, f *fixture) {
			running, c := f.caller(t), f.caller(t)
			var group sync.WaitGroup
			begin := func(p *moody) {
				group.Go(func() { running.patiently(model) })
				p.Arrived()
			}
			begin(first) // which, when it is cooling, fails over to the second
			answers := 1
			if kind == "cooling" {
				second.Arrived()
			} else {
				begin(second)
				answers = 2
			}
			for range 3 {
				c.refused(model)
			}
			first.asked(t, 1)
			second.asked(t, 1)
			c.settled(0)
			close(open)
			group.Wait()
			second.turn(working())
			c.patiently(model)
			running.settled(answers)
			c.settled(1)
		},
	}
}

// patiently sends a request until a slot is free: on a busy machine the node
// may be too late to hear of one.
func (c caller) patiently(model string) {
	c.t.Helper()
	var a answer
	eventually(c.t, model+" has a free slot", func() bool {
		a = c.f.send(c.t, c.key, hello(model, false))
		return a.status != 429
	})
	if a.status != 200 {
		c.t.Errorf("%s: the client got %d %s", model, a.status, a.err)
	}
}

// refused sends a request that is refused since all lines are busy.
func (c caller) refused(model string) {
	c.t.Helper()
	a := c.wants(model, "rate_limit_exceeded")
	wait, err := strconv.Atoi(a.retryAfter)
	if a.status != 429 || a.err.Type != "rate_limit_error" || a.err.param() != "" || err != nil || wait < 1 {
		c.t.Errorf("the client got %d %s, Retry-After %q", a.status, a.err, a.retryAfter)
	}
	var extra struct {
		Attempts []map[string]any `json:"attempts"`
	}
	if err := json.Unmarshal([]byte(a.raw), &extra); err != nil || len(extra.Attempts) != 2 {
		c.t.Fatalf("attempts %v, %v in %s", extra.Attempts, err, a.raw)
	}
	for i, attempt := range extra.Attempts {
		if attempt["place"] != float64(i+1) || attempt["reason"] == "" || attempt["reason"] == nil {
			c.t.Errorf("attempt %v", attempt)
		}
	}
	if strings.Contains(a.raw, model) {
		c.t.Errorf("a line's name is in %s", a.raw)
	}
	if r := c.f.receipt(c.t, c.account, a.id); r.Status != 429 || r.Code != "rate_limit_exceeded" || r.Cost != 0 || r.Line != "" {
		c.t.Errorf("receipt %+v", r)
	}
}

// noLineScene: with no healthy line at all, nothing is sent.
func noLineScene(t testing.TB) scene {
	refuse := fakeprovider.Error(401, "", "invalid_api_key", "no")
	first, second := newMoody(t, refuse), newMoody(t, refuse)
	return scene{
		name:   "no line",
		models: []map[string]any{chatModel("none", nil)},
		lines: []map[string]any{
			chatLine("none-1", first.URL(), nil, "none"),
			chatLine("none-2", second.URL(), map[string]any{"priority": 2}, "none"),
		},
		play: func(t *testing.T, f *fixture) {
			c := f.caller(t)
			c.wants("none", "upstream_unavailable")
			for range 3 {
				a := c.wants("none", "upstream_unavailable")
				if a.status != 502 || a.err.Type != "upstream_error" || a.err.Message == "" || strings.Contains(a.raw, "none-") {
					t.Errorf("the client got %d %s", a.status, a.raw)
				}
				if r := f.receipt(t, c.account, a.id); r.Status != 502 || r.Cost != 0 || r.Line != "" {
					t.Errorf("receipt %+v", r)
				}
			}
			first.asked(t, 1)
			second.asked(t, 1)
			c.settled(0)
		},
	}
}

// responsesScene: how /v1/responses says that all lines are full, that the last
// one failed, and that there is none (interface.md, Endpoints, rule 8).
func responsesScene(t testing.TB) scene {
	open := make(chan struct{})
	slow := working()
	slow.Wait = open
	p := newMoody(t, slow)
	const request = `{"model":"responses","max_output_tokens":500,"input":"hi"}`
	return scene{
		name:   "responses",
		models: []map[string]any{chatModel("responses", map[string]any{"forms": []string{"responses"}})},
		lines: []map[string]any{chatLine("responses-line", p.URL(),
			map[string]any{"forms": []string{"chat"}, "max_concurrent": 1}, "responses")},
		play: func(t *testing.T, f *fixture) {
			c := f.caller(t)
			ask := func() answer {
				a, err := converse(t.Context(), f.client, f.process.URL+"/v1/responses", c.key, request)
				if err != nil {
					t.Fatal(err)
				}
				return a
			}
			wants := func(status int, code, kind, member string) {
				t.Helper()
				a := ask()
				if a.status != status || a.err.Code != code || a.err.Type != kind || a.err.param() != "" || strings.Contains(a.raw, "responses-line") {
					t.Errorf("the client got %d %s; want %d %s", a.status, a.raw, status, code)
				}
				wait, err := strconv.Atoi(a.retryAfter)
				if member != "" && (err != nil || wait < 1 || !strings.Contains(a.raw, `"`+member+`":`)) {
					t.Errorf("the client got Retry-After %q and %s; want %s", a.retryAfter, a.raw, member)
				}
			}
			var group sync.WaitGroup
			group.Go(func() {
				eventually(t, "a slot is free", func() bool { return ask().status == 200 })
			})
			p.Arrived()
			wants(429, "rate_limit_exceeded", "rate_limit_error", "attempts")
			p.asked(t, 1)
			p.turn(fakeprovider.Error(401, "", "invalid_api_key", "no"))
			close(open)
			group.Wait()
			eventually(t, "the slot is free, and the credential refused", func() bool { return ask().status == 502 })
			f.becomes(t, "responses-line", "credentials_out")
			wants(503, "service_unavailable", "service_unavailable", "retry_after")
			p.asked(t, 2)
			c.settled(1)
		},
	}
}
