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
	pause := h.state == cooling && !h.private
	if h.state == halfOpen || h.state != healthy && isShared(h.reporters, h.announced == h.state, pause, h.until.Sub(h.since)) {
		all = append(all, Finding{State: h.state.name(), Cause: h.cause, Since: h.since, Until: h.until, Wait: h.wait,
			Accounts: h.reporters.sortedAccounts(), Explicit: h.explicit})
	}
	for part, p := range h.parts {
		if !p.active() || !isShared(p.reporters, p.announced, p.cooling && !p.private, p.until.Sub(p.since)) {
			continue
		}
		f := Finding{LinePart: part, State: StateModelOut, Cause: p.cause, Since: p.since, Until: p.until, Wait: p.wait,
			Accounts: p.reporters.sortedAccounts(), Explicit: p.explicit}
		switch {
		case p.cooling:
			f.State = StateCooling
		case part.Form != "":
			f.State = StateFormOut
		}
		all = append(all, f)
	}
	return all
}

// isShared reports whether a block is shared with other nodes. length is the length of a pause.
func isShared(r reporters, announced, pause bool, length time.Duration) bool {
	switch {
	case !r.confirmed && len(r.accounts) == 0:
		return false
	case pause:
		return length >= shortPause
	}
	return r.confirmed || announced
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
		if f.LinePart == (LinePart{}) {
			h.adopt(now, f, r)
		} else {
			h.adoptPart(f, r)
		}
		maps.DeleteFunc(h.doubts, func(_ LinePart, d *doubt) bool { return !d.probing })
		return nil
	})
}

// adopt applies a finding about the whole line.
func (h *health) adopt(now time.Time, f Finding, r reporters) {
	next := healthy
	for state := cooling; state <= credentialsOut; state++ {
		if state.name() == f.State {
			next = state
		}
	}
	if next == healthy {
		return // unknown state from a newer node
	}
	h.afterPause = healthy
	h.enter(next, now, 0, f.Cause)
	h.since, h.until, h.reporters, h.explicit = f.Since, f.Until, r, f.Explicit
	switch next {
	case cooling:
		h.limits.n = max(h.limits.n, 1)
	case halfOpen:
		h.reporters, h.announced = reporters{}, circuitOpen
	default:
		h.wait, h.announced = f.Wait, next
	}
}

// adoptPart applies a finding about a part.
func (h *health) adoptPart(f Finding, r reporters) {
	h.generation++
	if h.parts == nil {
		h.parts = map[LinePart]*block{}
	}
	cools := f.State == StateCooling
	h.parts[f.LinePart] = &block{out: !cools, announced: !cools, cooling: cools, cause: f.Cause, since: f.Since, until: f.Until,
		wait: f.Wait, reporters: r, explicit: f.Explicit, began: h.generation}
}

// Release lifts a block after another node found the part working.
func (s *Stats) Release(now time.Time, part LinePart) {
	s.change(func(h *health) []Change {
		if part == (LinePart{}) {
			if h.state != healthy {
				h.restore(now)
			}
			return nil
		}
		if p := h.parts[part]; p != nil && p.active() {
			h.lift(now, part)
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
	if h.state >= circuitOpen && (h.reporters.confirmed || h.serving.Unprobeable) {
		return !h.probing && !now.Before(h.until)
	}
	for _, p := range h.parts {
		if p.dueAt(now) {
			return true
		}
	}
	for part, d := range h.doubts {
		switch {
		case d.open && h.isDue(now, part, d):
			return true
		case !d.open && d.ready(now):
			delete(h.doubts, part)
			s.publish()
		}
	}
	return false
}
