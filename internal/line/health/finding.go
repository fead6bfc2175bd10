package health

import (
	"maps"
	"slices"
	"time"
)

// Finding is a hold on a line or a part of it, for other nodes to adopt.
type Finding struct {
	LinePart            // the line as a whole if zero
	State        string // StateCooling to StateFormOut
	Cause        string
	Since, Until time.Time
	Wait         time.Duration // between probes
	Accounts     []string      // the accounts with the hold; all accounts if empty
	Explicit     bool          // the provider named the time of the pause
}

// maxShared bounds the accounts of a finding. Other nodes let further accounts try.
const maxShared = 100

// shortPause is the shortest pause to share with other nodes. A shorter pause ends before they can
// learn of it.
const shortPause = 3 * time.Second

// Findings returns the present holds to share: confirmed holds, and pauses with known accounts.
func (s *Stats) Findings(now time.Time) (all []Finding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &s.health
	h.thaw(now)
	s.settle()
	pause := h.state == cooling && !h.private
	if h.state == halfOpen || h.state != healthy && shared(h.who, h.announced == h.state, pause, h.until.Sub(h.since)) {
		all = append(all, Finding{State: h.state.word(), Cause: h.cause, Since: h.since, Until: h.until, Wait: h.wait, Accounts: h.who.list(),
			Explicit: h.explicit})
	}
	for part, p := range h.parts {
		if !p.holds() || !shared(p.who, p.announced, p.cools && !p.private, p.until.Sub(p.since)) {
			continue
		}
		f := Finding{LinePart: part, State: StateModelOut, Cause: p.cause, Since: p.since, Until: p.until, Wait: p.wait, Accounts: p.who.list(),
			Explicit: p.explicit}
		switch {
		case p.cools:
			f.State = StateCooling
		case part.Form != "":
			f.State = StateFormOut
		}
		all = append(all, f)
	}
	return all
}

// shared reports whether a hold is shared with other nodes.
func shared(who reporters, announced, pause bool, lasts time.Duration) bool {
	switch {
	case !who.confirmed && len(who.accounts) == 0:
		return false
	case pause:
		return lasts >= shortPause
	}
	return who.confirmed || announced
}

// list returns the accounts of a hold in order, or nil for all accounts.
func (r *reporters) list() []string {
	if r.confirmed {
		return nil
	}
	all := slices.Sorted(maps.Keys(r.accounts))
	return all[:min(len(all), maxShared)]
}

// Adopt applies the finding of another node.
func (s *Stats) Adopt(now time.Time, f Finding) {
	s.change(func(h *health) []Change {
		who := reporters{confirmed: true}
		if len(f.Accounts) > 0 {
			who = reporters{}
			for _, account := range f.Accounts {
				who.add(account)
			}
		}
		if f.LinePart == (LinePart{}) {
			h.adopt(now, f, who)
		} else {
			h.adoptPart(f, who)
		}
		maps.DeleteFunc(h.doubts, func(_ LinePart, d *doubt) bool { return !d.probing })
		return nil
	})
}

// adopt applies a finding about the whole line.
func (h *health) adopt(now time.Time, f Finding, who reporters) {
	to := healthy
	for state := cooling; state <= credentialsOut; state++ {
		if state.word() == f.State {
			to = state
		}
	}
	if to == healthy {
		return // an unknown state, from a newer node
	}
	h.after = healthy
	h.enter(to, now, 0, f.Cause)
	h.since, h.until, h.who, h.explicit = f.Since, f.Until, who, f.Explicit
	switch to {
	case cooling:
		h.limits.n = max(h.limits.n, 1)
	case halfOpen:
		h.who, h.announced = reporters{}, circuitOpen
	default:
		h.wait, h.announced = f.Wait, to
	}
}

// adoptPart applies a finding about a part.
func (h *health) adoptPart(f Finding, who reporters) {
	h.generation++
	if h.parts == nil {
		h.parts = map[LinePart]*hold{}
	}
	h.parts[f.LinePart] = &hold{out: f.State != StateCooling, cools: f.State == StateCooling, cause: f.Cause, since: f.Since, until: f.Until,
		wait: f.Wait, who: who, explicit: f.Explicit, announced: f.State != StateCooling, began: h.generation}
}

// Release lifts a hold after another node found the part working.
func (s *Stats) Release(now time.Time, part LinePart) {
	s.change(func(h *health) []Change {
		if part == (LinePart{}) {
			if h.state != healthy {
				h.restore(now)
			}
			return nil
		}
		if p := h.parts[part]; p != nil && p.holds() {
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
	h.thaw(now)
	if h.state >= circuitOpen && (h.who.confirmed || h.serving.Unprobed) {
		return !h.probing && !now.Before(h.until)
	}
	for _, p := range h.parts {
		if p.dueAt(now) {
			return true
		}
	}
	for part, d := range h.doubts {
		switch {
		case d.open && h.dueDoubt(now, part, d):
			return true
		case !d.open && d.ready(now):
			delete(h.doubts, part)
			s.settle()
		}
	}
	return false
}
