package scene

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/tidwall/gjson"
)

// LineState is the state of a line in the operator API.
type LineState struct {
	ID            string          `json:"id"`
	State         string          `json:"state"`
	Attempts      int             `json:"recent_attempts"`
	SuccessRate   *float64        `json:"success_rate"`
	InFlight      int             `json:"in_flight"`
	CoolingUntil  json.RawMessage `json:"cooling_until"`
	Cause         string          `json:"cause"`
	ModelsOut     []PartOut       `json:"models_out"`
	ModelsCooling []PartOut       `json:"models_cooling"`
	FormsOut      []PartOut       `json:"forms_out"`
}

// PartOut is a part of a line that gets no requests at present.
type PartOut struct {
	Model string `json:"model"`
	Form  string `json:"form"`
	Cause string `json:"cause"`
	Until int64  `json:"until"`
}

// String implements fmt.Stringer.
func (s LineState) String() string {
	rate := "none"
	if s.SuccessRate != nil {
		rate = fmt.Sprintf("%.2f", *s.SuccessRate)
	}
	return fmt.Sprintf("%s, %d attempts, success rate %s, cooling until %q, models out %v, cooling %v, forms out %v, cause %q",
		s.State, s.Attempts, rate, s.CoolingUntil, s.ModelsOut, s.ModelsCooling, s.FormsOut, s.Cause)
}

// LineStates reads the states of all lines. Concurrent callers share a read, because the list is
// long.
type LineStates struct {
	process *Process

	reading sync.Mutex
	mu      sync.Mutex
	next    *lineRead // the read that new callers join; it has not begun
}

// lineRead is one read of the list.
type lineRead struct {
	once sync.Once
	all  map[string]string // JSON by id
}

// Of returns the state of a line, from a read that began after the call.
func (l *LineStates) Of(t testing.TB, line string) LineState {
	t.Helper()
	l.mu.Lock()
	if l.next == nil {
		l.next = &lineRead{all: map[string]string{}}
	}
	read := l.next
	l.mu.Unlock()
	read.once.Do(func() {
		l.reading.Lock()
		defer l.reading.Unlock()
		l.mu.Lock()
		l.next = nil
		l.mu.Unlock()
		gjson.GetBytes(l.process.adminBytes("GET", "/lines", nil), "data").ForEach(func(_, s gjson.Result) bool {
			read.all[s.Get("id").Str] = s.Raw
			return true
		})
	})
	var state LineState
	if err := json.Unmarshal([]byte(read.all[line]), &state); err != nil {
		t.Fatalf("line %s is not in the list, or not as it should be: %v", line, err)
	}
	return state
}

// Becomes waits until a line is in a state.
func (l *LineStates) Becomes(t testing.TB, line, state string) LineState {
	t.Helper()
	var s LineState
	Eventually(t, line+" is "+state, func() bool {
		s = l.Of(t, line)
		return s.State == state
	})
	return s
}
