package line

import (
	"context"
	"errors"
	"fmt"
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

// Slots go from node to node: what nothing on a node has used for spareAfter is
// handed on, and who was given too little asks once more after shortRest. So
// one caller at a time finds the slot of a line free on any node.
const (
	spareAfter = 20 * time.Millisecond
	shortRest  = 50 * time.Millisecond
	spareLines = 64 // how many lines wait to be handed on; others wait for tidy
)

// slotLock and a line's id name what changes of its slots wait for.
const slotLock = "line_slot:"

// askConnections bounds how many of the database's write connections slots
// use at a time: a crowd of asks must not keep the ledger waiting.
const askConnections = 2

// slots are the calls that capped lines may have in flight. The database
// grants each node a part of a line's max_concurrent (table line_slot); the
// node spends its grant in memory and asks for more when it is empty.
//
// Invariants:
//   - Over the living nodes the grants of a line in the table are at most its
//     limit, as of each change. After the limit was lowered nothing is granted,
//     and the nodes give back in proportion as calls end.
//   - While a node is short, others that have more than an equal share give
//     back as calls end, so that a busy node cannot keep a line to itself.
//   - What this node believes to have is at most what its row says: it counts
//     a grant after its commit, and gives one back before.
//   - One transaction at a time is under way for a line on this node.
//
// It is safe for concurrent use.
type slots struct {
	db      *store.DB // nil: this node is alone and grants itself everything
	epoch   func() string
	log     *slog.Logger
	now     func() time.Time
	timeout time.Duration // askTimeout
	rest    time.Duration // shortRest
	turns   chan struct{} // one element for each transaction under way
	spare   chan string   // lines that calls have left more of than this node keeps

	mu       sync.Mutex // guards what follows and all pools
	life     string     // the epoch that the grants belong to
	pools    map[string]*pool
	away     bool      // asks fail
	warnedAt time.Time // when that was last logged
}

// pool is one line's slots on this node.
type pool struct {
	limit   int // of the latest taker
	inUse   int // calls in flight, also those begun in a former life
	granted int // what inUse may reach
	peak    int // the highest inUse since `since`
	waiters int // takers that have found the grant empty and are not answered

	asking chan struct{} // closed when the transaction under way has ended; nil: none
	denied struct {      // the last ask that brought less than was needed
		at    time.Time
		limit int
	}
	refusedAt time.Time // when a taker was last sent away and none was free since; zero: never
	wanted    int       // what the row says
	shed      int       // how much of the grant goes back as calls end
	due       bool      // the row may differ from this, or the limit was lowered
	shared    bool      // another node lived at the last transaction
	spared    bool      // the line is in spare
	crest     int       // the highest inUse since then
	since     time.Time // the beginning of peak's time
	usedAt    time.Time // the end of the last such time that saw a call
}

// newSlots makes the slots of a node. epoch returns the epoch under which the
// node is registered now. db may be nil: everything is granted then.
func newSlots(db *store.DB, epoch func() string, log *slog.Logger) *slots {
	return &slots{
		db: db, epoch: epoch, log: log, now: time.Now, timeout: askTimeout, rest: shortRest,
		turns: make(chan struct{}, askConnections),
		spare: make(chan string, spareLines),
		pools: map[string]*pool{},
	}
}

// take gets a slot of a line whose limit is the caller's max_concurrent, more
// than 0. False means busy: the line has no free slot that this node could get
// now, or the database did not answer in time. It blocks only when the node's
// grant is used up, for about askTimeout.
func (s *slots) take(ctx context.Context, line string, limit int) bool {
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

// give returns a slot, once for each successful take. The line and its limit
// may have changed in the meantime.
func (s *slots) give(line string) {
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

// offer lets a line be handed on if it has more than its calls and what is kept,
// and another node lives. Callers hold mu.
func (s *slots) offer(line string, p *pool) {
	if !p.shared || p.spared || p.unused() <= kept(p.limit) {
		return
	}
	select {
	case s.spare <- line:
		p.spared, p.crest = true, p.inUse
	default:
	}
}

// handOn gives back, until ctx ends, what calls have left beyond what is kept
// and nothing has used for a moment, so that other nodes need not wait for the
// upkeep. One line at a time bounds what it costs the database.
func (s *slots) handOn(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case line := <-s.spare:
			pause(ctx, spareAfter)
			_ = s.hand(ctx, line) // the upkeep tries again, and says what fails
		}
	}
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// hand gives back what a line has had beyond its calls and what is kept since it
// was offered.
func (s *slots) hand(ctx context.Context, line string) error {
	if !s.lowered(line) {
		return nil
	}
	return s.settle(ctx, line)
}

// lowered lowers a line's grant to the most that was used since it was offered
// and what is kept, and reports whether it was above that.
func (s *slots) lowered(line string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renew()
	p := s.pools[line]
	if p == nil {
		return false
	}
	p.spared = false
	over := min(p.granted-p.crest-kept(p.limit), p.unused())
	if p.asking != nil || over <= 0 {
		s.offer(line, p)
		return false
	}
	p.granted -= over
	p.due = true
	s.offer(line, p)
	return true
}

// granted returns how many slots of a line this node has, used or not.
func (s *slots) granted(line string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renew()
	if p := s.pools[line]; p != nil {
		return p.granted
	}
	return 0
}

// pool returns the pool of a line. Callers hold mu.
func (s *slots) pool(line string, limit int) *pool {
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

// renew voids all grants when this node has begun a new life. Callers hold mu.
func (s *slots) renew() {
	if s.db == nil {
		return
	}
	life := s.epoch()
	if life == s.life {
		return
	}
	s.life = life
	for _, p := range s.pools {
		p.void()
	}
}

// void drops the grant; the calls in flight still count.
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
	p.peak, p.crest = max(p.peak, p.inUse), max(p.crest, p.inUse)
	return true
}

// wait takes part in a few asks, its own or others', and tries again after each.
// Callers hold mu; it is free while wait waits.
func (s *slots) wait(ctx context.Context, line string, p *pool, limit int) bool {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for range 4 {
		if p.inUse >= limit {
			return false
		}
		if limit <= p.denied.limit && s.now().Sub(p.denied.at) < askPause {
			break
		}
		if p.asking == nil {
			s.ask(ctx, line, p, limit)
		} else {
			asking := p.asking
			s.mu.Unlock()
			select {
			case <-asking:
			case <-ctx.Done():
			}
			s.mu.Lock()
		}
		if ctx.Err() != nil {
			return false
		}
		if p.take(limit) {
			return true
		}
	}
	p.refusedAt = s.now()
	return false
}

// ask asks the database for what the waiting takers need, and once more after a
// moment if other nodes have what is missing: they hand on what they do not use.
// Others may wait for the same answer, so it goes on when the taker that asks
// has left. Callers hold mu; it is free meanwhile.
func (s *slots) ask(ctx context.Context, line string, p *pool, limit int) {
	ctx = context.WithoutCancel(ctx)
	claims := func(r rows) grant {
		return claim(demand{limit: limit, granted: p.granted, inUse: p.inUse, waiters: p.waiters}, r)
	}
	err := s.exchange(ctx, line, p, limit, claims)
	if err == nil && p.shared && p.wanted > 0 && s.rest > 0 {
		s.idle(ctx, p)
		if p.short(limit) {
			err = s.exchange(ctx, line, p, limit, claims)
		}
	}
	if err != nil || p.wanted > 0 {
		p.denied.at, p.denied.limit = s.now(), limit
	}
	if err == nil || errors.Is(err, store.ErrFenced) { // the ledger says that the node was fenced, and mends it
		return
	}
	now := s.now()
	warn := !s.away && now.Sub(s.warnedAt) >= outageQuiet
	s.away = true
	if warn {
		s.warnedAt = now
		s.mu.Unlock() // whoever reads the log may be slow
		s.log.Warn("line: the database grants no slots; capped lines are busy beyond what this node has", "line", line, "error", err)
		s.mu.Lock()
	}
}

// short reports whether takers wait for more than the node was granted, though
// its own calls are fewer than the limit.
func (p *pool) short(limit int) bool {
	return p.inUse < limit && p.inUse+p.waiters > p.granted
}

// idle waits for other nodes while takers wait for it. Callers hold mu; it is
// free meanwhile.
func (s *slots) idle(ctx context.Context, p *pool) {
	asking := make(chan struct{})
	p.asking = asking
	s.mu.Unlock()
	pause(ctx, s.rest)
	s.mu.Lock()
	p.asking = nil
	close(asking)
}

// tidy is one step of the upkeep, to be called every second: it gives back
// what is not used, at once where other nodes want it, withdraws what this
// node no longer wants itself, and forgets lines without use. What it could
// not tell the database it tells it next time.
func (s *slots) tidy(ctx context.Context) error {
	wants, err := s.wants(ctx)
	if err != nil {
		return fmt.Errorf("read which lines other nodes want slots of: %w", err)
	}
	for _, line := range s.dues(wants) {
		if err := s.settle(ctx, line); err != nil {
			return fmt.Errorf("give back slots of line %s: %w", line, err)
		}
	}
	return nil
}

// wants returns the lines that other nodes want slots of. It asks only if this
// node has any.
func (s *slots) wants(ctx context.Context) (map[string]bool, error) {
	life, any := s.any()
	if !any {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	wants := map[string]bool{}
	err := s.db.View(ctx, func(tx *store.Tx) error {
		found, err := tx.Query(`SELECT DISTINCT line FROM line_slot WHERE wanted > 0 AND epoch <> $1`, life)
		if err != nil {
			return err
		}
		defer found.Close()
		for found.Next() {
			var line string
			if err := found.Scan(&line); err != nil {
				return err
			}
			wants[line] = true
		}
		return found.Err()
	})
	return wants, err
}

// any reports whether this node has grants, and under which epoch.
func (s *slots) any() (life string, any bool) {
	if s.db == nil {
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renew()
	for _, p := range s.pools {
		any = any || p.granted > 0
	}
	return s.life, any
}

// dues does the upkeep of all lines in memory and returns those whose rows are
// to follow.
func (s *slots) dues(wants map[string]bool) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renew()
	var due []string
	now := s.now()
	for line, p := range s.pools {
		switch {
		case p.asking != nil || p.waiters > 0: // its turn is the next time
		case s.db == nil:
			if p.inUse == 0 {
				delete(s.pools, line)
			}
		case p.tidy(now, wants[line]):
			due = append(due, line)
		case p.inUse == 0 && p.granted == 0 && p.wanted == 0:
			delete(s.pools, line)
		}
	}
	return due
}

// tidy takes back what is not used and reports whether the row has to follow.
func (p *pool) tidy(now time.Time, wanted bool) bool {
	if p.unused() > 0 {
		p.refusedAt = time.Time{}
	}
	keep := p.granted
	if now.Sub(p.since) >= unusedFor {
		keep = p.peak
		if p.peak > 0 {
			p.usedAt = now
		}
		if now.Sub(p.usedAt) < idleFor {
			keep += headroom(p.limit)
		}
		p.since, p.peak = now, p.inUse
	}
	if wanted {
		keep = p.inUse
	}
	if keep = max(keep, p.inUse); p.granted > keep {
		p.granted = keep
		p.due = true
	}
	return p.due || p.shed > 0 || (wanted && p.granted > 0) || (p.wanted > 0 && !p.waited(now))
}

// waited reports whether this node was short of slots a moment ago.
func (p *pool) waited(now time.Time) bool { return now.Sub(p.refusedAt) < unusedFor }

// unused returns how much of the grant is free.
func (p *pool) unused() int { return max(p.granted-p.inUse-p.waiters, 0) }

// settle brings a line's row in step with this node.
func (s *slots) settle(ctx context.Context, line string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pools[line]
	if p == nil || p.asking != nil {
		return nil
	}
	err := s.exchange(ctx, line, p, p.limit, func(r rows) grant {
		next := grant{granted: p.granted}
		if p.waited(s.now()) {
			next.wanted = r.own.wanted
		}
		return next
	})
	if errors.Is(err, store.ErrFenced) { // nothing is left to give back
		return nil
	}
	return err
}

// exchange changes the row of this node by what decide makes of all rows of
// the line, and takes over what it says then. decide may be called several
// times, under mu. Callers hold mu, and nothing may be under way for the line;
// mu is free while the database works.
func (s *slots) exchange(ctx context.Context, line string, p *pool, limit int, decide func(rows) grant) error {
	var (
		life   = s.life
		asking = make(chan struct{})
		seen   rows
		next   grant
	)
	p.asking = asking
	err := func() error {
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			p.asking = nil
			close(asking)
		}()
		return s.change(ctx, line, life, func(r rows) grant {
			s.mu.Lock()
			defer s.mu.Unlock()
			seen, next = r, decide(r)
			return next
		})
	}()
	s.renew()
	switch {
	case s.life != life: // granted to a former life
		if err == nil {
			err = store.ErrFenced
		}
	case errors.Is(err, store.ErrFenced):
		p.void()
	case err != nil: // it may have been committed: the row may say more
		p.due = true
	default:
		s.away = false
		p.shared = seen.alive > 0
		p.granted, p.wanted, p.due = next.granted, next.wanted, false
		p.lower(max(excess(limit, next.granted, seen), concession(limit, next.granted, seen)))
	}
	return err
}

// lower gives up n slots: now, as far as they are not used, and later as calls
// end.
func (p *pool) lower(n int) {
	now := min(n, p.unused())
	p.granted -= now
	p.due = p.due || now > 0
	p.shed = n - now
}

// change runs the transaction that changes the row of an epoch. It deletes the
// rows of dead nodes that it meets. ErrFenced: the epoch is dead itself.
func (s *slots) change(ctx context.Context, line, epoch string, decide func(rows) grant) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.db.Update(ctx, func(tx *store.Tx) error {
		if err := tx.Serialize(slotLock + line); err != nil {
			return err
		}
		r, err := readRows(tx, line, epoch)
		if err != nil {
			return err
		}
		return r.write(tx, line, epoch, decide(r))
	})
}
