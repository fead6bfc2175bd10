package ledger

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/ledger/commit"
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
			t.Fatal("admitted without a balance, want a refusal")
		}
		f.Refused(Refusal{Request: "req_x", Status: 401, Code: "invalid_api_key", Received: time.Now()})
		f.close() // commits the queue
		list := f.requests(requestlog.Selection{})
		if len(list) != 2 {
			t.Fatalf("%d receipts; want 2", len(list))
		}
		if list := f.requests(requestlog.Selection{Account: "a"}); len(list) != 1 || list[0].Status != 402 ||
			list[0].Code != "insufficient_quota" {
			t.Errorf("got receipts of the account %+v, want one with 402 insufficient_quota", list)
		}
		if u := f.usage("a"); u.Total != (Totals{}) {
			t.Errorf("usage %+v; want nothing", u.Total)
		}
		f.checkAudit()
	})
}

func TestStrangersTextFitsAReceipt(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var broken atomic.Int64
		f := start(t, db, func(o *Options) {
			o.exec = func(ctx context.Context, s *store.Session, b *store.Batch, _ commit.Phase) error {
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
			t.Errorf("got receipts %+v, want models of 256 bytes and ab, codes x and vendorcode", list)
		}
	})
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
		f.checkAudit()
	})
}
