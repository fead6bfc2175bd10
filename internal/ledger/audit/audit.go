// Package audit owns the proof of the books: it recomputes every stored figure and checks every
// row, while the service runs. It reads one range of accounts after the other, each range in one
// snapshot.
//
// Invariants: an audit changes nothing. Figures are compared only within a snapshot. The audit shares
// no code with the writers of the books, so it cannot repeat their faults; only the constants and the
// few rules of package books are common to both. Each receipt is read once. The transaction that deletes
// receipts writes the records that replace them (Chain).
package audit

import (
	"database/sql"
	"errors"

	"tollgate/internal/ledger/books"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// Findings are the results of an audit.
type Findings struct {
	OK          bool             `json:"ok"`
	Checked     map[string]int64 `json:"checked"`
	Differences []Difference     `json:"differences"`
	// Omitted counts the differences left out of the list.
	Omitted int64 `json:"omitted,omitempty"`
	// Unproved are figures that cannot be compared because a sum has reached money.Max. Such a
	// figure does not count as a difference.
	Unproved []Difference `json:"unproved,omitempty"`
}

// Difference is one disagreement. Money is in US dollars.
type Difference struct {
	Account  string `json:"account,omitempty"`
	Key      string `json:"key,omitempty"`
	Model    string `json:"model,omitempty"`
	Request  string `json:"request,omitempty"`
	What     string `json:"what"`
	Recorded string `json:"recorded"`
	Computed string `json:"computed"`
}

// maxDifferences bounds the list of differences.
const maxDifferences = 1000

// Check is another room's check. It is called for each range of accounts, after the audit has read
// all of the ledger's tables but the receipts, and must check only rows of the range (Where). It can
// register functions for receipts with JobReceipts, BilledReceipts and Finally. At the end of an audit
// of all accounts it is called once more, for rows of no account (Rest).
type Check func(tx *store.Tx, books *Books) error

// WithoutProcess returns the Check of a database that may have no serving process. If served
// returns false, the open holds of nodes belong to a killed process and are differences. The Check
// calls served after the snapshot was taken: a process that started before the snapshot must be seen,
// and a process that starts later ends the old holds.
func WithoutProcess(served func() (bool, error)) Check {
	return func(_ *store.Tx, books *Books) error {
		running, err := served()
		books.noProcess = !running
		return err
	}
}

// copiedHolds is the name of the count of AsCopy.
const copiedHolds = "open holds of ended processes"

// AsCopy is the Check of a copy taken while the service ran. No process works on a copy, so the
// audit counts the open holds of known nodes instead of reporting them. A hold of an unknown node
// is still a difference.
func AsCopy(_ *store.Tx, books *Books) error {
	books.isCopy = true
	books.Count(copiedHolds, 0)
	return nil
}

// Books are the books of a range of accounts, in one snapshot.
type Books struct {
	tx        *store.Tx
	span      span
	report    *Findings
	noProcess bool
	isCopy    bool   // see AsCopy
	foldable  string // receipts from this request id on are not deleted

	accounts map[string]*accountSums
	keys     map[string]*keySums
	holds    map[string]*openHold // the open holds, by request
	limits   map[books.LimitKey]*limitSums
	series   map[int64]*seriesSums
	bySeries map[books.UsageSeries]*seriesSums // also has the series named only by receipts
	factors  dayFactors
	over     map[overKey]*overSums
	today    int64
	billed   []func(BilledReceipt)
	receipts []func(JobReceipt)
	finally  []func() error
}

func newBooks(tx *store.Tx, report *Findings) *Books {
	return &Books{
		tx:       tx,
		report:   report,
		accounts: map[string]*accountSums{},
		keys:     map[string]*keySums{},
		holds:    map[string]*openHold{},
		limits:   map[books.LimitKey]*limitSums{},
	}
}

func (b *Books) run(others []Check) error {
	now, err := b.tx.NowMS()
	if err != nil {
		return err
	}
	b.foldable, b.today = books.FoldBelow(now, 0), books.DayOf(now)
	for _, read := range []func() error{
		b.readAccounts, b.readKeys, b.readLimits, b.readChains, b.readHolds, b.readEntries, b.readHits, b.readQuarantine,
		b.readSeries, b.readCharges, b.readOver, b.readSegments,
	} {
		if err := read(); err != nil {
			return err
		}
	}
	if err := b.runChecks(others); err != nil {
		return err
	}
	if err := b.readReceipts(); err != nil {
		return err
	}
	if err := b.readOtherKeys(); err != nil {
		return err
	}
	if err := b.compareHolds(); err != nil {
		return err
	}
	if err := b.compare(); err != nil {
		return err
	}
	if err := b.compareSeries(); err != nil {
		return err
	}
	b.compareLimits()
	b.compareOver()
	for _, end := range b.finally {
		if err := end(); err != nil {
			return err
		}
	}
	return nil
}

func (b *Books) runChecks(checks []Check) error {
	for _, check := range checks {
		if err := check(b.tx, b); err != nil {
			return err
		}
	}
	return nil
}

// readQuarantine reports the damaged holds in the quarantine. A row stays until a person has
// examined and deleted it.
func (b *Books) readQuarantine() error {
	where, args := b.Where("account")
	return b.each(func(scan scanner) error {
		d := Difference{What: "a damaged hold was moved to the quarantine"}
		var amount money.Amount
		if err := scan(&d.Request, &d.Account, &d.Key, &d.Model, &amount, &d.Computed); err != nil {
			return err
		}
		d.Recorded = amount.String()
		b.Report(d)
		return nil
	}, `SELECT id, account, key, model, amount_nano, cause FROM ledger_quarantine WHERE `+where+` ORDER BY id`, args...)
}

// Report adds a difference to the findings.
func (b *Books) Report(d Difference) {
	if len(b.report.Differences) == maxDifferences {
		b.report.Omitted++
		return
	}
	b.report.Differences = append(b.report.Differences, d)
}

// unproved adds a figure without a comparison.
func (b *Books) unproved(d Difference) {
	if len(b.report.Unproved) < maxDifferences {
		b.report.Unproved = append(b.report.Unproved, d)
	}
}

// compareMoney reports unequal amounts.
func (b *Books) compareMoney(d Difference, recorded, computed money.Amount) {
	if recorded != computed {
		d.Recorded, d.Computed = recorded.String(), computed.String()
		b.Report(d)
	}
}

// Count adds to the number of checked items of a kind.
func (b *Books) Count(what string, n int64) { b.report.Checked[what] += n }

// OpenJobHold is the open hold of a job.
type OpenJobHold struct {
	Request, Job, Account, Key string
	Amount                     money.Amount
	Factor                     money.Factor
}

// JobHolds returns the open holds of jobs, by job.
func (b *Books) JobHolds() map[string]OpenJobHold {
	holds := map[string]OpenJobHold{}
	for id, h := range b.holds {
		if h.epoch == books.JobEpoch {
			holds[h.job] = OpenJobHold{Request: id, Job: h.job, Account: h.account, Key: h.key, Amount: h.amount, Factor: h.factor}
		}
	}
	return holds
}

// JobReceipt is the receipt of an ended job.
type JobReceipt struct {
	Request, Job, Account, Key string
	Billed                     bool
	Cost, Held                 money.Amount
	Factor                     money.Factor
	EndedMS                    int64
}

// JobReceipts registers fn for the receipt of each ended job.
func (b *Books) JobReceipts(fn func(JobReceipt)) { b.receipts = append(b.receipts, fn) }

// Finally registers fn for the end of the audit.
func (b *Books) Finally(fn func() error) { b.finally = append(b.finally, fn) }

// MayBeDeleted reports whether the receipt of an account's request may have been deleted after the
// retention.
func (b *Books) MayBeDeleted(account, request string) bool {
	a := b.accounts[account]
	return a != nil && a.folded > 0 && request < b.foldable
}

// Accounts calls fn for each account of the range in the ledger.
func (b *Books) Accounts(fn func(id string)) {
	for id, a := range b.accounts {
		if a.exists {
			fn(id)
		}
	}
}

// Keys calls fn for each key of the range in the ledger.
func (b *Books) Keys(fn func(id, account string)) {
	for id, k := range b.keys {
		if k.exists && !k.outside {
			fn(id, k.account)
		}
	}
}

// Key returns the account of a key in the ledger, also of a key outside the range, and whether the key
// is closed. The account is empty if there is no such key.
func (b *Books) Key(id string) (account string, closed bool, err error) {
	if k := b.keys[id]; k != nil && k.exists {
		return k.account, k.closed, nil
	}
	err = b.tx.QueryRow(`SELECT account, closed FROM ledger_key WHERE id = $1`, id).Scan(&account, &closed)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return account, closed, err
}

// Credits calls fn for each credit of the range whose note begins with an ASCII prefix.
func (b *Books) Credits(begins string, fn func(account, note string, amount money.Amount)) error {
	where, args := b.Where("account", len(begins), begins)
	return b.each(func(scan scanner) error {
		var account, note string
		var amount money.Amount
		if err := scan(&account, &note, &amount); err != nil {
			return err
		}
		fn(account, note, amount)
		return nil
	}, `SELECT account, note, amount_nano FROM ledger_entry WHERE kind = 'credit' AND substr(note, 1, $1) = $2 AND `+where,
		args...)
}

type scanner func(dest ...any) error

// each calls row for every row of a result. SQLite stores values of any type; a row that cannot be
// read is a difference and does not end the audit.
func (b *Books) each(row func(scan scanner) error, text string, args ...any) error {
	rows, err := b.tx.Query(text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil && rows.Err() == nil {
			b.Report(Difference{What: "a row has a column of another type", Recorded: err.Error()})
		}
	}
	return rows.Err()
}
