package line

import (
	"maps"
	"slices"
	"time"

	"tollgate/internal/line/health"
)

// Status is the state of a line on this node.
type Status struct {
	Line     string `json:"id"`
	Provider string `json:"provider"`
	// State is one of the states below or of package health. If it is not in_service, Cause is the
	// reason.
	State string `json:"state"`
	// CoolingUntil is the time of the next request or probe of a line out of service, in Unix
	// seconds. It is 0 if the line takes requests or the time is unknown.
	CoolingUntil int64 `json:"cooling_until,omitempty"`
	health.PartsOut
	// ModelStates are the states of the line's models, in the order of their ids.
	ModelStates []ModelStatus `json:"model_states,omitempty"`
	// InFlight counts calls with an open answer.
	InFlight int64 `json:"in_flight"`
	// MaxConcurrent is the line's maximum number of calls over all nodes, or 0 without a limit.
	// Granted is this node's part of the limit.
	MaxConcurrent int `json:"max_concurrent"`
	Granted       int `json:"granted,omitempty"`
	// Attempts counts the recent attempts. SuccessRate and FirstByteMS are computed from them.
	Attempts int `json:"recent_attempts"`
	// SuccessRate is the share of answered attempts, 0 to 1, or nil without attempts.
	SuccessRate *float64 `json:"success_rate"`
	// FirstByteMS is the median time until an answer began, or nil without an answer.
	FirstByteMS *int64 `json:"first_byte_ms"`
	// Cause is the reason why the line is out of service, or else the cause of the latest failed
	// recent attempt. CauseAt is its time in Unix seconds, or 0.
	Cause   string `json:"cause,omitempty"`
	CauseAt int64  `json:"cause_at,omitempty"`
	// GatewayCounts counts the complete answers since the node began whose usage the gateway had to
	// count itself.
	GatewayCounts int64 `json:"gateway_counts,omitempty"`
	// Keys lists the keys of a line with several keys, in the order of their use.
	Keys []KeyStatus `json:"keys,omitempty"`
	// Margins has the margins of the line's models, in the order of their ids. It omits models
	// without settlements since the node began.
	Margins []Margin `json:"models,omitempty"`
}

// The values of Status.State besides the values in package health. Alerts use the same values.
const (
	stateDrained      = "drained"        // by the operator
	stateOutOfService = "out_of_service" // cannot be used on this node
	stateDisabled     = "disabled"       // disabled in the catalog
)

// causeDrained is the cause of stateDrained.
const causeDrained = "drained by the operator"

// IDs returns the ids of the lines of the current catalog, in the order of the document.
func (l *Lines) IDs() []string {
	var ids []string
	for _, entry := range l.table(l.catalog.Current()).entries {
		ids = append(ids, entry.line.ID)
	}
	return ids
}

// Statuses returns the state of lines of the current catalog on this node, in the order of the document.
// It ignores ids outside the catalog. Without ids, it returns the state of every line.
func (l *Lines) Statuses(ids ...string) []Status {
	now := l.now()
	chosen := make(map[string]bool, len(ids))
	for _, id := range ids {
		chosen[id] = true
	}
	var statuses []Status
	for _, entry := range l.table(l.catalog.Current()).entries {
		if len(ids) == 0 || chosen[entry.line.ID] {
			statuses = append(statuses, l.status(now, entry))
		}
	}
	return statuses
}

// status returns the status of one line.
func (l *Lines) status(now time.Time, entry *routingEntry) Status {
	ln := entry.line
	status := Status{Line: ln.ID, Provider: ln.Provider, State: health.StateInService, MaxConcurrent: ln.MaxConcurrent}
	if ln.MaxConcurrent > 0 {
		status.Granted = l.slots.Grants(ln.ID)
	}
	sum := entry.stats.Summary(now)
	status.State, status.CoolingUntil, status.PartsOut = sum.State, sum.CoolingUntil, sum.PartsOut
	status.ModelStates = modelStates(slices.Sorted(maps.Keys(ln.Models)), sum.PartsOut)
	status.GatewayCounts = entry.stats.gatewayCounts.Load()
	status.InFlight = entry.stats.inFlight.Load()
	status.Attempts, status.SuccessRate, status.FirstByteMS = sum.Attempts, sum.SuccessRate, sum.FirstByteMS
	status.Cause, status.CauseAt = sum.Cause, sum.CauseAt
	status.Keys = entry.keyStatuses()
	status.Margins = entry.stats.margins.all()
	reason := ""
	switch {
	case !ln.Enabled:
		status.State = stateDisabled
	case ln.UnusableReason != "":
		status.State, reason = stateOutOfService, ln.UnusableReason
	case entry.stats.drained.Load():
		status.State, reason = stateDrained, causeDrained
	default:
		return status
	}
	status.CoolingUntil = 0
	if reason != "" {
		status.Cause, status.CauseAt = reason, 0
	}
	return status
}
