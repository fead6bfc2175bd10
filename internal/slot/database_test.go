package slot

import (
	"context"
	"strings"
	"testing"
	"time"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

func TestSlotsWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		ctx := context.Background()
		storetest.Open(t, url, store.Options{})
		db, err := store.Open(ctx, url, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var clock storetest.Clock
		a := newTestNode(t, db, &clock, "a")
		a.gives("l", a.takes("l", 40, 8))
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		// Within the grant nothing is asked.
		had := a.Grants("l")
		if got := a.takes("l", 40, 40); got != had || had < 8 {
			t.Errorf("%d taken of a grant of %d", got, had)
		}
		for range 3 {
			clock.Advance(time.Second)
			if a.takes("l", 40, 1) != 0 || a.takes("m", 40, 1) != 0 {
				t.Error("granted without the database")
			}
			if a.Tidy(ctx) == nil {
				t.Error("the upkeep says nothing of the outage")
			}
		}
		if got := strings.Count(a.log.String(), "\n"); got != 1 || !strings.Contains(a.log.String(), "level=WARN") {
			t.Errorf("log %q; want one warning", a.log.String())
		}
		a.gives("l", had)
	})
}

func TestSlotsWithASlowDatabase(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var clock storetest.Clock
		a := newTestNode(t, db, &clock, "a")
		a.timeout = 50 * time.Millisecond
		release := occupy(t, db, "l")
		if a.takes("l", 2, 1) != 0 || a.log.Len() == 0 {
			t.Error("granted without an answer, or nothing was logged")
		}
		release()
		a.timeout = 20 * time.Second
		clock.Advance(askPause)
		if a.takes("l", 2, 3) != 2 {
			t.Error("not granted once the database answered again")
		}
	})
}

func TestSlotsWithoutANode(t *testing.T) {
	t.Parallel()
	s := New(nil, nil, nil)
	ctx := context.Background()
	for _, want := range []bool{true, true, false} {
		if s.Take(ctx, "l", 2) != want {
			t.Error("a node alone grants itself the limit")
		}
	}
	s.Give("l")
	if !s.Take(ctx, "l", 2) || s.Grants("l") != 2 {
		t.Error("a slot that was given cannot be taken")
	}
	s.Give("l")
	s.Give("l")
	if err := s.Tidy(ctx); err != nil || len(s.pools) != 0 {
		t.Errorf("%d lines in memory, %v", len(s.pools), err)
	}
}

func TestSlotsAreAskedForTogether(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var clock storetest.Clock
		a := newTestNode(t, db, &clock, "a")
		release := occupy(t, db, "l")
		state := func(ok func(p *pool) bool) func() bool {
			return func() bool {
				a.mu.Lock()
				defer a.mu.Unlock()
				p := a.pools["l"]
				return p != nil && ok(p)
			}
		}
		leaves, leave := context.WithCancel(context.Background())
		first := make(chan bool, 1)
		go func() { first <- a.Take(leaves, "l", 80) }()
		until(t, "the first taker asks", state(func(p *pool) bool { return p.asking != nil }))
		// A taker waiting for another taker's transaction leaves at once.
		impatient, end := context.WithCancel(context.Background())
		second := make(chan bool, 1)
		go func() { second <- a.Take(impatient, "l", 80) }()
		until(t, "the second taker waits", state(func(p *pool) bool { return p.waiters == 2 }))
		end()
		if <-second {
			t.Error("a taker that has left got a slot")
		}
		// The asking taker leaves too, without an effect on the others.
		others := make(chan bool)
		for range 5 {
			go func() { others <- a.Take(context.Background(), "l", 80) }()
		}
		until(t, "all wait", state(func(p *pool) bool { return p.waiters == 6 }))
		leave()
		release()
		for range 5 {
			if !<-others {
				t.Error("busy, because another taker left")
			}
		}
		if <-first {
			t.Error("the taker that has left got a slot")
		}
		if got := rowsOf(t, db, "l"); got["a-1"] != (grant{16, 0}) {
			t.Errorf("rows %v; want one ask for six takers and a headroom of 10", got)
		}
	})
}
