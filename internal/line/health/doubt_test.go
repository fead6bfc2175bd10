package health

import (
	"errors"
	"slices"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
)

// unproven returns a failure possibly caused by the request.
func unproven(f *upstream.Failure) *upstream.Failure {
	f.Unproven = true
	return f
}

func hollow() *upstream.Failure { return upstream.Fail(fault.EmptyCompletion, errors.New("nothing")) }

func stalled() *upstream.Failure {
	return unproven(upstream.Fail(fault.UpstreamTimeout, errors.New("no whole answer came")))
}

// checkDoubts checks the models of the doubtful parts that are due for a probe.
func (l *testLine) checkDoubts(want ...string) {
	l.Helper()
	l.record(l.stats.change(func(h *health) []Change {
		due := h.due(l.now)
		var doubts []string
		for _, ask := range due.Doubts {
			doubts = append(doubts, ask.Model)
		}
		if due.Whole != nil || due.Parts != nil || !slices.Equal(doubts, want) {
			l.Errorf("probes of the line: %v, of what is out: %v, of doubts: %q; want of doubts %q", due.Whole, due.Parts, doubts, want)
		}
		return nil
	}))
}

// probeDoubt ends the probe of a doubtful part.
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

// resolveDoubt checks that the doubt about model m is due for a probe, and ends the probe.
func (l *testLine) resolveDoubt(f *upstream.Failure) {
	l.Helper()
	l.checkDoubts("m")
	l.probeDoubt(f)
}

// TestOneAccountOpensNoCircuit checks that unproven failures of one account do not open the
// circuit, even beside a few failures of other accounts.
func TestOneAccountOpensNoCircuit(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]func() *upstream.Failure{
		"empty answers": hollow, "timeouts": stalled, "pages": func() *upstream.Failure { return unproven(broken()) },
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

// TestAccountsThatDifferOpenTheCircuit checks that failures of several accounts in a row open the
// circuit if a probe fails too.
func TestAccountsThatDifferOpenTheCircuit(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	for _, account := range []string{"a", "b", "a", "b", "c", "a", "c"} {
		l.account = account
		l.do(stalled()) // three of the seven failures are of account a
	}
	l.check("in_service", "")
	l.account = "b"
	l.do(stalled())
	l.check("in_service", "circuit_open")
	l.account = "other"
	l.check("in_service", "")
	l.resolveDoubt(stalled())
	l.check("circuit_open", "circuit_open", "circuit_open")
}

// TestAccountsThatDifferOpenByShare is TestAccountsThatDifferOpenTheCircuit with answers between
// the failures.
func TestAccountsThatDifferOpenByShare(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	for i := 0; l.stats.health.state == healthy; i++ {
		if i > 30 {
			t.Fatal("the circuit stays closed although half of the attempts fail")
		}
		l.account = string(rune('a' + i%3))
		l.do(stalled())
		if l.stats.health.state == healthy {
			l.do(nil)
		}
	}
	l.resolveDoubt(broken())
	l.check("circuit_open", "circuit_open", "circuit_open")
}

// TestProvenFailuresCountForOneAccount checks that one account's requests are enough to find a dead
// line.
func TestProvenFailuresCountForOneAccount(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	l.account = "only"
	l.repeat(5, broken())
	l.resolveDoubt(broken())
	l.check("circuit_open", "circuit_open", "circuit_open")
}

// TestAProbeDecides checks that a probe decides about an unproven status.
func TestAProbeDecides(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		failure, probe *upstream.Failure
		state, refusal string
		messages       []string
	}{
		"the credential is gone": {unproven(account()), unproven(account()), "credentials_out", "credentials_out",
			[]string{"credentials_out"}},
		"the credential works":          {unproven(account()), nil, "in_service", "", nil},
		"the credential, by a 404":      {unproven(missing()), account(), "credentials_out", "credentials_out", []string{"credentials_out"}},
		"the model is gone":             {unproven(missing()), unproven(missing()), "in_service", "model_out", []string{"m model_out"}},
		"the model works":               {unproven(missing()), nil, "in_service", "", nil},
		"the model, by a 403":           {unproven(account()), missing(), "in_service", "model_out", []string{"m model_out"}},
		"the probe fails otherwise":     {unproven(account()), broken(), "in_service", "", nil},
		"the probe is filtered":         {unproven(account()), upstream.Fail(fault.UpstreamPromptFilter, nil), "in_service", "", nil},
		"the provider is busy meantime": {unproven(account()), limited(429, 0), "in_service", "", nil},
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

// TestAProbeOpensTheCircuit checks that a failed probe opens the circuit after unproven failures of
// one account.
func TestAProbeOpensTheCircuit(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	l.account = "only"
	l.do(stalled())
	l.checkDoubts()
	l.do(stalled())
	l.resolveDoubt(broken())
	l.check("circuit_open", "circuit_open", "circuit_open")
}

// TestProbesOfDoubtsAreBounded checks that there is no new probe for a minute after a successful
// one, and that a line without doubts is sound again.
func TestProbesOfDoubtsAreBounded(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	probes := 0
	for range 600 {
		l.do(unproven(missing()))
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
		t.Errorf("%d probes in ten minutes", probes)
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

// TestDoubtsOfFormerGenerations checks that a probe has no effect if it began before the line left
// and returned, and that a cooling line is not probed.
func TestDoubtsOfFormerGenerations(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	l.do(unproven(account()))
	l.checkDoubts("m")
	generation := l.stats.health.generation
	l.do(limited(429, 30*time.Second))
	l.record(l.stats.change(func(h *health) []Change { return h.recordDoubtProbe(l.now, generation, l.part, "", account()) }))
	l.check("cooling", "cooling")
	l.now = l.now.Add(30 * time.Second)
	l.check("in_service", "")
	l.do(unproven(account()))
	l.do(limited(429, time.Minute))
	l.now = l.now.Add(40 * time.Second)
	l.checkDoubts()
	l.now = l.now.Add(20 * time.Second)
	l.check("in_service", "")
	l.checkDoubts("m")
	l.record(l.stats.change(func(h *health) []Change { return h.clear(l.now) })) // resumed by the operator
	l.probeDoubt(account())
	l.check("in_service", "")
}

// TestHalfOpenIsNotEndedByOneAccount checks that unproven failures of one account do not reopen the
// circuit of a half-open line.
func TestHalfOpenIsNotEndedByOneAccount(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	l.repeat(5, broken())
	l.now = l.now.Add(openWait)
	l.probe(nil)
	l.account = "hostile"
	l.repeat(20, hollow())
	l.check("half_open", "", "circuit_open")
	l.do(broken())
	l.check("circuit_open", "circuit_open")
}

// TestJobsCannotBeProbed checks that failures of jobs are counted, not probed.
func TestJobsCannotBeProbed(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	for range 20 {
		l.record(l.stats.RecordFailure(l.now, Origin{LinePart: l.part, Account: "a", Generation: l.stats.health.generation, Job: true},
			stalled()))
	}
	l.checkDoubts()
	l.check("in_service", "")
}
