package catalog

import (
	"strings"
	"testing"
	"time"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestModelTimes checks that a model keeps the time of its first catalog after it is removed and
// added again.
func TestModelTimes(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		start := clock.Now().UnixMilli()
		applyThenWaitHour := func(models ...string) {
			t.Helper()
			var text strings.Builder
			text.WriteString("lines: []\nmodels:\n")
			for _, id := range models {
				text.WriteString("  - {id: " + id + ", kind: chat, context_window: 10, max_output_tokens: 5, price: {input: 1, output: 1}}\n")
			}
			doc, _, err := Parse([]byte(text.String()), nil)
			if err != nil {
				t.Fatal(err)
			}
			storetest.Update(t, db, func(tx *store.Tx) error {
				_, err := ApplyTx(tx, doc)
				return err
			})
			clock.Advance(time.Hour)
		}
		check := func(want map[string]int64) {
			t.Helper()
			storetest.View(t, db, func(tx *store.Tx) error {
				first, err := modelTimesTx(tx)
				if len(first) != len(want) {
					t.Errorf("got times %v, want models %v", first, want)
				}
				for id, hours := range want {
					if got := first[id] - start; got != hours*time.Hour.Milliseconds() {
						t.Errorf("model %s was first seen after %d ms, want %d hours", id, got, hours)
					}
				}
				return err
			})
		}
		applyThenWaitHour("a")
		applyThenWaitHour("a", "b")
		applyThenWaitHour("b")
		check(map[string]int64{"a": 0, "b": 1})
		applyThenWaitHour("a", "c")
		check(map[string]int64{"a": 0, "b": 1, "c": 3})
	})
}
