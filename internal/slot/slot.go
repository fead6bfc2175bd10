// Package slot owns the slots of capped lines: how many calls and jobs a line
// has at a time over all nodes, and how the nodes share them. The tables are
// line_slot and line_job: both are older than the room.
//
// Invariants:
//   - Over the living nodes the grants of a line in the table, and the slots of
//     its jobs, are at most its limit, as of each change. After the limit was
//     lowered nothing is granted, and the nodes give back in proportion as calls
//     end.
//   - While a node is short, others that have more than an equal share give
//     back as calls end, so that a busy node cannot keep a line to itself.
//   - What a node believes to have is at most what its row says: it counts a
//     grant after its commit, and gives one back before.
//   - One transaction at a time is under way for a line on a node.
//   - A job has its slot from the transaction that starts its attempt to the one
//     that ends it, whichever node looks after it.
package slot

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"tollgate/internal/store"
)

// The times of slots.
const (
	// askTimeout bounds one question to the database, and how long a taker
	// waits in all for those of others.
	askTimeout = 300 * time.Millisecond
	// askPause is how long nobody asks after an ask that brought too little.
	askPause = 100 * time.Millisecond
	// unusedFor is how long a grant stays that nothing uses and nobody wants:
	// two steps of the upkeep, less their jitter.
	unusedFor = 1900 * time.Millisecond
	// idleFor is how long a line without calls keeps its headroom.
	idleFor = time.Minute
	// outageQuiet bounds what the log says about a database that comes and
	// goes: once in this time.
	outageQuiet = time.Minute
)

// lockName and a line's id name what changes of its slots wait for.
const lockName = "line_slot:"

// maxConnections bounds how many of the database's write connections slots
// use at a time: a crowd of asks must not keep the ledger waiting.
const maxConnections = 2

// Slots are the calls that capped lines may have in flight on this node. The
// database grants each node a part of a line's max_concurrent; the node spends
// its grant in memory and asks for more when it is empty. It is safe for
// concurrent use.
type Slots struct {
	db          *store.DB // nil: this node is alone and grants itself everything
	readEpoch   func() string
	log         *slog.Logger
	now         func() time.Time
	timeout     time.Duration // askTimeout
	rest        time.Duration // shortRest
	connections chan struct{} // one element for each transaction under way
	spare       chan string   // lines that calls have left more of than this node keeps

	mu       sync.Mutex // guards what follows and all pools
	epoch    string     // the epoch that the grants belong to
	pools    map[string]*pool
	away     bool      // asks fail
	warnedAt time.Time // when that was last logged
}

// New makes the slots of a node. epoch returns the epoch under which the
// node is registered now. db may be nil: everything is granted then.
func New(db *store.DB, epoch func() string, log *slog.Logger) *Slots {
	return &Slots{
		db: db, readEpoch: epoch, log: log, now: time.Now, timeout: askTimeout, rest: shortRest,
		connections: make(chan struct{}, maxConnections),
		spare:       make(chan string, maxSpare),
		pools:       map[string]*pool{},
	}
}

// Take gets a slot of a line whose limit is the caller's max_concurrent, more
// than 0. False means busy: the line has no free slot that this node could get
// now, or the database did not answer in time. It blocks only when the node's
// grant is used up, for about askTimeout.
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

// Give returns a slot, once for each successful take. The line and its limit
// may have changed in the meantime.
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

// Granted returns how many slots of a line this node has, used or not.
func (s *Slots) Granted(line string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renew()
	if p := s.pools[line]; p != nil {
		return p.granted
	}
	return 0
}

// pool returns the pool of a line. Callers hold mu.
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

// renew voids all grants when this node has a new epoch. Callers hold mu.
func (s *Slots) renew() {
	if s.db == nil {
		return
	}
	epoch := s.readEpoch()
	if epoch == s.epoch {
		return
	}
	s.epoch = epoch
	for _, p := range s.pools {
		p.void()
	}
}
