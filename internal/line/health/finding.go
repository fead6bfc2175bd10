package health

import (
	"maps"
	"slices"
	"time"
)

// Finding is a block on a line or a part, in a form for other nodes to adopt.
type Finding struct {
	LinePart            // zero for the whole line
	State        string // one of StateCooling to StateFormOut
	Cause        string
	Since, Until time.Time
	Wait         time.Duration // time between probes
	Accounts     []string      // the blocked accounts; empty for all accounts
	Explicit     bool          // whether the provider specified the length of the pause
}

// maxShared bounds the accounts of a finding. Other nodes do not block further accounts.
const maxShared = 100

// shortPause is the shortest pause to share with other nodes. A shorter pause ends before the other
// nodes read it.
const shortPause = 3 * time.Second

// Findings returns the present blocks to share: confirmed blocks, and pauses with known accounts.
func (s *Stats) Findings(now time.Time) (all []Finding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &s.health
	h.endPauses(now)
	s.publish()
	for _, sub := range h.subjects {
		if sub.state == halfOpen || sub.isShared() {
			all = append(all, Finding{LinePart: sub.part, State: sub.state.name(sub.part), Cause: sub.cause, Since: sub.since,
				Until: sub.until, Wait: sub.wait, Accounts: sub.reporters.sortedAccounts(), Explicit: sub.explicit})
		}
	}
	return all
}

// isShared reports whether a block is shared with other nodes.
func (s *subject) isShared() bool {
	switch {
	case !s.blocks() || !s.reporters.confirmed && len(s.reporters.accounts) == 0:
		return false
	case s.state == cooling && !s.private:
		return s.until.Sub(s.since) >= shortPause
	}
	return s.reporters.confirmed || s.announced == s.state
}

// sortedAccounts returns the first maxShared accounts in order, or nil for all accounts.
func (r *reporters) sortedAccounts() []string {
	if r.confirmed {
		return nil
	}
	all := slices.Sorted(maps.Keys(r.accounts))
	return all[:min(len(all), maxShared)]
}

// Adopt applies the finding of another node.
func (s *Stats) Adopt(now time.Time, f Finding) {
	s.change(func(h *health) []Change {
		r := reporters{confirmed: true}
		if len(f.Accounts) > 0 {
			r = reporters{}
			for _, account := range f.Accounts {
				r.add(account)
			}
		}
		h.adopt(now, f, r)
		maps.DeleteFunc(h.doubts, func(_ LinePart, d *doubt) bool { return !d.probing })
		return nil
	})
}

// adopt applies a finding to the accounts in r.
func (h *health) adopt(now time.Time, f Finding, r reporters) {
	next := healthy
	for state := cooling; state <= missing; state++ {
		if state.name(f.LinePart) == f.State {
			next = state
		}
	}
	if next == healthy {
		return // unknown state from a newer node
	}
	s := h.subject(f.LinePart)
	s.afterPause = healthy
	h.transition(s, next, now, 0, f.Cause)
	if s.isLine() {
		h.streak = failureSum{}
	}
	s.since, s.until, s.reporters, s.explicit = f.Since, f.Until, r, f.Explicit
	switch next {
	case cooling:
		s.limits.n = max(s.limits.n, 1)
	case halfOpen:
		s.reporters, s.announced = reporters{}, circuitOpen
	default:
		s.wait, s.announced, s.unverifiable = f.Wait, next, !r.confirmed
	}
}

// Release lifts a block after another node found the part working.
func (s *Stats) Release(now time.Time, part LinePart) {
	s.change(func(h *health) []Change {
		if s := h.subjects[part]; s != nil && s.state != healthy {
			h.restore(now, s)
		}
		return nil
	})
}

// Pending reports whether Due has something to probe.
func (s *Stats) Pending(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &s.health
	h.endPauses(now)
	if h.line.isDecided(h.serving.Unprobeable) {
		return h.isDue(now, h.line)
	}
	for _, sub := range h.subjects {
		if h.isDue(now, sub) {
			return true
		}
	}
	for part, d := range h.doubts {
		switch {
		case d.open && h.isDoubtDue(now, part, d):
			return true
		case !d.open && d.ready(now):
			delete(h.doubts, part)
			s.publish()
		}
	}
	return false
}
