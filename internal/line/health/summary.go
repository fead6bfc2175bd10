package health

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"tollgate/internal/wire"
)

// Summary is the state of a line on this node according to its attempts and probes.
type Summary struct {
	State        string // one of the states below
	CoolingUntil int64  // time of the next request or probe in Unix seconds; 0 if the line takes requests
	PartsOut
	Attempts    int // number of recent attempts, from which SuccessRate and FirstByteMS are computed
	SuccessRate *float64
	FirstByteMS *int64 // median; nil if no recent attempt has a first byte
	Cause       string // cause of the state, or of the latest failed recent attempt
	CauseAt     int64  // Unix seconds
}

// PartsOut lists the parts of a line that get no requests.
type PartsOut struct {
	ModelsOut     []PartOut `json:"models_out,omitempty"`     // models that the provider lacks
	ModelsCooling []PartOut `json:"models_cooling,omitempty"` // rate-limited models
	FormsOut      []PartOut `json:"forms_out,omitempty"`      // models that the provider lacks in one form
}

// PartOut is a part of a line that gets no requests.
type PartOut struct {
	Model string    `json:"model"`
	Form  wire.Form `json:"form,omitempty"`
	Tools bool      `json:"tools,omitempty"` // only requests with tools avoid the form
	Cause string    `json:"cause"`
	Since int64     `json:"since"` // Unix seconds
	Until int64     `json:"until"` // next request or probe in Unix seconds
}

// Compare orders parts by model, form and tools.
func (p PartOut) Compare(q PartOut) int {
	tools := 0
	if p.Tools != q.Tools {
		tools = 1
		if q.Tools {
			tools = -1
		}
	}
	return cmp.Or(strings.Compare(p.Model, q.Model), strings.Compare(string(p.Form), string(q.Form)), tools)
}

// The values of Summary.State, and of a Change's state.
const (
	StateInService      = "in_service"
	StateCooling        = "cooling"         // after a provider's rate limit
	StateCircuitOpen    = "circuit_open"    // too many attempts failed
	StateHalfOpen       = "half_open"       // a probe succeeded; a few requests decide
	StateCredentialsOut = "credentials_out" // the provider refused the credential or account
	StateModelOut       = "model_out"       // only in alerts: one model of the line is out
	StateFormOut        = "form_out"        // only in alerts: one model of the line is out in one form
)

// Summary returns the state of the line at now.
func (s *Stats) Summary(now time.Time) (sum Summary) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var (
		successes  float64
		firstBytes []time.Duration
	)
	first := uint64(0)
	if s.n > recentAttempts {
		first = s.n - recentAttempts
	}
	for i := first; i < s.n; i++ { // oldest first, so that the latest cause remains
		attempt := s.ring[i%recentAttempts]
		if now.Sub(attempt.at) > recentTime {
			continue
		}
		sum.Attempts++
		successes += attempt.success
		if attempt.firstByte > 0 {
			firstBytes = append(firstBytes, attempt.firstByte)
		}
		if attempt.cause != "" {
			sum.Cause, sum.CauseAt = attempt.cause, attempt.at.Unix()
		}
	}
	if sum.Attempts > 0 {
		rate := successes / float64(sum.Attempts)
		sum.SuccessRate = &rate
	}
	if len(firstBytes) > 0 {
		slices.Sort(firstBytes)
		ms := firstBytes[len(firstBytes)/2].Milliseconds()
		sum.FirstByteMS = &ms
	}
	s.addHealth(now, &sum)
	return sum
}

// addHealth adds the states of the line and its parts. The caller must hold mu.
func (s *Stats) addHealth(now time.Time, sum *Summary) {
	s.health.endPauses(now)
	s.publish()
	sum.State = StateInService
	for part, sub := range s.health.subjects {
		out := PartOut{part.Model, part.Form, part.Tools, sub.cause, sub.since.Unix(), ceilSeconds(sub.until)}
		switch {
		case !sub.isOut(): // in use, or waiting for a probe to decide
		case sub.isLine():
			sum.State, sum.Cause, sum.CauseAt = sub.state.name(part), sub.cause, sub.since.Unix()
			if sub.blocks() {
				sum.CoolingUntil = ceilSeconds(sub.until)
			}
		case sub.state == cooling:
			sum.ModelsCooling = append(sum.ModelsCooling, out)
		case part.Form == "":
			sum.ModelsOut = append(sum.ModelsOut, out)
		default:
			sum.FormsOut = append(sum.FormsOut, out)
		}
	}
	for _, list := range [...][]PartOut{sum.ModelsOut, sum.ModelsCooling, sum.FormsOut} {
		slices.SortFunc(list, PartOut.Compare)
	}
}

// ceilSeconds rounds a time up to Unix seconds.
func ceilSeconds(t time.Time) int64 { return t.Add(time.Second - 1).Unix() }
