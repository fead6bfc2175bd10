package slot

import (
	"context"
	"time"

	"tollgate/internal/loop"
)

// A node hands on its slots after spareAfter without use. A node with too few slots asks once more
// after shortRest. So a single caller finds the slot of a line on any node.
const (
	spareAfter = 20 * time.Millisecond
	shortRest  = 50 * time.Millisecond
	maxSpare   = 64 // how many lines wait to be handed on; others wait for tidy
)

// offer queues a line for HandOn if the node has more slots than the line's calls and kept need,
// and another node lives. Callers hold mu.
func (s *Slots) offer(line string, p *pool) {
	if !p.shared || p.spared || p.unused() <= reserve(p.limit) {
		return
	}
	select {
	case s.spare <- line:
		p.spared, p.spareHighWater = true, p.inUse
	default:
	}
}

// HandOn gives back unused slots beyond kept, until ctx ends, so that other nodes need not wait for
// Tidy. It handles one line at a time to bound the load of the database.
func (s *Slots) HandOn(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case line := <-s.spare:
			loop.Sleep(ctx, spareAfter)
			_ = s.hand(ctx, line) // Tidy tries again and reports the error
		}
	}
}

// hand gives back the slots of a line unused since its offer, beyond kept.
func (s *Slots) hand(ctx context.Context, line string) error {
	if !s.lowered(line) {
		return nil
	}
	return s.updateRow(ctx, line)
}

// lowered lowers a line's grant to kept plus the highest use since its offer. It reports whether
// the grant was higher.
func (s *Slots) lowered(line string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renew()
	p := s.pools[line]
	if p == nil {
		return false
	}
	p.spared = false
	over := min(p.granted-p.spareHighWater-reserve(p.limit), p.unused())
	if p.asking != nil || over <= 0 {
		s.offer(line, p)
		return false
	}
	p.granted -= over
	p.due = true
	s.offer(line, p)
	return true
}
