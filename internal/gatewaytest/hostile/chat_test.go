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

// reply returns a function with a vendor's replies. A request with the marker of an attack gets the
// attack's reply, and other requests get good answers.
func (r *run) reply(v vendor) func(fakeprovider.Request) fakeprovider.Reply {
	return func(q fakeprovider.Request) fakeprovider.Reply {
		form := formAt(q)
		for i, k := range r.attacks {
			if bytes.Contains(q.Body, []byte(marker(i))) && k.appliesTo(v, form) {
				return k.reply
			}
		}
		return fakeprovider.Good(form, q.IsStream())
	}
}

const (
	goodPace = 50 * time.Millisecond // interval of the good account's requests to a vendor
	hostileN = 6                     // requests per attack: each form with and without streaming
	// A short run plays one of chatShare attacks for each vendor.
	chatShare = 2
)

// attackChat plays attacks at a vendor while the good account sends requests, and then waits until
// both lines are in service. number selects the attacks of a short run.
func (r *run) attackChat(v vendor, number, round int) {
	ctx, stop := context.WithCancel(r.t.Context())
	r.outages.begin(v.ids()...)
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
			words := fmt.Sprintf("%s %s %d %d", marker(i), v.name, round, n)
			r.hostile.ask(r.t, form, request(form, v.name, stream, words, k.parts))
		}
	}
	r.outages.waitUntilInService(v.ids()...)
	r.outages.end(v.ids()...)
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
		a, ok := r.good.ask(r.t, form, request(form, v.name, stream, fmt.Sprintf("is all well, %d?", n), nil))
		if !ok {
			name := ""
			if now := current.Load(); now != nil {
				name = *now
			}
			r.good.recordError("%s, %s, stream %t, during %q: %d %.300s", v.name, form, stream, name, a.Status, a.Raw)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}
