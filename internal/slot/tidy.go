package slot

import (
	"context"
	"errors"
	"fmt"

	"tollgate/internal/node"
	"tollgate/internal/store"
)

// Tidy must be called every second. It gives back unused slots, immediately if other nodes want slots
// of the line, withdraws requests for slots that this node no longer needs, and deletes unused lines.
// After a database error, the next call tries again.
func (s *Slots) Tidy(ctx context.Context) error {
	wanted, err := s.wantedLines(ctx)
	if err != nil {
		return fmt.Errorf("read the lines whose slots other nodes want: %w", err)
	}
	for _, line := range s.outdatedLines(wanted) {
		if err := s.updateRow(ctx, line); err != nil {
			return fmt.Errorf("give back slots of line %s: %w", line, err)
		}
	}
	return nil
}

// wantedLines returns the lines whose slots other nodes want. It queries the database only if this
// node has slots.
func (s *Slots) wantedLines(ctx context.Context) (map[string]bool, error) {
	epoch, ok := s.grantEpoch()
	if !ok {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	wanted := map[string]bool{}
	err := s.db.View(ctx, func(tx *store.Tx) error {
		clear(wanted)
		return tx.Each(func(row store.Row) error {
			var line string
			err := row.Scan(&line)
			wanted[line] = true
			return err
		}, `SELECT DISTINCT line FROM line_slot WHERE wanted > 0 AND epoch <> $1`, epoch)
	})
	return wanted, err
}

// grantEpoch returns the epoch of this node's grants, or false if the node has none.
func (s *Slots) grantEpoch() (epoch string, ok bool) {
	if s.db == nil {
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renew()
	for _, p := range s.pools {
		ok = ok || p.granted > 0
	}
	return s.epoch, ok
}

// outdatedLines tidies the pools of all lines and returns the lines whose row must be updated.
func (s *Slots) outdatedLines(wanted map[string]bool) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renew()
	var outdated []string
	now := s.now()
	for line, p := range s.pools {
		switch {
		case p.asking != nil || p.waiters > 0: // the next call tidies the pool
		case s.db == nil:
			if p.inUse == 0 {
				delete(s.pools, line)
			}
		case p.tidy(now, wanted[line]):
			outdated = append(outdated, line)
		case p.inUse == 0 && p.granted == 0 && p.wanted == 0:
			delete(s.pools, line)
		}
	}
	return outdated
}

// updateRow updates a line's row from this node's pool.
func (s *Slots) updateRow(ctx context.Context, line string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pools[line]
	if p == nil || p.asking != nil {
		return nil
	}
	err := s.exchange(ctx, line, p, p.limit, func(r lineRows) grant {
		next := grant{granted: p.granted}
		if p.waited(s.now()) {
			next.wanted = r.own.wanted
		}
		return next
	})
	if errors.Is(err, node.ErrFenced) { // this node no longer has the slots
		return nil
	}
	return err
}
