package webhook

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestRoundsReadByIndex checks that the statements of a round and of the log read no whole table, with
// many ended deliveries and one dead receiver's long queue.
func TestRoundsReadByIndex(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n := env.node("a")
		const log, backlog, receivers = 16_000, 4_000, 2_000
		for _, text := range []string{
			`INSERT INTO webhook_delivery (id, account, event, type, url, receiver, body, state, created_ms) VALUES ('d0', 'acct', 'e', 't', ` +
				`'u', 'r', 'b', 1, 5)`,
			`INSERT INTO webhook_queue (delivery, account, receiver, due_ms, tries, fresh, lease, epoch, until_ms) VALUES ('d0', 'acct', 'dead', ` +
				`1, 0, 0, '', '', 0)`,
			`INSERT INTO webhook_receiver (id, account, failing, ready_ms) VALUES ('r0', 'acct', 0, 4000000000000000)`,
			`INSERT INTO webhook_receiver (id, account, failing, ready_ms) VALUES ('dead', 'acct', 0, 1)`,
		} {
			env.exec(text)
		}
		// double repeats the statement until the table has enough rows. Both engines accept the statement.
		double := func(enough int, text string) {
			for rows := 1; rows < enough; rows *= 2 {
				env.exec(text, fmt.Sprintf("x%d", rows))
			}
		}
		double(log, `INSERT INTO webhook_delivery (id, account, event, type, url, receiver, body, state, created_ms)
			SELECT id || CAST($1 AS TEXT), account, event, type, url, receiver, body, state, created_ms FROM webhook_delivery`)
		double(backlog, `INSERT INTO webhook_queue (delivery, account, receiver, due_ms, tries, fresh, lease, epoch, until_ms)
			SELECT delivery || CAST($1 AS TEXT), account, receiver, due_ms, tries, fresh, lease, epoch, until_ms FROM webhook_queue`)
		double(receivers, `INSERT INTO webhook_receiver (id, account, failing, ready_ms)
			SELECT id || CAST($1 AS TEXT), account, failing, ready_ms FROM webhook_receiver WHERE id <> 'dead'`)
		for _, table := range []string{"webhook_delivery", "webhook_queue", "webhook_receiver"} {
			env.exec(`ANALYZE ` + table)
		}
		ids := store.List([]string{"d0", "d1"})
		env.update(func(tx *store.Tx) error {
			for name, q := range map[string]struct {
				text string
				args []any
			}{
				"running": {runningText, nil},
				"fresh":   {freshText, []any{maxFresh, ""}},
				"adopt":   {receivedText + tx.In("delivery", 1), []any{ids}},
				"know":    {receiverText + tx.In("q.delivery", 2) + ` ON CONFLICT (id) DO NOTHING`, []any{1, ids}},
				"free":    {freeText + tx.In("delivery", 1) + ` AND ` + tx.In("lease", 2), []any{ids, ids}},
				"retry":   {retryText + tx.In("delivery", 3), []any{1, 1, ids}},
				"lease":   {leaseText + tx.In("delivery", 4), []any{"l", "e", 1, ids}},
				"drop":    {dropText + tx.In("delivery", 1), []any{ids}},
				"held":    {leasedText + tx.In("q.delivery", 1), []any{ids}},
				"state":   {stateText + tx.In("id", 2), []any{1, ids}},
				"failing": {failingText + tx.In("id", 2), []any{1, ids}},
				"message": {messageText + tx.In("id", 1), []any{ids}},
				"due":     {dueText, []any{int64(never), ""}},
				"refresh": {refreshText + tx.In("id", 5), []any{1, 4, int64(never), 1, ids}},
				"forget":  {forgetText + tx.In("id", 2), []any{int64(never), ids}},
				"ready":   {readyText + tx.In("r.account", 3) + readyOrder, []any{1, 0, store.List([]string{}), 256}},
				"old":     {oldText, []any{1, maxForget}},
			} {
				plan := storetest.Plan(t, tx, q.text, q.args...)
				for _, line := range plan {
					scan := strings.Contains(line, "Seq Scan on webhook_")
					// SQLite reports SCAN also for a whole partial index, which is short.
					scan = scan || (strings.HasPrefix(line, "SCAN ") && line != "SCAN CONSTANT ROW" &&
						!strings.Contains(line, "INDEX webhook_queue_fresh") &&
						!strings.Contains(line, "INDEX webhook_queue_running") && !strings.Contains(line, "SCAN json_each") &&
						!strings.HasPrefix(line, "SCAN f") && line != "SCAN d")
					if scan {
						t.Errorf("%s reads a whole table: %s\n%s", name, line, strings.Join(plan, "\n"))
					}
				}
			}
			if err := tx.ByIndex(); err != nil {
				return err
			}
			for _, state := range []string{"", "pending", "delivered", "failed"} {
				for _, f := range []DeliveryFilter{{}, {After: "d0x1"}, {Account: "acct"}, {Account: "acct", After: "d0x1"}} {
					f.State, f.Limit = state, 50
					text, args := f.statement(1)
					storetest.WalksIndex(t, tx, fmt.Sprintf("log %+v", f), text, args...)
				}
			}
			return nil
		})
		// Another receiver gets its delivery at once.
		r := newReceiver(t, nil)
		env.callback(n, "acct_1", r.URL)
		start := time.Now()
		n.step()
		t.Logf("a round took %v", time.Since(start))
		n.workers.Wait()
		if len(r.requests()) != 1 {
			t.Errorf("the other receiver got %d requests, want 1", len(r.requests()))
		}
	})
}
