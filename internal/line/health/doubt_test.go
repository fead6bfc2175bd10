package health

import (
	"errors"
	"slices"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
)

// asUnproven marks f as possibly caused by the request.
func asUnproven(f *upstream.Failure) *upstream.Failure {
	f.Unproven = true
	return f
}

func emptyAnswer() *upstream.Failure {
	return upstream.Fail(fault.EmptyCompletion, errors.New("nothing"))
}

func timeout() *upstream.Failure {
	return asUnproven(upstream.Fail(fault.UpstreamTimeout, errors.New("no whole answer came")))
}

// checkDoubts starts the due probes and checks that they are probes of doubts about the given models.
func (l *testLine) checkDoubts(want ...string) {
	l.Helper()
	l.record(l.stats.change(func(h *health) []Change {
		due := h.due(l.now)
		var doubts []string
		for _, probe := range due.Doubts {
			doubts = append(doubts, probe.Model)
		}
		if due.Whole != nil || due.Parts != nil || !slices.Equal(doubts, want) {
			l.Errorf("due probes: line %v, parts %v, doubts %q; want only doubts %q", due.Whole, due.Parts, doubts, want)
		}
		return nil
	}))
}

// probeDoubt ends the running probe of a doubt.
func (l *testLine) probeDoubt(f *upstream.Failure) {
	l.Helper()
	l.record(l.stats.change(func(h *health) []Change {
		for part, d := range h.doubts {
			if d.probing {
				return h.recordDoubtProbe(l.now, h.generation, part, l.part.Form, f)
			}
		}
		return h.recordDoubtProbe(l.now, h.generation, l.part, l.part.Form, f)
	}))
}

// resolveDoubt checks that a doubt about model m is due for a probe, and ends the probe.
func (l *testLine) resolveDoubt(f *upstream.Failure) {
	l.Helper()
	l.checkDoubts("m")
	l.probeDoubt(f)
}

// TestOneAccountOpensNoCircuit checks that unproven failures of one account do not open the circuit,
// even together with a few failures of another account.
func TestOneAccountOpensNoCircuit(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]func() *upstream.Failure{
		"empty answers": emptyAnswer, "timeouts": timeout, "connection errors": func() *upstream.Failure { return asUnproven(connectionReset()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newTestLine(t)
			for i := range 300 {
				l.account = "hostile"
				l.do(failure())
				if l.account = "good"; i%100 == 50 {
					l.do(failure())
				}
				l.now = l.now.Add(time.Second / 10)
			}
			l.check("in_service", "")
		})
	}
}

// TestSeveralAccountsOpenTheCircuit checks that failures of several accounts in a row open the
// circuit if a probe fails too.
func TestSeveralAccountsOpenTheCircuit(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	for _, account := range []string{"a", "b", "a", "b", "c", "a", "c"} {
		l.account = account
		l.do(timeout()) // three of the seven failures are of account a
	}
	l.check("in_service", "")
	l.account = "b"
	l.do(timeout())
	l.check("in_service", "circuit_open")
	l.account = "other"
	l.check("in_service", "")
	l.resolveDoubt(timeout())
	l.check("circuit_open", "circuit_open", "circuit_open")
}

// TestSeveralAccountsOpenTheCircuitByShare checks the same with answers between the failures.
func TestSeveralAccountsOpenTheCircuitByShare(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	for i := 0; l.stats.health.line.state == healthy; i++ {
		if i > 30 {
			t.Fatal("the circuit stays closed although half of the attempts fail")
		}
		l.account = string(rune('a' + i%3))
		l.do(timeout())
		if l.stats.health.line.state == healthy {
			l.do(nil)
		}
	}
	l.resolveDoubt(connectionReset())
	l.check("circuit_open", "circuit_open", "circuit_open")
}

// TestProvenFailuresCountForOneAccount checks that proven failures of one account open the circuit
// if a probe fails too.
func TestProvenFailuresCountForOneAccount(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	l.account = "only"
	l.repeat(5, connectionReset())
	l.resolveDoubt(connectionReset())
	l.check("circuit_open", "circuit_open", "circuit_open")
}

// TestProbeDecidesUnprovenFailure checks the state after an unproven failure and a probe.
func TestProbeDecidesUnprovenFailure(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		failure, probe *upstream.Failure
		state, refusal string
		messages       []string
	}{
		"the credential is gone": {asUnproven(badCredential()), asUnproven(badCredential()), "credentials_out", "credentials_out",
			[]string{"credentials_out"}},
		"the credential works": {asUnproven(badCredential()), nil, "in_service", "", nil},
		"the credential is gone, found by a 404": {asUnproven(missingModel()), badCredential(), "credentials_out", "credentials_out",
			[]string{"credentials_out"}},
		"the model is gone": {asUnproven(missingModel()), asUnproven(missingModel()), "in_service", "model_out",
			[]string{"m model_out"}},
		"the model works":                   {asUnproven(missingModel()), nil, "in_service", "", nil},
		"the model is gone, found by a 403": {asUnproven(badCredential()), missingModel(), "in_service", "model_out", []string{"m model_out"}},
		"the probe fails otherwise":         {asUnproven(badCredential()), connectionReset(), "in_service", "", nil},
		"the probe is filtered":             {asUnproven(badCredential()), upstream.Fail(fault.UpstreamPromptFilter, nil), "in_service", "", nil},
		"the probe is rate limited":         {asUnproven(badCredential()), rateLimit(429, 0), "in_service", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newTestLine(t)
			l.do(tt.failure)
			l.check("in_service", "")
			l.checkDoubts("m")
			l.checkDoubts() // one probe at a time
			l.probeDoubt(tt.probe)
			l.check(tt.state, tt.refusal, tt.messages...)
		})
	}
}

// TestProbeOpensTheCircuit checks that a failed probe opens the circuit after unproven failures of
// one account.
func TestProbeOpensTheCircuit(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	l.account = "only"
	l.do(timeout())
	l.checkDoubts()
	l.do(timeout())
	l.resolveDoubt(connectionReset())
	l.check("circuit_open", "circuit_open", "circuit_open")
}

// TestDoubtProbesAreBounded checks that a doubt is probed at most once a minute, and that a line
// without doubts is sound again.
func TestDoubtProbesAreBounded(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	probes := 0
	for range 600 {
		l.do(asUnproven(missingModel()))
		l.stats.change(func(h *health) []Change {
			if h.due(l.now).Doubts != nil {
				probes++
				return h.recordDoubtProbe(l.now, h.generation, l.part, "", nil)
			}
			return nil
		})
		l.now = l.now.Add(time.Second)
	}
	if probes != 10 {
		t.Errorf("%d probes in ten minutes, want 10", probes)
	}
	l.now = l.now.Add(time.Minute)
	l.checkDoubts("m") // from the earlier doubt, which is still open
	l.probeDoubt(nil)
	l.now = l.now.Add(time.Minute)
	l.checkDoubts()
	if !l.stats.sound.Load() || len(l.stats.health.doubts) != 0 {
		t.Error("the line still has doubts")
	}
	l.check("in_service", "")
}

// TestProbeOfEarlierGeneration checks that a probe has no effect if the line's state has changed
// since the probe began, and that a cooling line is not probed.
func TestProbeOfEarlierGeneration(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	l.do(asUnproven(badCredential()))
	l.checkDoubts("m")
	generation := l.stats.health.generation
	l.do(rateLimit(429, 30*time.Second))
	l.record(l.stats.change(func(h *health) []Change { return h.recordDoubtProbe(l.now, generation, l.part, "", badCredential()) }))
	l.check("cooling", "cooling")
	l.now = l.now.Add(30 * time.Second)
	l.check("in_service", "")
	l.do(asUnproven(badCredential()))
	l.do(rateLimit(429, time.Minute))
	l.now = l.now.Add(40 * time.Second)
	l.checkDoubts()
	l.now = l.now.Add(20 * time.Second)
	l.check("in_service", "")
	l.checkDoubts("m")
	l.record(l.stats.change(func(h *health) []Change { return h.clear(l.now) })) // resumed by the operator
	l.probeDoubt(badCredential())
	l.check("in_service", "")
}

// TestOneAccountDoesNotReopenTheCircuit checks that only a proven failure reopens the circuit of a
// half-open line.
func TestOneAccountDoesNotReopenTheCircuit(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	l.repeat(5, connectionReset())
	l.now = l.now.Add(openWait)
	l.probe(nil)
	l.account = "hostile"
	l.repeat(20, emptyAnswer())
	l.check("half_open", "", "circuit_open")
	l.do(connectionReset())
	l.check("circuit_open", "circuit_open")
}

// TestJobFailuresCauseNoProbe checks that unproven failures of one account's jobs cause no probe.
func TestJobFailuresCauseNoProbe(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	for range 20 {
		l.record(l.stats.RecordFailure(l.now, Origin{LinePart: l.part, Account: "a", Generation: l.stats.health.generation, Job: true},
			timeout()))
	}
	l.checkDoubts()
	l.check("in_service", "")
}
