package slot

import (
	"context"
	"errors"

	"tollgate/internal/loop"
	"tollgate/internal/node"
	"tollgate/internal/store"
)

// wait waits for up to four asks, started by this taker or by other takers, and tries to take a slot
// after each ask. Callers must hold mu. wait releases mu while it waits.
func (s *Slots) wait(ctx context.Context, line string, p *pool, limit int) bool {
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

// ask requests slots for the waiting takers from the database, and once more after a moment if
// other nodes have the missing slots, because nodes hand on unused slots. Several takers may wait
// for the same answer, so ask continues after its own taker has given up. Callers must hold mu. ask
// releases mu during the transactions.
func (s *Slots) ask(ctx context.Context, line string, p *pool, limit int) {
	ctx = context.WithoutCancel(ctx)
	claims := func(r lineRows) grant {
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
	if err == nil || errors.Is(err, node.ErrFenced) { // the ledger reports and repairs a fenced node
		return
	}
	now := s.now()
	warn := !s.away && now.Sub(s.warnedAt) >= outageQuiet
	s.away = true
	if warn {
		s.warnedAt = now
		s.mu.Unlock() // the log may block
		s.log.Warn("slot: the database grants no slots; lines with max_concurrent are busy beyond the slots of this node",
			"line", line, "error", err)
		s.mu.Lock()
	}
}

// idle gives other nodes time to hand on slots while takers wait. Callers must hold mu. idle releases
// mu while it waits.
func (s *Slots) idle(ctx context.Context, p *pool) {
	asking := make(chan struct{})
	p.asking = asking
	s.mu.Unlock()
	loop.Sleep(ctx, s.rest)
	s.mu.Lock()
	p.asking = nil
	close(asking)
}

// exchange replaces this node's row of the line with the result of decide, and then applies it to
// the pool. decide gets all rows of the line; it may be called several times, under mu. Callers
// hold mu, and no other transaction may run for the line. exchange releases mu during the
// transaction.
func (s *Slots) exchange(ctx context.Context, line string, p *pool, limit int, decide func(lineRows) grant) error {
	var (
		epoch  = s.epoch
		asking = make(chan struct{})
		rows   lineRows
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
		return s.update(ctx, line, epoch, func(r lineRows) grant {
			s.mu.Lock()
			defer s.mu.Unlock()
			rows, next = r, decide(r)
			return next
		})
	}()
	s.renew()
	switch {
	case s.epoch != epoch: // granted to a former epoch
		if err == nil {
			err = node.ErrFenced
		}
	case errors.Is(err, node.ErrFenced):
		p.void()
	case err != nil: // the transaction may have been committed, so the row may have more slots
		p.due = true
	default:
		s.away = false
		p.shared = rows.alive > 0
		p.granted, p.wanted, p.due = next.granted, next.wanted, false
		p.lower(max(excess(limit, next.granted, rows), concession(limit, next.granted, rows)))
	}
	return err
}

// update runs the transaction to change the row of an epoch. It deletes rows of dead nodes. It
// returns node.ErrFenced if the epoch is dead.
func (s *Slots) update(ctx context.Context, line, epoch string, decide func(lineRows) grant) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	select {
	case s.connections <- struct{}{}:
		defer func() { <-s.connections }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.db.Update(ctx, func(tx *store.Tx) error {
		if err := tx.Serialize(lockName + line); err != nil {
			return err
		}
		r, err := readTx(tx, line, epoch)
		if err != nil {
			return err
		}
		return r.writeTx(tx, line, epoch, decide(r))
	})
}
