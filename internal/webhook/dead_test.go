package webhook

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// fill adds pending deliveries of one receiver, numbered from first on.
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

// TestTurnsPassDeadEntries drains a queue while an old snapshot keeps PostgreSQL from clearing up.
// A round starts behind the dead entries of known deliveries, and reads the dead entries of
// completed deliveries once.
func TestTurnsPassDeadEntries(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n := env.node("a")
		r := newReceiver(t, nil)
		env.fill(1, 4000, r.URL)
		_ = env.db.View(t.Context(), func(old *store.Tx) error {
			var count int
			if err := old.QueryRow(`SELECT COUNT(*) FROM webhook_queue`).Scan(&count); err != nil || count != 4000 {
				t.Error(count, err)
			}
			for range 6 {
				n.step()
				n.workers.Wait()
			}
			return nil
		})
		if n.lastReceived != "dlv_1004000" {
			t.Errorf("the rounds have received deliveries up to %q", n.lastReceived)
		}
		env.update(func(tx *store.Tx) error {
			plan := strings.Join(storetest.Plan(t, tx, readyText+tx.In("r.account", 3)+readyOrder, env.clock.Now().UnixMilli(), 0,
				store.List([]string{}), 256), "\n")
			if scans := strings.Count(plan, "webhook_queue_due"); scans != 1 {
				t.Errorf("a round reads the queue of a receiver %d times:\n%s", scans, plan)
			}
			if env.db.Dialect() == store.PostgreSQL {
				from, all := blocks(t, tx, n.lastReceived), blocks(t, tx, "")
				if from*4 > all {
					t.Errorf("a search for fresh deliveries reads %d blocks, and %d blocks from the beginning", from, all)
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

// TestLateCommitsAreFound adds deliveries with ids before the known ones, as a transaction with a
// late commit does.
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
				t.Errorf("%s: %d deliveries, want %d", fmt.Sprint("dlv_", 1_000_000+first), got, 4+i)
			}
		}
	})
}
