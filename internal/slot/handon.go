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
	maxSpare   = 64 // lines that wait for HandOn; further lines wait for Tidy
)

// offer queues a line for HandOn if the node has more unused slots than the reserve and another node
// lives. Callers must hold mu.
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

// HandOn gives back unused slots beyond the reserve until ctx ends, so that other nodes need not wait
// for Tidy. It handles one line at a time to bound the load of the database.
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

// hand gives back the slots of a line that were unused since its offer, except the reserve.
func (s *Slots) hand(ctx context.Context, line string) error {
	if !s.lowerGrant(line) {
		return nil
	}
	return s.updateRow(ctx, line)
}

// lowerGrant lowers a line's grant to the reserve plus the highest use since its offer. It reports
// whether the grant was higher.
func (s *Slots) lowerGrant(line string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renew()
	p := s.pools[line]
	if p == nil {
		return false
	}
	p.spared = false
	surplus := min(p.granted-p.spareHighWater-reserve(p.limit), p.unused())
	if p.asking != nil || surplus <= 0 {
		s.offer(line, p)
		return false
	}
	p.granted -= surplus
	p.due = true
	s.offer(line, p)
	return true
}
