package hostile

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/scene"
)

const (
	// retryAfter is the longest Retry-After of a fake.
	retryAfter = time.Second
	// noticeTime is the longest time until the gateway notices that a line works. The gateway checks
	// once a second, and the machine may be busy. An open circuit without an immediate probe lasts
	// half a minute, so it exceeds noticeTime.
	noticeTime = 20 * time.Second
	// checkPeriod is the time between two checks of the lines.
	checkPeriod = 100 * time.Millisecond
)

// outages records how long lines are out of service.
type outages struct {
	t     *testing.T
	done  chan struct{}
	group sync.WaitGroup

	mu       sync.Mutex
	watched  map[string]bool // lines with requests from the good account
	since    map[string]time.Time
	longest  time.Duration
	worst    string
	reported map[string]bool
}

// watch starts a goroutine that checks the watched lines until stop. A line out of service for longer
// than its provider requires fails the test.
func watch(t *testing.T, g *scene.Gateway) *outages {
	o := &outages{t: t, done: make(chan struct{}), watched: map[string]bool{}, since: map[string]time.Time{}, reported: map[string]bool{}}
	o.group.Go(func() {
		tick := time.NewTicker(checkPeriod)
		defer tick.Stop()
		for {
			o.check(g)
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
	o.group.Wait()
}

// begin starts to watch lines, when the good account starts to send requests to them. Other lines may
// stay out of service for the hostile account.
func (o *outages) begin(lines ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range lines {
		o.watched[id] = true
	}
}

// end stops watching lines.
func (o *outages) end(lines ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range lines {
		delete(o.watched, id)
		delete(o.since, id)
	}
}

// waitUntilInService waits until each line is in service, or was reported as out for too long.
func (o *outages) waitUntilInService(lines ...string) {
	tick := time.NewTicker(checkPeriod)
	defer tick.Stop()
	for inService := false; !inService; {
		<-tick.C
		<-tick.C
		inService = true
		o.mu.Lock()
		for _, id := range lines {
			if _, out := o.since[id]; out && !o.reported[id] {
				inService = false
			}
		}
		o.mu.Unlock()
	}
}

// check records the watched lines that are out of service, completely or for a model or form.
func (o *outages) check(g *scene.Gateway) {
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
		duration := now.Sub(o.since[l.ID])
		if duration > o.longest {
			o.longest, o.worst = duration, fmt.Sprintf("%s %s", l.ID, l)
		}
		if duration > retryAfter+noticeTime && !o.reported[l.ID] {
			o.reported[l.ID] = true
			o.t.Errorf("line %s has been out of service for %s: %s", l.ID, duration, l)
		}
	}
}

func (o *outages) String() string { return fmt.Sprintf("%s (%s)", o.longest, o.worst) }
