package admin

import (
	"fmt"

	"tollgate/internal/catalog"
	"tollgate/internal/ledger"
)

// LineState is how a line stands on this node. What is not measured yet is
// null.
type LineState struct {
	ID       string `json:"id"`
	Provider string `json:"provider"`
	// State is in_service, cooling_down, out_of_service or disabled.
	State string `json:"state"`
	// Cause says why it is not in service; empty when it is. It names no
	// secret.
	Cause        string   `json:"cause,omitempty"`
	CoolingUntil *int64   `json:"cooling_until"` // Unix seconds
	InFlight     int64    `json:"in_flight"`
	SuccessRate  *float64 `json:"success_rate"`  // of recent attempts, 0 to 1
	FirstByteMS  *int64   `json:"first_byte_ms"` // of recent attempts
}

// The states of a line that the catalog alone decides.
const (
	lineInService    = "in_service"
	lineOutOfService = "out_of_service"
	lineDisabled     = "disabled"
)

func (s *server) listLines(c *call) (any, error) {
	if _, err := c.query(); err != nil {
		return nil, err
	}
	var found []LineState
	switch {
	case s.Lines != nil:
		found = s.Lines()
	case s.Catalog != nil:
		for _, l := range s.Catalog.Current().AllLines() {
			found = append(found, unmeasured(l))
		}
	}
	return newList(found, false, func(l LineState) LineState { return l }), nil
}

// unmeasured is the state of a line as far as its catalog and this node's
// environment decide it.
func unmeasured(l *catalog.Line) LineState {
	out := LineState{ID: l.ID, Provider: l.Provider, State: lineInService}
	switch {
	case !l.Enabled:
		out.State, out.Cause = lineDisabled, "enabled is false in the catalog"
	case l.Out != "":
		out.State, out.Cause = lineOutOfService, l.Out
	}
	return out
}

// audit recomputes the books; one at a time, since it reads all of them.
func (s *server) audit(c *call) (any, error) {
	if _, err := c.query(); err != nil {
		return nil, err
	}
	select {
	case s.audits <- struct{}{}:
	case <-c.r.Context().Done():
		return nil, fmt.Errorf("wait for the audit that runs: %w", c.r.Context().Err())
	}
	defer func() { <-s.audits }()
	report, err := ledger.Audit(c.r.Context(), s.DB)
	if err != nil {
		return nil, err
	}
	return report, nil
}
