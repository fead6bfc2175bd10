package admin

import (
	"context"
	"math"
	"slices"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/line"
	"tollgate/internal/money"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// listLines returns the status of each line on this node, or the combined status in the last reports
// of all nodes.
func (s *server) listLines(c *call) (any, error) {
	values, after, limit, err := c.page("node")
	if err != nil {
		return nil, err
	}
	if !values.Has("limit") {
		limit = math.MaxInt // all lines of a catalog
	}
	if !values.Has("node") {
		var ids []string
		if s.Lines != nil {
			ids = s.Lines.IDs()
		}
		ids, more, err := pageAfter(ids, func(id string) string { return id }, after, limit)
		if err != nil {
			return nil, err
		}
		var items []line.Status
		if len(ids) > 0 {
			items = s.Lines.Statuses(ids...)
		}
		over := s.overOfLines(c.ctx, items)
		return newList(items, more, func(l line.Status) lineAnswer { return lineAnswer{l, over(l.Line)} }), nil
	}
	if values.Get("node") != "all" {
		return nil, fault.At(fault.InvalidRequest, "node", "`node` can only be all; leave it out for the lines of this node.")
	}
	s.report(c.ctx)
	return view(s, c, func(tx *store.Tx) (any, error) {
		reports, err := line.ReportsTx(tx)
		if err != nil {
			return nil, err
		}
		items, more, err := pageAfter(line.Join(reports), func(l line.CombinedStatus) string { return l.Line }, after, limit)
		if err != nil {
			return nil, err
		}
		over, err := ledger.OverOfLinesTx(tx, names(items, func(l line.CombinedStatus) string { return l.Line }))
		return newList(items, more, func(l line.CombinedStatus) lineStateAnswer { return lineStateAnswer{l, over[l.Line]} }), err
	})
}

// pageAfter returns the page of list after the element with the id after.
func pageAfter[T any](list []T, id func(T) string, after string, limit int) (page []T, more bool, err error) {
	if after != "" {
		index := slices.IndexFunc(list, func(l T) bool { return id(l) == after })
		if index < 0 {
			return nil, false, fault.At(fault.InvalidRequest, "after", "There is no line %q to go on after.", fault.Excerpt(after))
		}
		list = list[index+1:]
	}
	return list[:min(limit, len(list))], len(list) > limit, nil
}

// lineAnswer is a line on this node. over_hold_usd is the sum of all nodes, and null if the database
// is unavailable. The other members do not need the database.
type lineAnswer struct {
	line.Status
	Over *money.Amount `json:"over_hold_usd"`
}

// lineStateAnswer is the combined status of a line on all nodes.
type lineStateAnswer struct {
	line.CombinedStatus
	Over money.Amount `json:"over_hold_usd"`
}

// overOfLines reads the usage above holds of lines, and returns a function for a line's usage.
func (s *server) overOfLines(ctx context.Context, items []line.Status) func(line string) *money.Amount {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	over, err := store.Read(ctx, s.DB, func(tx *store.Tx) (map[string]money.Amount, error) {
		return ledger.OverOfLinesTx(tx, names(items, func(l line.Status) string { return l.Line }))
	})
	if err != nil {
		s.Log.Warn("operator API: usage above holds could not be read", "error", err)
		return func(string) *money.Amount { return nil }
	}
	return func(line string) *money.Amount { sum := over[line]; return &sum }
}

// names returns the name of each element.
func names[T any](list []T, name func(T) string) []string {
	out := make([]string, len(list))
	for i, element := range list {
		out[i] = name(element)
	}
	return out
}

// report writes a new report of this node for the combined list. If that fails, the list has the
// previous report.
func (s *server) report(ctx context.Context) {
	if s.Lines == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	if err := s.Lines.Report(ctx); err != nil {
		s.Log.Warn("operator API: this node's lines could not be reported", "error", err)
	}
}

func (s *server) drainLine(c *call) (any, error) { return s.changeLine(c, operator.DrainTx) }

func (s *server) resumeLine(c *call) (any, error) { return s.changeLine(c, operator.ResumeTx) }

// lineChange stores an operator's decision about a line and returns the resulting status.
type lineChange func(tx *store.Tx, actor operator.Actor, spec catalog.LineSpec) (line.Status, error)

// changeLine commits a decision about a line of the current catalog. The decision is for all nodes.
func (s *server) changeLine(c *call, commit lineChange) (any, error) {
	// Read the catalog outside of the change, because the read would block other writers. If the line
	// is removed in the meantime, the decision does no harm.
	spec, err := view(s, c, func(tx *store.Tx) (catalog.LineSpec, error) { return operator.LineTx(tx, c.id) })
	if err != nil {
		return nil, err
	}
	result, err := change(s, c, func(tx *store.Tx) (line.Status, error) {
		return commit(tx, s.actor(c), spec)
	})
	if err != nil {
		return nil, err
	}
	return s.applyHere(c.ctx, result), nil
}

// applyHere makes this node apply a decision before the answer is sent, and returns the line's
// status. If that fails, or if the node does not have the line yet, applyHere returns result and the
// node applies the decision later.
func (s *server) applyHere(ctx context.Context, result line.Status) line.Status {
	if s.Lines == nil {
		return result
	}
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	if err := s.Lines.Refresh(ctx); err != nil {
		s.Log.Warn("operator API: this node has not applied the change of a line yet, and tries again", "line", result.Line, "error", err)
		return result
	}
	if states := s.Lines.Statuses(result.Line); len(states) == 1 {
		return states[0]
	}
	return result
}
