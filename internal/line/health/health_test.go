package health

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testLine is a line's Stats with a test clock.
type testLine struct {
	*testing.T
	stats    *Stats
	now      time.Time
	part     LinePart // part used by the next requests
	account  string   // account of the next requests
	messages []string // messages to the operator since the last check
}

func newTestLine(t *testing.T) *testLine {
	return &testLine{T: t, stats: New(), now: time.Unix(1_000_000, 0), part: LinePart{Model: "m"}}
}

func (l *testLine) origin() Origin { return Origin{LinePart: l.part, Account: l.account} }

func (l *testLine) record(changes []Change) {
	for _, c := range changes {
		words := []string{c.Model, string(c.Form), c.State}
		if c.Tools {
			words[1] += "+tools"
		}
		l.messages = append(l.messages, strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " "))
	}
}

// begin starts a request for a model and returns its generation. It fails the test if the line
// refuses the request.
func (l *testLine) begin() uint64 {
	l.Helper()
	reason, generation, isHalfOpen := l.stats.Admit(func() time.Time { return l.now }, l.origin(), true)
	if reason != "" {
		l.Fatalf("the line refuses: %s", reason)
	}
	if isHalfOpen {
		l.stats.EndHalfOpen()
	}
	return generation
}

// do makes one request that ends with a failure, or with an answer if f is nil.
func (l *testLine) do(f *upstream.Failure) {
	l.Helper()
	l.end(l.begin(), f)
}

// repeat runs do n times.
func (l *testLine) repeat(n int, f *upstream.Failure) {
	l.Helper()
	for range n {
		l.do(f)
	}
}

// halfOpen opens the circuit and makes a successful probe.
func (l *testLine) halfOpen() {
	l.Helper()
	l.repeat(5, connectionReset())
	l.now = l.now.Add(openWait)
	l.probe(nil)
}

// end ends a request of a generation with a failure, or with an answer if f is nil.
func (l *testLine) end(generation uint64, f *upstream.Failure) {
	origin := l.origin()
	origin.Generation = generation
	if f == nil {
		_, changes := l.stats.RecordAnswer(l.now, origin, time.Millisecond)
		l.record(changes)
		return
	}
	l.record(l.stats.RecordFailure(l.now, origin, f))
}

// probe runs the due probe of the whole line with the result f.
func (l *testLine) probe(f *upstream.Failure) {
	l.Helper()
	l.record(l.stats.change(func(h *health) []Change {
		if h.due(l.now).Whole == nil {
			l.Fatal("no probe is due")
		}
		return h.recordProbe(l.now, h.generation, f)
	}))
}

// check checks the line's state, the reason for a refusal, and the messages to the operator since
// the last call.
func (l *testLine) check(state, refusal string, messages ...string) {
	l.Helper()
	s := l.stats.Summary(l.now)
	reason, _, isHalfOpen := l.stats.Admit(func() time.Time { return l.now }, l.origin(), true)
	if isHalfOpen {
		l.stats.EndHalfOpen()
	}
	if s.State != state || reason != refusal || !slices.Equal(l.messages, messages) {
		l.Errorf("state %s, refuses %q, messages %q; want %s, %q, %q", s.State, reason, l.messages, state, refusal, messages)
	}
	l.messages = nil
}

// checkWait checks the time until the next request for model m.
func (l *testLine) checkWait(want time.Duration) {
	l.Helper()
	if wait := l.stats.Wait(l.now, "m"); wait != want {
		l.Errorf("the wait is %s, want %s", wait, want)
	}
}

func connectionReset() *upstream.Failure {
	return upstream.Fail(fault.UpstreamConnectionError, errors.New("reset"))
}

func rateLimit(status int, retryAfter time.Duration) *upstream.Failure {
	f := upstream.Fail(fault.UpstreamBusy, errors.New("slow down"))
	f.Status, f.RetryAfter = status, retryAfter
	return f
}

func badCredential() *upstream.Failure {
	return &upstream.Failure{Code: fault.UpstreamUnavailable, Health: upstream.HealthCredential, Cause: errors.New("bad key")}
}

func missingModel() *upstream.Failure {
	return &upstream.Failure{Code: fault.UpstreamUnavailable, Health: upstream.HealthModel, Cause: errors.New("no such model")}
}

// TestCircuitOpensAfterFailuresInARow checks that five failures in a row open the circuit, and four
// do not.
func TestCircuitOpensAfterFailuresInARow(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	l.repeat(200, nil)
	l.repeat(4, connectionReset())
	l.do(nil) // an answer ends the series of failures
	l.repeat(4, connectionReset())
	l.check("in_service", "")
	l.do(connectionReset())
	l.check("circuit_open", "circuit_open", "circuit_open")
}

// TestCircuitOpensByShare checks that the circuit opens if every other attempt fails, and stays
// closed if every eighth fails.
func TestCircuitOpensByShare(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	for range 40 { // one failure in eight does not open the circuit
		l.repeat(7, nil)
		l.do(connectionReset())
	}
	l.check("in_service", "")
	for i := 0; l.stats.sound.Load(); i++ { // one failure in two does
		if i > 30 {
			t.Fatal("the circuit stays closed although half of the attempts fail")
		}
		l.do(connectionReset())
		if l.stats.sound.Load() {
			l.do(nil)
		}
	}
	l.check("circuit_open", "circuit_open", "circuit_open")
}

// TestOldFailuresDoNotCount checks that failures older than a minute do not open the circuit.
func TestOldFailuresDoNotCount(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	for range 20 { // one failure and one answer a minute
		l.do(connectionReset())
		l.do(nil)
		l.now = l.now.Add(time.Minute)
	}
	l.check("in_service", "")
}

// TestHalfFailures checks that ten half failures open the circuit.
func TestHalfFailures(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	halfFailure := upstream.Fail(fault.EmptyCompletion, errors.New("nothing"))
	halfFailure.Unproven = false
	l.repeat(9, halfFailure)
	l.check("in_service", "")
	l.do(halfFailure)
	l.check("circuit_open", "circuit_open", "circuit_open")
}

// TestOpenCircuitIsProbed checks that an open circuit is probed after 30 s and then after doubled
// waits, and that three answers after a successful probe bring the line back.
func TestOpenCircuitIsProbed(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	l.repeat(5, connectionReset())
	l.check("circuit_open", "circuit_open", "circuit_open")
	for _, wait := range []time.Duration{
		30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute, 10 * time.Minute,
	} {
		l.now = l.now.Add(wait - time.Second)
		if due := l.stats.health.due(l.now); due.Whole != nil || due.Parts != nil {
			t.Fatalf("a probe is due before the end of the wait of %s", wait)
		}
		l.now = l.now.Add(time.Second)
		l.probe(connectionReset())
		l.check("circuit_open", "circuit_open")
	}
	l.now = l.now.Add(10 * time.Minute)
	l.probe(nil)
	l.check("half_open", "")
	l.do(nil)
	l.do(nil)
	l.check("half_open", "")
	l.do(nil)
	l.check("in_service", "", "in_service")

	// The circuit opens again soon, so the waits continue with their last length. A half-open line
	// had not returned, so the operator gets no message.
	l.repeat(5, connectionReset())
	l.check("circuit_open", "circuit_open", "circuit_open")
	l.checkWait(10 * time.Minute)
	l.now = l.now.Add(10 * time.Minute)
	l.probe(nil)
	l.do(nil)
	l.do(connectionReset())
	l.check("circuit_open", "circuit_open")
	l.now = l.now.Add(10 * time.Minute)
	l.probe(nil)
	l.repeat(3, nil)
	l.check("in_service", "", "in_service")
	l.now = l.now.Add(time.Hour) // long after the last return, so the waits start again
	l.repeat(5, connectionReset())
	l.checkWait(30 * time.Second)
}

// TestLateResultsHaveNoEffect checks that the result of an attempt has no effect if the line's state
// has changed since the attempt began.
func TestLateResultsHaveNoEffect(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	oldGeneration := l.begin()
	l.halfOpen()
	for range 9 {
		l.end(oldGeneration, connectionReset())
	}
	l.end(oldGeneration, badCredential())
	l.end(oldGeneration, missingModel())
	l.end(oldGeneration, rateLimit(429, time.Minute))
	l.check("half_open", "", "circuit_open")
	for range 9 {
		l.end(oldGeneration, nil)
	}
	l.check("half_open", "")
}

// TestLateFailuresDoNotAddUp checks that late failures of attempts from an earlier state are not
// counted together with failures in the present state.
func TestLateFailuresDoNotAddUp(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	oldGeneration := l.begin()
	l.halfOpen()
	l.repeat(halfOpenAnswers, nil)
	for range 9 {
		l.end(oldGeneration, connectionReset())
	}
	l.check("in_service", "", "circuit_open", "in_service")
	l.do(connectionReset())
	l.check("in_service", "")
}

// TestHalfOpenTakesOneRequestAtATime checks that a half-open line refuses a second request, except as
// a last resort.
func TestHalfOpenTakesOneRequestAtATime(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	l.halfOpen()
	now := func() time.Time { return l.now }
	if reason, _, isHalfOpen := l.stats.Admit(now, l.origin(), false); reason != "" || !isHalfOpen {
		t.Fatalf("the first request is refused with %q, or is not half-open", reason)
	}
	if reason, _, _ := l.stats.Admit(now, l.origin(), false); reason != "half_open" {
		t.Errorf("the second request is refused with %q, want half_open", reason)
	}
	if reason, _, isHalfOpen := l.stats.Admit(now, l.origin(), true); reason != "" || !isHalfOpen {
		t.Errorf("a last-resort request is refused with %q, or is not half-open", reason)
	}
	l.stats.EndHalfOpen()
	l.stats.EndHalfOpen()
	if reason, _, _ := l.stats.Admit(now, l.origin(), false); reason != "" {
		t.Errorf("after the end of both requests: refused with %q, want no refusal", reason)
	}
}

// TestCooling checks the lengths of pauses after rate limits with and without Retry-After.
func TestCooling(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	for _, step := range []struct {
		failure *upstream.Failure
		pause   time.Duration
	}{
		{rateLimit(429, 0), 5 * time.Second},
		{rateLimit(429, 0), 10 * time.Second},
		{rateLimit(429, 0), 20 * time.Second},
		{rateLimit(429, 0), 30 * time.Second},
		{rateLimit(429, 0), 30 * time.Second},
		{rateLimit(429, 2*time.Second), 2 * time.Second},
		{rateLimit(429, time.Hour), time.Minute}, // a longer Retry-After is limited
	} {
		l.do(step.failure)
		l.check("cooling", "cooling")
		l.now = l.now.Add(step.pause - time.Millisecond)
		l.check("cooling", "cooling")
		l.now = l.now.Add(time.Millisecond)
		l.check("in_service", "")
	}
	l.do(nil) // after an answer, the next pause is short again
	l.do(rateLimit(429, 0))
	l.checkWait(5 * time.Second)
}

// TestRepeatedOverloadOpensTheCircuit checks that repeated overloads open the circuit, so that the
// provider does not get a request every few seconds.
func TestRepeatedOverloadOpensTheCircuit(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	for i := range 6 {
		l.do(rateLimit(529, time.Second))
		if i < 5 {
			l.check("cooling", "cooling")
			l.now = l.now.Add(time.Second)
		}
	}
	l.check("circuit_open", "circuit_open", "circuit_open")
}

// TestCoolingWhileHalfOpen checks that a half-open line is half-open again after a pause.
func TestCoolingWhileHalfOpen(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	l.halfOpen()
	l.do(rateLimit(429, time.Second))
	l.check("cooling", "cooling", "circuit_open")
	l.now = l.now.Add(time.Second)
	l.check("half_open", "")
	l.repeat(3, nil)
	l.check("in_service", "", "in_service")
}

// TestCredentials checks the waits between probes of a line with withdrawn credentials.
func TestCredentials(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	l.do(badCredential())
	l.check("credentials_out", "credentials_out", "credentials_out")
	for _, wait := range []time.Duration{5, 10, 20, 40, 60, 60} {
		l.now = l.now.Add(wait * time.Minute)
		l.probe(badCredential())
		l.check("credentials_out", "credentials_out")
	}
	l.now = l.now.Add(time.Hour)
	l.probe(nil)
	l.repeat(3, nil)
	l.check("in_service", "", "in_service")
	l.repeat(5, connectionReset())
	l.checkWait(30 * time.Second) // not the wait for credentials
	// A probe of an open circuit may find the credentials withdrawn.
	l.now = l.now.Add(30 * time.Second)
	l.messages = nil
	l.probe(badCredential())
	l.check("credentials_out", "credentials_out", "credentials_out")
}

// TestMissingModel checks that a missing model is out and probed, while other models are in service.
func TestMissingModel(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	generations := []uint64{l.begin(), l.begin()}
	l.end(generations[0], missingModel())
	l.end(generations[1], missingModel())
	l.check("in_service", "model_out", "m model_out")
	if reason, _, _ := l.stats.Admit(func() time.Time { return l.now }, Origin{LinePart: LinePart{Model: "other"}}, false); reason != "" {
		t.Errorf("model other is refused with %q, want no refusal", reason)
	}
	due := func() (models []string) {
		due := l.stats.health.due(l.now)
		if due.Whole != nil {
			t.Error("the whole line is due for a probe, want only its model")
		}
		for _, probe := range due.Parts {
			models = append(models, probe.Model)
		}
		return models
	}
	l.now = l.now.Add(5 * time.Minute)
	if models := due(); !slices.Equal(models, []string{"m"}) {
		t.Errorf("probes of models %q, want m", models)
	}
	if models := due(); models != nil {
		t.Errorf("second probe during the first: %q, want none", models)
	}
	l.record(l.stats.RecordPartProbe(l.now, LinePart{Model: "m"}, missingModel()))
	l.now = l.now.Add(10*time.Minute - time.Second)
	if models := due(); models != nil {
		t.Errorf("probes before the end of the wait: %q, want none", models)
	}
	l.now = l.now.Add(time.Second)
	due()
	l.record(l.stats.RecordPartProbe(l.now, LinePart{Model: "m"}, nil))
	l.check("in_service", "", "m in_service")
}

// TestRejectionsAreNoFailures checks that a rejected request shows that the provider works, and
// that a disconnected client has no effect.
func TestRejectionsAreNoFailures(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	rejection := upstream.Classify(400, "application/json", []byte(`{"error":{"message":"too long"}}`), nil)
	for range 20 {
		l.do(connectionReset())
		l.do(rejection)
		l.now = l.now.Add(time.Minute)
	}
	for range 20 {
		l.do(upstream.Fail(fault.ClientClosed, nil))
		l.do(upstream.Fail(fault.UpstreamPromptFilter, nil))
	}
	l.check("in_service", "")
}

// TestUnsentRequestsAreNoProof checks that a request the line cannot express does not end a series of failures,
// because the provider did not get it.
func TestUnsentRequestsAreNoProof(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	l.repeat(200, nil)
	l.repeat(4, connectionReset())
	l.do(upstream.Unsupported("speed", "`{param}` is not offered."))
	l.check("in_service", "")
	l.do(connectionReset())
	l.check("circuit_open", "circuit_open", "circuit_open")
}

// TestResume checks that Clear removes all blocks, with messages only for blocks that were announced.
func TestResume(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	generation := l.begin()
	l.do(missingModel())
	l.check("in_service", "model_out", "m model_out")
	l.end(generation, badCredential())
	l.check("credentials_out", "credentials_out", "credentials_out")
	l.record(l.stats.Clear(l.now))
	l.check("in_service", "", "in_service", "m in_service")
	l.do(rateLimit(429, time.Minute))
	l.record(l.stats.Clear(l.now))
	l.check("in_service", "")
}

// TestResumeForgetsFailures checks that resuming a line in service clears its failures too.
func TestResumeForgetsFailures(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	l.repeat(4, connectionReset())
	l.record(l.stats.Clear(l.now))
	l.repeat(4, connectionReset())
	l.check("in_service", "")
}
