package health

import (
	"errors"
	"slices"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
)

// maybe returns a failure possibly caused by the request.
func maybe(f *upstream.Failure) *upstream.Failure {
	f.Unproven = true
	return f
}

func hollow() *upstream.Failure { return upstream.Fail(fault.EmptyCompletion, errors.New("nothing")) }

func stalled() *upstream.Failure {
	return maybe(upstream.Fail(fault.UpstreamTimeout, errors.New("no whole answer came")))
}

// checkDoubts checks the models of the doubtful parts that are due for a probe.
func (p *testLine) checkDoubts(want ...string) {
	p.Helper()
	p.record(p.stats.change(func(h *health) []Change {
		due := h.due(p.now)
		var doubts []string
		for _, ask := range due.Doubts {
			doubts = append(doubts, ask.Model)
		}
		if due.Whole != nil || due.Parts != nil || !slices.Equal(doubts, want) {
			p.Errorf("probes of the line: %v, of what is out: %v, of doubts: %q; want of doubts %q", due.Whole, due.Parts, doubts, want)
		}
		return nil
	}))
}

// probeDoubt ends the probe of a doubtful part.
func (p *testLine) probeDoubt(f *upstream.Failure) {
	p.Helper()
	p.record(p.stats.change(func(h *health) []Change {
		for part, d := range h.doubts {
			if d.probing {
				return h.recordDoubtProbe(p.now, h.generation, part, p.part.Form, f)
			}
		}
		return h.recordDoubtProbe(p.now, h.generation, p.part, p.part.Form, f)
	}))
}

// resolveDoubt checks that the doubt about model m is due for a probe, and ends the probe.
func (p *testLine) resolveDoubt(f *upstream.Failure) {
	p.Helper()
	p.checkDoubts("m")
	p.probeDoubt(f)
}

// TestOneAccountOpensNoCircuit checks that unproven failures of one account do not open the
// circuit, even beside a few failures of other accounts.
func TestOneAccountOpensNoCircuit(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]func() *upstream.Failure{
		"empty answers": hollow, "timeouts": stalled, "pages": func() *upstream.Failure { return maybe(broken()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTestLine(t)
			for i := range 300 {
				p.account = "hostile"
				p.do(failure())
				if p.account = "good"; i%100 == 50 {
					p.do(failure())
				}
				p.now = p.now.Add(time.Second / 10)
			}
			p.check("in_service", "")
		})
	}
}

// TestAccountsThatDifferOpenTheCircuit checks that failures of several accounts in a row open the
// circuit if a probe fails too.
func TestAccountsThatDifferOpenTheCircuit(t *testing.T) {
	t.Parallel()
	p := newTestLine(t)
	for _, account := range []string{"a", "b", "a", "b", "c", "a", "c"} {
		p.account = account
		p.do(stalled()) // of seven a had three
	}
	p.check("in_service", "")
	p.account = "b"
	p.do(stalled())
	p.check("in_service", "circuit_open")
	p.account = "other"
	p.check("in_service", "")
	p.resolveDoubt(stalled())
	p.check("circuit_open", "circuit_open", "circuit_open")
}

// TestAccountsThatDifferOpenByShare checks the same with answers between the failures.
func TestAccountsThatDifferOpenByShare(t *testing.T) {
	t.Parallel()
	p := newTestLine(t)
	for i := 0; p.stats.health.state == healthy; i++ {
		if i > 30 {
			t.Fatal("half of the attempts fail, and the circuit stays closed")
		}
		p.account = string(rune('a' + i%3))
		p.do(stalled())
		if p.stats.health.state == healthy {
			p.do(nil)
		}
	}
	p.resolveDoubt(broken())
	p.check("circuit_open", "circuit_open", "circuit_open")
}

// TestProvenFailuresCountForOneAccount checks that one account's requests are enough to find a dead
// line.
func TestProvenFailuresCountForOneAccount(t *testing.T) {
	t.Parallel()
	p := newTestLine(t)
	p.account = "only"
	p.repeat(5, broken())
	p.resolveDoubt(broken())
	p.check("circuit_open", "circuit_open", "circuit_open")
}

// TestAProbeDecides checks that a probe decides about a status without proof.
func TestAProbeDecides(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		met, probe     *upstream.Failure
		state, refusal string
		messages       []string
	}{
		"the credential is gone":        {maybe(account()), maybe(account()), "credentials_out", "credentials_out", []string{"credentials_out"}},
		"the credential works":          {maybe(account()), nil, "in_service", "", nil},
		"the credential, by a 404":      {maybe(missing()), account(), "credentials_out", "credentials_out", []string{"credentials_out"}},
		"the model is gone":             {maybe(missing()), maybe(missing()), "in_service", "model_out", []string{"m model_out"}},
		"the model works":               {maybe(missing()), nil, "in_service", "", nil},
		"the model, by a 403":           {maybe(account()), missing(), "in_service", "model_out", []string{"m model_out"}},
		"the probe fails otherwise":     {maybe(account()), broken(), "in_service", "", nil},
		"the probe is filtered":         {maybe(account()), upstream.Fail(fault.UpstreamPromptFilter, nil), "in_service", "", nil},
		"the provider is busy meantime": {maybe(account()), limited(429, 0), "in_service", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTestLine(t)
			p.do(tt.met)
			p.check("in_service", "")
			p.checkDoubts("m")
			p.checkDoubts() // one at a time
			p.probeDoubt(tt.probe)
			p.check(tt.state, tt.refusal, tt.messages...)
		})
	}
}

// TestAProbeOpensTheCircuit checks that a failed probe opens the circuit after unproven failures of
// one account.
func TestAProbeOpensTheCircuit(t *testing.T) {
	t.Parallel()
	p := newTestLine(t)
	p.account = "only"
	p.do(stalled())
	p.checkDoubts()
	p.do(stalled())
	p.resolveDoubt(broken())
	p.check("circuit_open", "circuit_open", "circuit_open")
}

// TestProbesOfDoubtsAreBounded checks that there is no new probe for a minute after a good one, and
// that a line without doubts is sound again.
func TestProbesOfDoubtsAreBounded(t *testing.T) {
	t.Parallel()
	p := newTestLine(t)
	probes := 0
	for range 600 {
		p.do(maybe(missing()))
		p.stats.change(func(h *health) []Change {
			if h.due(p.now).Doubts != nil {
				probes++
				return h.recordDoubtProbe(p.now, h.generation, p.part, "", nil)
			}
			return nil
		})
		p.now = p.now.Add(time.Second)
	}
	if probes != 10 {
		t.Errorf("%d probes in ten minutes", probes)
	}
	p.now = p.now.Add(time.Minute)
	p.checkDoubts("m") // from the earlier question, which is still open
	p.probeDoubt(nil)
	p.now = p.now.Add(time.Minute)
	p.checkDoubts()
	if !p.stats.sound.Load() || len(p.stats.health.doubts) != 0 {
		t.Error("doubts are kept")
	}
	p.check("in_service", "")
}

// TestDoubtsOfFormerGenerations checks that a probe has no effect if it began before the line left
// and returned, and that a cooling line is not probed.
func TestDoubtsOfFormerGenerations(t *testing.T) {
	t.Parallel()
	p := newTestLine(t)
	p.do(maybe(account()))
	p.checkDoubts("m")
	generation := p.stats.health.generation
	p.do(limited(429, 30*time.Second))
	p.record(p.stats.change(func(h *health) []Change { return h.recordDoubtProbe(p.now, generation, p.part, "", account()) }))
	p.check("cooling", "cooling")
	p.now = p.now.Add(30 * time.Second)
	p.check("in_service", "")
	p.do(maybe(account()))
	p.do(limited(429, time.Minute))
	p.now = p.now.Add(40 * time.Second)
	p.checkDoubts()
	p.now = p.now.Add(20 * time.Second)
	p.check("in_service", "")
	p.checkDoubts("m")
	p.record(p.stats.change(func(h *health) []Change { return h.clear(p.now) })) // resumed by the operator
	p.probeDoubt(account())
	p.check("in_service", "")
}

// TestHalfOpenIsNotEndedByOneAccount checks that unproven failures of one account do not reopen the
// circuit of a half-open line.
func TestHalfOpenIsNotEndedByOneAccount(t *testing.T) {
	t.Parallel()
	p := newTestLine(t)
	p.repeat(5, broken())
	p.now = p.now.Add(openWait)
	p.probe(nil)
	p.account = "hostile"
	p.repeat(20, hollow())
	p.check("half_open", "", "circuit_open")
	p.do(broken())
	p.check("circuit_open", "circuit_open")
}

// TestJobsCannotBeProbed checks that failures of jobs are counted, not probed.
func TestJobsCannotBeProbed(t *testing.T) {
	t.Parallel()
	p := newTestLine(t)
	for range 20 {
		p.record(p.stats.RecordFailure(p.now, Origin{LinePart: p.part, Account: "a", Generation: p.stats.health.generation, Job: true},
			stalled()))
	}
	p.checkDoubts()
	p.check("in_service", "")
}
