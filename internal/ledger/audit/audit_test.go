package audit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/ledger"
	"tollgate/internal/ledger/audit"
	"tollgate/internal/money"
	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
	"tollgate/internal/store/storetest"
)

// ledgerFaults are faults planted into good books (see goodBooks), each with
// what the audit has to say of it. Account a is the usual one, b's receipts
// have been deleted in part, c is below its floor, disabled and its key deleted.
var ledgerFaults = []struct{ name, breaks, finds string }{
	// Rows that are gone, or somebody else's.
	{"an account's row is gone", `DELETE FROM ledger_account WHERE id = 'a'`, "an account's row is gone"},
	{"the row of an account that holds nothing is gone", `DELETE FROM ledger_account WHERE id = 'c'`, "an account's row is gone"},
	{"a spent key's row is gone", `DELETE FROM ledger_key WHERE id = 'a_key'`, "a key's row is gone"},
	{"the row of a key whose receipts are deleted is gone", `DELETE FROM ledger_key WHERE id = 'b_key'`, "a key's row is gone"},
	{"a deleted key's row is gone", `DELETE FROM ledger_key WHERE id = 'c_key'`, "a key's row is gone"},
	{"a key is moved to another account", `UPDATE ledger_key SET account = 'b' WHERE id = 'a_key'`, "of another account"},
	{"a key whose receipts are deleted is moved", `UPDATE ledger_key SET account = 'a' WHERE id = 'b_key'`, "of another account"},
	{"a receipt is another account's", `UPDATE ledger_receipt SET account = 'b' WHERE id = 'req_broken'`, "of another account"},
	{"a hold is another account's", `UPDATE ledger_hold SET account = 'b' WHERE id = 'req_open'`, "of another account"},
	{"a receipt is another key's", `UPDATE ledger_receipt SET key = 'b_key' WHERE id = 'req_broken'`, "of another account"},
	{"a receipt is of an unknown key", `UPDATE ledger_receipt SET key = 'x_key' WHERE id = 'req_failed'`, "a key's row is gone"},
	{"a receipt is of an unknown account", `UPDATE ledger_receipt SET account = 'x' WHERE id = 'req_failed'`, "an account's row is gone"},
	{"a hold is of an unknown account", `UPDATE ledger_hold SET account = 'x' WHERE id = 'req_open'`, "an account's row is gone"},
	{"a movement is of an unknown account", `UPDATE ledger_entry SET account = 'x' WHERE account = 'a'`, "an account's row is gone"},
	{"a deleted key is let in again", `UPDATE ledger_key SET disabled = 0 WHERE id = 'c_key'`, "a deleted key is not disabled"},
	// Holds.
	{"an open hold has a receipt",
		`INSERT INTO ledger_hold (id, epoch, account, key, model, endpoint, day, revision, free, amount_nano, created_ms,
		cost_nano, prompt_tokens, cached_tokens, completion_tokens, line) SELECT r.id, h.epoch, r.account, r.key, r.model, r.endpoint, ` +
			`r.day, 1, 0, 0, 0, 0, 0, 0, 0, ''
		FROM ledger_receipt r JOIN ledger_hold h ON h.id = 'req_open' WHERE r.id = 'req_whole'`, "an open hold has a receipt"},
	{"a hold's node is fenced", `UPDATE node SET dead = 1`, "of a node that is dead"},
	{"a hold's node is forgotten", `DELETE FROM node`, "of a node that is not known"},
	{"a hold is of an unknown epoch", `UPDATE ledger_hold SET epoch = 'node_x' WHERE id = 'req_open'`, "of a node that is not known"},
	{"a job's hold is a node's",
		`UPDATE ledger_hold SET epoch = (SELECT epoch FROM ledger_hold WHERE id = 'req_open') WHERE id = 'req_running'`, "a node's and a job's"},
	{"a node's hold is no job's", `UPDATE ledger_hold SET epoch = 'job' WHERE id = 'req_open'`, "neither's"},
	{"a hold is negative", `UPDATE ledger_hold SET amount_nano = -1 WHERE id = 'req_open'`, "a hold is out of range"},
	{"a hold is gone", `DELETE FROM ledger_hold WHERE id = 'req_open'`, "held is not the sum of the account's open holds"},
	{"a hold is larger", `UPDATE ledger_hold SET amount_nano = amount_nano + 1 WHERE id = 'req_open'`,
		"held is not the sum of the key's open holds"},
	{"a stream has noted a negative cost", `UPDATE ledger_hold SET cost_nano = -5 WHERE id = 'req_open'`, "noted on its hold"},
	{"an account holds more", `UPDATE ledger_account SET held_nano = held_nano + 1 WHERE id = 'a'`,
		"held is not the sum of the account's open holds"},
	{"a key holds less", `UPDATE ledger_key SET held_nano = held_nano - 1 WHERE id = 'a_key'`, "held is not the sum of the key's open holds"},
	{"a key's day holds less", `UPDATE ledger_key SET day_held_nano = day_held_nano - 1 WHERE id = 'a_key'`, "held today is not"},
	// Receipts.
	{"a charge is above its hold", `UPDATE ledger_receipt SET held_nano = cost_nano - 1 WHERE id = 'req_whole'`, "a charge is above its hold"},
	{"a charge is negative", `UPDATE ledger_receipt SET cost_nano = -1 WHERE id = 'req_whole'`, "a charge is negative"},
	{"a charge is larger", `UPDATE ledger_receipt SET cost_nano = cost_nano + 1 WHERE id = 'req_whole'`,
		"balance is not credits less charges"},
	{"an error is billed", `UPDATE ledger_receipt SET status = 502, code = 'upstream_error' WHERE id = 'req_whole'`, "an error was billed"},
	{"an unavailable service is billed", `UPDATE ledger_receipt SET status = 503, code = 'service_unavailable' WHERE id = 'req_whole'`,
		"an error was billed"},
	{"a failed request is billed", `UPDATE ledger_receipt SET outcome = 1 WHERE id = 'req_failed'`, "an error was billed"},
	{"a failed job is billed", `UPDATE ledger_receipt SET code = 'upstream_error' WHERE id = 'req_made'`, "an error was billed"},
	{"a failed request has a cost", `UPDATE ledger_receipt SET cost_nano = 1 WHERE id = 'req_failed'`, "not billed was charged"},
	{"a request whose client left has a cost", `UPDATE ledger_receipt SET cost_nano = 1 WHERE id = 'req_closed'`, "not billed was charged"},
	{"a refused request has a cost", `UPDATE ledger_receipt SET cost_nano = 1, held_nano = 1 WHERE id = 'req_refused'`,
		"not billed was charged"},
	{"a refused request has a hold", `UPDATE ledger_receipt SET held_nano = 1 WHERE id = 'req_refused'`, "a refused request was held"},
	{"a billed request is said to have failed",
		`UPDATE ledger_receipt SET outcome = 2, cost_nano = 0, prompt_tokens = 0, completion_tokens = 0 WHERE id = 'req_whole'`,
		"an answer was not billed"},
	{"a request that failed counts tokens", `UPDATE ledger_receipt SET prompt_tokens = 3 WHERE id = 'req_failed'`, "counts tokens"},
	{"a count is negative", `UPDATE ledger_receipt SET completion_tokens = -3 WHERE id = 'req_whole'`, "negative count"},
	{"an unknown outcome", `UPDATE ledger_receipt SET outcome = 7 WHERE id = 'req_whole'`, "unknown outcome"},
	{"more than the hold is said to be used beside a smaller charge", `UPDATE ledger_receipt SET over_nano = 5 WHERE id = 'req_whole'`,
		"usage above a hold"},
	{"a receipt is gone", `DELETE FROM ledger_receipt WHERE id = 'req_whole'`, "balance is not credits less charges"},
	{"a free receipt is gone", `DELETE FROM ledger_receipt WHERE id = 'req_gift'`, "movements are missing"},
	{"a receipt is refused after all",
		`UPDATE ledger_receipt SET outcome = 4, cost_nano = 0, held_nano = 0, prompt_tokens = 0, completion_tokens = 0, ` +
			`status = 402 WHERE id = 'req_whole'`, "movements are missing"},
	{"a receipt is doubled",
		`INSERT INTO ledger_receipt (id, account, seq, key, model, endpoint, day, revision, outcome, status, code, line, attempts, ` +
			`prompt_tokens, cached_tokens,
		completion_tokens, images, cost_nano, over_nano, held_nano, balance_nano, first_byte_ms, duration_ms, created_ms, ended_ms, ` +
			`stands_for, job, free)
		SELECT 'req_twin', account, seq, key, model, endpoint, day, revision, outcome, status, code, line, attempts, prompt_tokens, cached_tokens,
		completion_tokens, images, cost_nano, over_nano, held_nano, balance_nano, first_byte_ms, duration_ms, created_ms, ended_ms, ` +
			`stands_for, job, free
		FROM ledger_receipt WHERE id = 'req_whole'`, "a movement's number is not its own"},
	// Running balances.
	{"a receipt's balance is another", `UPDATE ledger_receipt SET balance_nano = balance_nano + 7 WHERE id = 'req_whole'`,
		"a running balance is not"},
	{"a free receipt's balance is another", `UPDATE ledger_receipt SET balance_nano = balance_nano + 7 WHERE id = 'req_gift'`,
		"a running balance is not"},
	{"an entry's balance is another", `UPDATE ledger_entry SET balance_nano = balance_nano + 7 WHERE account = 'c' AND kind = 'take_back'`,
		"a running balance is not"},
	{"a receipt's number is another's", `UPDATE ledger_receipt SET seq = seq - 1 WHERE id = 'req_gift'`, "a movement's number is not its own"},
	{"two receipts have changed places",
		`UPDATE ledger_receipt SET seq = (SELECT SUM(seq) FROM ledger_receipt WHERE id IN ('req_whole', 'req_failed')) - seq
		WHERE id IN ('req_whole', 'req_failed')`, "a running balance is not"},
	{"a number is skipped", `UPDATE ledger_account SET seq = seq + 1 WHERE id = 'a'`, "the account's newest number"},
	{"a number is skipped where receipts are deleted", `UPDATE ledger_account SET seq = seq + 1 WHERE id = 'b'`,
		"the account's newest number"},
	{"a number is taken back", `UPDATE ledger_account SET seq = seq - 1 WHERE id = 'a'`, "the account's newest number"},
	{"a balance is larger", `UPDATE ledger_account SET balance_nano = balance_nano + 1 WHERE id = 'a'`,
		"the account's balance is not that after its newest movement"},
	{"a balance is larger where receipts are deleted", `UPDATE ledger_account SET balance_nano = balance_nano + 1 WHERE id = 'b'`,
		"balance is not credits less charges"},
	{"a credit that nobody gave, in the account and in the list", `UPDATE ledger_account SET balance_nano = balance_nano + 5 WHERE id = 'a';
		INSERT INTO ledger_entry (id, account, seq, kind, month, amount_nano, balance_nano, note, created_ms)
		SELECT 'ent_x', 'a', seq + 1, 'credit', 0, 5, balance_nano, '', 0 FROM ledger_account WHERE id = 'a'`, "the account's newest number"},
	{"a credit is larger, and the balance with it", `UPDATE ledger_account SET balance_nano = balance_nano + 5 WHERE id = 'a';
		UPDATE ledger_entry SET amount_nano = amount_nano + 5, balance_nano = balance_nano + 5 WHERE account = 'a'`, "a running balance is not"},
	{"a charge is smaller, and the balance and all figures with it", `UPDATE ledger_account SET balance_nano = balance_nano + 5 WHERE id = 'a';
		UPDATE ledger_receipt SET cost_nano = cost_nano - 5 WHERE id = 'req_whole';
		UPDATE ledger_key SET spent_nano = spent_nano - 5, day_spent_nano = day_spent_nano - 5 WHERE id = 'a_key';
		UPDATE ledger_usage SET cost_nano = cost_nano - 5, day_cost_nano = day_cost_nano - 5 WHERE account = 'a' AND model = 'm'`,
		"a running balance is not"},
	{"a balance is beyond its range", `UPDATE ledger_account SET balance_nano = 2000000000000000000 WHERE id = 'a'`,
		"a balance is out of range"},
	{"a receipt's balance is beyond its range", `UPDATE ledger_receipt SET balance_nano = 2000000000000000000 WHERE id = 'req_gift'`,
		"a balance is out of range"},
	{"a floor is above zero", `UPDATE ledger_account SET floor_nano = 1 WHERE id = 'a'`, "floor is above zero"},
	// Movements.
	{"a credit is gone", `DELETE FROM ledger_entry WHERE account = 'a'`, "balance is not credits less charges"},
	{"a credit is negative", `UPDATE ledger_entry SET amount_nano = -amount_nano WHERE account = 'a'`, "a movement's sign"},
	{"a take-back is positive", `UPDATE ledger_entry SET amount_nano = -amount_nano WHERE kind = 'take_back'`, "a movement's sign"},
	{"charges of a month are positive", `UPDATE ledger_entry SET amount_nano = -amount_nano WHERE kind = 'charges'`, "a movement's sign"},
	{"an entry of an unknown kind", `UPDATE ledger_entry SET kind = 'gift' WHERE account = 'a'`, "unknown kind"},
	{"a credit is said to be a month's charges", `UPDATE ledger_entry SET kind = 'charges' WHERE account = 'c' AND kind = 'take_back'`,
		"a movement's month"},
	// What is left of deleted receipts.
	{"a sum of deleted receipts is larger", `UPDATE ledger_folded SET cost_nano = cost_nano + 1`, "the months' charges are not"},
	{"a sum of deleted receipts is gone", `DELETE FROM ledger_folded`, "spent is not the sum of the key's charges"},
	{"a sum of deleted receipts is negative", `UPDATE ledger_folded SET failed = -1`, "a sum of deleted receipts is negative"},
	{"a month's charges are gone", `DELETE FROM ledger_entry WHERE kind = 'charges'`, "balance is not credits less charges"},
	{"more requests are said to be deleted", `UPDATE ledger_folded SET requests = requests + 1`, "requests is not the sum of the receipts"},
	{"the place of deleted receipts in the balance is another", `UPDATE ledger_folded_chain SET ended = ended + 1`,
		"does not lead through the deleted receipts"},
	{"a receipt is deleted beside the deleted ones", `DELETE FROM ledger_receipt WHERE id = 'req_young'`, "movements are missing"},
	// Figures of keys, models, days, windows and quotas.
	{"a key has spent less", `UPDATE ledger_key SET spent_nano = spent_nano - 1 WHERE id = 'a_key'`, "spent is not the sum"},
	{"a key's day has spent less", `UPDATE ledger_key SET day_spent_nano = 0 WHERE id = 'a_key'`, "spent today is not"},
	{"a key's day is another", `UPDATE ledger_key SET day = day - 1 WHERE id = 'a_key'`, "spent today is not"},
	{"usage counts a request more", `UPDATE ledger_usage SET requests = requests + 1 WHERE account = 'a'`, "usage: requests"},
	{"usage costs less", `UPDATE ledger_usage SET cost_nano = cost_nano - 1 WHERE account = 'a'`, "usage: cost"},
	{"usage counts fewer tokens", `UPDATE ledger_usage SET completion_tokens = 0 WHERE account = 'a'`, "usage: completion tokens"},
	{"usage counts an image", `UPDATE ledger_usage SET images = images + 1 WHERE account = 'a'`, "usage: images"},
	{"usage of the day is another", `UPDATE ledger_usage SET day_billed = day_billed + 1 WHERE account = 'a'`,
		"usage: billed requests of the day"},
	{"usage is gone", `DELETE FROM ledger_usage WHERE account = 'b'`, "usage: cost"},
	{"usage is another account's", `UPDATE ledger_usage SET account = 'x' WHERE account = 'b'`, "an account's row is gone"},
	{"usage of a model that nobody asked",
		`INSERT INTO ledger_usage (account, model, cost_nano, requests, billed, failed, prompt_tokens, completion_tokens, images,
		day, day_cost_nano, day_requests, day_billed, day_failed) VALUES ('a', 'x', 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)`, "usage: requests"},
	{"places of a free quota are given back", `UPDATE ledger_free SET used = used - 1`, "free quota"},
	{"places of a free quota are taken", `UPDATE ledger_free SET used = used + 1`, "free quota"},
	{"a free quota is another account's", `UPDATE ledger_free SET account = 'b'`, "free quota"},
	{"a rate window has hits that were not counted", `UPDATE ledger_key SET hits = hits - 1 WHERE id = 'a_key'`, "a rate window has hits"},
	{"a key has spent on another day", `INSERT INTO ledger_key_day (key, day, spent_nano, held_nano) VALUES ('a_key', 5, 1, 0)`,
		"spent on another day"},
	{"a key holds on another day", `INSERT INTO ledger_key_day (key, day, spent_nano, held_nano) VALUES ('a_key', 5, 0, 1)`,
		"held on another day"},
	{"usage of another day",
		`INSERT INTO ledger_usage_day (account, model, day, cost_nano, requests, billed, failed) VALUES ('a', 'm', 5, 1, 1, 1, 0)`,
		"figures of another day"},
	{"places of a free quota of another day", `INSERT INTO ledger_free_day (account, model, day, used) VALUES ('a', 'free', 5, 1)`,
		"figures of another day"},
	// Series and their days, also those whose receipts are deleted (of account b).
	{"a day has a request more",
		`UPDATE ledger_day SET requests = requests + 1 WHERE series IN (SELECT id FROM ledger_series WHERE account = 'a')`,
		"a day is not the sum of its receipts"},
	{"a day cost less, another more", `UPDATE ledger_day SET cost_nano = cost_nano + CASE WHEN day % 2 = 0 THEN 9 ELSE -9 END
		WHERE series IN (SELECT id FROM ledger_series WHERE account = 'b')`, "days are not the sums of their receipts"},
	{"a deleted day's tokens are others",
		`UPDATE ledger_day SET cached_tokens = cached_tokens + 1 WHERE day = (SELECT MIN(day) FROM ledger_day)`,
		"days are not the sums of their receipts"},
	{"a day is gone", `DELETE FROM ledger_day WHERE day = (SELECT MIN(day) FROM ledger_day)`, "days are not the sums of their receipts"},
	{"a day is another", `UPDATE ledger_day SET day = day - 1 WHERE day = (SELECT MIN(day) FROM ledger_day)`,
		"days are not the sums of their receipts"},
	{"a day is below zero", `UPDATE ledger_day SET images = -1`, "a figure of a day is negative"},
	{"a day is empty", `UPDATE ledger_day SET requests = 0`, "a day has no requests"},
	{"a day failed more often than it was asked", `UPDATE ledger_day SET failed = failed + requests`, "a day has fewer requests"},
	{"a line takes more", `UPDATE ledger_receipt SET line_cost_nano = 7 WHERE id = 'req_whole'`, "a day is not the sum of its receipts"},
	{"an image is a clip", `UPDATE ledger_receipt SET clips = images WHERE id = 'req_made'`, "a day is not the sum of its receipts"},
	{"a receipt is of another line", `UPDATE ledger_receipt SET line = 'x' WHERE id = 'req_whole'`, "days are not the sums of their receipts"},
	{"a receipt is of another endpoint", `UPDATE ledger_receipt SET endpoint = 'x' WHERE id = 'req_whole'`,
		"days are not the sums of their receipts"},
	{"a receipt is said to be in no day", `UPDATE ledger_receipt SET dated = 0 WHERE id = 'req_whole'`,
		"days are not the sums of their receipts"},
	{"a series is gone", `DELETE FROM ledger_series WHERE account = 'a'`, "a day is of a series that is not there"},
	{"a series is another account's", `UPDATE ledger_series SET account = 'c' WHERE account = 'a'`, "a series' id is not that of its names"},
	{"the mark of deleted receipts is another", `UPDATE ledger_series SET folded = folded + 1`, "days are not the sums of their receipts"},
	{"a receipt's counts are nobody's", `UPDATE ledger_receipt SET source = 9 WHERE id = 'req_whole'`, "of an unknown source"},
	{"a failure has counts", `UPDATE ledger_receipt SET source = 1 WHERE id = 'req_failed'`, "that was not billed has a source"},
	// Charges that are kept.
	{"a kept charge is gone", `DELETE FROM ledger_charge WHERE seq = (SELECT MIN(seq) FROM ledger_charge)`, "the kept charges are not"},
	{"a kept charge is larger", `UPDATE ledger_charge SET amount_nano = amount_nano + 1`, "the kept charges are not the sum"},
	{"kept charges are exchanged", `UPDATE ledger_charge SET amount_nano = amount_nano
		+ CASE WHEN seq = (SELECT MIN(seq) FROM ledger_charge) THEN 1 WHEN seq = (SELECT MAX(seq) FROM ledger_charge) THEN -1 ELSE 0 END`,
		"the kept charges are not those that were kept"},
	{"a kept charge has another balance", `UPDATE ledger_charge SET balance_nano = balance_nano + 1`,
		"the kept charges are not those that were kept"},
	{"a kept charge has another time", `UPDATE ledger_charge SET ended_ms = ended_ms + 1`, "the kept charges are not those that were kept"},
	{"a kept charge is another request's",
		`UPDATE ledger_charge SET request = job, job = request WHERE seq = (SELECT MIN(seq) FROM ledger_charge)`,
		"the kept charges are not those that were kept"},
	{"a kept charge has another number", `UPDATE ledger_charge SET seq = seq + 100`, "the kept charges are not those that were kept"},
	{"a kept charge is none", `UPDATE ledger_charge SET amount_nano = 0`, "a kept charge is none"},
	{"a kept charge is another model's",
		`UPDATE ledger_word SET word = 'y' WHERE word = 'm'`, "the kept charges are not those that were kept"},
	{"a kept charge is another account's", `UPDATE ledger_word SET word = 'c' WHERE word = 'b'`, "the kept charges are not the sum"},
	{"a kept charge is of nothing", `DELETE FROM ledger_word WHERE word = 'm'`, "names an account or a model that is not there"},
	{"more of a month is said to be kept", `UPDATE ledger_entry SET kept_nano = kept_nano + 1 WHERE kind = 'charges'`,
		"a movement has other charges than it is the sum of"},
	{"less of a month is said to be kept", `UPDATE ledger_entry SET kept_nano = kept_nano - 1 WHERE kind = 'charges'`,
		"the kept charges are not the sum"},
	{"a credit is said to have kept charges", `UPDATE ledger_entry SET kept_nano = 1 WHERE account = 'a'`,
		"a movement has other charges than it is the sum of"},
	{"a hold is in the quarantine",
		`INSERT INTO ledger_quarantine (id, epoch, account, key, model, endpoint, job, day, amount_nano, cost_nano, created_ms, cause, at_ms)
		VALUES ('req_x', 'node_x', 'a', 'a_key', 'm', '', '', 0, 5, 0, 0, 'its receipt is there', 0)`, "moved to the quarantine"},
	{"a rate window is of an unknown key", `UPDATE ledger_hit SET key = 'x_key'`, "a rate window is of a key"},
}

// TestAuditFindsEveryFault plants one fault after the other into good books.
func TestAuditFindsEveryFault(t *testing.T) {
	t.Parallel()
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		f := goodBooks(t, db, c)
		f.audited()
		for _, fault := range ledgerFaults {
			found := plant(t, db, fault.breaks)
			if !slices.ContainsFunc(found, func(d audit.Difference) bool { return strings.Contains(d.What, fault.finds) }) {
				t.Errorf("%s: %q was not reported, but %+v", fault.name, fault.finds, found)
			}
		}
		f.audited()
	})
}

// plant audits within a transaction that has changed the books and is undone.
func plant(t *testing.T, db *store.DB, breaks string) []audit.Difference {
	t.Helper()
	undo := errors.New("undo")
	var found []audit.Difference
	err := db.Update(context.Background(), func(tx *store.Tx) error {
		for statement := range strings.SplitSeq(breaks, ";") {
			if statement == "" {
				continue
			}
			if n, err := tx.Exec(statement); err != nil || n == 0 {
				return fmt.Errorf("%d rows changed: %w", n, err)
			}
		}
		report, err := audit.RunTx(tx)
		if err != nil {
			return err
		}
		found = report.Differences
		return undo
	})
	if !errors.Is(err, undo) {
		t.Fatalf("%s: %v", breaks, err)
	}
	return found
}

// goodBooks makes books by the ledger's own work that have something of
// everything in them.
func goodBooks(t *testing.T, db *store.DB, c *clock) *fixture {
	t.Helper()
	ctx := context.Background()
	rpm := int64(1000)
	old := start(t, db)
	former := old.Ledger
	old.open("a", 10*money.USD, 0, ledger.KeyLimits{RPM: &rpm})
	old.open("b", 10*money.USD, 0, ledger.KeyLimits{})
	old.open("c", 10*money.USD, -money.USD, ledger.KeyLimits{})
	admit := func(l *ledger.Ledger, account, request string, change func(*ledger.Admission)) *ledger.Hold {
		t.Helper()
		a := admission(account, 1000)
		a.Request, a.Received = request, c.now()
		if change != nil {
			change(&a)
		}
		h, err := l.Admit(ctx, a)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	settle := func(h *ledger.Hold, e ledger.End) {
		t.Helper()
		if err := h.Settle(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	// Long ago: receipts that are deleted, over two months, with a credit among
	// them.
	for i := range 6 {
		h := admit(former, "b", id.At("req_", c.now()), nil)
		if i%3 == 0 {
			h.Release(failed())
		} else {
			settle(h, billed(100))
		}
		c.add(9 * 24 * time.Hour)
	}
	credit(t, db, "b", money.USD)
	c.add(100 * 24 * time.Hour)
	// A node that dies: one request has streamed, one has not.
	admit(former, "a", "req_swept", nil).Progress(ledger.Progress{Cost: 30, Tokens: ledger.Tokens{Prompt: 3, Completion: 4}, Line: "line"})
	admit(former, "a", "req_lost", nil)
	admit(former, "a", "req_written", nil).Release(failed()) // one batch later the progress is written
	if _, err := node.Fence(ctx, db, old.self.Epoch(), 0); err != nil {
		t.Fatal(err)
	}
	f := start(t, db)
	if err := f.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	if err := f.Fold(ctx); err != nil {
		t.Fatal(err)
	}
	settle(admit(f.Ledger, "b", id.At("req_", c.now()), nil), billed(200))
	settle(admit(f.Ledger, "b", "req_young", nil), billed(0))
	settle(admit(f.Ledger, "b", "req_younger", nil), billed(10))
	// Today.
	settle(admit(f.Ledger, "a", "req_whole", nil), billed(100))
	admit(f.Ledger, "a", "req_failed", nil).Release(failed())
	admit(f.Ledger, "a", "req_closed", nil).Release(ledger.End{Outcome: ledger.Closed, Status: 499, Code: "client_closed"})
	broken := billed(40)
	broken.Code, broken.Streamed = "upstream_connection_error", true
	settle(admit(f.Ledger, "a", "req_broken", nil), broken)
	settle(admit(f.Ledger, "a", "req_over", nil), billed(5000))
	free := func(a *ledger.Admission) { a.Model, a.Amount, a.FreeDaily = "free", 0, 5 }
	settle(admit(f.Ledger, "a", "req_gift", free), billed(0))
	admit(f.Ledger, "a", "req_ungiven", free).Release(failed())
	admit(f.Ledger, "a", "req_giving", free)
	makeJob(f, c, "req_made", true)
	makeJob(f, c, "req_running", false)
	f.Refused(ledger.Refusal{Request: "req_refused", Account: "a", Key: "a_key", Model: "m", Status: 402, Code: "insufficient_quota",
		Received: c.now()})
	admit(f.Ledger, "a", "req_open", nil).Progress(ledger.Progress{Cost: 20, Tokens: ledger.Tokens{Prompt: 3}})
	// An account that is taken more back from than it has, and a deleted key.
	settle(admit(f.Ledger, "c", "req_c", nil), billed(10))
	admit(f.Ledger, "c", "req_c_open", nil)
	credit(t, db, "c", -20*money.USD)
	disabled := true
	err := db.Update(ctx, func(tx *store.Tx) error {
		return errors.Join(ledger.CloseKeyTx(tx, "c_key"), ledger.ChangeAccountTx(tx, "c", ledger.AccountChange{Disabled: &disabled}))
	})
	if err != nil {
		t.Fatal(err)
	}
	admit(f.Ledger, "b", "req_last", nil).Release(failed()) // the refusal and the progress are written
	return f
}

func credit(t *testing.T, db *store.DB, account string, amount money.Amount) {
	t.Helper()
	err := db.Update(context.Background(), func(tx *store.Tx) error {
		_, err := ledger.CreditTx(tx, account, amount, "")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// makeJob submits a job of account a and lets it end if that is asked for.
func makeJob(f *fixture, c *clock, request string, ends bool) {
	f.t.Helper()
	a := admission("a", 1000)
	a.Request, a.Job, a.Received = request, id.New("job_"), c.now()
	if err := f.AdmitJob(context.Background(), a, passenger{}); err != nil {
		f.t.Fatal(err)
	}
	if !ends {
		return
	}
	hold := ledger.JobHold{Request: request, Account: a.Account, Key: a.Key}
	end := ledger.End{Outcome: ledger.Billed, Status: 202, Cost: 500, Tokens: ledger.Tokens{Images: 2}, Line: "line"}
	if ended, err := f.EndJob(context.Background(), hold, leaver{end: end}); err != nil || !ended {
		f.t.Fatal(ended, err)
	}
}

// TestAuditFindsNothingInRunningRequests audits again and again while requests
// are admitted, streamed, settled and released.
func TestAuditFindsNothingInRunningRequests(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		rpm := int64(1_000_000)
		for i := range 5 {
			f.open(fmt.Sprint("a", i), 1000*money.USD, 0, ledger.KeyLimits{RPM: &rpm})
		}
		stop := make(chan struct{})
		var group sync.WaitGroup
		for n := range 8 {
			group.Go(func() {
				for r := 0; ; r++ {
					select {
					case <-stop:
						return
					default:
					}
					a := admission(fmt.Sprint("a", n%5), 1000)
					a.Model, a.FreeDaily = "free", 1_000_000
					h, err := f.Admit(context.Background(), a)
					if err != nil {
						t.Error(err)
						return
					}
					if r%3 == 0 {
						h.Release(failed())
						continue
					}
					h.Progress(ledger.Progress{Cost: 7, Tokens: ledger.Tokens{Prompt: 1}})
					if err := h.Settle(context.Background(), billed(money.Amount(r))); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		for range 5 {
			f.audited()
			credit(t, db, "a1", money.USD)
		}
		close(stop)
		group.Wait()
		f.audited()
	})
}

// TestAuditOfAProcessThatWasKilled finds its holds where nobody serves the file,
// and nothing while somebody does.
func TestAuditOfAProcessThatWasKilled(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.SQLite(t), store.Options{})
	f := start(t, db)
	f.open("a", money.USD, 0, ledger.KeyLimits{})
	h := f.mustAdmit("a", 100)
	check := func(want int) {
		t.Helper()
		report, err := audit.Run(t.Context(), db, audit.NobodyServes(db.Served))
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Differences) != want || want > 0 && !strings.Contains(report.Differences[0].What, "the next start ends it") {
			t.Errorf("%+v; want %d", report.Differences, want)
		}
	}
	check(1)
	release, err := db.LockFile()
	if err != nil {
		t.Fatal(err)
	}
	check(0)
	if err := release(); err != nil {
		t.Fatal(err)
	}
	check(1)
	h.Release(failed())
	check(0)
}

// TestAuditReadsAnything reports a column of another type, which SQLite keeps as
// it was written.
func TestAuditReadsAnything(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.SQLite(t), store.Options{})
	f := start(t, db)
	f.open("a", money.USD, 0, ledger.KeyLimits{})
	f.mustAdmit("a", 100).Release(failed())
	found := plant(t, db, `UPDATE ledger_receipt SET cost_nano = 'much'`)
	if !slices.ContainsFunc(found, func(d audit.Difference) bool { return strings.Contains(d.What, "another type") }) {
		t.Errorf("%+v", found)
	}
}

// listed is how many differences are listed.
const listed = 1000

// TestAuditIsBounded lists so many differences and counts the others.
func TestAuditIsBounded(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		f.open("a", money.USD, 0, ledger.KeyLimits{})
		err := db.Update(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec(`INSERT INTO ledger_entry (id, account, seq, kind, month, amount_nano, balance_nano, note, created_ms)
				WITH RECURSIVE each(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM each WHERE i < 1500)
				SELECT CAST(i AS TEXT), 'a', i, 'gift', 0, 0, 0, '', 0 FROM each`)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		report, err := audit.Run(t.Context(), db)
		if err != nil || report.OK || len(report.Differences) != listed || report.Omitted < 500 {
			t.Errorf("%v, %d listed, %d omitted", err, len(report.Differences), report.Omitted)
		}
	})
}
