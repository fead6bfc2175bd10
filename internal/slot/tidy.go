package slot

import (
	"context"
	"errors"
	"fmt"

	"tollgate/internal/node"
	"tollgate/internal/store"
)

// Tidy must be called every second. It gives back unused slots, at once if other nodes want them,
// withdraws wants of this node without need, and deletes unused lines. After a database error, the
// next call tries again.
func (s *Slots) Tidy(ctx context.Context) error {
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

// wants returns the lines whose slots other nodes want. It queries the database only if this node
// has any.
func (s *Slots) wants(ctx context.Context) (map[string]bool, error) {
	epoch, any := s.any()
	if !any {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	wants := map[string]bool{}
	err := s.db.View(ctx, func(tx *store.Tx) error {
		found, err := tx.Query(`SELECT DISTINCT line FROM line_slot WHERE wanted > 0 AND epoch <> $1`, epoch)
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

// any reports whether this node has grants, and returns their epoch.
func (s *Slots) any() (epoch string, any bool) {
	if s.db == nil {
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renew()
	for _, p := range s.pools {
		any = any || p.granted > 0
	}
	return s.epoch, any
}

// dues tidies all lines in memory and returns the lines with an outdated row.
func (s *Slots) dues(wants map[string]bool) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renew()
	var due []string
	now := s.now()
	for line, p := range s.pools {
		switch {
		case p.asking != nil || p.waiters > 0: // tidied at the next call
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

// settle updates a line's row from this node's pool.
func (s *Slots) settle(ctx context.Context, line string) error {
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
	if errors.Is(err, node.ErrFenced) { // nothing is left to give back
		return nil
	}
	return err
}
