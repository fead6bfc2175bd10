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

// testLine is the stats of a line with a clock of its own.
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

func (p *testLine) origin() Origin { return Origin{LinePart: p.part, Account: p.account} }

func (p *testLine) record(changes []Change) {
	for _, c := range changes {
		words := []string{c.Model, string(c.Form), c.State}
		if c.Tools {
			words[1] += "+tools"
		}
		p.messages = append(p.messages, strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " "))
	}
}

// begin starts a request for a model and returns its generation; it fails the test
// when the line refuses.
func (p *testLine) begin() uint64 {
	p.Helper()
	why, generation, isHalfOpen := p.stats.Refuses(func() time.Time { return p.now }, p.origin(), true)
	if why != "" {
		p.Fatalf("the line refuses: %s", why)
	}
	if isHalfOpen {
		p.stats.EndHalfOpen()
	}
	return generation
}

// do lets one request end with a failure, or an answer for nil.
func (p *testLine) do(f *upstream.Failure) {
	p.Helper()
	p.end(p.begin(), f)
}

// repeat is do for n requests.
func (p *testLine) repeat(n int, f *upstream.Failure) {
	p.Helper()
	for range n {
		p.do(f)
	}
}

// halfOpen opens the circuit and makes a good probe.
func (p *testLine) halfOpen() {
	p.Helper()
	p.repeat(5, broken())
	p.now = p.now.Add(openWait)
	p.probe(nil)
}

func (p *testLine) end(generation uint64, f *upstream.Failure) {
	q := p.origin()
	q.Generation = generation
	if f == nil {
		_, changes := p.stats.RecordAnswer(p.now, q, time.Millisecond)
		p.record(changes)
		return
	}
	p.record(p.stats.RecordFailure(p.now, q, f))
}

// probe ends the probe that is due.
func (p *testLine) probe(f *upstream.Failure) {
	p.Helper()
	p.record(p.stats.change(func(h *health) []Change {
		if h.due(p.now).Whole == nil {
			p.Fatal("no probe is due")
		}
		return h.recordProbe(p.now, h.generation, f)
	}))
}

// check checks the line's state, the reason for a refusal, and the messages to the operator since
// the last call.
func (p *testLine) check(state, refusal string, messages ...string) {
	p.Helper()
	s := p.stats.Summary(p.now)
	why, _, isHalfOpen := p.stats.Refuses(func() time.Time { return p.now }, p.origin(), true)
	if isHalfOpen {
		p.stats.EndHalfOpen()
	}
	if s.State != state || why != refusal || !slices.Equal(p.messages, messages) {
		p.Errorf("state %s, refuses %q, messages %q; want %s, %q, %q", s.State, why, p.messages, state, refusal, messages)
	}
	p.messages = nil
}

// checkWait checks the time until model m may be asked again.
func (p *testLine) checkWait(want time.Duration) {
	p.Helper()
	if left := p.stats.Wait(p.now, "m"); left != want {
		p.Errorf("the wait is %s, want %s", left, want)
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
	p := newTestLine(t)
	p.repeat(200, nil)
	p.repeat(4, broken())
	p.do(nil) // an answer ends the row
	p.repeat(4, broken())
	p.check("in_service", "")
	p.do(broken())
	p.check("circuit_open", "circuit_open", "circuit_open")
}

func TestCircuitOpensByShare(t *testing.T) {
	t.Parallel()
	p := newTestLine(t)
	for range 40 { // one failure in eight is bearable
		p.repeat(7, nil)
		p.do(broken())
	}
	p.check("in_service", "")
	for i := 0; p.stats.sound.Load(); i++ { // one in two is not
		if i > 30 {
			t.Fatal("half of the attempts fail, and the circuit stays closed")
		}
		p.do(broken())
		if p.stats.sound.Load() {
			p.do(nil)
		}
	}
	p.check("circuit_open", "circuit_open", "circuit_open")
}

func TestOldFailuresDoNotCount(t *testing.T) {
	t.Parallel()
	p := newTestLine(t)
	for range 20 { // one failure a minute beside one answer
		p.do(broken())
		p.do(nil)
		p.now = p.now.Add(time.Minute)
	}
	p.check("in_service", "")
}

func TestHalfFailures(t *testing.T) {
	t.Parallel()
	p := newTestLine(t)
	isHalfOpen := upstream.Fail(fault.EmptyCompletion, errors.New("nothing"))
	isHalfOpen.Unproven = false
	p.repeat(9, isHalfOpen)
	p.check("in_service", "")
	p.do(isHalfOpen)
	p.check("circuit_open", "circuit_open", "circuit_open")
}

// TestHealing checks that an open circuit is probed after 30 s, then after twice as long, and that
// three good answers after a good probe bring the line back.
func TestHealing(t *testing.T) {
	t.Parallel()
	p := newTestLine(t)
	p.repeat(5, broken())
	p.check("circuit_open", "circuit_open", "circuit_open")
	for _, wait := range []time.Duration{
		30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute, 10 * time.Minute,
	} {
		p.now = p.now.Add(wait - time.Second)
		if due := p.stats.health.due(p.now); due.Whole != nil || due.Parts != nil {
			t.Fatalf("probed before %s were over", wait)
		}
		p.now = p.now.Add(time.Second)
		p.probe(broken())
		p.check("circuit_open", "circuit_open")
	}
	p.now = p.now.Add(10 * time.Minute)
	p.probe(nil)
	p.check("half_open", "")
	p.do(nil)
	p.do(nil)
	p.check("half_open", "")
	p.do(nil)
	p.check("in_service", "", "in_service")

	// The circuit opens again soon, so the waits go on from their last length. A half-open line had
	// not returned, so the operator gets no message.
	p.repeat(5, broken())
	p.check("circuit_open", "circuit_open", "circuit_open")
	p.checkWait(10 * time.Minute)
	p.now = p.now.Add(10 * time.Minute)
	p.probe(nil)
	p.do(nil)
	p.do(broken())
	p.check("circuit_open", "circuit_open")
	p.now = p.now.Add(10 * time.Minute)
	p.probe(nil)
	p.repeat(3, nil)
	p.check("in_service", "", "in_service")
	p.now = p.now.Add(time.Hour) // long ago: from the beginning
	p.repeat(5, broken())
	p.checkWait(30 * time.Second)
}

// TestStragglers checks that results of attempts from before a change of the line's state have no
// effect.
func TestStragglers(t *testing.T) {
	t.Parallel()
	p := newTestLine(t)
	early := p.begin()
	p.halfOpen()
	for range 9 {
		p.end(early, broken())
	}
	p.end(early, account())
	p.end(early, missing())
	p.end(early, limited(429, time.Minute))
	p.check("half_open", "", "circuit_open")
	for range 9 {
		p.end(early, nil)
	}
	p.check("half_open", "")
}

// TestStragglersDoNotAddUp checks that only failures of the present state are added up, without
// late failures from an earlier state.
func TestStragglersDoNotAddUp(t *testing.T) {
	t.Parallel()
	p := newTestLine(t)
	early := p.begin()
	p.halfOpen()
	p.repeat(halfOpenAnswers, nil)
	for range 9 {
		p.end(early, broken())
	}
	p.check("in_service", "", "circuit_open", "in_service")
	p.do(broken())
	p.check("in_service", "")
}

func TestHalfOpenTakesOneRequestAtATime(t *testing.T) {
	t.Parallel()
	p := newTestLine(t)
	p.halfOpen()
	now := func() time.Time { return p.now }
	if why, _, isHalfOpen := p.stats.Refuses(now, p.origin(), false); why != "" || !isHalfOpen {
		t.Fatalf("the first is refused: %q", why)
	}
	if why, _, _ := p.stats.Refuses(now, p.origin(), false); why != "half_open" {
		t.Errorf("the second is refused with %q", why)
	}
	if why, _, isHalfOpen := p.stats.Refuses(now, p.origin(), true); why != "" || !isHalfOpen {
		t.Errorf("one that presses is refused: %q", why)
	}
	p.stats.EndHalfOpen()
	p.stats.EndHalfOpen()
	if why, _, _ := p.stats.Refuses(now, p.origin(), false); why != "" {
		t.Errorf("after both have ended: %q", why)
	}
}

func TestCooling(t *testing.T) {
	t.Parallel()
	p := newTestLine(t)
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
		{limited(429, time.Hour), time.Minute}, // more is the provider's wish alone
	} {
		p.do(step.failure)
		p.check("cooling", "cooling")
		p.now = p.now.Add(step.pause - time.Millisecond)
		p.check("cooling", "cooling")
		p.now = p.now.Add(time.Millisecond)
		p.check("in_service", "")
	}
	p.do(nil) // an answer: the next pause is short again
	p.do(limited(429, 0))
	p.checkWait(5 * time.Second)
}

// TestOverloadThatComesBackIsAFailure checks that a permanently overloaded provider opens the
// circuit instead of getting a request every few seconds.
func TestOverloadThatComesBackIsAFailure(t *testing.T) {
	t.Parallel()
	p := newTestLine(t)
	for i := range 6 {
		p.do(limited(529, time.Second))
		if i < 5 {
			p.check("cooling", "cooling")
			p.now = p.now.Add(time.Second)
		}
	}
	p.check("circuit_open", "circuit_open", "circuit_open")
}

// TestCoolingWhileHalfOpen checks that the line is half-open again after the pause.
func TestCoolingWhileHalfOpen(t *testing.T) {
	t.Parallel()
	p := newTestLine(t)
	p.halfOpen()
	p.do(limited(429, time.Second))
	p.check("cooling", "cooling", "circuit_open")
	p.now = p.now.Add(time.Second)
	p.check("half_open", "")
	p.repeat(3, nil)
	p.check("in_service", "", "in_service")
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	p := newTestLine(t)
	p.do(account())
	p.check("credentials_out", "credentials_out", "credentials_out")
	for _, wait := range []time.Duration{5, 10, 20, 40, 60, 60} {
		p.now = p.now.Add(wait * time.Minute)
		p.probe(account())
		p.check("credentials_out", "credentials_out")
	}
	p.now = p.now.Add(time.Hour)
	p.probe(nil)
	p.repeat(3, nil)
	p.check("in_service", "", "in_service")
	p.repeat(5, broken())
	p.checkWait(30 * time.Second) // not the wait of the credentials
	// A probe of an open circuit may find the credentials withdrawn.
	p.now = p.now.Add(30 * time.Second)
	p.messages = nil
	p.probe(account())
	p.check("credentials_out", "credentials_out", "credentials_out")
}

func TestMissingModel(t *testing.T) {
	t.Parallel()
	p := newTestLine(t)
	two := []uint64{p.begin(), p.begin()}
	p.end(two[0], missing())
	p.end(two[1], missing())
	p.check("in_service", "model_out", "m model_out")
	if why, _, _ := p.stats.Refuses(func() time.Time { return p.now }, Origin{LinePart: LinePart{Model: "other"}}, false); why != "" {
		t.Errorf("another model is refused: %s", why)
	}
	due := func() (models []string) {
		due := p.stats.health.due(p.now)
		if due.Whole != nil {
			t.Error("the whole line is probed")
		}
		for _, ask := range due.Parts {
			models = append(models, ask.Model)
		}
		return models
	}
	p.now = p.now.Add(5 * time.Minute)
	if models := due(); !slices.Equal(models, []string{"m"}) {
		t.Errorf("probes of %v", models)
	}
	if models := due(); models != nil {
		t.Errorf("probed twice at a time: %v", models)
	}
	p.record(p.stats.RecordPartProbe(p.now, LinePart{Model: "m"}, missing()))
	p.now = p.now.Add(10*time.Minute - time.Second)
	if models := due(); models != nil {
		t.Errorf("probed too early: %v", models)
	}
	p.now = p.now.Add(time.Second)
	due()
	p.record(p.stats.RecordPartProbe(p.now, LinePart{Model: "m"}, nil))
	p.check("in_service", "", "m in_service")
}

// TestRejectionsAreNoFailures checks that a rejected request proves the provider alive, and that a
// disconnected client has no effect.
func TestRejectionsAreNoFailures(t *testing.T) {
	t.Parallel()
	p := newTestLine(t)
	rejected := upstream.Classify(400, "application/json", []byte(`{"error":{"message":"too long"}}`), nil)
	for range 20 {
		p.do(broken())
		p.do(rejected)
		p.now = p.now.Add(time.Minute)
	}
	for range 20 {
		p.do(upstream.Fail(fault.ClientClosed, nil))
		p.do(upstream.Fail(fault.UpstreamPromptFilter, nil))
	}
	p.check("in_service", "")
}

func TestResume(t *testing.T) {
	t.Parallel()
	p := newTestLine(t)
	generation := p.begin()
	p.do(missing())
	p.check("in_service", "model_out", "m model_out")
	p.end(generation, account())
	p.check("credentials_out", "credentials_out", "credentials_out")
	p.record(p.stats.Clear(p.now))
	p.check("in_service", "", "in_service", "m in_service")
	p.do(limited(429, time.Minute))
	p.record(p.stats.Clear(p.now))
	p.check("in_service", "")
}

// TestResumeForgetsFailures checks that resuming a line in service clears its failures too.
func TestResumeForgetsFailures(t *testing.T) {
	t.Parallel()
	p := newTestLine(t)
	p.repeat(4, broken())
	p.record(p.stats.Clear(p.now))
	p.repeat(4, broken())
	p.check("in_service", "")
}
