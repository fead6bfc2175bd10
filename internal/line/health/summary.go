package health

import (
	"slices"
	"strings"
	"time"
)

// Summary is how a line is doing on this node, as its attempts and probes say.
type Summary struct {
	State        string // one of the words below
	CoolingUntil int64  // when the line is asked or probed again, Unix seconds; 0: it waits for nothing
	ModelsOut    []ModelOut
	Attempts     int // recent ones, that the rate and the time are of
	SuccessRate  *float64
	FirstByteMS  *int64 // the median; nil without any
	Cause        string // of the state, else of the latest failed recent attempt
	CauseAt      int64  // Unix seconds
}

// ModelOut is a model that a line was found not to have.
type ModelOut struct {
	Model string `json:"model"`
	Cause string `json:"cause"`
	Since int64  `json:"since"` // Unix seconds
	Until int64  `json:"until"` // when it is probed again, Unix seconds
}

// The values of Summary.State, and of a Change's state.
const (
	StateInService      = "in_service"
	StateCooling        = "cooling"         // after a provider's rate limit
	StateCircuitOpen    = "circuit_open"    // it failed too often
	StateHalfOpen       = "half_open"       // a probe went well, a few requests decide
	StateCredentialsOut = "credentials_out" // the provider refused the credential or account
	StateModelOut       = "model_out"       // of one model on one line, in alerts
)

// Summary sums up the recent attempts, and what is held against the line now.
func (s *Stats) Summary(now time.Time) (sum Summary) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var (
		good   float64
		begins []time.Duration
	)
	first := uint64(0)
	if s.n > recentAttempts {
		first = s.n - recentAttempts
	}
	for i := first; i < s.n; i++ { // oldest first, so that the last cause stays
		o := s.ring[i%recentAttempts]
		if now.Sub(o.at) > recentTime {
			continue
		}
		sum.Attempts++
		good += o.success
		if o.firstByte > 0 {
			begins = append(begins, o.firstByte)
		}
		if o.cause != "" {
			sum.Cause, sum.CauseAt = o.cause, o.at.Unix()
		}
	}
	if sum.Attempts > 0 {
		rate := good / float64(sum.Attempts)
		sum.SuccessRate = &rate
	}
	if len(begins) > 0 {
		slices.Sort(begins)
		ms := begins[len(begins)/2].Milliseconds()
		sum.FirstByteMS = &ms
	}
	s.sumUpHealth(now, &sum)
	return sum
}

// sumUpHealth fills in the line's health. Callers hold mu.
func (s *Stats) sumUpHealth(now time.Time, sum *Summary) {
	s.health.refuses(now, "") // a pause that is over is over
	s.settle()
	h := &s.health
	if sum.State = h.state.word(); h.state != healthy {
		sum.Cause, sum.CauseAt = h.cause, h.since.Unix()
		if h.state != halfOpen {
			sum.CoolingUntil = upTo(h.until)
		}
	}
	for model, m := range h.models {
		sum.ModelsOut = append(sum.ModelsOut, ModelOut{Model: model, Cause: m.cause, Since: m.since.Unix(), Until: upTo(m.until)})
	}
	slices.SortFunc(sum.ModelsOut, func(a, b ModelOut) int { return strings.Compare(a.Model, b.Model) })
}

// upTo rounds a time up to Unix seconds.
func upTo(t time.Time) int64 { return t.Add(time.Second - 1).Unix() }
