package slot

import (
	"context"
	"time"

	"tollgate/internal/loop"
)

// Slots go from node to node: what nothing on a node has used for spareAfter is
// handed on, and who was given too little asks once more after shortRest. So
// one caller at a time finds the slot of a line free on any node.
const (
	spareAfter = 20 * time.Millisecond
	shortRest  = 50 * time.Millisecond
	maxSpare   = 64 // how many lines wait to be handed on; others wait for tidy
)

// offer lets a line be handed on if it has more than its calls and what is kept,
// and another node lives. Callers hold mu.
func (s *Slots) offer(line string, p *pool) {
	if !p.shared || p.spared || p.unused() <= kept(p.limit) {
		return
	}
	select {
	case s.spare <- line:
		p.spared, p.spareHighWater = true, p.inUse
	default:
	}
}

// HandOn gives back, until ctx ends, what calls have left beyond what is kept
// and nothing has used for a moment, so that other nodes need not wait for the
// upkeep. One line at a time bounds what it costs the database.
func (s *Slots) HandOn(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case line := <-s.spare:
			loop.Sleep(ctx, spareAfter)
			_ = s.hand(ctx, line) // the upkeep tries again, and says what fails
		}
	}
}

// hand gives back what a line has had beyond its calls and what is kept since it
// was offered.
func (s *Slots) hand(ctx context.Context, line string) error {
	if !s.lowered(line) {
		return nil
	}
	return s.settle(ctx, line)
}

// lowered lowers a line's grant to the most that was used since it was offered
// and what is kept, and reports whether it was above that.
func (s *Slots) lowered(line string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renew()
	p := s.pools[line]
	if p == nil {
		return false
	}
	p.spared = false
	over := min(p.granted-p.spareHighWater-kept(p.limit), p.unused())
	if p.asking != nil || over <= 0 {
		s.offer(line, p)
		return false
	}
	p.granted -= over
	p.due = true
	s.offer(line, p)
	return true
}
