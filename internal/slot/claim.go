package slot

// grant is the content of a row. A missing row is the zero grant.
type grant struct {
	granted int
	wanted  int // requested but not granted
}

// demand is the input of claim besides the rows.
type demand struct {
	limit, granted, inUse, waiters int
}

// claim returns the next grant of an asking node: enough free slots for all calls and takers, and
// some headroom. If other nodes are short of slots, the node gets no headroom, and beyond an equal
// share only slots that no other node wants. A node keeps its present grant, so a lowered limit takes
// nothing from running calls. The missing slots are wanted.
func claim(d demand, r lineRows) grant {
	d.limit = max(d.limit-r.jobs, 0)
	need := min(d.inUse+d.waiters, d.limit)
	free := d.limit - r.others
	target := need
	if r.wants > 0 {
		free = min(free, max(free-r.wants, share(d.limit, r)))
	} else {
		target += headroom(d.limit)
	}
	granted := max(d.granted, min(target, free))
	return grant{granted: granted, wanted: max(need-granted, 0)}
}

// headroom returns the number of slots for a node beyond its need, so that a busy line rarely asks.
func headroom(limit int) int { return limit / 8 }

// reserve returns the number of unused slots kept by a node while other nodes live. It is zero for
// a small line, because a single slot is a large part of it.
func reserve(limit int) int {
	if limit < 64 {
		return 0
	}
	return headroom(limit)
}

// excess returns the number of slots to give up if all nodes together have more than the limit.
// Each node gives up slots in proportion to its grant.
func excess(limit, granted int, r lineRows) int {
	limit = max(limit-r.jobs, 0)
	total := granted + r.others
	if total <= limit {
		return 0
	}
	return (granted*(total-limit) + total - 1) / total
}

// concession returns the number of slots to give up because other nodes are short: the wanted slots
// minus the free ones, down to an equal share.
func concession(limit, granted int, r lineRows) int {
	limit = max(limit-r.jobs, 0)
	free := max(limit-granted-r.others, 0)
	return max(min(r.wants-free, granted-share(limit, r)), 0)
}

// share returns a node's equal share of a line, rounded up.
func share(limit int, r lineRows) int { return (limit + r.nodes) / (r.nodes + 1) }
