package line

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/upstream"
)

// What counts as recent: the last so many attempts, no older than this.
const (
	recentAttempts = 128
	recentTime     = 5 * time.Minute
)

// State is how a line is doing on this node.
type State struct {
	Line     string `json:"id"`
	Provider string `json:"provider"`
	// State is "in_service", "out_of_service" (Cause says why) or "disabled".
	State string `json:"state"`
	// InFlight counts calls whose answer is not closed yet.
	InFlight int64 `json:"in_flight"`
	// MaxConcurrent is the line's cap, 0 for none. It is not enforced yet.
	MaxConcurrent int `json:"max_concurrent"`
	// Attempts counts the recent attempts that the rate and the time are of.
	Attempts int `json:"recent_attempts"`
	// SuccessRate is the share of them that brought an answer, 0 to 1; nil
	// without any.
	SuccessRate *float64 `json:"success_rate"`
	// FirstByteMS is the median time until an answer began; nil without any.
	FirstByteMS *int64 `json:"first_byte_ms"`
	// Cause is why the line is out of service, else why the latest failed
	// recent attempt failed; CauseAt is when that was, in Unix seconds, or 0.
	Cause   string `json:"cause,omitempty"`
	CauseAt int64  `json:"cause_at,omitempty"`
}

// The values of State.State.
const (
	stateInService    = "in_service"
	stateOutOfService = "out_of_service"
	stateDisabled     = "disabled"
)

// States returns the state of every line of a snapshot on this node, in the
// order of the document.
func (l *Lines) States(s *catalog.Snapshot) []State {
	now := l.now()
	states := make([]State, 0, len(s.AllLines()))
	for _, ln := range s.AllLines() {
		state := State{Line: ln.ID, Provider: ln.Provider, State: stateInService, MaxConcurrent: ln.MaxConcurrent}
		l.mu.Lock()
		t := l.tallies[ln.ID]
		l.mu.Unlock()
		if t != nil {
			t.report(now, &state)
		}
		switch {
		case !ln.Enabled:
			state.State = stateDisabled
		case ln.Out != "":
			state.State, state.Cause, state.CauseAt = stateOutOfService, ln.Out, 0
		}
		states = append(states, state)
	}
	return states
}

// outcome is how one attempt went.
type outcome struct {
	at        time.Time
	score     float64       // 1 answered, 0 failed, 0.5 half a failure
	firstByte time.Duration // until the answer began; 0 if it did not
	cause     string        // of a failure
}

// tally counts one line's attempts on this node.
type tally struct {
	inFlight atomic.Int64
	metrics  lineMetrics

	mu   sync.Mutex
	n    uint64 // attempts ever; the last recentAttempts of them are in ring
	ring [recentAttempts]outcome
}

// newTally makes the tally of a line.
func newTally(line string, m *metrics) *tally { return &tally{metrics: m.of(line)} }

// begin and end bracket a call.
func (t *tally) begin() {
	t.inFlight.Add(1)
	t.metrics.inFlight.Inc()
}

func (t *tally) end() {
	t.inFlight.Add(-1)
	t.metrics.inFlight.Dec()
}

// add records an outcome and returns its number.
func (t *tally) add(o outcome) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.n
	t.ring[n%recentAttempts] = o
	t.n++
	return n
}

// revise changes the outcome with a number, unless it is no longer recent.
func (t *tally) revise(n uint64, change func(*outcome)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n+recentAttempts >= t.n {
		change(&t.ring[n%recentAttempts])
	}
}

// report fills in what the tally knows about recent attempts.
func (t *tally) report(now time.Time, s *State) {
	s.InFlight = t.inFlight.Load()
	t.mu.Lock()
	defer t.mu.Unlock()
	var (
		score  float64
		begins []time.Duration
	)
	first := uint64(0)
	if t.n > recentAttempts {
		first = t.n - recentAttempts
	}
	for i := first; i < t.n; i++ { // oldest first, so that the last cause stays
		o := t.ring[i%recentAttempts]
		if now.Sub(o.at) > recentTime {
			continue
		}
		s.Attempts++
		score += o.score
		if o.firstByte > 0 {
			begins = append(begins, o.firstByte)
		}
		if o.cause != "" {
			s.Cause, s.CauseAt = o.cause, o.at.Unix()
		}
	}
	if s.Attempts > 0 {
		rate := score / float64(s.Attempts)
		s.SuccessRate = &rate
	}
	if len(begins) > 0 {
		slices.Sort(begins)
		ms := begins[len(begins)/2].Milliseconds()
		s.FirstByteMS = &ms
	}
}

// visit is one attempt's place in the tally of its line.
type visit struct {
	tally *tally
	now   func() time.Time
	key   string // the line's credential, to take out of what is said about it
	once  sync.Once
	// number is the outcome's in the tally; set before the walk returns.
	number  uint64
	counted bool
}

// answered records an answer that began.
func (v *visit) answered(firstByte time.Duration) {
	v.number = v.tally.add(outcome{at: v.now(), score: 1, firstByte: max(firstByte, 1)})
	v.counted = true
	v.tally.metrics.answered(firstByte)
}

// failed records a failed attempt. One that says nothing about the line counts
// in the metrics only.
func (v *visit) failed(f *upstream.Failure) {
	v.tally.metrics.failed(f)
	if f.Health != upstream.HealthNone {
		v.tally.add(outcome{at: v.now(), score: score(f.Health), cause: f.Error()})
	}
}

// broke turns the recorded answer into a failure.
func (v *visit) broke(f *upstream.Failure) {
	if f.Health == upstream.HealthNone || !v.counted {
		return
	}
	v.once.Do(func() {
		v.tally.metrics.broke(f)
		v.tally.revise(v.number, func(o *outcome) { o.score, o.cause = score(f.Health), f.Error() })
	})
}

// score is how much of a success an effect leaves.
func score(h upstream.Health) float64 {
	if h == upstream.HealthHalf {
		return 0.5
	}
	return 0
}
