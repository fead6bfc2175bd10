package node

import (
	"errors"
	"math"
	"testing"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestRegisterOfAnOlderBinary checks OldestTx with nodes of several versions, and that Register rejects
// a binary that is too old for the database.
func TestRegisterOfAnOlderBinary(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		oldest := func() (number int64) {
			storetest.View(t, db, func(tx *store.Tx) (err error) {
				number, err = OldestTx(tx)
				return err
			})
			return number
		}
		newest, err := db.NewestMigration()
		if err != nil {
			t.Fatal(err)
		}
		if got := oldest(); got != math.MaxInt64 {
			t.Errorf("without nodes: got %d, want %d", got, int64(math.MaxInt64))
		}
		if err := errors.Join(Register(t.Context(), db, "a"), Register(t.Context(), db, "b")); err != nil {
			t.Fatal(err)
		}
		storetest.Update(t, db, func(tx *store.Tx) error {
			_, err := tx.Exec(`UPDATE node SET schema = 1 WHERE epoch = 'b'`)
			return err
		})
		if got := oldest(); got != 1 {
			t.Errorf("with an older node: got %d, want 1", got)
		}
		if _, err := Fence(t.Context(), db, "b", 0); err != nil {
			t.Fatal(err)
		}
		if got := oldest(); got != newest {
			t.Errorf("after the death of the older node: got %d, want %d", got, newest)
		}
		for since, want := range map[int64]error{newest: nil, newest + 1: store.ErrNewerSchema} {
			storetest.Update(t, db, func(tx *store.Tx) error {
				_, err := tx.Exec(`UPDATE store_schema SET compatible_since = $1`, since)
				return err
			})
			if err := Register(t.Context(), db, "c"); !errors.Is(err, want) {
				t.Errorf("compatible since %d: got %v, want %v", since, err, want)
			}
		}
	})
}
