package slot

import (
	"time"
)

// pool is one line's slots on this node.
type pool struct {
	limit     int // of the latest taker
	inUse     int // calls in flight, including calls from a former epoch
	granted   int // the upper bound of inUse
	highWater int // the highest inUse since `since`
	waiters   int // takers that wait because the grant is used up

	asking chan struct{} // closed at the end of the running transaction; nil if none
	denied struct {      // the last ask that got fewer slots than needed
		at    time.Time
		limit int
	}
	refusedAt      time.Time // the last refusal; zero if none, or if a slot was free since
	wanted         int       // as in the row
	shed           int       // slots to give back as calls end
	due            bool      // the row may differ from this, or the limit was lowered
	shared         bool      // another node lived at the last transaction
	spared         bool      // the line is in spare
	spareHighWater int       // the highest inUse since the line was put into spare
	since          time.Time // the beginning of highWater's time
	usedAt         time.Time // the end of the last highWater period with a call
}

// void clears the grant. The calls in flight still count.
func (p *pool) void() {
	p.granted, p.wanted, p.shed, p.due = 0, 0, 0, false
	p.denied.limit = 0
}

// take spends one slot of the grant.
func (p *pool) take(limit int) bool {
	if p.inUse >= min(p.granted, limit) {
		return false
	}
	p.inUse++
	p.highWater, p.spareHighWater = max(p.highWater, p.inUse), max(p.spareHighWater, p.inUse)
	return true
}

// short reports whether takers wait for slots beyond the grant, although the node's calls are fewer
// than the limit.
func (p *pool) short(limit int) bool {
	return p.inUse < limit && p.inUse+p.waiters > p.granted
}

// tidy gives up unused slots and reports whether the row must be updated.
func (p *pool) tidy(now time.Time, othersWait bool) bool {
	if p.unused() > 0 {
		p.refusedAt = time.Time{}
	}
	keep := p.granted
	if now.Sub(p.since) >= unusedFor {
		keep = p.highWater
		if p.highWater > 0 {
			p.usedAt = now
		}
		if now.Sub(p.usedAt) < idleFor {
			keep += headroom(p.limit)
		}
		p.since, p.highWater = now, p.inUse
	}
	if othersWait {
		keep = p.inUse
	}
	if keep = max(keep, p.inUse); p.granted > keep {
		p.granted = keep
		p.due = true
	}
	return p.due || p.shed > 0 || (othersWait && p.granted > 0) || (p.wanted > 0 && !p.waited(now))
}

// waited reports whether this node was short of slots within the last unusedFor.
func (p *pool) waited(now time.Time) bool { return now.Sub(p.refusedAt) < unusedFor }

// unused returns the number of free slots of the grant.
func (p *pool) unused() int { return max(p.granted-p.inUse-p.waiters, 0) }

// lower gives up n slots: unused slots now, and the rest as calls end.
func (p *pool) lower(n int) {
	free := min(n, p.unused())
	p.granted -= free
	p.due = p.due || free > 0
	p.shed = n - free
}
