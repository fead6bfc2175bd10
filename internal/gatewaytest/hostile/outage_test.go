package hostile

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/scene"
)

const (
	// asked is the longest time for which a fake asks to be left alone.
	asked = time.Second
	// found is how long it may take until a line that works is found to work: the
	// gateway looks once a second, and the machine may be busy. A circuit that is
	// not probed at once is open for half a minute.
	found = 20 * time.Second
	look  = 100 * time.Millisecond
)

// outages watches the lines.
type outages struct {
	t     *testing.T
	done  chan struct{}
	ended sync.WaitGroup

	mu      sync.Mutex
	watched map[string]bool // lines that the good account asks
	since   map[string]time.Time
	longest time.Duration
	worst   string
	told    map[string]bool
}

// watch looks at all lines until it is stopped. A line that is out for longer
// than its provider asked for fails the test.
func watch(t *testing.T, g *scene.Gateway) *outages {
	o := &outages{t: t, done: make(chan struct{}), watched: map[string]bool{}, since: map[string]time.Time{}, told: map[string]bool{}}
	o.ended.Go(func() {
		tick := time.NewTicker(look)
		defer tick.Stop()
		for {
			o.look(g)
			select {
			case <-tick.C:
			case <-o.done:
				return
			}
		}
	})
	return o
}

func (o *outages) stop() {
	close(o.done)
	o.ended.Wait()
}

// begin and over say which lines the good account asks: others may be out for the
// hostile one alone without anybody finding that they work.
func (o *outages) begin(lines ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range lines {
		o.watched[id] = true
	}
}

func (o *outages) over(lines ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range lines {
		delete(o.watched, id)
		delete(o.since, id)
	}
}

// settle waits until some lines are in service, or have been out for too long.
func (o *outages) settle(lines ...string) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for settled := false; !settled; {
		<-tick.C
		<-tick.C
		settled = true
		o.mu.Lock()
		for _, id := range lines {
			if _, out := o.since[id]; out && !o.told[id] {
				settled = false
			}
		}
		o.mu.Unlock()
	}
}

// look notes which lines are out, wholly or in part.
func (o *outages) look(g *scene.Gateway) {
	var list struct{ Data []scene.LineState }
	g.Process.Admin("GET", "/lines", nil, &list)
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range list.Data {
		if !o.watched[l.ID] || l.State == "in_service" && len(l.ModelsOut)+len(l.ModelsCooling)+len(l.FormsOut) == 0 {
			delete(o.since, l.ID)
			continue
		}
		if _, out := o.since[l.ID]; !out {
			o.since[l.ID] = now
		}
		lasts := now.Sub(o.since[l.ID])
		if lasts > o.longest {
			o.longest, o.worst = lasts, fmt.Sprintf("%s %s", l.ID, l)
		}
		if lasts > asked+found && !o.told[l.ID] {
			o.told[l.ID] = true
			o.t.Errorf("line %s is out for %s: %s", l.ID, lasts, l)
		}
	}
}

func (o *outages) String() string { return fmt.Sprintf("%s (%s)", o.longest, o.worst) }
