package health

import (
	"errors"
	"strings"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

// newWideLine returns a line with three models in two forms.
func newWideLine(t *testing.T) *testLine {
	p := newTestLine(t)
	p.stats.Serves(Serving{Models: 3, Forms: 2})
	p.part = LinePart{Model: "m", Form: wire.FormChat}
	return p
}

// as lets the next requests be an account's, for a model.
func (p *testLine) as(account, model string) *testLine {
	p.account, p.part.Model = account, model
	return p
}

// refused checks the reason for refusing an account's request without another line.
func (p *testLine) refused(account, model, want string) {
	p.Helper()
	if why := p.refuses(account, model, true); why != want {
		p.Errorf("%s on %s is refused with %q, want %q", account, model, why, want)
	}
}

// refuses returns the reason for refusing an account's request for a model.
func (p *testLine) refuses(account, model string, lastResort bool) string {
	q := Origin{LinePart: LinePart{Model: model, Form: p.part.Form, Tools: p.part.Tools}, Account: account}
	why, _, isHalfOpen := p.stats.Refuses(func() time.Time { return p.now }, q, lastResort)
	if isHalfOpen {
		p.stats.EndHalfOpen()
	}
	return why
}

// partsDue begins the due probes of parts and returns them.
func (p *testLine) partsDue() (asks []Probe) {
	p.stats.change(func(h *health) []Change {
		asks = h.due(p.now).Parts
		return nil
	})
	return asks
}

// noForm returns a refusal of a model's form.
func noForm(tools, unproven bool) *upstream.Failure {
	return &upstream.Failure{Code: fault.UpstreamUnavailable, Health: upstream.HealthForm, Tools: tools, Unproven: unproven,
		Cause: errors.New("only supported in v1/responses")}
}

// nowhere returns a 404 without the name of a model or form.
func nowhere() *upstream.Failure {
	return upstream.Classify(404, "", []byte(`{"detail":"Not Found"}`), nil)
}

// TestOneModelCools checks that a rate limit pauses only its model, as long as the provider
// asks, else longer each time.
func TestOneModelCools(t *testing.T) {
	t.Parallel()
	p := newWideLine(t)
	for _, step := range []struct{ retryAfter, pause time.Duration }{
		{0, 5 * time.Second}, {0, 10 * time.Second}, {0, 20 * time.Second}, {7 * time.Second, 7 * time.Second}, {time.Hour, time.Minute},
	} {
		p.do(limited(429, step.retryAfter))
		p.refused("", "m", StateCooling)
		p.refused("", "other", "")
		s := p.stats.Summary(p.now)
		if s.State != StateInService || len(s.ModelsCooling) != 1 || s.ModelsCooling[0].Model != "m" ||
			s.ModelsCooling[0].Until != p.now.Add(step.pause).Unix() || s.ModelsCooling[0].Cause == "" || s.ModelsOut != nil {
			t.Errorf("%+v", s)
		}
		if left := p.stats.Wait(p.now, "m"); left != step.pause || p.stats.Wait(p.now, "other") != 0 {
			t.Errorf("left %s, want %s", left, step.pause)
		}
		p.now = p.now.Add(step.pause)
		p.refused("", "m", "")
	}
	p.do(nil)
	if !p.stats.Sound() {
		t.Error("the line is not sound")
	}
	p.do(limited(429, 0))
	p.checkWait(5 * time.Second)
}

// TestJobsCoolTheirModel checks that a rate limit of a job pauses only its model.
func TestJobsCoolTheirModel(t *testing.T) {
	t.Parallel()
	p := newWideLine(t)
	job := Origin{LinePart: LinePart{Model: "m"}, Account: "a", Job: true}
	p.record(p.stats.RecordFailure(p.now, job, limited(429, time.Minute)))
	for model, want := range map[string]string{"m": StateCooling, "other": ""} {
		why, _, _ := p.stats.Refuses(func() time.Time { return p.now }, Origin{LinePart: LinePart{Model: model}}, false)
		if why != want {
			t.Errorf("%s is refused with %q, want %q", model, why, want)
		}
	}
}

// TestLimitsCountOnce checks that the rate limits of concurrent requests count as one, and that
// neither these nor late requests affect the circuit or the other models.
func TestLimitsCountOnce(t *testing.T) {
	t.Parallel()
	limit := func(p *testLine) {
		var generations []uint64
		for range 50 {
			generations = append(generations, p.begin())
		}
		for _, generation := range generations {
			p.end(generation, limited(429, 0))
		}
		p.checkWait(5 * time.Second)
	}
	limit(newTestLine(t))
	p := newWideLine(t)
	limit(p)
	p.as("", "other").do(broken())
	if s := p.stats.Summary(p.now); s.State != StateInService {
		t.Errorf("%+v", s)
	}
}

// TestSeveralModelsLimitedAtOnce checks that limits of two models at once, or of the account, pause
// the line. Limits of one model after the other do not.
func TestSeveralModelsLimitedAtOnce(t *testing.T) {
	t.Parallel()
	p := newWideLine(t)
	p.do(limited(429, 5*time.Second))
	p.now = p.now.Add(5 * time.Second)
	p.as("", "other").do(limited(429, 5*time.Second))
	if s := p.stats.Summary(p.now); s.State != StateInService {
		t.Errorf("one after the other: %+v", s)
	}
	p.as("", "m").do(limited(429, 5*time.Second))
	p.refused("", "third", StateCooling)
	if s := p.stats.Summary(p.now); s.State != StateCooling || s.CoolingUntil != p.now.Add(5*time.Second).Unix() {
		t.Errorf("both at once: %+v", s)
	}

	p = newWideLine(t)
	whole := limited(429, 9*time.Second)
	whole.AllModels = true
	p.do(whole)
	p.refused("", "third", StateCooling)
	p.now = p.now.Add(9 * time.Second)
	p.refused("", "third", "")
}

// TestOtherAccountsMayTry checks that a block applies only to the accounts that met its failure,
// until an answer lifts the block or a probe confirms it.
func TestOtherAccountsMayTry(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		met      func() *upstream.Failure
		refusal  string
		messages string // the message to the operator after confirmation
		doubt    string
	}{
		"a rate limit":    {func() *upstream.Failure { return limited(429, 0) }, StateCooling, "", "m"},
		"a missing model": {missing, StateModelOut, "m model_out", "m"},
		"a missing form":  {func() *upstream.Failure { return noForm(false, false) }, StateFormOut, "m chat form_out", "m"},
		"a credential":    {account, StateCredentialsOut, "credentials_out", "m"},
		"the whole rate": {func() *upstream.Failure {
			f := limited(429, 0)
			f.AllModels = true
			return f
		}, StateCooling, "", "m"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newWideLine(t)
			early := p.as("good", "m").begin()
			p.as("hostile", "m").do(tt.met())
			p.refused("hostile", "m", tt.refusal)
			p.refused("", "m", tt.refusal) // a request without an account is not exempt
			p.as("good", "m").end(early, nil)
			p.refused("hostile", "m", tt.refusal) // the request began before the block
			p.do(nil)
			p.refused("hostile", "m", "")
			p.as("hostile", "m").end(early, tt.met()) // too late to bring it back
			p.refused("good", "m", "")
			p.refused("hostile", "m", "")
			p.now = p.now.Add(doubtAgain)

			for _, account := range []string{"hostile", "friend", "third", "fourth", "fifth"} {
				p.as(account, "m").do(tt.met())
			}
			p.refused("fifth", "m", tt.refusal)
			p.refused("good", "m", "")
			if len(p.messages) > 0 {
				t.Errorf("messages %q before a probe met the failure", p.messages)
			}
			p.checkDoubts(tt.doubt)
			p.probeDoubt(tt.met())
			p.refused("good", "m", tt.refusal)
			if got := strings.Join(p.messages, ", "); got != tt.messages {
				t.Errorf("messages %q, want %q", got, tt.messages)
			}
		})
	}
}

// TestTheProvidersWordOnTime checks that a pause with a named time applies to all accounts with
// another line. A repeated pause applies only to the accounts that met it, unless a probe confirms
// it.
func TestTheProvidersWordOnTime(t *testing.T) {
	t.Parallel()
	for _, whole := range []bool{false, true} {
		limit := limited(429, 20*time.Second)
		limit.AllModels = whole
		p := newWideLine(t).as("hostile", "m")
		p.do(limit)
		p.refused("hostile", "m", StateCooling)
		p.refused("good", "m", "")
		if why := p.refuses("good", "m", false); why != StateCooling {
			t.Errorf("good is refused with %q, although others may use m", why)
		}
		p.checkDoubts() // one account alone needs no probe
		p.as("good", "m").do(limit)
		p.refused("good", "m", StateCooling)
		p.refused("third", "m", "")
		p.resolveDoubt(limit)
		p.refused("third", "m", StateCooling)

		p.now = p.now.Add(20 * time.Second)
		p.as("hostile", "m").do(limit)
		p.as("other", "m").do(nil)
		p.refused("hostile", "m", "")
		for range 5 { // and is known for a while
			p.as("hostile", "m").do(limit)
			p.refused("hostile", "m", StateCooling)
			if why := p.refuses("other", "m", false); why != "" {
				t.Errorf("other is refused with %q", why)
			}
			p.as("other", "m").do(nil)
		}
	}
}

// TestALimitOfSomeAccounts checks that a pause without confirmation by a probe applies only to its
// reporters, and is hidden from the operator.
func TestALimitOfSomeAccounts(t *testing.T) {
	t.Parallel()
	for _, whole := range []bool{false, true} {
		limit := limited(429, 20*time.Second)
		limit.AllModels = whole
		p := newWideLine(t)
		p.as("large", "m").do(limit)
		p.as("huge", "m").do(limit)
		p.resolveDoubt(nil)
		for _, account := range []string{"large", "huge"} {
			p.refused(account, "m", StateCooling)
		}
		if why := p.refuses("good", "m", false); why != "" {
			t.Errorf("good is refused with %q", why)
		}
		if s := p.stats.Summary(p.now); s.State != StateInService || s.ModelsCooling != nil {
			t.Errorf("%+v", s)
		}
		p.now = p.now.Add(20 * time.Second)
		p.refused("large", "m", "")
	}
}

// TestAccountsKeepNoCircuitOpen checks that a circuit opened by requests is probed at once, that
// other accounts may use the line meanwhile, and that refuted failures do not open the circuit
// again soon.
func TestAccountsKeepNoCircuitOpen(t *testing.T) {
	t.Parallel()
	trip := func(t *testing.T) *testLine {
		p := newWideLine(t)
		for i := range 5 {
			p.as([]string{"hostile", "friend"}[i%2], "m").do(broken())
		}
		p.as("hostile", "m")
		p.check("in_service", StateCircuitOpen)
		p.refused("friend", "m", StateCircuitOpen)
		p.refused("good", "m", "")
		return p
	}
	t.Run("a probe refutes it", func(t *testing.T) {
		t.Parallel()
		p := trip(t)
		p.resolveDoubt(nil)
		p.check("in_service", "")
		p.as("hostile", "m").repeat(50, broken())
		p.check("in_service", "")
		p.now = p.now.Add(doubtAgain)
		p.resolveDoubt(nil)
		p.repeat(5, broken())
		p.now = p.now.Add(confirmAgain)
		p.resolveDoubt(broken()) // now it is the line
		p.refused("good", "m", StateCircuitOpen)
		p.check("circuit_open", "circuit_open", "circuit_open")
		p.checkWait(openWait)
	})
	t.Run("another account refutes it", func(t *testing.T) {
		t.Parallel()
		p := trip(t)
		p.as("good", "m").do(nil)
		p.as("hostile", "m").check("in_service", "")
		p.repeat(50, broken())
		p.check("in_service", "")
	})
	t.Run("another account meets it too", func(t *testing.T) {
		t.Parallel()
		p := trip(t)
		p.as("good", "m").do(hollow()) // proves nothing
		p.refused("good", "m", "")
		p.do(broken())
		p.refused("good", "m", StateCircuitOpen)
		p.refused("third", "m", "")
	})
	t.Run("a probe that was cut off", func(t *testing.T) {
		t.Parallel()
		p := trip(t)
		p.resolveDoubt(upstream.Fail(fault.ClientClosed, errors.New("the node stops")))
		p.refused("good", "m", "")
		p.checkDoubts()
		p.now = p.now.Add(confirmAgain)
		p.resolveDoubt(limited(429, 0)) // no answer either
		p.refused("good", "m", StateCircuitOpen)
	})
	t.Run("half-open", func(t *testing.T) {
		t.Parallel()
		p := trip(t)
		p.resolveDoubt(broken())
		p.now = p.now.Add(openWait)
		p.probe(nil)
		p.messages = nil
		p.do(broken()) // no other account had met it: it may open the circuit again, for itself
		p.refused("hostile", "m", StateCircuitOpen)
		p.refused("good", "m", "")
		p.resolveDoubt(nil)
		p.check("half_open", "") // not at once in service: it had been out
		p.as("good", "m").do(nil)
		p.do(nil)
		p.do(nil)
		p.check("in_service", "", "in_service")
	})
}

// TestOneAccountOnAnUnprobedLine checks that the circuit is open only for the failing account while
// others use the line, and that the operator sees the line in service.
func TestOneAccountOnAnUnprobedLine(t *testing.T) {
	t.Parallel()
	p := newTestLine(t)
	p.stats.Serves(Serving{Models: 3, Unprobed: true})
	p.as("good", "m").do(nil)
	p.as("hostile", "m").repeat(5, broken())
	p.check("in_service", StateCircuitOpen)
	p.refused("good", "m", "")
	p.as("good", "m").do(broken())
	p.check("circuit_open", StateCircuitOpen, "circuit_open")
}

// TestAProbeInFlight checks that a probe from before the circuit opened does not decide, and that
// the next one does.
func TestAProbeInFlight(t *testing.T) {
	t.Parallel()
	p := newWideLine(t).as("a", "m")
	p.do(stalled())
	p.do(stalled())
	generation := p.stats.Generation()
	p.checkDoubts("m")
	p.repeat(5, broken())
	p.refused("a", "m", StateCircuitOpen)
	p.record(p.stats.change(func(h *health) []Change { return h.recordDoubtProbe(p.now, generation, p.part, p.part.Form, broken()) }))
	p.refused("b", "m", "")
	p.now = p.now.Add(confirmAgain)
	p.resolveDoubt(broken())
	p.refused("b", "m", StateCircuitOpen)
}

// TestNoProbeIsPossible checks that a line without chat models refuses the accounts with failures,
// serves the other accounts, and is announced at once.
func TestNoProbeIsPossible(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		met      func() *upstream.Failure
		messages string
	}{
		"a credential": {account, "credentials_out"},
		"a model":      {missing, "m model_out"},
		"the circuit":  {broken, "circuit_open"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTestLine(t)
			p.stats.Serves(Serving{Models: 3, Unprobed: true})
			for _, account := range []string{"a", "b", "c", "d", "e", "f"} {
				q := Origin{LinePart: LinePart{Model: "m"}, Account: account, Job: true}
				for range 5 {
					q.Generation = p.stats.Generation()
					p.record(p.stats.RecordFailure(p.now, q, tt.met()))
				}
			}
			p.refused("a", "m", tt.messages[strings.LastIndex(tt.messages, " ")+1:])
			p.refused("good", "m", "")
			p.checkDoubts()
			if len(p.messages) != 1 || p.messages[0] != tt.messages {
				t.Errorf("messages %q", p.messages)
			}
		})
	}
}

// TestAFormIsOut checks that the model is used in its other forms, that a probe checks the missing
// form, and that a model without any form is out.
func TestAFormIsOut(t *testing.T) {
	t.Parallel()
	p := newWideLine(t)
	p.do(noForm(false, true)) // in words: a probe has to meet it as well
	p.check("in_service", "")
	p.resolveDoubt(noForm(false, true))
	p.check("in_service", "form_out", "m chat form_out")
	p.refused("", "other", "")
	p.part.Form = wire.FormResponses
	p.refused("", "m", "")
	s := p.stats.Summary(p.now)
	if len(s.FormsOut) != 1 || s.FormsOut[0].Form != wire.FormChat || s.FormsOut[0].Cause == "" ||
		s.FormsOut[0].Until != p.now.Add(accountWait).Unix() || s.ModelsOut != nil {
		t.Errorf("%+v", s)
	}

	p.now = p.now.Add(accountWait)
	if asks := p.partsDue(); len(asks) != 1 || asks[0].LinePart != (LinePart{Model: "m", Form: wire.FormChat}) {
		t.Fatalf("probes of %v", asks)
	}
	p.stats.RecordPartProbe(p.now, LinePart{Model: "m", Form: wire.FormChat}, noForm(false, true))
	p.now = p.now.Add(2 * accountWait)
	if asks := p.partsDue(); len(asks) != 1 {
		t.Fatalf("probes of %v", asks)
	}
	p.record(p.stats.RecordPartProbe(p.now, LinePart{Model: "m", Form: wire.FormChat}, nil))
	p.part.Form = wire.FormChat
	p.check("in_service", "", "m chat in_service")

	for _, form := range []wire.Form{wire.FormChat, wire.FormResponses} {
		p.part.Form = form
		p.do(nowhere())
		p.resolveDoubt(nowhere())
	}
	p.check("in_service", "model_out", "m chat form_out", "m model_out")
	if s := p.stats.Summary(p.now); s.FormsOut != nil || len(s.ModelsOut) != 1 {
		t.Errorf("%+v", s)
	}
	p.record(p.stats.Clear(p.now))
	p.check("in_service", "", "m in_service")
}

// TestALineWithOneForm checks that the model is out if its only form is. If the model rejects
// tools, the client gets the rejection.
func TestALineWithOneForm(t *testing.T) {
	t.Parallel()
	p := newWideLine(t)
	p.stats.Serves(Serving{Models: 3, Forms: 1})
	p.do(noForm(true, false))
	p.check("in_service", "")
	p.do(noForm(false, false))
	p.check("in_service", "model_out", "m model_out")
}

// TestToolsPreferAnotherForm checks that a form without tools refuses no request, and that only the
// answer to a probe lifts the block.
func TestToolsPreferAnotherForm(t *testing.T) {
	t.Parallel()
	p := newWideLine(t)
	lacks := func(tools bool) Lack {
		q := p.origin()
		q.Tools = tools
		return p.stats.Lacks(q)
	}
	if lacks(true) != LacksNothing {
		t.Error("a sound line lacks something")
	}
	p.part.Tools = true
	p.do(noForm(true, true))
	p.stats.change(func(h *health) []Change {
		if due := h.due(p.now).Doubts; len(due) != 1 || due[0].LinePart != p.part {
			t.Errorf("doubts %v", due)
		}
		return nil
	})
	p.probeDoubt(noForm(true, true))
	p.check("in_service", "", "m chat+tools form_out")
	p.do(nil)
	if lacks(true) != LacksTools || lacks(false) != LacksNothing {
		t.Errorf("lacks %d with tools, %d without", lacks(true), lacks(false))
	}
	p.now = p.now.Add(accountWait)
	if asks := p.partsDue(); len(asks) != 1 || !asks[0].Tools {
		t.Fatalf("probes of %v", asks)
	}
	p.record(p.stats.RecordPartProbe(p.now, p.part, nil))
	p.check("in_service", "", "m chat+tools in_service")
	if lacks(true) != LacksNothing {
		t.Error("it is still lacking")
	}
}

// TestProbesAskWhatWorked last, model and form.
func TestProbesAskWhatWorked(t *testing.T) {
	t.Parallel()
	p := newWideLine(t)
	p.do(nil)
	p.part = LinePart{Model: "other", Form: wire.FormResponses}
	p.do(nil)
	p.do(account())
	for number := range 3 {
		p.now = p.now.Add(maxAccountWait)
		p.stats.change(func(h *health) []Change {
			whole := h.due(p.now).Whole
			if whole == nil || whole.LinePart != p.part || whole.Number != number {
				t.Errorf("the target is %+v", whole)
			}
			return h.recordProbe(p.now, h.generation, account())
		})
	}
	p.now = p.now.Add(maxAccountWait)
	p.probe(nil)
	p.part = LinePart{Model: "m", Form: wire.FormResponses}
	p.do(missing())
	p.now = p.now.Add(accountWait)
	if asks := p.partsDue(); len(asks) != 1 || asks[0].Last != wire.FormChat || asks[0].Form != "" {
		t.Errorf("probes of %+v", asks)
	}
}

// TestLateFailuresOfParts checks that late failures do not take a lifted part out.
func TestLateFailuresOfParts(t *testing.T) {
	t.Parallel()
	p := newWideLine(t)
	early := p.begin()
	p.do(missing())
	p.now = p.now.Add(accountWait)
	p.partsDue()
	p.record(p.stats.RecordPartProbe(p.now, LinePart{Model: "m"}, nil))
	p.end(early, missing())
	p.end(early, limited(429, time.Minute))
	p.check("in_service", "", "m model_out", "m in_service")
}
