package slot

// grant is what a row says. No row is the zero grant.
type grant struct {
	granted int
	wanted  int // asked for in vain
}

// demand is what an ask follows from, besides the rows.
type demand struct {
	limit, granted, inUse, waiters int
}

// claim decides an ask: enough for all calls and takers and some headroom, as
// far as it is free. While other nodes are short there is no headroom, and
// beyond an equal share only what they leave. A node keeps what it has, so that
// under a limit that was lowered nothing is taken from running calls. What is
// missing is wanted.
func claim(d demand, r lineRows) grant {
	d.limit = max(d.limit-r.jobs, 0)
	need := min(d.inUse+d.waiters, d.limit)
	free := d.limit - r.others
	more := need
	if r.wants > 0 {
		free = min(free, max(free-r.wants, share(d.limit, r)))
	} else {
		more += headroom(d.limit)
	}
	granted := max(d.granted, min(more, free))
	return grant{granted: granted, wanted: max(need-granted, 0)}
}

// headroom is how much a node gets or keeps beyond its need, so that a busy
// line rarely asks.
func headroom(limit int) int { return limit / 8 }

// kept is how much of what it does not use a node keeps while others live. Of a
// small line that is nothing: a single slot is much of it.
func kept(limit int) int {
	if limit < 64 {
		return 0
	}
	return headroom(limit)
}

// excess returns how many slots a node has to give up because all nodes have
// more than the limit: each in proportion to what it has.
func excess(limit, granted int, r lineRows) int {
	limit = max(limit-r.jobs, 0)
	all := granted + r.others
	if all <= limit {
		return 0
	}
	return (granted*(all-limit) + all - 1) / all
}

// concession returns how many slots a node gives up because others are short:
// what they want and is not free, down to an equal share.
func concession(limit, granted int, r lineRows) int {
	limit = max(limit-r.jobs, 0)
	free := max(limit-granted-r.others, 0)
	return max(min(r.wants-free, granted-share(limit, r)), 0)
}

// share is a node's equal share of a line, rounded up.
func share(limit int, r lineRows) int { return (limit + r.nodes) / (r.nodes + 1) }
