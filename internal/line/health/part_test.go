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
	l.stats.SetServing(Serving{Models: 3, Forms: 2})
	l.part = LinePart{Model: "m", Form: wire.FormChat}
	return l
}

// setOrigin sets the account and the model of the next requests.
func (l *testLine) setOrigin(account, model string) *testLine {
	l.account, l.part.Model = account, model
	return l
}

// checkRefusal checks the reason for refusing an account's request as a last resort.
func (l *testLine) checkRefusal(account, model, want string) {
	l.Helper()
	if reason := l.refuses(account, model, true); reason != want {
		l.Errorf("%s on %s is refused with %q, want %q", account, model, reason, want)
	}
}

// refuses returns the reason for refusing an account's request for a model.
func (l *testLine) refuses(account, model string, lastResort bool) string {
	origin := Origin{LinePart: LinePart{Model: model, Form: l.part.Form, Tools: l.part.Tools}, Account: account}
	reason, _, isHalfOpen := l.stats.Admit(func() time.Time { return l.now }, origin, lastResort)
	if isHalfOpen {
		l.stats.EndHalfOpen()
	}
	return reason
}

// startPartProbes starts the due probes of parts and returns them.
func (l *testLine) startPartProbes() (probes []Probe) {
	l.stats.change(func(h *health) []Change {
		probes = h.due(l.now).Parts
		return nil
	})
	return probes
}

// missingForm returns the failure of a model that lacks a form, or tools in a form.
func missingForm(tools, unproven bool) *upstream.Failure {
	return &upstream.Failure{Code: fault.UpstreamUnavailable, Health: upstream.HealthForm, Tools: tools, Unproven: unproven,
		Cause: errors.New("only supported in v1/responses")}
}

// vague404 returns a 404 without the name of a model or form.
func vague404() *upstream.Failure {
	return upstream.Classify(404, "", []byte(`{"detail":"Not Found"}`), nil)
}

// TestRateLimitCoolsOneModel checks that a rate limit pauses only its model, either for the time in
// Retry-After or longer each time.
func TestRateLimitCoolsOneModel(t *testing.T) {
	t.Parallel()
	l := newWideLine(t)
	for _, step := range []struct{ retryAfter, pause time.Duration }{
		{0, 5 * time.Second}, {0, 10 * time.Second}, {0, 20 * time.Second}, {7 * time.Second, 7 * time.Second}, {time.Hour, time.Minute},
	} {
		l.do(rateLimit(429, step.retryAfter))
		l.checkRefusal("", "m", StateCooling)
		l.checkRefusal("", "other", "")
		s := l.stats.Summary(l.now)
		if s.State != StateInService || len(s.ModelsCooling) != 1 || s.ModelsCooling[0].Model != "m" ||
			s.ModelsCooling[0].Until != l.now.Add(step.pause).Unix() || s.ModelsCooling[0].Cause == "" || s.ModelsOut != nil {
			t.Errorf("summary %+v, want only model m cooling", s)
		}
		if wait := l.stats.Wait(l.now, "m"); wait != step.pause || l.stats.Wait(l.now, "other") != 0 {
			t.Errorf("wait %s, want %s", wait, step.pause)
		}
		l.now = l.now.Add(step.pause)
		l.checkRefusal("", "m", "")
	}
	l.do(nil)
	if !l.stats.Sound() {
		t.Error("the line is not sound after an answer")
	}
	l.do(rateLimit(429, 0))
	l.checkWait(5 * time.Second)
}

// TestRateLimitOfJobCoolsOneModel checks that a rate limit of a job pauses only its model.
func TestRateLimitOfJobCoolsOneModel(t *testing.T) {
	t.Parallel()
	l := newWideLine(t)
	job := Origin{LinePart: LinePart{Model: "m"}, Account: "a", Job: true}
	l.record(l.stats.RecordFailure(l.now, job, rateLimit(429, time.Minute)))
	for model, want := range map[string]string{"m": StateCooling, "other": ""} {
		reason, _, _ := l.stats.Admit(func() time.Time { return l.now }, Origin{LinePart: LinePart{Model: model}}, false)
		if reason != want {
			t.Errorf("%s is refused with %q, want %q", model, reason, want)
		}
	}
}

// TestConcurrentRateLimitsCountOnce checks that the rate limits of concurrent requests count as one,
// and that they do not affect the circuit or other models.
func TestConcurrentRateLimitsCountOnce(t *testing.T) {
	t.Parallel()
	limit := func(l *testLine) {
		var generations []uint64
		for range 50 {
			generations = append(generations, l.begin())
		}
		for _, generation := range generations {
			l.end(generation, rateLimit(429, 0))
		}
		l.checkWait(5 * time.Second)
	}
	limit(newTestLine(t))
	l := newWideLine(t)
	limit(l)
	l.setOrigin("", "other").do(connectionReset())
	if s := l.stats.Summary(l.now); s.State != StateInService {
		t.Errorf("summary %+v, want in_service", s)
	}
}

// TestRateLimitsOfSeveralModels checks that limits of two models at the same time, or of the account,
// pause the line. Limits of one model after the other do not.
func TestRateLimitsOfSeveralModels(t *testing.T) {
	t.Parallel()
	l := newWideLine(t)
	l.do(rateLimit(429, 5*time.Second))
	l.now = l.now.Add(5 * time.Second)
	l.setOrigin("", "other").do(rateLimit(429, 5*time.Second))
	if s := l.stats.Summary(l.now); s.State != StateInService {
		t.Errorf("limited one after the other: summary %+v, want in_service", s)
	}
	l.setOrigin("", "m").do(rateLimit(429, 5*time.Second))
	l.checkRefusal("", "third", StateCooling)
	if s := l.stats.Summary(l.now); s.State != StateCooling || s.CoolingUntil != l.now.Add(5*time.Second).Unix() {
		t.Errorf("limited at once: summary %+v, want cooling for 5 s", s)
	}

	l = newWideLine(t)
	accountLimit := rateLimit(429, 9*time.Second)
	accountLimit.AllModels = true
	l.do(accountLimit)
	l.checkRefusal("", "third", StateCooling)
	l.now = l.now.Add(9 * time.Second)
	l.checkRefusal("", "third", "")
}

// TestBlocksOnlyTheirAccounts checks that a block applies only to the accounts that had the failure,
// until an answer lifts the block or a probe confirms it.
func TestBlocksOnlyTheirAccounts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		failure  func() *upstream.Failure
		refusal  string
		messages string // the message to the operator after confirmation
		doubt    string // model of the doubt
	}{
		"a rate limit":    {func() *upstream.Failure { return rateLimit(429, 0) }, StateCooling, "", "m"},
		"a missing model": {missingModel, StateModelOut, "m model_out", "m"},
		"a missing form":  {func() *upstream.Failure { return missingForm(false, false) }, StateFormOut, "m chat form_out", "m"},
		"a credential":    {badCredential, StateCredentialsOut, "credentials_out", "m"},
		"a rate limit of the account": {func() *upstream.Failure {
			f := rateLimit(429, 0)
			f.AllModels = true
			return f
		}, StateCooling, "", "m"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newWideLine(t)
			oldGeneration := l.setOrigin("good", "m").begin()
			l.setOrigin("hostile", "m").do(tt.failure())
			l.checkRefusal("hostile", "m", tt.refusal)
			l.checkRefusal("", "m", tt.refusal) // a request without an account is not exempt
			l.setOrigin("good", "m").end(oldGeneration, nil)
			l.checkRefusal("hostile", "m", tt.refusal) // the request began before the block
			l.do(nil)
			l.checkRefusal("hostile", "m", "")
			l.setOrigin("hostile", "m").end(oldGeneration, tt.failure()) // too late to restore the block
			l.checkRefusal("good", "m", "")
			l.checkRefusal("hostile", "m", "")
			l.now = l.now.Add(doubtAgain)

			for _, account := range []string{"hostile", "friend", "third", "fourth", "fifth"} {
				l.setOrigin(account, "m").do(tt.failure())
			}
			l.checkRefusal("fifth", "m", tt.refusal)
			l.checkRefusal("good", "m", "")
			if len(l.messages) > 0 {
				t.Errorf("messages %q before a probe failed, want none", l.messages)
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

// TestExplicitPause checks that other accounts respect a pause with Retry-After unless the line is
// their last resort. A pause after a refuted one applies only to the accounts with the failure.
func TestExplicitPause(t *testing.T) {
	t.Parallel()
	for _, whole := range []bool{false, true} {
		limit := rateLimit(429, 20*time.Second)
		limit.AllModels = whole
		l := newWideLine(t).setOrigin("hostile", "m")
		l.do(limit)
		l.checkRefusal("hostile", "m", StateCooling)
		l.checkRefusal("good", "m", "")
		if reason := l.refuses("good", "m", false); reason != StateCooling {
			t.Errorf("account good is refused with %q without a last resort, want cooling", reason)
		}
		l.checkDoubts() // a pause of one account needs no probe
		l.setOrigin("good", "m").do(limit)
		l.checkRefusal("good", "m", StateCooling)
		l.checkRefusal("third", "m", "")
		l.resolveDoubt(limit)
		l.checkRefusal("third", "m", StateCooling)

		l.now = l.now.Add(20 * time.Second)
		l.setOrigin("hostile", "m").do(limit)
		l.setOrigin("other", "m").do(nil)
		l.checkRefusal("hostile", "m", "")
		for range 5 { // the refutation lasts for a while
			l.setOrigin("hostile", "m").do(limit)
			l.checkRefusal("hostile", "m", StateCooling)
			if reason := l.refuses("other", "m", false); reason != "" {
				t.Errorf("account other is refused with %q, want no refusal", reason)
			}
			l.setOrigin("other", "m").do(nil)
		}
	}
}

// TestUnconfirmedPause checks that a pause refuted by a probe applies only to its reporters, and does
// not appear in the summary.
func TestUnconfirmedPause(t *testing.T) {
	t.Parallel()
	for _, whole := range []bool{false, true} {
		limit := rateLimit(429, 20*time.Second)
		limit.AllModels = whole
		l := newWideLine(t)
		l.setOrigin("large", "m").do(limit)
		l.setOrigin("huge", "m").do(limit)
		l.resolveDoubt(nil)
		for _, account := range []string{"large", "huge"} {
			l.checkRefusal(account, "m", StateCooling)
		}
		if reason := l.refuses("good", "m", false); reason != "" {
			t.Errorf("account good is refused with %q, want no refusal", reason)
		}
		if s := l.stats.Summary(l.now); s.State != StateInService || s.ModelsCooling != nil {
			t.Errorf("summary %+v, want no sign of the pause", s)
		}
		l.now = l.now.Add(20 * time.Second)
		l.checkRefusal("large", "m", "")
	}
}

// TestCircuitOpenedByRequests checks that a circuit opened by requests is probed at once, that other
// accounts may use the line meanwhile, and that refuted failures do not reopen the circuit for a
// minute.
func TestCircuitOpenedByRequests(t *testing.T) {
	t.Parallel()
	trip := func(t *testing.T) *testLine {
		l := newWideLine(t)
		for i := range 5 {
			l.setOrigin([]string{"hostile", "friend"}[i%2], "m").do(connectionReset())
		}
		l.setOrigin("hostile", "m")
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
		l.setOrigin("hostile", "m").repeat(50, connectionReset())
		l.check("in_service", "")
		l.now = l.now.Add(doubtAgain)
		l.resolveDoubt(nil)
		l.repeat(5, connectionReset())
		l.now = l.now.Add(confirmAgain)
		l.resolveDoubt(connectionReset()) // the probe fails too, so the line is at fault
		l.checkRefusal("good", "m", StateCircuitOpen)
		l.check("circuit_open", "circuit_open", "circuit_open")
		l.checkWait(openWait)
	})
	t.Run("refuted by another account", func(t *testing.T) {
		t.Parallel()
		l := trip(t)
		l.setOrigin("good", "m").do(nil)
		l.setOrigin("hostile", "m").check("in_service", "")
		l.repeat(50, connectionReset())
		l.check("in_service", "")
	})
	t.Run("confirmed by another account", func(t *testing.T) {
		t.Parallel()
		l := trip(t)
		l.setOrigin("good", "m").do(emptyAnswer()) // an empty answer proves nothing
		l.checkRefusal("good", "m", "")
		l.do(connectionReset())
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
		l.resolveDoubt(rateLimit(429, 0)) // a rate limit decides nothing
		l.checkRefusal("good", "m", StateCircuitOpen)
	})
	t.Run("half-open", func(t *testing.T) {
		t.Parallel()
		l := trip(t)
		l.resolveDoubt(connectionReset())
		l.now = l.now.Add(openWait)
		l.probe(nil)
		l.messages = nil
		l.do(connectionReset()) // no other account had the failure, so the account may open the circuit again for itself
		l.checkRefusal("hostile", "m", StateCircuitOpen)
		l.checkRefusal("good", "m", "")
		l.resolveDoubt(nil)
		l.check("half_open", "") // the state was announced, so the line becomes half-open first
		l.setOrigin("good", "m").do(nil)
		l.do(nil)
		l.do(nil)
		l.check("in_service", "", "in_service")
	})
}

// TestOneAccountOnLineWithoutProbes checks that the circuit of a line without probes is open only for
// the failing account, and is announced after another account fails too.
func TestOneAccountOnLineWithoutProbes(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	l.stats.SetServing(Serving{Models: 3, Unprobeable: true})
	l.setOrigin("good", "m").do(nil)
	l.setOrigin("hostile", "m").repeat(5, connectionReset())
	l.check("in_service", StateCircuitOpen)
	l.checkRefusal("good", "m", "")
	l.setOrigin("good", "m").do(connectionReset())
	l.check("circuit_open", StateCircuitOpen, "circuit_open")
}

// TestProbeFromBeforeTheCircuitOpened checks that a probe that began before the circuit opened does
// not decide, and that the next probe does.
func TestProbeFromBeforeTheCircuitOpened(t *testing.T) {
	t.Parallel()
	l := newWideLine(t).setOrigin("a", "m")
	l.do(timeout())
	l.do(timeout())
	generation := l.stats.Generation()
	l.checkDoubts("m")
	l.repeat(5, connectionReset())
	l.checkRefusal("a", "m", StateCircuitOpen)
	l.record(l.stats.change(func(h *health) []Change {
		return h.recordDoubtProbe(l.now, generation, l.part, l.part.Form, connectionReset())
	}))
	l.checkRefusal("b", "m", "")
	l.now = l.now.Add(confirmAgain)
	l.resolveDoubt(connectionReset())
	l.checkRefusal("b", "m", StateCircuitOpen)
}

// TestLineWithoutProbes checks that a line without probes refuses the accounts with failures, serves
// other accounts, and is announced at once.
func TestLineWithoutProbes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		failure  func() *upstream.Failure
		messages string
	}{
		"a credential": {badCredential, "credentials_out"},
		"a model":      {missingModel, "m model_out"},
		"the circuit":  {connectionReset, "circuit_open"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newTestLine(t)
			l.stats.SetServing(Serving{Models: 3, Unprobeable: true})
			for _, account := range []string{"a", "b", "c", "d", "e", "f"} {
				origin := Origin{LinePart: LinePart{Model: "m"}, Account: account, Job: true}
				for range 5 {
					origin.Generation = l.stats.Generation()
					l.record(l.stats.RecordFailure(l.now, origin, tt.failure()))
				}
			}
			l.checkRefusal("a", "m", tt.messages[strings.LastIndex(tt.messages, " ")+1:])
			l.checkRefusal("good", "m", "")
			l.checkDoubts()
			if len(l.messages) != 1 || l.messages[0] != tt.messages {
				t.Errorf("messages %q, want %q", l.messages, tt.messages)
			}
		})
	}
}

// TestFormIsOut checks that a model stays in service in its other form, that the missing form is
// probed, and that a model without any form is out.
func TestFormIsOut(t *testing.T) {
	t.Parallel()
	l := newWideLine(t)
	l.do(missingForm(false, true)) // the refusal is unproven, so a probe must confirm it
	l.check("in_service", "")
	l.resolveDoubt(missingForm(false, true))
	l.check("in_service", "form_out", "m chat form_out")
	l.checkRefusal("", "other", "")
	l.part.Form = wire.FormResponses
	l.checkRefusal("", "m", "")
	s := l.stats.Summary(l.now)
	if len(s.FormsOut) != 1 || s.FormsOut[0].Form != wire.FormChat || s.FormsOut[0].Cause == "" ||
		s.FormsOut[0].Until != l.now.Add(accountWait).Unix() || s.ModelsOut != nil {
		t.Errorf("summary %+v, want only form chat out, for accountWait", s)
	}

	l.now = l.now.Add(accountWait)
	if probes := l.startPartProbes(); len(probes) != 1 || probes[0].LinePart != (LinePart{Model: "m", Form: wire.FormChat}) {
		t.Fatalf("probes of %v, want one of form chat", probes)
	}
	l.stats.RecordPartProbe(l.now, LinePart{Model: "m", Form: wire.FormChat}, missingForm(false, true))
	l.now = l.now.Add(2 * accountWait)
	if probes := l.startPartProbes(); len(probes) != 1 {
		t.Fatalf("second probes of %v, want one", probes)
	}
	l.record(l.stats.RecordPartProbe(l.now, LinePart{Model: "m", Form: wire.FormChat}, nil))
	l.part.Form = wire.FormChat
	l.check("in_service", "", "m chat in_service")

	for _, form := range []wire.Form{wire.FormChat, wire.FormResponses} {
		l.part.Form = form
		l.do(vague404())
		l.resolveDoubt(vague404())
	}
	l.check("in_service", "model_out", "m chat form_out", "m model_out")
	if s := l.stats.Summary(l.now); s.FormsOut != nil || len(s.ModelsOut) != 1 {
		t.Errorf("summary %+v, want the model out instead of its forms", s)
	}
	l.record(l.stats.Clear(l.now))
	l.check("in_service", "", "m in_service")
}

// TestLineWithOneForm checks that the model is out if its only form is missing, but not if only tools
// are rejected.
func TestLineWithOneForm(t *testing.T) {
	t.Parallel()
	l := newWideLine(t)
	l.stats.SetServing(Serving{Models: 3, Forms: 1})
	l.do(missingForm(true, false))
	l.check("in_service", "")
	l.do(missingForm(false, false))
	l.check("in_service", "model_out", "m model_out")
}

// TestToolsPreferAnotherForm checks that a form without tools has LacksTools, refuses no request, and
// returns only after a successful probe.
func TestToolsPreferAnotherForm(t *testing.T) {
	t.Parallel()
	l := newWideLine(t)
	lacks := func(tools bool) Lack {
		origin := l.origin()
		origin.Tools = tools
		return l.stats.Lacks(origin)
	}
	if lacks(true) != LacksNothing {
		t.Error("a sound line has a lack")
	}
	l.part.Tools = true
	l.do(missingForm(true, true))
	l.stats.change(func(h *health) []Change {
		if due := h.due(l.now).Doubts; len(due) != 1 || due[0].LinePart != l.part {
			t.Errorf("doubts %v, want one about requests with tools", due)
		}
		return nil
	})
	l.probeDoubt(missingForm(true, true))
	l.check("in_service", "", "m chat+tools form_out")
	l.do(nil)
	if lacks(true) != LacksTools || lacks(false) != LacksNothing {
		t.Errorf("lack %d with tools, %d without; want LacksTools and LacksNothing", lacks(true), lacks(false))
	}
	l.now = l.now.Add(accountWait)
	if probes := l.startPartProbes(); len(probes) != 1 || !probes[0].Tools {
		t.Fatalf("probes of %v, want one with tools", probes)
	}
	l.record(l.stats.RecordPartProbe(l.now, l.part, nil))
	l.check("in_service", "", "m chat+tools in_service")
	if lacks(true) != LacksNothing {
		t.Error("the line still has a lack after a successful probe")
	}
}

// TestProbesUseLastAnswer checks that probes use the model and form of the last answer.
func TestProbesUseLastAnswer(t *testing.T) {
	t.Parallel()
	l := newWideLine(t)
	l.do(nil)
	l.part = LinePart{Model: "other", Form: wire.FormResponses}
	l.do(nil)
	l.do(badCredential())
	for number := range 3 {
		l.now = l.now.Add(maxAccountWait)
		l.stats.change(func(h *health) []Change {
			whole := h.due(l.now).Whole
			if whole == nil || whole.LinePart != l.part || whole.Number != number {
				t.Errorf("probe of the line: %+v, want number %d of %+v", whole, number, l.part)
			}
			return h.recordProbe(l.now, h.generation, badCredential())
		})
	}
	l.now = l.now.Add(maxAccountWait)
	l.probe(nil)
	l.part = LinePart{Model: "m", Form: wire.FormResponses}
	l.do(missingModel())
	l.now = l.now.Add(accountWait)
	if probes := l.startPartProbes(); len(probes) != 1 || probes[0].LastForm != wire.FormChat || probes[0].Form != "" {
		t.Errorf("probes %+v, want one in any form, first in form chat", probes)
	}
}

// TestLateFailuresOfParts checks that a failure from before a block was lifted does not restore the
// block.
func TestLateFailuresOfParts(t *testing.T) {
	t.Parallel()
	l := newWideLine(t)
	oldGeneration := l.begin()
	l.do(missingModel())
	l.now = l.now.Add(accountWait)
	l.startPartProbes()
	l.record(l.stats.RecordPartProbe(l.now, LinePart{Model: "m"}, nil))
	l.end(oldGeneration, missingModel())
	l.end(oldGeneration, rateLimit(429, time.Minute))
	l.check("in_service", "", "m model_out", "m in_service")
}
