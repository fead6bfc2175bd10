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

// segmentsOf returns the number of recorded segments of an account's key, the sequence number up to
// which receipts are indexed, and the latest sequence number.
func segmentsOf(t *testing.T, db *store.DB, account string) (segments, indexedSeq, seq int64) {
	t.Helper()
	view(t, db, func(tx *store.Tx) error {
		if err := tx.QueryRow(`SELECT COUNT(*) FROM ledger_key_part WHERE key = $1`, account+"_key").Scan(&segments); err != nil {
			return err
		}
		return tx.QueryRow(`SELECT parted_seq, seq FROM ledger_account WHERE id = $1`, account).Scan(&indexedSeq, &seq)
	})
	return segments, indexedSeq, seq
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
		segments, indexedSeq, seq := segmentsOf(t, db, "a")
		if seq < n || indexedSeq != seq || segments != requestlog.SegmentOf(seq)+1 {
			t.Errorf("%d segments, indexed up to %d of %d", segments, indexedSeq, seq)
		}
		if got := len(f.requests(requestlog.Selection{Key: "a_key"})); got != n+1 {
			t.Errorf("%d requests of the key", got)
		}
		f.audited()
	})
}

// TestSegmentsOfAFormerVersion checks that receipts of a version without segments are found before
// and after IndexKeys, which records all segments.
func TestSegmentsOfAFormerVersion(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		for _, account := range []string{"a", "b", "c"} {
			f.open(account, 10*money.USD, 0, KeyLimits{})
		}
		find := func(want int) {
			t.Helper()
			for _, key := range []string{"a_key", "b_key"} {
				if got := len(f.requests(requestlog.Selection{Key: key})); got != want {
					t.Errorf("%d requests of %s, want %d", got, key, want)
				}
			}
		}
		forget := func() { // makes the receipts look like those of a version without segments
			update(t, db, func(tx *store.Tx) error {
				if _, err := tx.Exec(`DELETE FROM ledger_key_part`); err != nil {
					return err
				}
				_, err := tx.Exec(`UPDATE ledger_account SET parted_seq = 0`)
				return err
			})
		}
		f.serve("a", 10)
		f.serve("b", 10)
		forget()
		find(11)
		f.serve("a", 10) // by a node of this version
		f.serve("b", 10)
		find(22)
		if _, indexedSeq, seq := segmentsOf(t, db, "a"); indexedSeq == seq {
			t.Error("all receipts count as indexed before IndexKeys")
		}
		if err := f.IndexKeys(t.Context()); err != nil {
			t.Fatal(err)
		}
		find(22)
		for _, account := range []string{"a", "b"} {
			if segments, indexedSeq, seq := segmentsOf(t, db, account); segments != 1 || indexedSeq != seq {
				t.Errorf("%d segments of %s, indexed up to %d of %d", segments, account, indexedSeq, seq)
			}
		}
		f.serve("a", 3)
		if _, indexedSeq, seq := segmentsOf(t, db, "a"); indexedSeq != seq {
			t.Errorf("indexed up to %d of %d", indexedSeq, seq)
		}
		f.audited()
	})
}
