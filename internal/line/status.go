package line

import (
	"maps"
	"slices"
	"time"

	"tollgate/internal/line/health"
)

// Status is how a line is doing on this node.
type Status struct {
	Line     string `json:"id"`
	Provider string `json:"provider"`
	// State is one of the words below or of package health; Cause says why if it is not in_service.
	State string `json:"state"`
	// CoolingUntil is when a line that is not in service is asked or probed
	// again, in Unix seconds; 0 when it waits for nothing.
	CoolingUntil int64 `json:"cooling_until,omitempty"`
	health.PartsOut
	// ModelStates are the states of the line's models, in the order of their ids.
	ModelStates []ModelStatus `json:"model_states,omitempty"`
	// InFlight counts calls whose answer is not closed yet.
	InFlight int64 `json:"in_flight"`
	// MaxConcurrent is the line's cap over all nodes, 0 for none; Granted is
	// how much of it this node has.
	MaxConcurrent int `json:"max_concurrent"`
	Granted       int `json:"granted,omitempty"`
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
	// Keys are those of a line that has several, in the order of their use.
	Keys []KeyStatus `json:"keys,omitempty"`
	// Margins are those of its models, in the order of their ids; a model for
	// which nothing was settled since the node began has none.
	Margins []Margin `json:"models,omitempty"`
}

// The values of Status.State beside those of package health, which apply to lines
// that are in use. Alerts tell the same words.
const (
	stateDrained      = "drained"        // by the operator
	stateOutOfService = "out_of_service" // it cannot be used on this node
	stateDisabled     = "disabled"       // by the catalog
)

// causeDrained is the cause of stateDrained.
const causeDrained = "drained by the operator"

// Statuses returns how it is with every line of the current catalog on this node,
// in the order of the document.
func (l *Lines) Statuses() []Status {
	now := l.now()
	f := l.table(l.current())
	statuses := make([]Status, 0, len(f.entries))
	for _, entry := range f.entries {
		statuses = append(statuses, l.status(now, entry))
	}
	return statuses
}

// status returns that of one line.
func (l *Lines) status(now time.Time, entry *routingEntry) Status {
	ln := entry.line
	status := Status{Line: ln.ID, Provider: ln.Provider, State: health.StateInService, MaxConcurrent: ln.MaxConcurrent}
	if ln.MaxConcurrent > 0 {
		status.Granted = l.slots.Granted(ln.ID)
	}
	sum := entry.stats.Summary(now)
	status.State, status.CoolingUntil, status.PartsOut = sum.State, sum.CoolingUntil, sum.PartsOut
	status.ModelStates = modelStates(slices.Sorted(maps.Keys(ln.Models)), sum.PartsOut)
	status.InFlight = entry.stats.inFlight.Load()
	status.Attempts, status.SuccessRate, status.FirstByteMS = sum.Attempts, sum.SuccessRate, sum.FirstByteMS
	status.Cause, status.CauseAt = sum.Cause, sum.CauseAt
	status.Keys = entry.keyStatuses()
	status.Margins = entry.stats.margins.all()
	why := ""
	switch {
	case !ln.Enabled:
		status.State = stateDisabled
	case ln.Out != "":
		status.State, why = stateOutOfService, ln.Out
	case entry.stats.drained.Load():
		status.State, why = stateDrained, causeDrained
	default:
		return status
	}
	status.CoolingUntil = 0
	if why != "" {
		status.Cause, status.CauseAt = why, 0
	}
	return status
}
