package store_test

import (
	"strings"
	"testing"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestByIndexCompilesNothing checks that a sorted list, whose estimated cost is huge after ByIndex,
// is not compiled; compiling takes 40 ms.
func TestByIndexCompilesNothing(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.PostgreSQL(t), store.Options{})
	err := db.View(t.Context(), func(tx *store.Tx) error {
		if err := tx.ByIndex(); err != nil {
			return err
		}
		var jit string
		if err := tx.QueryRow(`SELECT current_setting('jit')`).Scan(&jit); err != nil || jit != "off" {
			t.Errorf("jit is %q, %v; want off", jit, err)
		}
		for _, step := range storetest.Plan(t, tx, `SELECT n FROM (VALUES (2), (1)) AS v (n) ORDER BY n`) {
			if strings.Contains(step, "JIT") {
				t.Errorf("the plan has %q, want no compilation", step)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
