package ledgertest

import (
	"strings"
	"testing"

	"tollgate/internal/ledger/audit"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/store"
)

// FaultCase is a fault with the difference that the audit must report.
type FaultCase struct{ name, statements, finds string }

// Check plants the fault and fails the test if the audit does not report it.
func (c FaultCase) Check(t testing.TB, db *store.DB, checks ...audit.Check) {
	t.Helper()
	if found := Plant(t, db, Fault(c.statements), checks...); !Reports(found, c.finds) {
		t.Errorf("%s: %q was not reported, but %+v", c.name, c.finds, found)
	}
}

// TextFaults returns faults that write a text into a column of numbers. PostgreSQL rejects the
// statements.
func TextFaults() []FaultCase {
	const finds = "another type"
	return []FaultCase{
		{"a charge is a text", `UPDATE ledger_receipt SET cost_nano = 'much'`, finds},
		{"a key's charges are a text", `UPDATE ledger_key SET spent_nano = 'much'`, finds},
		{"the checksum of a series is a text", `UPDATE ledger_series SET folded = 'much'`, finds},
	}
}

// InventMovements writes n movements of an unknown kind and commits.
func InventMovements(t testing.TB, db *store.DB, account string, n int) {
	t.Helper()
	err := db.Update(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(`INSERT INTO ledger_entry (id, account, seq, kind, amount_nano, balance_nano, note, created_ms)
			WITH RECURSIVE each(i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM each WHERE i < $1)
			SELECT CAST(i AS TEXT), $2, i, 'gift', 0, 0, '', 0 FROM each`, n, account)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// BooksFaults returns faults of books with the accounts a, b and c and the keys a_key, b_key and
// c_key. Some receipts of b are deleted. The balance of c is below its floor; c is disabled and its
// key is deleted. The requests of a are req_whole, req_broken, req_over (above its hold),
// req_failed, req_closed, req_gift, req_giving (free and open), req_made (a job), req_running (an
// open job), req_refused and req_open.
func BooksFaults() []FaultCase { return booksFaults }

var booksFaults = []FaultCase{
	{"an account's row is gone", `DELETE FROM ledger_account WHERE id = 'a'`, "an account's row is gone"},
	{"the row of an account without holds is gone", `DELETE FROM ledger_account WHERE id = 'c'`, "an account's row is gone"},
	{"a spent key's row is gone", `DELETE FROM ledger_key WHERE id = 'a_key'`, "a key's row is gone"},
	{"the row of a key whose receipts are deleted is gone", `DELETE FROM ledger_key WHERE id = 'b_key'`, "a key's row is gone"},
	{"a deleted key's row is gone", `DELETE FROM ledger_key WHERE id = 'c_key'`, "a key's row is gone"},
	{"a key is moved to another account", `UPDATE ledger_key SET account = 'b' WHERE id = 'a_key'`, "of another account"},
	{"a key whose receipts are deleted is moved", `UPDATE ledger_key SET account = 'a' WHERE id = 'b_key'`, "of another account"},
	{"a receipt is moved to another account", `UPDATE ledger_receipt SET account = 'b' WHERE id = 'req_broken'`, "of another account"},
	{"a hold is moved to another account", `UPDATE ledger_hold SET account = 'b' WHERE id = 'req_open'`, "of another account"},
	{"a receipt is moved to another key", `UPDATE ledger_receipt SET key = 'b_key' WHERE id = 'req_broken'`, "of another account"},
	{"a receipt has an unknown key", `UPDATE ledger_receipt SET key = 'x_key' WHERE id = 'req_failed'`, "a key's row is gone"},
	{"a receipt has an unknown account", `UPDATE ledger_receipt SET account = 'x' WHERE id = 'req_failed'`, "an account's row is gone"},
	{"a hold has an unknown account", `UPDATE ledger_hold SET account = 'x' WHERE id = 'req_open'`, "an account's row is gone"},
	{"a movement has an unknown account", `UPDATE ledger_entry SET account = 'x' WHERE account = 'a'`, "an account's row is gone"},
	{"a deleted key is enabled", `UPDATE ledger_key SET disabled = 0 WHERE id = 'c_key'`, "a deleted key is not disabled"},
	// Holds.
	{"an open hold has a receipt",
		`INSERT INTO ledger_hold (id, epoch, account, key, model, endpoint, day, revision, free, amount_nano, created_ms,
		cost_nano, prompt_tokens, cached_tokens, completion_tokens, line) SELECT r.id, h.epoch, r.account, r.key, r.model, r.endpoint, ` +
			`r.day, 1, 0, 0, 0, 0, 0, 0, 0, ''
		FROM ledger_receipt r JOIN ledger_hold h ON h.id = 'req_open' WHERE r.id = 'req_whole'`, "an open hold has a receipt"},
	{"an open hold of another account has a receipt",
		`INSERT INTO ledger_hold (id, epoch, account, key, model, endpoint, day, revision, free, amount_nano, created_ms,
		cost_nano, prompt_tokens, cached_tokens, completion_tokens, line) SELECT 'req_whole', h.epoch, 'b', 'b_key', h.model, h.endpoint, ` +
			`h.day, 1, 0, 0, 0, 0, 0, 0, 0, ''
		FROM ledger_hold h WHERE h.id = 'req_open'`, "an open hold has a receipt"},
	{"a hold's node is fenced", `UPDATE node SET dead = 1`, "of a node that is dead"},
	{"a hold's node has no row", `DELETE FROM node`, "of a node that is not known"},
	{"a hold has an unknown epoch", `UPDATE ledger_hold SET epoch = 'node_x' WHERE id = 'req_open'`, "of a node that is not known"},
	{"a job's hold has the epoch of a node",
		`UPDATE ledger_hold SET epoch = (SELECT epoch FROM ledger_hold WHERE id = 'req_open') WHERE id = 'req_running'`,
		"both a node and a job"},
	{"a node's hold has the epoch of jobs", `UPDATE ledger_hold SET epoch = 'job' WHERE id = 'req_open'`, "or to neither"},
	{"a hold is negative", `UPDATE ledger_hold SET amount_nano = -1 WHERE id = 'req_open'`, "a hold is out of range"},
	{"the recorded quantity of a stream is negative", `UPDATE ledger_hold SET quantity = -1 WHERE id = 'req_open'`, "recorded on a hold"},
	{"the recorded cost of a stream is negative", `UPDATE ledger_hold SET cost_nano = -5 WHERE id = 'req_open'`, "recorded on a hold"},
	// Receipts.
	{"a charge is above its hold", `UPDATE ledger_receipt SET held_nano = cost_nano - 1 WHERE id = 'req_whole'`,
		"a charge is above its hold"},
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
	{"a refused request has a hold", `UPDATE ledger_receipt SET held_nano = 1 WHERE id = 'req_refused'`, "a refused request has a hold"},
	{"a billed request has the outcome of a failed one",
		`UPDATE ledger_receipt SET outcome = 2, cost_nano = 0, prompt_tokens = 0, completion_tokens = 0 WHERE id = 'req_whole'`,
		"an answer was not billed"},
	{"a request that failed counts tokens", `UPDATE ledger_receipt SET prompt_tokens = 3 WHERE id = 'req_failed'`, "counts tokens"},
	{"a count is negative", `UPDATE ledger_receipt SET completion_tokens = -3 WHERE id = 'req_whole'`, "negative count"},
	{"an unknown outcome", `UPDATE ledger_receipt SET outcome = 7 WHERE id = 'req_whole'`, "unknown outcome"},
	{"usage above the hold is recorded with a charge below the hold", `UPDATE ledger_receipt SET over_nano = 5 WHERE id = 'req_whole'`,
		"usage above a hold"},
	{"a receipt is gone", `DELETE FROM ledger_receipt WHERE id = 'req_whole'`, "balance is not credits less charges"},
	{"a free receipt is gone", `DELETE FROM ledger_receipt WHERE id = 'req_gift'`, "movements are missing"},
	{"a billed receipt has the outcome of a refused one",
		`UPDATE ledger_receipt SET outcome = 4, cost_nano = 0, held_nano = 0, prompt_tokens = 0, completion_tokens = 0, ` +
			`status = 402 WHERE id = 'req_whole'`, "movements are missing"},
	{"a receipt is doubled", `INSERT INTO ledger_receipt (` + requestlog.Columns() + `) SELECT ` +
		strings.Replace(requestlog.Columns(), "id", "'req_twin'", 1) + ` FROM ledger_receipt WHERE id = 'req_whole'`,
		"a movement's number is not its own"},
	// Running balances.
	{"a receipt's balance is changed", `UPDATE ledger_receipt SET balance_nano = balance_nano + 7 WHERE id = 'req_whole'`,
		"a running balance is not"},
	{"a free receipt's balance is changed", `UPDATE ledger_receipt SET balance_nano = balance_nano + 7 WHERE id = 'req_gift'`,
		"a running balance is not"},
	{"an entry's balance is changed", `UPDATE ledger_entry SET balance_nano = balance_nano + 7 WHERE account = 'c' AND kind = 'take_back'`,
		"a running balance is not"},
	{"a receipt has the number of another receipt", `UPDATE ledger_receipt SET seq = seq - 1 WHERE id = 'req_gift'`,
		"a movement's number is not its own"},
	{"two receipts have changed places",
		`UPDATE ledger_receipt SET seq = (SELECT SUM(seq) FROM ledger_receipt WHERE id IN ('req_whole', 'req_failed')) - seq
		WHERE id IN ('req_whole', 'req_failed')`, "a running balance is not"},
	{"the account's newest number is larger", `UPDATE ledger_account SET seq = seq + 1 WHERE id = 'a'`, "the account's newest number"},
	{"the newest number of an account with deleted receipts is larger", `UPDATE ledger_account SET seq = seq + 1 WHERE id = 'b'`,
		"the account's newest number"},
	{"the account's newest number is smaller", `UPDATE ledger_account SET seq = seq - 1 WHERE id = 'a'`, "the account's newest number"},
	{"a balance is larger", `UPDATE ledger_account SET balance_nano = balance_nano + 1 WHERE id = 'a'`,
		"the account's balance is not that after its newest movement"},
	{"the balance of an account with deleted receipts is larger", `UPDATE ledger_account SET balance_nano = balance_nano + 1 WHERE id = 'b'`,
		"balance is not credits less charges"},
	{"a credit is invented, with its balance", `UPDATE ledger_account SET balance_nano = balance_nano + 5 WHERE id = 'a';
		INSERT INTO ledger_entry (id, account, seq, kind, amount_nano, balance_nano, note, created_ms)
		SELECT 'ent_x', 'a', seq + 1, 'credit', 5, balance_nano, '', 0 FROM ledger_account WHERE id = 'a'`,
		"the account's newest number"},
	{"a credit and the balance are larger", `UPDATE ledger_account SET balance_nano = balance_nano + 5 WHERE id = 'a';
		UPDATE ledger_entry SET amount_nano = amount_nano + 5, balance_nano = balance_nano + 5 WHERE account = 'a'`,
		"a running balance is not"},
	{"a charge, the balance and all figures are changed together", `UPDATE ledger_account SET balance_nano = balance_nano + 5 WHERE id = 'a';
		UPDATE ledger_receipt SET cost_nano = cost_nano - 5 WHERE id = 'req_whole';
		UPDATE ledger_key SET spent_nano = spent_nano - 5 WHERE id = 'a_key';
		UPDATE ledger_limit SET spent_nano = spent_nano - 5 WHERE subject = 'a_key'`,
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
	{"an entry of an unknown kind", `UPDATE ledger_entry SET kind = 'gift' WHERE account = 'a'`, "unknown kind"},
	// Sums of deleted receipts.
	{"the count of deleted receipts is larger", `UPDATE ledger_folded_chain SET receipts = receipts + 1`,
		"more receipts are recorded as deleted"},
	{"the count of deleted receipts is smaller", `UPDATE ledger_folded_chain SET receipts = receipts - 1`, "movements are missing"},
	{"the record of deleted receipts is gone", `DELETE FROM ledger_folded_chain`, "movements are missing"},
	{"the recorded end of the deleted receipts is changed", `UPDATE ledger_folded_chain SET ended = ended + 1`,
		"does not lead through the deleted receipts"},
	{"a receipt of an account with deleted receipts is gone", `DELETE FROM ledger_receipt WHERE id = 'req_young'`, "movements are missing"},
	// Figures of keys, models, days, windows and quotas.
	{"a key has spent less", `UPDATE ledger_key SET spent_nano = spent_nano - 1 WHERE id = 'a_key'`, "spent is not the sum"},
	{"a key's day has spent less", `UPDATE ledger_limit SET spent_nano = 0 WHERE subject = 'a_key'`,
		"spent is not the sum of the key's charges on"},
	{"a key's day is changed", `UPDATE ledger_limit SET day = day - 1 WHERE subject = 'a_key'`,
		"spent is not the sum of the key's charges on"},
	{"a day of a key without a budget", `UPDATE ledger_key SET daily_budget_nano = -1 WHERE id = 'a_key'`, "is of a key without one"},
	{"a day of an unknown key", `UPDATE ledger_limit SET subject = 'x_key' WHERE subject = 'a_key'`, "is of a key without one"},
	{"a free quota counts a request less", `UPDATE ledger_limit SET used = used - 1 WHERE subject = 'a/free'`, "free quota"},
	{"a free quota counts a request more", `UPDATE ledger_limit SET used = used + 1 WHERE subject = 'a/free'`, "free quota"},
	{"a free quota is moved to another account", `UPDATE ledger_limit SET subject = 'b/free' WHERE subject = 'a/free'`, "free quota"},
	{"a rate window has a gap",
		`UPDATE ledger_hit SET n = n + 1 WHERE key = 'a_key' AND n = (SELECT MAX(n) FROM ledger_hit WHERE key = 'a_key')`,
		"are not numbered one after the other"},
	{"a key has spent on another day",
		`INSERT INTO ledger_limit (subject, day, spent_nano, used) VALUES ('a_key', 5, 1, 0)`,
		"spent is not the sum of the key's charges on 1970-01-06"},
	{"a free quota is used on another day",
		`INSERT INTO ledger_limit (subject, day, spent_nano, used) VALUES ('a/free', 5, 0, 1)`,
		"the used part of a free quota is not the count of its requests on 1970-01-06"},
	// Series and their days, including those with deleted receipts (of account b).
	{"a day has one more request",
		`UPDATE ledger_day SET requests = requests + 1 WHERE series IN (SELECT id FROM ledger_series WHERE account = 'a')`,
		"a day is not the sum of its receipts"},
	{"one day costs less and another day more", `UPDATE ledger_day SET cost_nano = cost_nano + CASE WHEN day % 2 = 0 THEN 9 ELSE -9 END
		WHERE series IN (SELECT id FROM ledger_series WHERE account = 'b')`, "days are not the sums of their receipts"},
	{"the tokens of a day with deleted receipts are changed",
		`UPDATE ledger_day SET cached_tokens = cached_tokens + 1 WHERE day = (SELECT MIN(day) FROM ledger_day)`,
		"days are not the sums of their receipts"},
	{"a day is gone", `DELETE FROM ledger_day WHERE day = (SELECT MIN(day) FROM ledger_day)`, "days are not the sums of their receipts"},
	{"a day is moved", `UPDATE ledger_day SET day = day - 1 WHERE day = (SELECT MIN(day) FROM ledger_day)`,
		"days are not the sums of their receipts"},
	{"a day is below zero", `UPDATE ledger_day SET quantity = -1`, "a figure of a day is negative"},
	{"a day is empty", `UPDATE ledger_day SET requests = 0`, "a day has no requests"},
	{"a day has more failures than requests", `UPDATE ledger_day SET failed = failed + requests`, "a day has fewer requests than outcomes"},
	{"a line's cost is larger", `UPDATE ledger_receipt SET line_cost_nano = 7 WHERE id = 'req_whole'`, "a day is not the sum of its receipts"},
	{"an image is counted as a video", `UPDATE ledger_receipt SET unit = 'video_ms' WHERE id = 'req_made'`,
		"days are not the sums of their receipts"},
	{"an image is counted twice", `UPDATE ledger_receipt SET quantity = 2 * quantity WHERE id = 'req_made'`,
		"a day is not the sum of its receipts"},
	{"a day counts an image less", `UPDATE ledger_day SET quantity = quantity - 1 WHERE unit = 'image'`,
		"a day is not the sum of its receipts"},
	{"a day counts images as clips", `UPDATE ledger_day SET unit = 'clip' WHERE unit = 'image'`, "days are not the sums of their receipts"},
	{"a day has a quantity without a unit", `UPDATE ledger_day SET quantity = quantity + 1 WHERE unit = ''`, "without a unit"},
	{"a receipt has a quantity without a unit", `UPDATE ledger_receipt SET quantity = 3 WHERE id = 'req_whole'`, "without a unit"},
	{"a failed request counts images", `UPDATE ledger_receipt SET unit = 'image', quantity = 1 WHERE id = 'req_failed'`,
		"counts tokens or another unit"},
	{"a receipt is of another line", `UPDATE ledger_receipt SET line = 'x' WHERE id = 'req_whole'`,
		"days are not the sums of their receipts"},
	{"a receipt is of another endpoint", `UPDATE ledger_receipt SET endpoint = 'x' WHERE id = 'req_whole'`,
		"days are not the sums of their receipts"},
	{"a series is gone", `DELETE FROM ledger_series WHERE account = 'a'`, "a day is of a series that is not there"},
	{"a series is moved to another account", `UPDATE ledger_series SET account = 'c' WHERE account = 'a'`,
		"a series' id is not that of its names"},
	{"the checksum of deleted receipts is changed", `UPDATE ledger_series SET folded = folded + 1`, "days are not the sums of their receipts"},
	{"a receipt's count source is unknown", `UPDATE ledger_receipt SET source = 9 WHERE id = 'req_whole'`, "of an unknown source"},
	{"a failed request has a count source", `UPDATE ledger_receipt SET source = 1 WHERE id = 'req_failed'`,
		"that was not billed has a count source"},
	// Kept charges.
	{"a kept charge is gone", `DELETE FROM ledger_charge WHERE seq = (SELECT MIN(seq) FROM ledger_charge)`,
		"are not those of the receipts and of the kept charges"},
	{"a kept charge is larger", `UPDATE ledger_charge SET amount_nano = amount_nano + 1`,
		"are not those of the receipts and of the kept charges"},
	{"kept charges are exchanged", `UPDATE ledger_charge SET amount_nano = amount_nano
		+ CASE WHEN seq = (SELECT MIN(seq) FROM ledger_charge) THEN 1 WHEN seq = (SELECT MAX(seq) FROM ledger_charge) THEN -1 ELSE 0 END`,
		"the kept charges differ from their record"},
	{"a kept charge has another balance", `UPDATE ledger_charge SET balance_nano = balance_nano + 1`,
		"the kept charges differ from their record"},
	{"a kept charge has another time", `UPDATE ledger_charge SET ended_ms = ended_ms + 1`, "the kept charges differ from their record"},
	{"a kept charge is another request's",
		`UPDATE ledger_charge SET request = job, job = request WHERE seq = (SELECT MIN(seq) FROM ledger_charge)`,
		"the kept charges differ from their record"},
	{"a kept charge has another number", `UPDATE ledger_charge SET seq = seq + 100`, "the kept charges differ from their record"},
	{"a kept charge is not positive", `UPDATE ledger_charge SET amount_nano = 0`, "a kept charge is not positive"},
	{"a kept charge is another model's",
		`UPDATE ledger_word SET word = 'y' WHERE word = 'm'`, "the kept charges differ from their record"},
	{"a kept charge is another account's", `UPDATE ledger_word SET word = 'c' WHERE word = 'b'`,
		"are not those of the receipts and of the kept charges"},
	{"a kept charge is of nothing", `DELETE FROM ledger_word WHERE word = 'm'`, "names an account or a model that is not there"},
	{"a hold is in the quarantine",
		`INSERT INTO ledger_quarantine (id, epoch, account, key, model, endpoint, job, day, amount_nano, cost_nano, created_ms, cause, at_ms)
		VALUES ('req_x', 'node_x', 'a', 'a_key', 'm', '', '', 0, 5, 0, 0, 'its receipt is there', 0)`, "moved to the quarantine"},
	{"a rate window is of an unknown key", `UPDATE ledger_hit SET key = 'x_key'`, "a rate window is of a key"},
}

// JobFaults returns faults of books with three jobs of the only account: done was charged,
// failed was not, and running has a hold and a slot of the line first.
func JobFaults(done, failed, running string) []FaultCase {
	return []FaultCase{
		{"a hold is gone", `DELETE FROM ledger_hold`, "a running job has no hold"},
		{"a hold is of another amount", `UPDATE ledger_hold SET amount_nano = amount_nano + 1`, "differs from its record"},
		{"a hold is of another request", `UPDATE ledger_hold SET id = 'req_x'`, "differs from its record"},
		{"a hold is of another key", `UPDATE ledger_hold SET key = 'key_x'`, "differs from its record"},
		{"the run of a running job is gone", `DELETE FROM job_run`, "belongs to no running job"},
		{"a job has neither a run nor an end", `DELETE FROM job_run`, "has not ended and does not run"},
		{"a running job has no record", `DELETE FROM job WHERE id = '` + running + `'`, "a running job has no record"},
		{"a slot is gone", `DELETE FROM line_job`, "no slot"},
		{"a slot is of another line", `UPDATE line_job SET line = 'second'`, "no slot"},
		{"an invented slot", `INSERT INTO line_job (job, line) VALUES ('job_x', 'first')`, "belongs to no submitted job"},
		{"a slot of a queued job", `UPDATE job_run SET state = 0, line = ''`, "belongs to no submitted job"},
		{"an ended job is gone", `DELETE FROM job WHERE id = '` + done + `'`, "of a job that does not exist"},
		{"all ended jobs are gone", `DELETE FROM job WHERE ended_ms > 0`, "of a job that does not exist"},
		{"a receipt is of another job", `UPDATE ledger_receipt SET job = 'job_x' WHERE job = '` + done + `'`, "differs from its record"},
		{"a receipt of a job has the id of another request", `UPDATE ledger_receipt SET id = 'req_x' WHERE job = '` + failed + `'`,
			"of a job that does not exist"},
		{"a receipt of a job is gone", `DELETE FROM ledger_receipt WHERE job = '` + failed + `'`, "has ended without a receipt"},
		{"a receipt of a job has no job", `UPDATE ledger_receipt SET job = '' WHERE job = '` + done + `'`,
			"has ended without a receipt"},
		{"a receipt is of a running job", `UPDATE job SET ended_ms = 0 WHERE id = '` + done + `'`,
			"of a job that does not exist or has not ended"},
		{"a running job has ended", `UPDATE job SET ended_ms = 5 WHERE id = '` + running + `'`, "has ended and runs"},
		{"a job's cost is changed", `UPDATE job SET cost_nano = cost_nano - 1 WHERE id = '` + done + `'`, "differs from its record"},
		{"a charged job has the status failed", `UPDATE job SET status = 'failed', cost_nano = 0 WHERE id = '` + done + `'`,
			"differs from its record"},
		{"an uncharged job has the status succeeded", `UPDATE job SET status = 'succeeded' WHERE id = '` + failed + `'`,
			"differs from its record"},
		{"a failed job has a cost", `UPDATE job SET cost_nano = 1 WHERE id = '` + failed + `'`, "impossible state"},
		{"an ended job is queued", `UPDATE job SET status = 'queued' WHERE id = '` + done + `'`, "impossible state"},
		{"a job is moved to another account", `UPDATE job SET account = 'x' WHERE id = '` + done + `'`, "differs from its record"},
	}
}

// ForgetEndedJobs deletes the records of all ended jobs and commits.
func ForgetEndedJobs(t testing.TB, db *store.DB) {
	t.Helper()
	err := db.Update(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(`DELETE FROM job WHERE ended_ms > 0`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// AccountIDs are the ids of two accounts. Account has a sign-in, the keys Key and DeletedKey, and
// has redeemed the code Redeemed. The code Unused is not redeemed.
type AccountIDs struct{ Account, Other, Key, DeletedKey, Redeemed, Unused string }

// AccountFaults returns faults of accounts, keys, sign-ins and codes.
func AccountFaults(ids AccountIDs) []FaultCase {
	at := strings.NewReplacer("ACME", "'"+ids.Account+"'", "OTHER", "'"+ids.Other+"'", "KEY", "'"+ids.Key+"'", "GONE", "'"+ids.DeletedKey+"'",
		"UNUSED", "'"+ids.Unused+"'", "NOTE", "'code "+ids.Unused+"'", "CODE", "'"+ids.Redeemed+"'").Replace
	var all []FaultCase
	for _, f := range []struct{ statements, finds string }{
		{`DELETE FROM ledger_account WHERE id = ACME`, "an account's row is gone from the ledger"},
		{`DELETE FROM ledger_account WHERE id = OTHER`, "an account's row is gone from the ledger"},
		{`DELETE FROM account WHERE id = OTHER`, "an account that has money has no record"},
		{`DELETE FROM account WHERE id = ACME`, "a key's account has no record"},
		{`DELETE FROM account WHERE id = ACME`, "a sign-in's account has no record"},
		{`DELETE FROM ledger_key WHERE id = KEY`, "a key's row is gone from the ledger"},
		{`DELETE FROM api_key WHERE id = KEY`, "a key that the ledger has has no record"},
		{`UPDATE ledger_key SET account = OTHER WHERE id = KEY`, "a key is of another account in the ledger"},
		{`UPDATE api_key SET account = OTHER WHERE id = KEY`, "a key is of another account in the ledger"},
		{`UPDATE api_key SET deleted = 0 WHERE id = GONE`, "a key is deleted in its record or in the ledger"},
		{`UPDATE ledger_key SET closed = 0, disabled = 0 WHERE id = GONE`, "a key is deleted in its record or in the ledger"},
		{`UPDATE account_code SET usd_nano = usd_nano + 1 WHERE id = CODE`, "a redeemed code has no credit of its value"},
		{`UPDATE account_code SET redeemed_ms = 5, account = ACME WHERE id = UNUSED`, "a redeemed code has no credit of its value"},
		{`UPDATE ledger_entry SET note = '' WHERE account = ACME`, "a redeemed code has no credit of its value"},
		{`UPDATE account_code SET redeemed_ms = 0, account = '' WHERE id = CODE`, "an unredeemed code was credited"},
		{`UPDATE ledger_entry SET note = NOTE WHERE account = ACME`, "an unredeemed code was credited"},
		{`UPDATE account_code SET account = OTHER WHERE id = CODE`, "a code was credited to another account"},
		{`DELETE FROM account_code WHERE id = CODE`, "a credit names a missing code"},
		{`UPDATE account_user SET account = 'acct_x'`, "a sign-in's account has no record"},
	} {
		all = append(all, FaultCase{f.statements, at(f.statements), f.finds})
	}
	return all
}

// CopyFault is a change of a database before it is copied.
type CopyFault struct {
	Name  string
	Fault Fault
	Holds int64  // open holds that the audit of the copy counts
	Finds string // empty if the audit finds nothing
}

// CopyFaults returns changes of books in which one process has four open holds: of the accounts a
// and b, and two of c.
func CopyFaults() []CopyFault {
	return []CopyFault{
		{"the process ran", "", 4, ""},
		{"the process was declared dead", `UPDATE node SET dead = 1`, 4, ""},
		{"the process started long ago", `UPDATE node SET started_ms = 1`, 4, ""},
		{"the process is unknown", `DELETE FROM node`, 0, "not known"},
		{"a hold was of another process", `UPDATE ledger_hold SET epoch = 'node_other' WHERE account = 'a'`, 3, "not known"},
		{"a hold was below zero", `UPDATE ledger_hold SET amount_nano = -1 WHERE account = 'a'`, 4, "a hold is out of range"},
		{"a hold was of a job too", `UPDATE ledger_hold SET job = 'job_1' WHERE account = 'a'`, 4, "both a node and a job"},
		{"a balance was raised", `UPDATE ledger_account SET balance_nano = balance_nano + 1 WHERE id = 'a'`, 4,
			"balance is not credits"},
		{"a hold was settled and open", `UPDATE ledger_hold SET id = (SELECT MAX(id) FROM ledger_receipt) WHERE account = 'a'`, 4,
			"receipt"},
	}
}
