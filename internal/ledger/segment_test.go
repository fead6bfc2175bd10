package ledger

import (
	"context"
	"testing"
	"time"

	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
	"tollgate/internal/store/storetest"
)

// segmentsOf returns the number of recorded segments of an account's key, and the newest number of
// the account.
func segmentsOf(t *testing.T, db *store.DB, account string) (segments, seq int64) {
	t.Helper()
	view(t, db, func(tx *store.Tx) error {
		if err := tx.QueryRow(`SELECT COUNT(*) FROM ledger_key_part WHERE key = $1`, account+"_key").Scan(&segments); err != nil {
			return err
		}
		return tx.QueryRow(`SELECT seq FROM ledger_account WHERE id = $1`, account).Scan(&seq)
	})
	return segments, seq
}

// serve admits and ends n requests of an account; the first fails. In between, it logs a refusal and
// credits the account.
func (f *fixture) serve(account string, n int) {
	f.t.Helper()
	for i := range n {
		a := admission(account, 1000)
		h, err := f.Admit(context.Background(), a)
		if err != nil {
			f.t.Fatal(err)
		}
		end := billed(1)
		switch i {
		case 0:
			end = failed()
		case 1:
			f.Refused(Refusal{Request: id.New("req_"), Account: account, Key: account + "_key", Status: 429, Code: "rate_limit_exceeded",
				Received: time.Now()})
		case 2:
			update(f.t, f.db, func(tx *store.Tx) error { _, err := CreditTx(tx, account, 1, ""); return err })
		}
		if err := h.Settle(context.Background(), end); err != nil {
			f.t.Fatal(err)
		}
	}
}

// TestSegmentsAreRecorded checks that each segment with receipts of a key is recorded with the
// receipts, so that a list by key finds all receipts.
func TestSegmentsAreRecorded(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		f.open("a", 10*money.USD, 0, KeyLimits{})
		const n = 300
		f.serve("a", n)
		segments, seq := segmentsOf(t, db, "a")
		if seq < n || segments != requestlog.SegmentOf(seq)+1 {
			t.Errorf("got %d segments of %d numbers, want %d of at least %d", segments, seq, requestlog.SegmentOf(seq)+1, n)
		}
		if got := len(f.requests(requestlog.Selection{Key: "a_key"})); got != n+1 {
			t.Errorf("got %d requests of the key, want %d", got, n+1)
		}
		f.checkAudit()
	})
}
