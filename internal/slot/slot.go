// Package slot owns the slots of capped lines: it limits the concurrent calls and jobs of a line
// over all nodes and shares the slots between nodes, in the tables line_slot and line_job.
//
// Invariants:
//   - The grants of a line in the table over the living nodes, and the slots of its jobs, are at
//     most its limit at each change. After the limit was lowered, no slots are granted, and the
//     nodes give back slots in proportion as calls end.
//   - While a node is short of slots, nodes with more than an equal share give back slots as calls
//     end, so that a busy node cannot keep a line to itself.
//   - A node's grant in memory is at most the grant in its row: the node counts a grant after the
//     commit and gives one back before.
//   - A node runs one transaction at a time for each line.
//   - A job has its slot from the transaction at the start of its attempt to the transaction at its
//     end, regardless of the node that runs the job.
package slot

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"tollgate/internal/node"
	"tollgate/internal/store"
)

// The times of slots.
const (
	// askTimeout bounds one transaction, and the total wait of a taker.
	askTimeout = 300 * time.Millisecond
	// askPause is the pause after a transaction that granted too few slots.
	askPause = 100 * time.Millisecond
	// unusedFor is the time to keep an unused grant not wanted by other nodes: two steps of Tidy,
	// less their jitter.
	unusedFor = 1900 * time.Millisecond
	// idleFor is the time for which a line without calls keeps its headroom.
	idleFor = time.Minute
	// outageQuiet is the shortest time between two log lines about an unreachable database.
	outageQuiet = time.Minute
)

// lockName plus a line's id is the name of the lock for changes of its slots.
const lockName = "line_slot:"

// maxConnections bounds the write connections to the database that Slots uses at a time, because the
// ledger must not wait for many asks.
const maxConnections = 2

// Slots counts the calls of capped lines on this node. The database grants each node a part of a
// line's max_concurrent. The node spends its grant in memory and asks for more when the grant is
// used up. It is safe for concurrent use.
type Slots struct {
	db          *store.DB  // nil if this node is the only one and grants itself all slots
	node        *node.Node // nil without db
	log         *slog.Logger
	now         func() time.Time
	timeout     time.Duration // askTimeout
	rest        time.Duration // shortRest
	connections chan struct{} // one element for each running transaction
	spare       chan string   // lines with unused slots for HandOn

	mu       sync.Mutex // guards the fields below and all pools
	epoch    string     // the epoch of the grants
	pools    map[string]*pool
	away     bool      // the last transaction failed
	warnedAt time.Time // time of the last warning
}

// New returns the slots of a node. If db is nil, the node grants itself all slots, and self may be
// nil.
func New(db *store.DB, self *node.Node, log *slog.Logger) *Slots {
	return &Slots{
		db: db, node: self, log: log, now: time.Now, timeout: askTimeout, rest: shortRest,
		connections: make(chan struct{}, maxConnections),
		spare:       make(chan string, maxSpare),
		pools:       map[string]*pool{},
	}
}

// Take takes a slot of a line. limit is the line's max_concurrent, more than 0. It returns false if
// the line is busy: no free slot is available to this node now, or the database did not answer in
// time. It blocks only if the node's grant is used up, for about askTimeout.
func (s *Slots) Take(ctx context.Context, line string, limit int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pool(line, limit)
	if p.take(limit) {
		return true
	}
	if s.db == nil || p.inUse >= limit {
		return false
	}
	p.waiters++
	defer func() { p.waiters-- }()
	return s.wait(ctx, line, p, limit)
}

// Give returns a slot. Callers must call Give once for each successful Take, even if the line or its
// limit has changed since.
func (s *Slots) Give(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pools[line]
	p.inUse--
	if p.shed > 0 && p.granted > p.inUse {
		p.shed--
		p.granted--
		p.due = true
	}
	s.offer(line, p)
}

// Grants returns the number of a line's slots granted to this node, used or not.
func (s *Slots) Grants(line string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renew()
	if p := s.pools[line]; p != nil {
		return p.granted
	}
	return 0
}

// pool returns the pool of a line. Callers must hold mu.
func (s *Slots) pool(line string, limit int) *pool {
	s.renew()
	p := s.pools[line]
	if p == nil {
		now := s.now()
		p = &pool{limit: limit, since: now, usedAt: now}
		s.pools[line] = p
	}
	if limit < p.limit {
		p.due = true
	}
	p.limit = limit
	if s.db == nil {
		p.granted = limit
	}
	return p
}

// renew voids all grants when this node has a new epoch. Callers must hold mu.
func (s *Slots) renew() {
	if s.db == nil {
		return
	}
	epoch := s.node.Epoch()
	if epoch == s.epoch {
		return
	}
	s.epoch = epoch
	for _, p := range s.pools {
		p.void()
	}
}
