package webhook

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestTurnsReadByIndex fills the log with ended deliveries and the queue with one dead receiver's
// backlog, and checks the query plans of both engines for the statements of a round.
func TestTurnsReadByIndex(t *testing.T) {
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
		// One row, doubled until there are enough: a fill that both engines take.
		double := func(enough int, text string) {
			for have := 1; have < enough; have *= 2 {
				env.exec(text, fmt.Sprintf("x%d", have))
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
		some := store.List([]string{"d0", "d1"})
		env.update(func(tx *store.Tx) error {
			for name, q := range map[string]struct {
				text string
				args []any
			}{
				"running": {runningText, nil},
				"fresh":   {freshText, []any{maxFresh, ""}},
				"adopt":   {receivedText + tx.In("delivery", 1), []any{some}},
				"know":    {receiverText + tx.In("q.delivery", 2) + ` ON CONFLICT (id) DO NOTHING`, []any{1, some}},
				"free":    {freeText + tx.In("delivery", 1) + ` AND ` + tx.In("lease", 2), []any{some, some}},
				"retry":   {retryText + tx.In("delivery", 3), []any{1, 1, some}},
				"lease":   {leaseText + tx.In("delivery", 4), []any{"l", "e", 1, some}},
				"drop":    {dropText + tx.In("delivery", 1), []any{some}},
				"held":    {leasedText + tx.In("q.delivery", 1), []any{some}},
				"state":   {stateText + tx.In("id", 2), []any{1, some}},
				"failing": {failingText + tx.In("id", 2), []any{1, some}},
				"message": {messageText + tx.In("id", 1), []any{some}},
				"due":     {dueText, []any{int64(never), ""}},
				"refresh": {refreshText + tx.In("id", 5), []any{1, 4, int64(never), 1, some}},
				"forget":  {forgetText + tx.In("id", 2), []any{int64(never), some}},
				"ready":   {readyText + tx.In("r.account", 3) + readyOrder, []any{1, 0, store.List([]string{}), 256}},
				"old":     {oldText, []any{1, maxForget}},
			} {
				plan := storetest.Plan(t, tx, q.text, q.args...)
				for _, line := range plan {
					scan := strings.Contains(line, "Seq Scan on webhook_")
					// SQLite says SCAN for a whole index too, the purpose of a partial index.
					scan = scan || (strings.HasPrefix(line, "SCAN ") && line != "SCAN CONSTANT ROW" &&
						!strings.Contains(line, "INDEX webhook_queue_fresh") &&
						!strings.Contains(line, "INDEX webhook_queue_running") && !strings.Contains(line, "SCAN json_each") &&
						!strings.HasPrefix(line, "SCAN f") && line != "SCAN d")
					if scan {
						t.Errorf("%s: %s\n%s", name, line, strings.Join(plan, "\n"))
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
		// A receiver behind that backlog is served at once.
		r := newReceiver(t, nil)
		env.callback(n, "acct_1", r.URL)
		began := time.Now()
		n.step()
		t.Logf("a turn took %v", time.Since(began))
		n.workers.Wait()
		if len(r.requests()) != 1 {
			t.Error("the backlog of one receiver holds up another")
		}
	})
}
