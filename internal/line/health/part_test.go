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
	l := newTestLine(t)
	l.stats.Serves(Serving{Models: 3, Forms: 2})
	l.part = LinePart{Model: "m", Form: wire.FormChat}
	return l
}

// as sets the account and the model for the next requests.
func (l *testLine) as(account, model string) *testLine {
	l.account, l.part.Model = account, model
	return l
}

// checkRefusal checks the reason for refusing an account's request, without a last resort.
func (l *testLine) checkRefusal(account, model, want string) {
	l.Helper()
	if why := l.refuses(account, model, true); why != want {
		l.Errorf("%s on %s is refused with %q, want %q", account, model, why, want)
	}
}

// refuses returns the reason for refusing an account's request for a model.
func (l *testLine) refuses(account, model string, lastResort bool) string {
	q := Origin{LinePart: LinePart{Model: model, Form: l.part.Form, Tools: l.part.Tools}, Account: account}
	why, _, isHalfOpen := l.stats.Refuses(func() time.Time { return l.now }, q, lastResort)
	if isHalfOpen {
		l.stats.EndHalfOpen()
	}
	return why
}

// partsDue starts the due probes of parts and returns them.
func (l *testLine) partsDue() (probes []Probe) {
	l.stats.change(func(h *health) []Change {
		probes = h.due(l.now).Parts
		return nil
	})
	return probes
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

// TestOneModelCools checks that a rate limit pauses only its model, for the time in Retry-After,
// else longer each time.
func TestOneModelCools(t *testing.T) {
	t.Parallel()
	l := newWideLine(t)
	for _, step := range []struct{ retryAfter, pause time.Duration }{
		{0, 5 * time.Second}, {0, 10 * time.Second}, {0, 20 * time.Second}, {7 * time.Second, 7 * time.Second}, {time.Hour, time.Minute},
	} {
		l.do(limited(429, step.retryAfter))
		l.checkRefusal("", "m", StateCooling)
		l.checkRefusal("", "other", "")
		s := l.stats.Summary(l.now)
		if s.State != StateInService || len(s.ModelsCooling) != 1 || s.ModelsCooling[0].Model != "m" ||
			s.ModelsCooling[0].Until != l.now.Add(step.pause).Unix() || s.ModelsCooling[0].Cause == "" || s.ModelsOut != nil {
			t.Errorf("%+v", s)
		}
		if wait := l.stats.Wait(l.now, "m"); wait != step.pause || l.stats.Wait(l.now, "other") != 0 {
			t.Errorf("wait %s, want %s", wait, step.pause)
		}
		l.now = l.now.Add(step.pause)
		l.checkRefusal("", "m", "")
	}
	l.do(nil)
	if !l.stats.Sound() {
		t.Error("the line is not sound")
	}
	l.do(limited(429, 0))
	l.checkWait(5 * time.Second)
}

// TestJobsCoolTheirModel checks that a rate limit of a job pauses only its model.
func TestJobsCoolTheirModel(t *testing.T) {
	t.Parallel()
	l := newWideLine(t)
	job := Origin{LinePart: LinePart{Model: "m"}, Account: "a", Job: true}
	l.record(l.stats.RecordFailure(l.now, job, limited(429, time.Minute)))
	for model, want := range map[string]string{"m": StateCooling, "other": ""} {
		why, _, _ := l.stats.Refuses(func() time.Time { return l.now }, Origin{LinePart: LinePart{Model: model}}, false)
		if why != want {
			t.Errorf("%s is refused with %q, want %q", model, why, want)
		}
	}
}

// TestLimitsCountOnce checks that the rate limits of concurrent requests count as one, and that
// neither these nor late requests affect the circuit or the other models.
func TestLimitsCountOnce(t *testing.T) {
	t.Parallel()
	limit := func(l *testLine) {
		var generations []uint64
		for range 50 {
			generations = append(generations, l.begin())
		}
		for _, generation := range generations {
			l.end(generation, limited(429, 0))
		}
		l.checkWait(5 * time.Second)
	}
	limit(newTestLine(t))
	l := newWideLine(t)
	limit(l)
	l.as("", "other").do(broken())
	if s := l.stats.Summary(l.now); s.State != StateInService {
		t.Errorf("%+v", s)
	}
}

// TestSeveralModelsLimitedAtOnce checks that limits of two models at once, or of the account, pause
// the line. Limits of one model after the other do not.
func TestSeveralModelsLimitedAtOnce(t *testing.T) {
	t.Parallel()
	l := newWideLine(t)
	l.do(limited(429, 5*time.Second))
	l.now = l.now.Add(5 * time.Second)
	l.as("", "other").do(limited(429, 5*time.Second))
	if s := l.stats.Summary(l.now); s.State != StateInService {
		t.Errorf("limited one after the other: %+v", s)
	}
	l.as("", "m").do(limited(429, 5*time.Second))
	l.checkRefusal("", "third", StateCooling)
	if s := l.stats.Summary(l.now); s.State != StateCooling || s.CoolingUntil != l.now.Add(5*time.Second).Unix() {
		t.Errorf("limited at once: %+v", s)
	}

	l = newWideLine(t)
	whole := limited(429, 9*time.Second)
	whole.AllModels = true
	l.do(whole)
	l.checkRefusal("", "third", StateCooling)
	l.now = l.now.Add(9 * time.Second)
	l.checkRefusal("", "third", "")
}

// TestOtherAccountsMayTry checks that a block applies only to the accounts that had the failure,
// until an answer lifts the block or a probe confirms it.
func TestOtherAccountsMayTry(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		failure  func() *upstream.Failure
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
			l := newWideLine(t)
			early := l.as("good", "m").begin()
			l.as("hostile", "m").do(tt.failure())
			l.checkRefusal("hostile", "m", tt.refusal)
			l.checkRefusal("", "m", tt.refusal) // a request without an account is not exempt
			l.as("good", "m").end(early, nil)
			l.checkRefusal("hostile", "m", tt.refusal) // the request began before the block
			l.do(nil)
			l.checkRefusal("hostile", "m", "")
			l.as("hostile", "m").end(early, tt.failure()) // too late to restore the block
			l.checkRefusal("good", "m", "")
			l.checkRefusal("hostile", "m", "")
			l.now = l.now.Add(doubtAgain)

			for _, account := range []string{"hostile", "friend", "third", "fourth", "fifth"} {
				l.as(account, "m").do(tt.failure())
			}
			l.checkRefusal("fifth", "m", tt.refusal)
			l.checkRefusal("good", "m", "")
			if len(l.messages) > 0 {
				t.Errorf("messages %q before a probe failed", l.messages)
			}
			l.checkDoubts(tt.doubt)
			l.probeDoubt(tt.failure())
			l.checkRefusal("good", "m", tt.refusal)
			if got := strings.Join(l.messages, ", "); got != tt.messages {
				t.Errorf("messages %q, want %q", got, tt.messages)
			}
		})
	}
}

// TestTheProvidersWordOnTime checks that a pause with a length from the provider applies to all
// accounts with another line. A repeated pause applies only to the accounts that had it, unless a
// probe confirms it.
func TestTheProvidersWordOnTime(t *testing.T) {
	t.Parallel()
	for _, whole := range []bool{false, true} {
		limit := limited(429, 20*time.Second)
		limit.AllModels = whole
		l := newWideLine(t).as("hostile", "m")
		l.do(limit)
		l.checkRefusal("hostile", "m", StateCooling)
		l.checkRefusal("good", "m", "")
		if why := l.refuses("good", "m", false); why != StateCooling {
			t.Errorf("good is refused with %q, although others may use m", why)
		}
		l.checkDoubts() // a pause of one account needs no probe
		l.as("good", "m").do(limit)
		l.checkRefusal("good", "m", StateCooling)
		l.checkRefusal("third", "m", "")
		l.resolveDoubt(limit)
		l.checkRefusal("third", "m", StateCooling)

		l.now = l.now.Add(20 * time.Second)
		l.as("hostile", "m").do(limit)
		l.as("other", "m").do(nil)
		l.checkRefusal("hostile", "m", "")
		for range 5 { // the refutation lasts for a while
			l.as("hostile", "m").do(limit)
			l.checkRefusal("hostile", "m", StateCooling)
			if why := l.refuses("other", "m", false); why != "" {
				t.Errorf("other is refused with %q", why)
			}
			l.as("other", "m").do(nil)
		}
	}
}

// TestALimitOfSomeAccounts checks that an unconfirmed pause applies only to its reporters, and is
// hidden from the operator.
func TestALimitOfSomeAccounts(t *testing.T) {
	t.Parallel()
	for _, whole := range []bool{false, true} {
		limit := limited(429, 20*time.Second)
		limit.AllModels = whole
		l := newWideLine(t)
		l.as("large", "m").do(limit)
		l.as("huge", "m").do(limit)
		l.resolveDoubt(nil)
		for _, account := range []string{"large", "huge"} {
			l.checkRefusal(account, "m", StateCooling)
		}
		if why := l.refuses("good", "m", false); why != "" {
			t.Errorf("good is refused with %q", why)
		}
		if s := l.stats.Summary(l.now); s.State != StateInService || s.ModelsCooling != nil {
			t.Errorf("%+v", s)
		}
		l.now = l.now.Add(20 * time.Second)
		l.checkRefusal("large", "m", "")
	}
}

// TestAccountsKeepNoCircuitOpen checks that a circuit opened by requests is probed at once, that
// other accounts may use the line meanwhile, and that refuted failures do not soon open the circuit
// again.
func TestAccountsKeepNoCircuitOpen(t *testing.T) {
	t.Parallel()
	trip := func(t *testing.T) *testLine {
		l := newWideLine(t)
		for i := range 5 {
			l.as([]string{"hostile", "friend"}[i%2], "m").do(broken())
		}
		l.as("hostile", "m")
		l.check("in_service", StateCircuitOpen)
		l.checkRefusal("friend", "m", StateCircuitOpen)
		l.checkRefusal("good", "m", "")
		return l
	}
	t.Run("refuted by a probe", func(t *testing.T) {
		t.Parallel()
		l := trip(t)
		l.resolveDoubt(nil)
		l.check("in_service", "")
		l.as("hostile", "m").repeat(50, broken())
		l.check("in_service", "")
		l.now = l.now.Add(doubtAgain)
		l.resolveDoubt(nil)
		l.repeat(5, broken())
		l.now = l.now.Add(confirmAgain)
		l.resolveDoubt(broken()) // the probe fails too, so the line is at fault
		l.checkRefusal("good", "m", StateCircuitOpen)
		l.check("circuit_open", "circuit_open", "circuit_open")
		l.checkWait(openWait)
	})
	t.Run("refuted by another account", func(t *testing.T) {
		t.Parallel()
		l := trip(t)
		l.as("good", "m").do(nil)
		l.as("hostile", "m").check("in_service", "")
		l.repeat(50, broken())
		l.check("in_service", "")
	})
	t.Run("confirmed by another account", func(t *testing.T) {
		t.Parallel()
		l := trip(t)
		l.as("good", "m").do(hollow()) // a hollow answer proves nothing
		l.checkRefusal("good", "m", "")
		l.do(broken())
		l.checkRefusal("good", "m", StateCircuitOpen)
		l.checkRefusal("third", "m", "")
	})
	t.Run("interrupted probe", func(t *testing.T) {
		t.Parallel()
		l := trip(t)
		l.resolveDoubt(upstream.Fail(fault.ClientClosed, errors.New("the node stops")))
		l.checkRefusal("good", "m", "")
		l.checkDoubts()
		l.now = l.now.Add(confirmAgain)
		l.resolveDoubt(limited(429, 0)) // a rate limit decides nothing
		l.checkRefusal("good", "m", StateCircuitOpen)
	})
	t.Run("half-open", func(t *testing.T) {
		t.Parallel()
		l := trip(t)
		l.resolveDoubt(broken())
		l.now = l.now.Add(openWait)
		l.probe(nil)
		l.messages = nil
		l.do(broken()) // no other account had the failure, so the account may open the circuit again for itself
		l.checkRefusal("hostile", "m", StateCircuitOpen)
		l.checkRefusal("good", "m", "")
		l.resolveDoubt(nil)
		l.check("half_open", "") // the operator was told, so the line becomes half-open first
		l.as("good", "m").do(nil)
		l.do(nil)
		l.do(nil)
		l.check("in_service", "", "in_service")
	})
}

// TestOneAccountOnAnUnprobedLine checks that the circuit is open only for the failing account while
// others use the line, and that the operator sees the line as in service.
func TestOneAccountOnAnUnprobedLine(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	l.stats.Serves(Serving{Models: 3, Unprobed: true})
	l.as("good", "m").do(nil)
	l.as("hostile", "m").repeat(5, broken())
	l.check("in_service", StateCircuitOpen)
	l.checkRefusal("good", "m", "")
	l.as("good", "m").do(broken())
	l.check("circuit_open", StateCircuitOpen, "circuit_open")
}

// TestAProbeInFlight checks that a probe from before the circuit opened does not decide, and that
// the next one does.
func TestAProbeInFlight(t *testing.T) {
	t.Parallel()
	l := newWideLine(t).as("a", "m")
	l.do(stalled())
	l.do(stalled())
	generation := l.stats.Generation()
	l.checkDoubts("m")
	l.repeat(5, broken())
	l.checkRefusal("a", "m", StateCircuitOpen)
	l.record(l.stats.change(func(h *health) []Change { return h.recordDoubtProbe(l.now, generation, l.part, l.part.Form, broken()) }))
	l.checkRefusal("b", "m", "")
	l.now = l.now.Add(confirmAgain)
	l.resolveDoubt(broken())
	l.checkRefusal("b", "m", StateCircuitOpen)
}

// TestNoProbeIsPossible checks that a line without chat models refuses the accounts with failures,
// serves the other accounts, and is announced at once.
func TestNoProbeIsPossible(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		failure  func() *upstream.Failure
		messages string
	}{
		"a credential": {account, "credentials_out"},
		"a model":      {missing, "m model_out"},
		"the circuit":  {broken, "circuit_open"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newTestLine(t)
			l.stats.Serves(Serving{Models: 3, Unprobed: true})
			for _, account := range []string{"a", "b", "c", "d", "e", "f"} {
				q := Origin{LinePart: LinePart{Model: "m"}, Account: account, Job: true}
				for range 5 {
					q.Generation = l.stats.Generation()
					l.record(l.stats.RecordFailure(l.now, q, tt.failure()))
				}
			}
			l.checkRefusal("a", "m", tt.messages[strings.LastIndex(tt.messages, " ")+1:])
			l.checkRefusal("good", "m", "")
			l.checkDoubts()
			if len(l.messages) != 1 || l.messages[0] != tt.messages {
				t.Errorf("messages %q", l.messages)
			}
		})
	}
}

// TestAFormIsOut checks that the model is used in its other forms, that a probe checks the missing
// form, and that a model without any form is out.
func TestAFormIsOut(t *testing.T) {
	t.Parallel()
	l := newWideLine(t)
	l.do(noForm(false, true)) // the refusal is unproven, so a probe must confirm it
	l.check("in_service", "")
	l.resolveDoubt(noForm(false, true))
	l.check("in_service", "form_out", "m chat form_out")
	l.checkRefusal("", "other", "")
	l.part.Form = wire.FormResponses
	l.checkRefusal("", "m", "")
	s := l.stats.Summary(l.now)
	if len(s.FormsOut) != 1 || s.FormsOut[0].Form != wire.FormChat || s.FormsOut[0].Cause == "" ||
		s.FormsOut[0].Until != l.now.Add(accountWait).Unix() || s.ModelsOut != nil {
		t.Errorf("%+v", s)
	}

	l.now = l.now.Add(accountWait)
	if probes := l.partsDue(); len(probes) != 1 || probes[0].LinePart != (LinePart{Model: "m", Form: wire.FormChat}) {
		t.Fatalf("probes of %v", probes)
	}
	l.stats.RecordPartProbe(l.now, LinePart{Model: "m", Form: wire.FormChat}, noForm(false, true))
	l.now = l.now.Add(2 * accountWait)
	if probes := l.partsDue(); len(probes) != 1 {
		t.Fatalf("probes of %v", probes)
	}
	l.record(l.stats.RecordPartProbe(l.now, LinePart{Model: "m", Form: wire.FormChat}, nil))
	l.part.Form = wire.FormChat
	l.check("in_service", "", "m chat in_service")

	for _, form := range []wire.Form{wire.FormChat, wire.FormResponses} {
		l.part.Form = form
		l.do(nowhere())
		l.resolveDoubt(nowhere())
	}
	l.check("in_service", "model_out", "m chat form_out", "m model_out")
	if s := l.stats.Summary(l.now); s.FormsOut != nil || len(s.ModelsOut) != 1 {
		t.Errorf("%+v", s)
	}
	l.record(l.stats.Clear(l.now))
	l.check("in_service", "", "m in_service")
}

// TestALineWithOneForm checks that the model is out if its only form is. If the model rejects
// tools, the client gets the rejection.
func TestALineWithOneForm(t *testing.T) {
	t.Parallel()
	l := newWideLine(t)
	l.stats.Serves(Serving{Models: 3, Forms: 1})
	l.do(noForm(true, false))
	l.check("in_service", "")
	l.do(noForm(false, false))
	l.check("in_service", "model_out", "m model_out")
}

// TestToolsPreferAnotherForm checks that a form without tools refuses no request, and that only the
// answer to a probe lifts the block.
func TestToolsPreferAnotherForm(t *testing.T) {
	t.Parallel()
	l := newWideLine(t)
	lacks := func(tools bool) Lack {
		q := l.origin()
		q.Tools = tools
		return l.stats.Lacks(q)
	}
	if lacks(true) != LacksNothing {
		t.Error("a sound line has a lack")
	}
	l.part.Tools = true
	l.do(noForm(true, true))
	l.stats.change(func(h *health) []Change {
		if due := h.due(l.now).Doubts; len(due) != 1 || due[0].LinePart != l.part {
			t.Errorf("doubts %v", due)
		}
		return nil
	})
	l.probeDoubt(noForm(true, true))
	l.check("in_service", "", "m chat+tools form_out")
	l.do(nil)
	if lacks(true) != LacksTools || lacks(false) != LacksNothing {
		t.Errorf("lacks %d with tools, %d without", lacks(true), lacks(false))
	}
	l.now = l.now.Add(accountWait)
	if probes := l.partsDue(); len(probes) != 1 || !probes[0].Tools {
		t.Fatalf("probes of %v", probes)
	}
	l.record(l.stats.RecordPartProbe(l.now, l.part, nil))
	l.check("in_service", "", "m chat+tools in_service")
	if lacks(true) != LacksNothing {
		t.Error("the line still has a lack")
	}
}

// TestProbesAskWhatWorked checks that probes use the model and form of the last answer.
func TestProbesAskWhatWorked(t *testing.T) {
	t.Parallel()
	l := newWideLine(t)
	l.do(nil)
	l.part = LinePart{Model: "other", Form: wire.FormResponses}
	l.do(nil)
	l.do(account())
	for number := range 3 {
		l.now = l.now.Add(maxAccountWait)
		l.stats.change(func(h *health) []Change {
			whole := h.due(l.now).Whole
			if whole == nil || whole.LinePart != l.part || whole.Number != number {
				t.Errorf("the target is %+v", whole)
			}
			return h.recordProbe(l.now, h.generation, account())
		})
	}
	l.now = l.now.Add(maxAccountWait)
	l.probe(nil)
	l.part = LinePart{Model: "m", Form: wire.FormResponses}
	l.do(missing())
	l.now = l.now.Add(accountWait)
	if probes := l.partsDue(); len(probes) != 1 || probes[0].Last != wire.FormChat || probes[0].Form != "" {
		t.Errorf("probes of %+v", probes)
	}
}

// TestLateFailuresOfParts checks that late failures do not take a lifted part out.
func TestLateFailuresOfParts(t *testing.T) {
	t.Parallel()
	l := newWideLine(t)
	early := l.begin()
	l.do(missing())
	l.now = l.now.Add(accountWait)
	l.partsDue()
	l.record(l.stats.RecordPartProbe(l.now, LinePart{Model: "m"}, nil))
	l.end(early, missing())
	l.end(early, limited(429, time.Minute))
	l.check("in_service", "", "m model_out", "m in_service")
}
