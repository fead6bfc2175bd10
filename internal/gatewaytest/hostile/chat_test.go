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

// reply returns a vendor's replies: good answers, or those of the attacks named in requests.
func (r *run) reply(v vendor) func(fakeprovider.Request) fakeprovider.Reply {
	return func(q fakeprovider.Request) fakeprovider.Reply {
		form := formAt(q)
		for i, k := range r.attacks {
			if bytes.Contains(q.Body, []byte(marked(i))) && k.appliesTo(v, form) {
				return k.reply
			}
		}
		return fakeprovider.Good(form, q.IsStream())
	}
}

const (
	goodPace = 50 * time.Millisecond // between two requests of the good account to a vendor
	hostileN = 6                     // requests of an attack in a row: all forms, whole and streamed
	// A short run plays one in chatShare attacks for each vendor.
	chatShare = 2
)

// attackChat plays attacks of a vendor during requests of the good account, and then waits until both
// lines are in service. number selects the attacks of a short run.
func (r *run) attackChat(v vendor, number, round int) {
	ctx, stop := context.WithCancel(r.t.Context())
	r.watched.begin(v.ids()...)
	var group sync.WaitGroup
	var current atomic.Pointer[string]
	group.Go(func() { r.goodChat(ctx, v, &current) })
	for i, k := range r.attacks {
		if !k.applies(r.t, v) || r.until.IsZero() && i%chatShare != number%chatShare && k.from == "" {
			continue
		}
		current.Store(&k.name)
		for n := range hostileN {
			form, stream := scene.ClientForms()[n%3], n/3 == 1
			words := fmt.Sprintf("%s %s %d %d", marked(i), v.name, round, n)
			r.hostile.ask(r.t, form, request(form, v.name, stream, words, k.parts))
		}
	}
	r.watched.settle(v.ids()...)
	r.watched.over(v.ids()...)
	stop()
	group.Wait()
}

// goodChat sends requests to a vendor's model in all forms until ctx ends. current is the name of
// the running attack.
func (r *run) goodChat(ctx context.Context, v vendor, current *atomic.Pointer[string]) {
	tick := time.NewTicker(goodPace)
	defer tick.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		form, stream := scene.ClientForms()[n%3], n/3%2 == 1
		a, served := r.good.ask(r.t, form, request(form, v.name, stream, fmt.Sprintf("is all well, %d?", n), nil))
		if !served {
			name := ""
			if now := current.Load(); now != nil {
				name = *now
			}
			r.good.blame("%s, %s, stream %t, during %q: %d %.300s", v.name, form, stream, name, a.Status, a.Raw)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}
