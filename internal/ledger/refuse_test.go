package ledger

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
	"tollgate/internal/store/storetest"
)

func TestRefusedRequestsAreInTheLogAlone(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		f.open("a", 0, 0, KeyLimits{})
		if _, err := f.admit("a", 1); err == nil {
			t.Fatal("admitted without a balance")
		}
		f.Refused(Refusal{Request: "req_x", Status: 401, Code: "invalid_api_key", Received: time.Now()})
		f.close() // commits the queue
		list := f.requests(requestlog.Selection{})
		if len(list) != 2 {
			t.Fatalf("%d receipts; want 2", len(list))
		}
		if list := f.requests(requestlog.Selection{Account: "a"}); len(list) != 1 || list[0].Status != 402 ||
			list[0].Code != "insufficient_quota" {
			t.Errorf("receipts of the account: %+v", list)
		}
		if u := f.usage("a"); u.Total != (Totals{}) {
			t.Errorf("usage %+v; want nothing", u.Total)
		}
		f.audited()
	})
}

func TestStrangersTextFitsAReceipt(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var broken atomic.Int64
		f := start(t, db, func(l *Ledger) {
			l.exec = func(ctx context.Context, s *store.Session, b *store.Batch, _ phase) error {
				err := s.Run(ctx, b)
				if err != nil {
					broken.Add(1)
				}
				return err
			}
		})
		f.open("a", money.USD, 0, KeyLimits{})
		f.Refused(Refusal{Request: "req_1", Model: "a\x00b", Code: "x\xff", Received: time.Now()})
		f.Refused(Refusal{Request: "req_2", Model: strings.Repeat("m", 10_000), Received: time.Now()})
		h := f.mustAdmit("a", 1)
		h.Release(End{Outcome: Failed, Status: 400, Code: "vendor\x00code"})
		f.close()
		list := f.requests(requestlog.Selection{})
		if len(list) != 3 || broken.Load() != 0 {
			t.Fatalf("%d receipts, %d broken batches; want 3 and none", len(list), broken.Load())
		}
		if list[0].Model != strings.Repeat("m", 256) || list[1].Model != "ab" || list[1].Code != "x" || list[2].Code != "vendorcode" {
			t.Errorf("receipts %+v", list)
		}
	})
}

func TestFloodsOfRefusalsAreSampledAndCounted(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		const n = 5000
		for i := range n {
			f.Refused(Refusal{Request: fmt.Sprintf("req_%05d", i), Key: "k", Status: 429, Code: "rate_limit_exceeded", Received: time.Now()})
		}
		for _, r := range f.refusals.flush(time.Now().Add(2 * time.Second)) {
			f.logRefusal(r)
		}
		f.close()
		list := f.requests(requestlog.Selection{Limit: 2 * n})
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
		f := start(t, db, func(l *Ledger) {
			l.opts.Observer.Unlogged = func(known bool) { unlogged[known]++ }
		})
		now := time.Unix(60_000_000, 0)
		refuse := func(r Refusal) {
			r.Request, r.Received = id.At("req_", now), now
			f.refused(r, now)
		}
		for range minutes {
			for range n / minutes {
				refuse(Refusal{Status: 401, Code: "invalid_api_key"})
				refuse(Refusal{Account: "a", Key: "k", Status: 429, Code: "rate_limit_exceeded"})
				now = now.Add(time.Minute * minutes / n)
			}
		}
		refuse(Refusal{Status: 401, Code: "missing_api_key"}) // the first of its code
		f.close()
		rows, counted := map[string]int{}, map[string]int64{}
		for _, r := range f.requests(requestlog.Selection{Limit: 3 * n}) {
			rows[r.Code]++
			counted[r.Code] += r.StandsFor
		}
		if got := rows["invalid_api_key"]; got > minutes*(anonymousPerMinute+1) || got < minutes {
			t.Errorf("%d rows of %d strangers in %d minutes", got, n, minutes)
		}
		if rows["rate_limit_exceeded"] != n || rows["missing_api_key"] != 1 {
			t.Errorf("rows %v; want all of the known key's and the first of each code", rows)
		}
		if counted["invalid_api_key"] != n {
			t.Errorf("the rows of strangers stand for %d requests, want %d", counted["invalid_api_key"], n)
		}
		if unlogged[true] != 0 || unlogged[false] < n-minutes*anonymousPerMinute {
			t.Errorf("left out %v", unlogged)
		}
	})
}

// TestAnonymousRefusalsLeaveRoom checks that a flood of anonymous refusals leaves room in the queue
// for the rows of known keys while nothing is committed for ten minutes.
func TestAnonymousRefusalsLeaveRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{}) // not started, so nothing leaves its queue
		for range 600 {
			for n := range 2 * refusalsPerSecond {
				l.Refused(Refusal{Request: "req_s", Code: fmt.Sprint("code_", n%50)})
			}
			time.Sleep(time.Second)
			_ = l.flushRefusals(t.Context()) // never fails
		}
		for range refusalsPerSecond {
			l.Refused(Refusal{Request: "req_k", Account: "a", Key: "k", Code: "model_not_found"})
		}
		if got := l.queue.refusals.len(); got != refusalsPerSecond {
			t.Errorf("%d rows of a known key wait, want %d", got, refusalsPerSecond)
		}
		if got := l.queue.anonymous.len(); got > maxAnonymous {
			t.Errorf("%d rows of strangers wait, want at most %d", got, maxAnonymous)
		}
		for _, o := range l.queue.take(nil, nil)[:refusalsPerSecond] {
			if o.account != "a" {
				t.Fatal("a known key's row waits for those of strangers")
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
		t.Error("a known key has no row for what strangers did")
	}
}

func TestAnonymousRefusalsAreKeptForADay(t *testing.T) {
	t.Parallel()
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		f := start(t, db)
		f.open("a", money.USD, 0, KeyLimits{})
		log := func(account string) {
			f.Refused(Refusal{Request: id.At("req_", c.now()), Account: account, Key: account, Status: 401, Code: "x", Received: c.now()})
		}
		log("")
		log("a")
		c.add(23 * time.Hour)
		log("")
		f.close() // commits the queue
		if err := f.Fold(context.Background()); err != nil {
			t.Fatal(err)
		}
		if list := f.requests(requestlog.Selection{}); len(list) != 3 {
			t.Errorf("%d rows before the day is over, want 3", len(list))
		}
		c.add(2 * time.Hour)
		if err := f.Fold(context.Background()); err != nil {
			t.Fatal(err)
		}
		if list := f.requests(requestlog.Selection{}); len(list) != 2 || list[0].Account != "" || list[1].Account != "a" {
			t.Errorf("rows after a day: %+v; want the young one and the account's", list)
		}
		f.audited()
	})
}
