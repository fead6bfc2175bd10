package job

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"tollgate/internal/store"
)

// penLines bounds the steps of one transaction.
const penLines = 64

// pen writes the steps of a node's tasks. Those that wait at the same time go
// into one transaction, so that thousands of tasks take one write connection
// between them and one commit for many of their steps, and the ledger does not
// wait behind each of them. Of the tasks that wait, one writes for all.
type pen struct {
	db *store.DB

	mu      sync.Mutex
	waiting []*penLine
	writing bool // somebody leads
}

// penLine is a step that waits to be written.
type penLine struct {
	step func(tx *store.Tx) error
	left bool // its task has gone; under mu
	err  error
	done chan struct{} // closed when err is set
	lead chan struct{} // closed when its task is to write for all
}

// write writes a step, as store.DB.Update does. The step may run after ctx has
// ended, though write has returned.
func (p *pen) write(ctx context.Context, step func(tx *store.Tx) error) error {
	l := &penLine{step: step, done: make(chan struct{}), lead: make(chan struct{})}
	p.mu.Lock()
	p.waiting = append(p.waiting, l)
	if !p.writing {
		p.writing = true
		close(l.lead)
	}
	p.mu.Unlock()
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		p.mu.Lock()
		l.left = true
		p.mu.Unlock()
		select {
		case <-l.lead: // somebody has to
			p.turn()
		default:
		}
		return ctx.Err()
	case <-l.lead:
	}
	p.turn()
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// turn writes what waits, once, and hands the pen on. The leader is among the
// first that wait, unless it has left.
func (p *pen) turn() {
	p.mu.Lock()
	var page []*penLine
	for len(p.waiting) > 0 && len(page) < penLines {
		l := p.waiting[0]
		p.waiting = p.waiting[1:]
		if !l.left {
			page = append(page, l)
		}
	}
	p.mu.Unlock()
	p.writePage(page)
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.waiting) > 0 && p.waiting[0].left { // who has left leads nobody
		p.waiting = p.waiting[1:]
	}
	if len(p.waiting) == 0 {
		p.writing = false
		return
	}
	close(p.waiting[0].lead)
}

// writePage writes some steps in one transaction. When that fails, each is tried
// by itself, so that one that cannot be written does not keep the others.
func (p *pen) writePage(page []*penLine) {
	err := p.update(page)
	for i, l := range page {
		if l.err = err; err != nil && len(page) > 1 {
			l.err = p.update(page[i : i+1])
		}
		close(l.done)
	}
}

// errPanicked means that a step panicked: it will do so again.
var errPanicked = errors.New("a step panicked")

// update writes steps in one transaction. A panic is the step's own: the task
// that writes for it goes on.
func (p *pen) update(page []*penLine) (err error) {
	defer func() {
		if trouble := recover(); trouble != nil {
			err = fmt.Errorf("%w: %v at %s", errPanicked, trouble, debug.Stack())
		}
	}()
	return p.db.Update(context.Background(), func(tx *store.Tx) error {
		for _, l := range page {
			if err := l.step(tx); err != nil {
				return err
			}
		}
		return nil
	})
}
