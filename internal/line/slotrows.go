package line

import "tollgate/internal/store"

// grant is what a row says. No row is the zero grant.
type grant struct {
	granted int
	wanted  int // asked for in vain
}

// rows is what the rows of a line say.
type rows struct {
	own    grant
	alive  int      // other living nodes
	nodes  int      // other living nodes with a row
	others int      // granted to them
	wants  int      // wanted by them
	dead   []string // epochs of the other rows
	jobs   int      // slots that jobs have
}

// readRows reads the rows of a line as an epoch sees them, or with an empty epoch
// as nobody's. ErrFenced: the epoch is not among the living.
func readRows(tx *store.Tx, line, epoch string) (rows, error) {
	nodes, err := store.NodesTx(tx)
	if err != nil {
		return rows{}, err
	}
	living := make(map[string]bool, len(nodes))
	var r rows
	if err := tx.QueryRow(`SELECT COUNT(*) FROM line_job WHERE line = $1`, line).Scan(&r.jobs); err != nil {
		return rows{}, err
	}
	for _, node := range nodes {
		living[node.Epoch] = !node.Dead
		if !node.Dead && node.Epoch != epoch {
			r.alive++
		}
	}
	if epoch != "" && !living[epoch] {
		return rows{}, store.ErrFenced
	}
	found, err := tx.Query(`SELECT epoch, granted, wanted FROM line_slot WHERE line = $1`, line)
	if err != nil {
		return rows{}, err
	}
	defer found.Close()
	for found.Next() {
		var owner string
		var g grant
		if err := found.Scan(&owner, &g.granted, &g.wanted); err != nil {
			return rows{}, err
		}
		switch {
		case owner == epoch:
			r.own = g
		case living[owner]:
			r.nodes++
			r.others += g.granted
			r.wants += g.wanted
		default:
			r.dead = append(r.dead, owner)
		}
	}
	return r, found.Err()
}

// write makes the row of an epoch say what is granted next.
func (r rows) write(tx *store.Tx, line, epoch string, next grant) error {
	if len(r.dead) > 0 {
		if _, err := tx.Exec(`DELETE FROM line_slot WHERE line = $1 AND `+tx.In("epoch", 2), line, store.List(r.dead)); err != nil {
			return err
		}
	}
	var err error
	switch next {
	case r.own:
	case grant{}:
		_, err = tx.Exec(`DELETE FROM line_slot WHERE line = $1 AND epoch = $2`, line, epoch)
	default:
		_, err = tx.Exec(`INSERT INTO line_slot (line, epoch, granted, wanted) VALUES ($1, $2, $3, $4)
			ON CONFLICT (line, epoch) DO UPDATE SET granted = excluded.granted, wanted = excluded.wanted`,
			line, epoch, next.granted, next.wanted)
	}
	return err
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
func claim(d demand, r rows) grant {
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
func excess(limit, granted int, r rows) int {
	limit = max(limit-r.jobs, 0)
	all := granted + r.others
	if all <= limit {
		return 0
	}
	return (granted*(all-limit) + all - 1) / all
}

// concession returns how many slots a node gives up because others are short:
// what they want and is not free, down to an equal share.
func concession(limit, granted int, r rows) int {
	limit = max(limit-r.jobs, 0)
	free := max(limit-granted-r.others, 0)
	return max(min(r.wants-free, granted-share(limit, r)), 0)
}

// share is a node's equal share of a line, rounded up.
func share(limit int, r rows) int { return (limit + r.nodes) / (r.nodes + 1) }
