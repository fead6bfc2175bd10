package commit

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tollgate/internal/store"
	"tollgate/internal/store/id"
	"tollgate/internal/store/storetest"
)

func TestFloodsOfRefusalsAreSampledAndCounted(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		c, stop := start(t, db, Observer{})
		const n = 5000
		for i := range n {
			c.LogRefusal(Refusal{Request: fmt.Sprintf("req_%05d", i), Key: "k", Status: 429, Code: "rate_limit_exceeded",
				Received: time.Now()}, time.Now())
		}
		c.LogSampled(time.Now().Add(2 * time.Second))
		list := stop()
		var counted int64
		for _, r := range list {
			counted += r.StandsFor
		}
		if counted != n || len(list) > n/2 {
			t.Errorf("%d rows stand for %d refusals; want far fewer rows for %d", len(list), counted, n)
		}
	})
}

// TestAnonymousRefusalsHaveFewRows checks that refused requests without a known key get a few rows
// for each minute and code, and that their number is kept.
func TestAnonymousRefusalsHaveFewRows(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const n, minutes = 2000, 5
		unlogged := map[bool]int{} // by whether the caller is known
		c, stop := start(t, db, Observer{Unlogged: func(known bool) { unlogged[known]++ }})
		now := time.Unix(60_000_000, 0)
		refuse := func(r Refusal) {
			r.Request, r.Received = id.At("req_", now), now
			c.LogRefusal(r, now)
		}
		for range minutes {
			for range n / minutes {
				refuse(Refusal{Status: 401, Code: "invalid_api_key"})
				refuse(Refusal{Account: "a", Key: "k", Status: 429, Code: "rate_limit_exceeded"})
				now = now.Add(time.Minute * minutes / n)
			}
		}
		refuse(Refusal{Status: 401, Code: "missing_api_key"}) // the first of its code
		rows, counted := map[string]int{}, map[string]int64{}
		for _, r := range stop() {
			rows[r.Code]++
			counted[r.Code] += r.StandsFor
		}
		if got := rows["invalid_api_key"]; got > minutes*(anonymousPerMinute+1) || got < minutes {
			t.Errorf("got %d rows of %d anonymous refusals in %d minutes, want %d to %d", got, n, minutes, minutes, minutes*(anonymousPerMinute+1))
		}
		if rows["rate_limit_exceeded"] != n || rows["missing_api_key"] != 1 {
			t.Errorf("rows %v; want all of the known key's and the first of each code", rows)
		}
		if counted["invalid_api_key"] != n {
			t.Errorf("the anonymous rows stand for %d requests, want %d", counted["invalid_api_key"], n)
		}
		if unlogged[true] != 0 || unlogged[false] < n-minutes*anonymousPerMinute {
			t.Errorf("unlogged refusals by known caller: got %v, want none of known callers and at least %d others",
				unlogged, n-minutes*anonymousPerMinute)
		}
	})
}

// TestAnonymousRefusalsLeaveRoom checks that a flood of anonymous refusals leaves room in the queue
// for the rows of known keys while nothing is committed for ten minutes.
func TestAnonymousRefusalsLeaveRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{Now: time.Now}) // not started, so nothing leaves its queue
		for range 600 {
			for n := range 2 * refusalsPerSecond {
				c.LogRefusal(Refusal{Request: "req_s", Code: fmt.Sprint("code_", n%50)}, time.Now())
			}
			time.Sleep(time.Second)
			c.LogSampled(time.Now())
		}
		for range refusalsPerSecond {
			c.LogRefusal(Refusal{Request: "req_k", Account: "a", Key: "k", Code: "model_not_found"}, time.Now())
		}
		if got := c.queue.refusals.len(); got != refusalsPerSecond {
			t.Errorf("%d rows of a known key wait, want %d", got, refusalsPerSecond)
		}
		if got := c.queue.anonymous.len(); got > maxAnonymous {
			t.Errorf("%d anonymous rows wait, want at most %d", got, maxAnonymous)
		}
		for _, o := range c.queue.take(0)[:refusalsPerSecond] {
			if o.account != "a" {
				t.Fatalf("an early row of the batch belongs to account %q, want a", o.account)
			}
		}
	})
}

// TestSharedSampleIsNotAnonymous checks that keys beyond the bound of the sampler share an entry
// with each other, and not with anonymous refusals.
func TestSharedSampleIsNotAnonymous(t *testing.T) {
	t.Parallel()
	var s sampler
	now := time.Unix(1_000_000, 0)
	for n := range maxSampled {
		s.count(Refusal{Account: "a", Key: fmt.Sprint("key_", n)}, now)
	}
	for range 2 * refusalsPerSecond {
		s.count(Refusal{Code: "invalid_api_key"}, now)
	}
	if s.count(Refusal{Account: "a", Key: "key_new"}, now) != 1 {
		t.Error("the refusal of a new key got no row, want one in spite of the anonymous refusals")
	}
}
