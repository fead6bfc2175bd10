package hostile

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
)

// reply is what a vendor says: a good answer, or that of the trick that a request
// plays.
func (r *run) reply(v vendor) func(fakeprovider.Request) fakeprovider.Reply {
	return func(q fakeprovider.Request) fakeprovider.Reply {
		form := formAt(q)
		for i, k := range r.tricks {
			if bytes.Contains(q.Body, []byte(marked(i))) && k.says(v, form) {
				return k.reply
			}
		}
		return fakeprovider.Good(form, q.Streamed())
	}
}

const (
	goodPace = 50 * time.Millisecond // between two requests of the good account to a vendor
	hostileN = 6                     // requests that play a trick, one after the other: all forms, whole and streamed
	// chatShare: a short run plays one trick of any vendor's in so many with each.
	chatShare = 2
)

// chat plays tricks of a vendor's while the good account asks it, and then waits
// until both lines are in service. number chooses those of a short run.
func (r *run) chat(v vendor, number, round int) {
	ctx, stop := context.WithCancel(r.t.Context())
	r.watched.begin(v.ids()...)
	var group sync.WaitGroup
	var current atomic.Pointer[string]
	group.Go(func() { r.goodChat(ctx, v, &current) })
	for i, k := range r.tricks {
		if !k.played(r.t, v) || r.until.IsZero() && i%chatShare != number%chatShare && k.from == "" {
			continue
		}
		current.Store(&k.name)
		for n := range hostileN {
			in, stream := scene.ClientForms()[n%3], n/3 == 1
			words := fmt.Sprintf("%s %s %d %d", marked(i), v.name, round, n)
			r.foe.ask(r.t, in, request(in, v.name, stream, words, k.brings))
		}
	}
	r.watched.settle(v.ids()...)
	r.watched.over(v.ids()...)
	stop()
	group.Wait()
}

// goodChat asks a vendor's model in all forms until ctx ends. current names the
// trick that is played.
func (r *run) goodChat(ctx context.Context, v vendor, current *atomic.Pointer[string]) {
	tick := time.NewTicker(goodPace)
	defer tick.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		in, stream := scene.ClientForms()[n%3], n/3%2 == 1
		a, served := r.good.ask(r.t, in, request(in, v.name, stream, fmt.Sprintf("is all well, %d?", n), nil))
		if !served {
			name := ""
			if now := current.Load(); now != nil {
				name = *now
			}
			r.good.blame("%s, %s, stream %t, during %q: %d %s", v.name, in, stream, name, a.Status, tail(a.Raw, 300))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}
