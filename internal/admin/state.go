package admin

import (
	"fmt"

	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/line"
)

// listLines shows how each line is doing. One node alone knows of itself, so
// `node=all` is the same list as long as there is nothing to join.
func (s *server) listLines(c *call) (any, error) {
	values, err := c.query("node")
	if err != nil {
		return nil, err
	}
	if node := values.Get("node"); values.Has("node") && node != "all" {
		return nil, fault.At(fault.InvalidRequest, "node", "`node` can only be all; leave it out for the lines of this node.")
	}
	var found []line.State
	if s.Lines != nil {
		found = s.Lines()
	}
	return newList(found, false, func(l line.State) line.State { return l }), nil
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
