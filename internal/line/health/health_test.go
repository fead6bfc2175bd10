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

// testLine is the stats of a line with a test clock.
type testLine struct {
	*testing.T
	stats    *Stats
	now      time.Time
	part     LinePart // the part for the next requests
	account  string   // the account of the next requests
	messages []string // the messages to the operator
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
	why, generation, isHalfOpen := l.stats.Refuses(func() time.Time { return l.now }, l.origin(), true)
	if why != "" {
		l.Fatalf("the line refuses: %s", why)
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

// repeat is do for n requests.
func (l *testLine) repeat(n int, f *upstream.Failure) {
	l.Helper()
	for range n {
		l.do(f)
	}
}

// halfOpen opens the circuit and makes a successful probe.
func (l *testLine) halfOpen() {
	l.Helper()
	l.repeat(5, broken())
	l.now = l.now.Add(openWait)
	l.probe(nil)
}

func (l *testLine) end(generation uint64, f *upstream.Failure) {
	q := l.origin()
	q.Generation = generation
	if f == nil {
		_, changes := l.stats.RecordAnswer(l.now, q, time.Millisecond)
		l.record(changes)
		return
	}
	l.record(l.stats.RecordFailure(l.now, q, f))
}

// probe ends the due probe.
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
	why, _, isHalfOpen := l.stats.Refuses(func() time.Time { return l.now }, l.origin(), true)
	if isHalfOpen {
		l.stats.EndHalfOpen()
	}
	if s.State != state || why != refusal || !slices.Equal(l.messages, messages) {
		l.Errorf("state %s, refuses %q, messages %q; want %s, %q, %q", s.State, why, l.messages, state, refusal, messages)
	}
	l.messages = nil
}

// checkWait checks the time until the next request to model m.
func (l *testLine) checkWait(want time.Duration) {
	l.Helper()
	if wait := l.stats.Wait(l.now, "m"); wait != want {
		l.Errorf("the wait is %s, want %s", wait, want)
	}
}

func broken() *upstream.Failure {
	return upstream.Fail(fault.UpstreamConnectionError, errors.New("reset"))
}

func limited(status int, retryAfter time.Duration) *upstream.Failure {
	f := upstream.Fail(fault.UpstreamBusy, errors.New("slow down"))
	f.Status, f.RetryAfter = status, retryAfter
	return f
}

func account() *upstream.Failure {
	return &upstream.Failure{Code: fault.UpstreamUnavailable, Health: upstream.HealthCredential, Cause: errors.New("bad key")}
}

func missing() *upstream.Failure {
	return &upstream.Failure{Code: fault.UpstreamUnavailable, Health: upstream.HealthModel, Cause: errors.New("no such model")}
}

func TestCircuitOpensAfterFailuresInARow(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	l.repeat(200, nil)
	l.repeat(4, broken())
	l.do(nil) // an answer ends the series of failures
	l.repeat(4, broken())
	l.check("in_service", "")
	l.do(broken())
	l.check("circuit_open", "circuit_open", "circuit_open")
}

func TestCircuitOpensByShare(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	for range 40 { // one failure in eight does not open the circuit
		l.repeat(7, nil)
		l.do(broken())
	}
	l.check("in_service", "")
	for i := 0; l.stats.sound.Load(); i++ { // one failure in two does
		if i > 30 {
			t.Fatal("the circuit stays closed although half of the attempts fail")
		}
		l.do(broken())
		if l.stats.sound.Load() {
			l.do(nil)
		}
	}
	l.check("circuit_open", "circuit_open", "circuit_open")
}

func TestOldFailuresDoNotCount(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	for range 20 { // one failure a minute beside one answer
		l.do(broken())
		l.do(nil)
		l.now = l.now.Add(time.Minute)
	}
	l.check("in_service", "")
}

func TestHalfFailures(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	isHalfOpen := upstream.Fail(fault.EmptyCompletion, errors.New("nothing"))
	isHalfOpen.Unproven = false
	l.repeat(9, isHalfOpen)
	l.check("in_service", "")
	l.do(isHalfOpen)
	l.check("circuit_open", "circuit_open", "circuit_open")
}

// TestHealing checks that an open circuit is probed after 30 s and then with doubled waits, and
// that three good answers after a successful probe bring the line back.
func TestHealing(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	l.repeat(5, broken())
	l.check("circuit_open", "circuit_open", "circuit_open")
	for _, wait := range []time.Duration{
		30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute, 10 * time.Minute,
	} {
		l.now = l.now.Add(wait - time.Second)
		if due := l.stats.health.due(l.now); due.Whole != nil || due.Parts != nil {
			t.Fatalf("probed before the end of the wait of %s", wait)
		}
		l.now = l.now.Add(time.Second)
		l.probe(broken())
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
	l.repeat(5, broken())
	l.check("circuit_open", "circuit_open", "circuit_open")
	l.checkWait(10 * time.Minute)
	l.now = l.now.Add(10 * time.Minute)
	l.probe(nil)
	l.do(nil)
	l.do(broken())
	l.check("circuit_open", "circuit_open")
	l.now = l.now.Add(10 * time.Minute)
	l.probe(nil)
	l.repeat(3, nil)
	l.check("in_service", "", "in_service")
	l.now = l.now.Add(time.Hour) // long after the last return, so the waits start again
	l.repeat(5, broken())
	l.checkWait(30 * time.Second)
}

// TestStragglers checks that results of attempts from before a change of the line's state have no
// effect.
func TestStragglers(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	early := l.begin()
	l.halfOpen()
	for range 9 {
		l.end(early, broken())
	}
	l.end(early, account())
	l.end(early, missing())
	l.end(early, limited(429, time.Minute))
	l.check("half_open", "", "circuit_open")
	for range 9 {
		l.end(early, nil)
	}
	l.check("half_open", "")
}

// TestStragglersDoNotAddUp checks that only failures of the present state are counted, without late
// failures from an earlier state.
func TestStragglersDoNotAddUp(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	early := l.begin()
	l.halfOpen()
	l.repeat(halfOpenAnswers, nil)
	for range 9 {
		l.end(early, broken())
	}
	l.check("in_service", "", "circuit_open", "in_service")
	l.do(broken())
	l.check("in_service", "")
}

func TestHalfOpenTakesOneRequestAtATime(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	l.halfOpen()
	now := func() time.Time { return l.now }
	if why, _, isHalfOpen := l.stats.Refuses(now, l.origin(), false); why != "" || !isHalfOpen {
		t.Fatalf("the first request is refused: %q", why)
	}
	if why, _, _ := l.stats.Refuses(now, l.origin(), false); why != "half_open" {
		t.Errorf("the second request is refused with %q", why)
	}
	if why, _, isHalfOpen := l.stats.Refuses(now, l.origin(), true); why != "" || !isHalfOpen {
		t.Errorf("a request with a last resort is refused: %q", why)
	}
	l.stats.EndHalfOpen()
	l.stats.EndHalfOpen()
	if why, _, _ := l.stats.Refuses(now, l.origin(), false); why != "" {
		t.Errorf("after the end of both requests: %q", why)
	}
}

func TestCooling(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	for _, step := range []struct {
		failure *upstream.Failure
		pause   time.Duration
	}{
		{limited(429, 0), 5 * time.Second},
		{limited(429, 0), 10 * time.Second},
		{limited(429, 0), 20 * time.Second},
		{limited(429, 0), 30 * time.Second},
		{limited(429, 0), 30 * time.Second},
		{limited(429, 2*time.Second), 2 * time.Second},
		{limited(429, time.Hour), time.Minute}, // a longer Retry-After is limited
	} {
		l.do(step.failure)
		l.check("cooling", "cooling")
		l.now = l.now.Add(step.pause - time.Millisecond)
		l.check("cooling", "cooling")
		l.now = l.now.Add(time.Millisecond)
		l.check("in_service", "")
	}
	l.do(nil) // after an answer, the next pause is short again
	l.do(limited(429, 0))
	l.checkWait(5 * time.Second)
}

// TestOverloadThatComesBackIsAFailure checks that a permanently overloaded provider opens the
// circuit instead of getting a request every few seconds.
func TestOverloadThatComesBackIsAFailure(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	for i := range 6 {
		l.do(limited(529, time.Second))
		if i < 5 {
			l.check("cooling", "cooling")
			l.now = l.now.Add(time.Second)
		}
	}
	l.check("circuit_open", "circuit_open", "circuit_open")
}

// TestCoolingWhileHalfOpen checks that the line is half-open again after the pause.
func TestCoolingWhileHalfOpen(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	l.halfOpen()
	l.do(limited(429, time.Second))
	l.check("cooling", "cooling", "circuit_open")
	l.now = l.now.Add(time.Second)
	l.check("half_open", "")
	l.repeat(3, nil)
	l.check("in_service", "", "in_service")
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	l.do(account())
	l.check("credentials_out", "credentials_out", "credentials_out")
	for _, wait := range []time.Duration{5, 10, 20, 40, 60, 60} {
		l.now = l.now.Add(wait * time.Minute)
		l.probe(account())
		l.check("credentials_out", "credentials_out")
	}
	l.now = l.now.Add(time.Hour)
	l.probe(nil)
	l.repeat(3, nil)
	l.check("in_service", "", "in_service")
	l.repeat(5, broken())
	l.checkWait(30 * time.Second) // and not the wait for credentials
	// A probe of an open circuit may find the credentials withdrawn.
	l.now = l.now.Add(30 * time.Second)
	l.messages = nil
	l.probe(account())
	l.check("credentials_out", "credentials_out", "credentials_out")
}

func TestMissingModel(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	two := []uint64{l.begin(), l.begin()}
	l.end(two[0], missing())
	l.end(two[1], missing())
	l.check("in_service", "model_out", "m model_out")
	if why, _, _ := l.stats.Refuses(func() time.Time { return l.now }, Origin{LinePart: LinePart{Model: "other"}}, false); why != "" {
		t.Errorf("another model is refused: %s", why)
	}
	due := func() (models []string) {
		due := l.stats.health.due(l.now)
		if due.Whole != nil {
			t.Error("the whole line is probed")
		}
		for _, ask := range due.Parts {
			models = append(models, ask.Model)
		}
		return models
	}
	l.now = l.now.Add(5 * time.Minute)
	if models := due(); !slices.Equal(models, []string{"m"}) {
		t.Errorf("probes of %v", models)
	}
	if models := due(); models != nil {
		t.Errorf("second probe during the first: %v", models)
	}
	l.record(l.stats.RecordPartProbe(l.now, LinePart{Model: "m"}, missing()))
	l.now = l.now.Add(10*time.Minute - time.Second)
	if models := due(); models != nil {
		t.Errorf("probed too early: %v", models)
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
	rejected := upstream.Classify(400, "application/json", []byte(`{"error":{"message":"too long"}}`), nil)
	for range 20 {
		l.do(broken())
		l.do(rejected)
		l.now = l.now.Add(time.Minute)
	}
	for range 20 {
		l.do(upstream.Fail(fault.ClientClosed, nil))
		l.do(upstream.Fail(fault.UpstreamPromptFilter, nil))
	}
	l.check("in_service", "")
}

func TestResume(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	generation := l.begin()
	l.do(missing())
	l.check("in_service", "model_out", "m model_out")
	l.end(generation, account())
	l.check("credentials_out", "credentials_out", "credentials_out")
	l.record(l.stats.Clear(l.now))
	l.check("in_service", "", "in_service", "m in_service")
	l.do(limited(429, time.Minute))
	l.record(l.stats.Clear(l.now))
	l.check("in_service", "")
}

// TestResumeForgetsFailures checks that resuming a line in service clears its failures too.
func TestResumeForgetsFailures(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	l.repeat(4, broken())
	l.record(l.stats.Clear(l.now))
	l.repeat(4, broken())
	l.check("in_service", "")
}
