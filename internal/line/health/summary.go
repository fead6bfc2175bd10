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
	CoolingUntil int64  // the next request or probe in Unix seconds; 0 if the line waits for nothing
	PartsOut
	Attempts    int // recent attempts, the base of SuccessRate and FirstByteMS
	SuccessRate *float64
	FirstByteMS *int64 // the median; nil without any
	Cause       string // of the state, else of the latest failed recent attempt
	CauseAt     int64  // Unix seconds
}

// PartsOut lists the parts of a line without requests.
type PartsOut struct {
	// ModelsOut lists models missing on the line, ModelsCooling rate-limited models, and FormsOut
	// models missing in one form.
	ModelsOut     []PartOut `json:"models_out,omitempty"`
	ModelsCooling []PartOut `json:"models_cooling,omitempty"`
	FormsOut      []PartOut `json:"forms_out,omitempty"`
}

// PartOut is a part of a line without requests.
type PartOut struct {
	Model string    `json:"model"`
	Form  wire.Form `json:"form,omitempty"`
	Tools bool      `json:"tools,omitempty"` // requests with tools alone prefer another form
	Cause string    `json:"cause"`
	Since int64     `json:"since"` // Unix seconds
	Until int64     `json:"until"` // next request or probe in Unix seconds
}

// Compare orders by model and form.
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
	StateCircuitOpen    = "circuit_open"    // it failed too often
	StateHalfOpen       = "half_open"       // a probe went well, a few requests decide
	StateCredentialsOut = "credentials_out" // the provider refused the credential or account
	StateModelOut       = "model_out"       // of one model on one line, in alerts
	StateFormOut        = "form_out"        // of one model in one form on one line, in alerts
)

// Summary returns the line's recent attempts and present blocks.
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
	for i := first; i < s.n; i++ { // oldest first, so that the last cause wins
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
	s.addHealth(now, &sum)
	return sum
}

// addHealth fills in the line's health. Callers must hold mu.
func (s *Stats) addHealth(now time.Time, sum *Summary) {
	s.health.endPauses(now) // end expired pauses
	s.publish()
	h := &s.health
	sum.State = StateInService
	if h.state == cooling && !h.private || h.state > cooling && h.announced != healthy {
		sum.State = h.state.name()
		sum.Cause, sum.CauseAt = h.cause, h.since.Unix()
		if h.state != halfOpen {
			sum.CoolingUntil = upTo(h.until)
		}
	}
	for part, p := range h.parts {
		out := PartOut{part.Model, part.Form, part.Tools, p.cause, p.since.Unix(), upTo(p.until)}
		switch {
		case p.cools && p.private:
		case p.cools:
			sum.ModelsCooling = append(sum.ModelsCooling, out)
		case !p.out || !p.announced: // no block, or a probe has yet to decide
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

// upTo rounds a time up to Unix seconds.
func upTo(t time.Time) int64 { return t.Add(time.Second - 1).Unix() }
