package ledger

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/money"
	"tollgate/internal/store"
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
		f.close() // commits what waits
		list := f.requests(RequestFilter{})
		if len(list) != 2 {
			t.Fatalf("%d receipts; want 2", len(list))
		}
		if list := f.requests(RequestFilter{Account: "a"}); len(list) != 1 || list[0].Status != 402 || list[0].Code != "insufficient_quota" {
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
		list := f.requests(RequestFilter{})
		if len(list) != 3 || broken.Load() != 0 {
			t.Fatalf("%d receipts, %d broken batches; want 3 and none", len(list), broken.Load())
		}
		if list[0].Model != strings.Repeat("m", longestWord) || list[1].Model != "ab" || list[1].Code != "x" || list[2].Code != "vendorcode" {
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
		for _, r := range f.refuses.flush(time.Now().Add(2 * time.Second)) {
			f.logRefusal(r)
		}
		f.close()
		list := f.requests(RequestFilter{Limit: 2 * n})
		var counted int64
		for _, r := range list {
			counted += r.StandsFor
		}
		if counted != n || len(list) > n/2 {
			t.Errorf("%d rows stand for %d refusals; want far fewer rows for %d", len(list), counted, n)
		}
	})
}
