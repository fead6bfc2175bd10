package webhook

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// fill adds count pending deliveries of one receiver, with numbers from first.
func (env *testEnv) fill(first, count int, address string) {
	env.t.Helper()
	env.update(func(tx *store.Tx) error {
		if _, err := tx.Exec(`INSERT INTO webhook_delivery (id, account, event, type, url, receiver, body, state, created_ms)
			WITH RECURSIVE e(i) AS (SELECT CAST($1 AS BIGINT) UNION ALL SELECT i + 1 FROM e WHERE i < $2)
			SELECT 'dlv_' || (1000000 + i), 'acct', 'e', 't', CAST($3 AS TEXT), 'r', 'b', 0, i FROM e`,
			first, first+count-1, address); err != nil {
			return err
		}
		_, err := tx.Exec(`INSERT INTO webhook_queue (delivery, account, receiver, due_ms, tries, fresh, lease, epoch, until_ms)
			WITH RECURSIVE e(i) AS (SELECT CAST($1 AS BIGINT) UNION ALL SELECT i + 1 FROM e WHERE i < $2)
			SELECT 'dlv_' || (1000000 + i), 'acct', 'r', i, 0, 1, '', '', 0 FROM e`, first, first+count-1)
		return err
	})
}

// TestRoundsSkipDeadEntries checks the reads of a round while an old snapshot keeps dead index entries
// in PostgreSQL. A round skips the entries of received deliveries, and reads the entries of completed
// deliveries once.
func TestRoundsSkipDeadEntries(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n := env.node("a")
		r := newReceiver(t, nil)
		env.fill(1, 4000, r.URL)
		_ = env.db.View(t.Context(), func(old *store.Tx) error {
			var count int
			if err := old.QueryRow(`SELECT COUNT(*) FROM webhook_queue`).Scan(&count); err != nil || count != 4000 {
				t.Errorf("the queue has %d rows, want 4000; error %v", count, err)
			}
			for range 6 {
				n.step()
				n.workers.Wait()
			}
			return nil
		})
		if n.lastReceived != "dlv_1004000" {
			t.Errorf("lastReceived is %q, want dlv_1004000", n.lastReceived)
		}
		env.update(func(tx *store.Tx) error {
			plan := strings.Join(storetest.Plan(t, tx, readyText+tx.In("r.account", 3)+readyOrder, env.clock.Now().UnixMilli(), 0,
				store.List([]string{}), 256), "\n")
			if scans := strings.Count(plan, "webhook_queue_due"); scans != 1 {
				t.Errorf("a round reads the queue of a receiver %d times, want 1:\n%s", scans, plan)
			}
			if env.db.Dialect() == store.PostgreSQL {
				fresh, all := blocks(t, tx, n.lastReceived), blocks(t, tx, "")
				if fresh*4 > all {
					t.Errorf("a search after lastReceived reads %d blocks, want at most a quarter of %d", fresh, all)
				}
			}
			return nil
		})
	})
}

// blocks returns how many blocks PostgreSQL reads to look for fresh deliveries.
func blocks(t *testing.T, tx *store.Tx, lastReceived string) (n int) {
	t.Helper()
	plan, err := store.Column[string](tx, `EXPLAIN (ANALYZE, BUFFERS) `+freshText, maxFresh, lastReceived)
	if err != nil {
		t.Fatal(err)
	}
	if m := regexp.MustCompile(`shared hit=(\d+)`).FindStringSubmatch(strings.Join(plan, "\n")); m != nil {
		n, _ = strconv.Atoi(m[1])
	}
	return n
}

// TestLateCommitsAreFound checks that a round finds deliveries with earlier ids than received
// deliveries, which transactions with a late commit add.
func TestLateCommitsAreFound(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n := env.node("a")
		r := newReceiver(t, nil)
		env.fill(1000, 3, r.URL)
		n.settle()
		for i, first := range []int{500, 400, 900, 1, 999} {
			env.fill(first, 1, r.URL)
			n.settle()
			env.clock.Advance(checkEvery)
			n.settle()
			if got := len(r.requests()); got != 4+i {
				t.Errorf("after dlv_%d: %d deliveries, want %d", 1_000_000+first, got, 4+i)
			}
		}
	})
}
