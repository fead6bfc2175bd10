package store_test

import (
	"testing"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestHealth checks the reported size of a database and the reported time of its last commit.
func TestHealth(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		if err := db.View(t.Context(), func(tx *store.Tx) error {
			bytes, err := tx.Size()
			if bytes < 4096 {
				t.Errorf("got a size of %d bytes, want at least 4096", bytes)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if err := db.Update(t.Context(), func(*store.Tx) error { return nil }); err != nil || db.LastCommit() <= 0 {
			t.Errorf("the last commit took %s, %v; want more than 0", db.LastCommit(), err)
		}
	})
}
