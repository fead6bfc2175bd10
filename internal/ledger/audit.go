package ledger

import (
	"context"
	"fmt"

	"tollgate/internal/money"
	"tollgate/internal/store"
)

// AuditReport is what an audit found.
type AuditReport struct {
	OK          bool             `json:"ok"`
	Checked     map[string]int64 `json:"checked"`
	Differences []Difference     `json:"differences"`
}

// Difference is one figure that is not the sum of what it stands for. Money is
// in US dollars.
type Difference struct {
	Account  string `json:"account,omitempty"`
	Key      string `json:"key,omitempty"`
	Model    string `json:"model,omitempty"`
	Request  string `json:"request,omitempty"`
	What     string `json:"what"`
	Recorded string `json:"recorded"`
	Computed string `json:"computed"`
}

// auditChunk is how many accounts are checked in one snapshot.
const auditChunk = 100

// Audit recomputes, account by account, every figure that is kept: balance =
// credits - charges; what accounts and keys show as held = the sum of their
// open holds; what keys have spent and usage totals = the sums of the
// receipts; each open hold belongs to a node that is not forgotten or to a
// job. All figures of an account come from one snapshot, so it is safe while
// the service runs. Other rooms add checks of theirs, each in a snapshot of its
// own: what they checked is added to the report.
func Audit(ctx context.Context, db *store.DB, others ...AuditCheck) (AuditReport, error) {
	report := AuditReport{Checked: map[string]int64{}, Differences: []Difference{}}
	for after, more := "", true; more; {
		var a audit
		err := db.View(ctx, func(tx *store.Tx) error {
			a = audit{tx: tx, checked: map[string]int64{}}
			var err error
			more, err = a.chunk(&after)
			return err
		})
		if err != nil {
			return report, fmt.Errorf("audit: %w", err)
		}
		for what, n := range a.checked {
			report.Checked[what] += n
		}
		report.Differences = append(report.Differences, a.differences...)
	}
	err := db.View(ctx, func(tx *store.Tx) error {
		a := audit{tx: tx, checked: report.Checked}
		err := a.strays()
		report.Differences = append(report.Differences, a.differences...)
		return err
	})
	if err != nil {
		return report, fmt.Errorf("audit: %w", err)
	}
	for _, check := range others {
		var found []Difference
		var checked map[string]int64
		err := db.View(ctx, func(tx *store.Tx) (err error) {
			found, checked, err = check(tx)
			return err
		})
		if err != nil {
			return report, fmt.Errorf("audit: %w", err)
		}
		for what, n := range checked {
			report.Checked[what] += n
		}
		report.Differences = append(report.Differences, found...)
	}
	report.OK = len(report.Differences) == 0
	return report, nil
}

// AuditCheck is what another room knows about open holds: what differs, and how
// much was checked of what.
type AuditCheck func(tx *store.Tx) (differences []Difference, checked map[string]int64, err error)

// OpenJobHold is the open hold of a job.
type OpenJobHold struct {
	Request, Job, Account string
	Amount                money.Amount
}

// JobHoldsTx returns the open holds of jobs by the job's id.
func JobHoldsTx(tx *store.Tx) (map[string]OpenJobHold, error) {
	a := audit{tx: tx}
	holds := map[string]OpenJobHold{}
	err := a.each(func(scan scanner) error {
		var h OpenJobHold
		err := scan(&h.Request, &h.Job, &h.Account, (*int64)(&h.Amount))
		holds[h.Job] = h
		return err
	}, `SELECT id, job, account, amount_nano FROM ledger_hold WHERE epoch = $1`, jobEpoch)
	return holds, err
}

// audit checks one snapshot.
type audit struct {
	tx          *store.Tx
	checked     map[string]int64
	differences []Difference
}

func (a *audit) chunk(after *string) (bool, error) {
	ids, err := a.accounts(*after)
	if err != nil || len(ids) == 0 {
		return false, err
	}
	*after = ids[len(ids)-1]
	states, err := AccountsTx(a.tx, ids)
	if err != nil {
		return false, err
	}
	for _, step := range []func([]string, map[string]AccountState) error{a.balances, a.keys, a.usage} {
		if err := step(ids, states); err != nil {
			return false, err
		}
	}
	a.checked["accounts"] += int64(len(ids))
	return len(ids) == auditChunk, nil
}

func (a *audit) accounts(after string) ([]string, error) {
	var ids []string
	err := a.each(func(scan scanner) error {
		var account string
		err := scan(&account)
		ids = append(ids, account)
		return err
	}, `SELECT id FROM ledger_account WHERE id > $1 ORDER BY id LIMIT $2`, after, auditChunk)
	return ids, err
}

type scanner func(dest ...any) error

func (a *audit) each(row func(scan scanner) error, text string, args ...any) error {
	rows, err := a.tx.Query(text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// sums reads a statement that answers a name, a count and a sum a row.
func (a *audit) sums(what, text string, args ...any) (map[string]money.Amount, error) {
	sums := map[string]money.Amount{}
	err := a.each(func(scan scanner) error {
		var name string
		var n, sum int64
		if err := scan(&name, &n, &sum); err != nil {
			return err
		}
		a.checked[what] += n
		sums[name] += money.Amount(sum)
		return nil
	}, text, args...)
	return sums, err
}

func (a *audit) compare(d Difference, recorded, computed money.Amount) {
	if recorded != computed {
		d.Recorded, d.Computed = recorded.String(), computed.String()
		a.differences = append(a.differences, d)
	}
}

func (a *audit) balances(ids []string, states map[string]AccountState) error {
	list := store.List(ids)
	entries, err := a.sums("entries", `SELECT account, COUNT(*), CAST(SUM(amount_nano) AS BIGINT) FROM ledger_entry WHERE `+a.tx.In("account", 1)+` GROUP BY account`, list)
	if err != nil {
		return err
	}
	charges, err := a.sums("receipts", `SELECT account, COUNT(*), CAST(SUM(cost_nano) AS BIGINT) FROM ledger_receipt WHERE `+a.tx.In("account", 1)+` GROUP BY account`, list)
	if err != nil {
		return err
	}
	held, err := a.sums("holds", `SELECT account, COUNT(*), CAST(SUM(amount_nano) AS BIGINT) FROM ledger_hold WHERE `+a.tx.In("account", 1)+` GROUP BY account`, list)
	if err != nil {
		return err
	}
	for _, account := range ids {
		a.compare(Difference{Account: account, What: "balance is not credits less charges"}, states[account].Balance, entries[account]-charges[account])
		a.compare(Difference{Account: account, What: "held is not the sum of the account's open holds"}, states[account].Held, held[account])
	}
	return nil
}

func (a *audit) keys(ids []string, _ map[string]AccountState) error {
	list := store.List(ids)
	held, err := a.sums("holds of keys", `SELECT key, COUNT(*), CAST(SUM(amount_nano) AS BIGINT) FROM ledger_hold WHERE `+a.tx.In("account", 1)+` GROUP BY key`, list)
	if err != nil {
		return err
	}
	spent, err := a.sums("charges of keys", `SELECT key, COUNT(*), CAST(SUM(cost_nano) AS BIGINT) FROM ledger_receipt WHERE `+a.tx.In("account", 1)+` GROUP BY key
		UNION ALL SELECT key, 0, CAST(SUM(cost_nano) AS BIGINT) FROM ledger_folded WHERE `+a.tx.In("account", 1)+` GROUP BY key`, list)
	if err != nil {
		return err
	}
	dayHeld, err := a.sums("holds of a day", `SELECT h.key, COUNT(*), CAST(SUM(h.amount_nano) AS BIGINT) FROM ledger_hold h JOIN ledger_key k ON k.id = h.key AND k.day = h.day
		WHERE `+a.tx.In("h.account", 1)+` GROUP BY h.key`, list)
	if err != nil {
		return err
	}
	daySpent, err := a.sums("charges of a day", `SELECT r.key, COUNT(*), CAST(SUM(r.cost_nano) AS BIGINT) FROM ledger_receipt r JOIN ledger_key k ON k.id = r.key AND k.day = r.day
		WHERE `+a.tx.In("r.account", 1)+` GROUP BY r.key`, list)
	if err != nil {
		return err
	}
	return a.each(func(scan scanner) error {
		var account, key string
		var keySpent, keyHeld, keyDaySpent, keyDayHeld money.Amount
		var day int64
		if err := scan(&account, &key, &keySpent, &keyHeld, &day, &keyDaySpent, &keyDayHeld); err != nil {
			return err
		}
		a.checked["keys"]++
		at := Difference{Account: account, Key: key}
		check := func(what string, recorded, computed money.Amount) {
			at.What = what
			a.compare(at, recorded, computed)
		}
		check("held is not the sum of the key's open holds", keyHeld, held[key])
		check("spent is not the sum of the key's charges", keySpent, spent[key])
		check("held today is not the sum of the key's open holds of that day", keyDayHeld, dayHeld[key])
		check("spent today is not the sum of the key's charges of that day", keyDaySpent, daySpent[key])
		return nil
	}, `SELECT account, id, spent_nano, held_nano, day, day_spent_nano, day_held_nano FROM ledger_key WHERE `+a.tx.In("account", 1), list)
}

// totalNames are the figures that usage compares, in the order of its columns.
var totalNames = [...]string{"cost", "requests", "billed requests", "failed requests", "prompt tokens", "completion tokens", "images",
	"cost of the day", "requests of the day", "billed requests of the day", "failed requests of the day"}

func (a *audit) usage(ids []string, _ map[string]AccountState) error {
	type row [len(totalNames)]int64
	list := store.List(ids)
	computed := map[modelKey]row{}
	read := func(into map[modelKey]row) func(scanner) error {
		return func(scan scanner) error {
			var k modelKey
			var r row
			dest := []any{&k.account, &k.model}
			for i := range r {
				dest = append(dest, &r[i])
			}
			if err := scan(dest...); err != nil {
				return err
			}
			sum := into[k]
			for i := range r {
				sum[i] += r[i]
			}
			into[k] = sum
			return nil
		}
	}
	err := a.each(read(computed), `SELECT r.account, r.model, CAST(SUM(r.cost_nano) AS BIGINT), COUNT(*),
			SUM(CASE WHEN r.outcome = 1 THEN 1 ELSE 0 END), SUM(CASE WHEN r.outcome = 2 THEN 1 ELSE 0 END),
			CAST(SUM(r.prompt_tokens) AS BIGINT), CAST(SUM(r.completion_tokens) AS BIGINT), CAST(SUM(r.images) AS BIGINT),
			CAST(SUM(CASE WHEN r.day = u.day THEN r.cost_nano ELSE 0 END) AS BIGINT), SUM(CASE WHEN r.day = u.day THEN 1 ELSE 0 END),
			SUM(CASE WHEN r.day = u.day AND r.outcome = 1 THEN 1 ELSE 0 END), SUM(CASE WHEN r.day = u.day AND r.outcome = 2 THEN 1 ELSE 0 END)
		FROM ledger_receipt r LEFT JOIN ledger_usage u ON u.account = r.account AND u.model = r.model
		WHERE `+a.tx.In("r.account", 1)+` AND r.outcome <> 4 GROUP BY r.account, r.model`, list)
	if err != nil {
		return err
	}
	err = a.each(read(computed), `SELECT account, model, cost_nano, requests, billed, failed, prompt_tokens, completion_tokens, images, 0, 0, 0, 0
		FROM ledger_folded WHERE `+a.tx.In("account", 1), list)
	if err != nil {
		return err
	}
	recorded := map[modelKey]row{}
	err = a.each(read(recorded), `SELECT account, model, cost_nano, requests, billed, failed, prompt_tokens, completion_tokens, images,
			day_cost_nano, day_requests, day_billed, day_failed
		FROM ledger_usage WHERE `+a.tx.In("account", 1), list)
	if err != nil {
		return err
	}
	a.checked["usage totals"] += int64(len(recorded))
	for k := range computed {
		if _, ok := recorded[k]; !ok {
			recorded[k] = row{}
		}
	}
	for k, r := range recorded {
		for i, name := range totalNames {
			if r[i] == computed[k][i] {
				continue
			}
			d := Difference{Account: k.account, Model: k.model, What: "usage: " + name + " is not the sum of the receipts",
				Recorded: fmt.Sprint(r[i]), Computed: fmt.Sprint(computed[k][i])}
			if i == 0 || i == 7 {
				d.Recorded, d.Computed = money.Amount(r[i]).String(), money.Amount(computed[k][i]).String()
			}
			a.differences = append(a.differences, d)
		}
	}
	return nil
}

// strays looks for open holds that nobody will end: of an epoch that is not
// known, or of an account or key that the ledger does not have.
func (a *audit) strays() error {
	nodes, err := store.NodesTx(a.tx)
	if err != nil {
		return err
	}
	known := make([]string, 0, len(nodes)+1)
	known = append(known, jobEpoch)
	for _, node := range nodes {
		known = append(known, node.Epoch)
	}
	return a.each(func(scan scanner) error {
		var request, account, key, epoch string
		if err := scan(&request, &account, &key, &epoch); err != nil {
			return err
		}
		a.differences = append(a.differences, Difference{Account: account, Key: key, Request: request,
			What: "an open hold belongs to no live node, account and key", Recorded: epoch, Computed: ""})
		return nil
	}, `SELECT h.id, h.account, h.key, h.epoch FROM ledger_hold h
		LEFT JOIN ledger_account a ON a.id = h.account LEFT JOIN ledger_key k ON k.id = h.key
		WHERE NOT (`+a.tx.In("h.epoch", 1)+`) OR a.id IS NULL OR k.id IS NULL ORDER BY h.id LIMIT 1000`, store.List(known))
}
