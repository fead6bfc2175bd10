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

// listLines shows how each line is doing: on this node, or joined from what all
// nodes reported last.
func (s *server) listLines(c *call) (any, error) {
	values, after, limit, err := c.page("node")
	if err != nil {
		return nil, err
	}
	if !values.Has("limit") {
		limit = math.MaxInt // as many as a catalog has
	}
	if !values.Has("node") {
		var found []line.Status
		if s.Lines != nil {
			found = s.Lines.Statuses()
		}
		found, more, err := paged(found, func(l line.Status) string { return l.Line }, after, limit)
		if err != nil {
			return nil, err
		}
		over := s.overOfLines(c.ctx, found)
		return newList(found, more, func(l line.Status) lineAnswer { return lineAnswer{l, over(l.Line)} }), nil
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
		found, more, err := paged(line.Join(reports), func(l line.Joined) string { return l.Line }, after, limit)
		if err != nil {
			return nil, err
		}
		over, err := ledger.OverOfLinesTx(tx, names(found, func(l line.Joined) string { return l.Line }))
		return newList(found, more, func(l line.Joined) joinedAnswer { return joinedAnswer{l, over[l.Line]} }), err
	})
}

// paged cuts the page behind the line `after` out of a list in its own order.
func paged[T any](list []T, id func(T) string, after string, limit int) (page []T, more bool, err error) {
	if after != "" {
		at := slices.IndexFunc(list, func(l T) bool { return id(l) == after })
		if at < 0 {
			return nil, false, fault.At(fault.InvalidRequest, "after", "There is no line %q to go on after.", fault.Shown(after))
		}
		list = list[at+1:]
	}
	return list[:min(limit, len(list))], len(list) > limit, nil
}

// lineAnswer is a line on this node. What its usage exceeded holds by is that of
// all nodes; null where the database could not be asked, for the rest is known
// without it.
type lineAnswer struct {
	line.Status
	Over *money.Amount `json:"over_hold_usd"`
}

// joinedAnswer is a line on all nodes.
type joinedAnswer struct {
	line.Joined
	Over money.Amount `json:"over_hold_usd"`
}

// overOfLines returns how to find what a line's usage exceeded holds by.
func (s *server) overOfLines(ctx context.Context, found []line.Status) func(line string) *money.Amount {
	ctx, cancel := context.WithTimeout(ctx, refreshTime)
	defer cancel()
	var over map[string]money.Amount
	err := s.DB.View(ctx, func(tx *store.Tx) (err error) {
		over, err = ledger.OverOfLinesTx(tx, names(found, func(l line.Status) string { return l.Line }))
		return err
	})
	if err != nil {
		s.Log.Warn("operator API: usage above holds could not be read", "error", err)
		return func(string) *money.Amount { return nil }
	}
	return func(line string) *money.Amount { sum := over[line]; return &sum }
}

// names returns what a list's elements are called.
func names[T any](list []T, name func(T) string) []string {
	out := make([]string, len(list))
	for i, element := range list {
		out[i] = name(element)
	}
	return out
}

// report makes this node's word in the joined list a fresh one. Where that
// fails the list has its last one.
func (s *server) report(ctx context.Context) {
	if s.Lines == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, refreshTime)
	defer cancel()
	if err := s.Lines.Report(ctx); err != nil {
		s.Log.Warn("operator API: this node's lines could not be reported", "error", err)
	}
}

func (s *server) drainLine(c *call) (any, error) { return s.decide(c, operator.DrainTx) }

func (s *server) resumeLine(c *call) (any, error) { return s.decide(c, operator.ResumeTx) }

// decision is one about a line, and returns how the line is as far as that was
// decided.
type decision func(tx *store.Tx, by operator.Actor, spec catalog.LineSpec) (line.Status, error)

// decide commits a decision about a line of the current catalog, for all nodes.
func (s *server) decide(c *call, commit decision) (any, error) {
	if _, err := c.query(); err != nil {
		return nil, err
	}
	if err := c.readNothing(); err != nil {
		return nil, err
	}
	// Outside of the change: reading the catalog would keep other writers
	// waiting, and a decision about a line that goes meanwhile does no harm.
	spec, err := view(s, c, func(tx *store.Tx) (catalog.LineSpec, error) { return operator.LineTx(tx, c.id) })
	if err != nil {
		return nil, err
	}
	decided, err := change(s, c, func(tx *store.Tx) (line.Status, error) {
		return commit(tx, s.by(c), spec)
	})
	if err != nil {
		return nil, err
	}
	return s.taken(c.ctx, decided), nil
}

// taken makes this node act on a decision before the answer says that it holds,
// and returns how the line is doing then. Where that fails, or where the node
// does not have the line yet, it is what was decided: the node tries on.
func (s *server) taken(ctx context.Context, decided line.Status) line.Status {
	if s.Lines == nil {
		return decided
	}
	ctx, cancel := context.WithTimeout(ctx, refreshTime)
	defer cancel()
	if err := s.Lines.Refresh(ctx); err != nil {
		s.Log.Warn("operator API: the decision about a line is not in use here yet", "line", decided.Line, "error", err)
		return decided
	}
	for _, state := range s.Lines.Statuses() {
		if state.Line == decided.Line {
			return state
		}
	}
	return decided
}
