// Package audit owns the proof of the books: it recomputes every stored figure and checks every
// row, in one snapshot, beside the running service.
//
// Invariants: it changes nothing. It shares no code with the writers of the books, so that it does
// not share their faults; only the constants and the few rules of package books are common to both.
// Each receipt is read once. The records that stand for deleted receipts (Chain) are written in the
// transaction of the deletion.
package audit

import (
	"context"
	"fmt"
	"time"

	"tollgate/internal/ledger/books"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// Findings are the results of an audit.
type Findings struct {
	OK          bool             `json:"ok"`
	Checked     map[string]int64 `json:"checked"`
	Differences []Difference     `json:"differences"`
	// Omitted counts the differences beyond the listed ones.
	Omitted int64 `json:"omitted,omitempty"`
	// Unproved are figures that cannot be compared, because a sum has reached money.Max. They are
	// no differences.
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

// auditTimeout bounds an audit, and with it how long its snapshot keeps the
// database from clearing up: SQLite's write-ahead log, PostgreSQL's dead rows.
const auditTimeout = 15 * time.Minute

// Run recomputes every figure that is kept and judges every row, all in one
// snapshot, so it is safe while the service runs. It reads each receipt once,
// whatever its age, in the order in which the table has them:
//   - balance = credits less charges, and each movement's running balance is
//     the one before it and its amount, up to the account's row;
//   - what accounts and keys show as held is the sum of their open holds, what
//     keys have spent and usage totals are the sums of the receipts, those of
//     the day and the places of free quotas included;
//   - the charges that are kept of deleted receipts are those that were kept;
//   - the days of each series are the sums of its receipts, also of those that
//     have been deleted;
//   - what keys have spent on a day, the usage of a day and places of free quotas have a row;
//   - usage above holds is the sum of the receipts, and each key's log leads to its requests;
//   - each receipt, hold and movement is one that the rules of billing allow,
//     and belongs to an account and to a key of that account;
//   - each open hold is of a node that lives or of a job, and has no receipt.
//
// Other rooms add checks of theirs in the same snapshot.
func Run(ctx context.Context, db *store.DB, others ...Check) (Findings, error) {
	ctx, cancel := context.WithTimeout(ctx, auditTimeout)
	defer cancel()
	var report Findings
	err := db.View(ctx, func(tx *store.Tx) (err error) {
		report, err = RunTx(tx, others...)
		return err
	})
	return report, err
}

// RunTx is Run in the caller's transaction, which should be one of View.
func RunTx(tx *store.Tx, others ...Check) (Findings, error) {
	b := newBooks(tx)
	if err := b.run(others); err != nil {
		return b.report, fmt.Errorf("audit: %w", err)
	}
	b.report.OK = len(b.report.Differences) == 0
	return b.report, nil
}

// Check is another room's check. It is called when the ledger's tables have been read, except for
// the receipts; pass code that needs the receipts to JobReceipts and Finally.
type Check func(tx *store.Tx, books *Books) error

// WithoutProcess returns the check of a database without a serving process: if served reports false,
// the open holds of nodes belong to a killed process. It calls served after the snapshot was taken,
// because a process that starts later has ended the old holds.
func WithoutProcess(served func() (bool, error)) Check {
	return func(_ *store.Tx, books *Books) error {
		is, err := served()
		books.noProcess = !is
		return err
	}
}

// copiedHolds names the count of the open holds omitted by AsCopy.
const copiedHolds = "open holds of ended processes"

// AsCopy is the Check of a copy taken while the service ran. No process works on a copy, so the
// audit counts the open holds of known nodes instead of reporting them. A hold of an unknown node
// is still a difference.
func AsCopy(_ *store.Tx, books *Books) error {
	books.isCopy = true
	books.Count(copiedHolds, 0)
	return nil
}

// Books are the books of one snapshot.
type Books struct {
	tx        *store.Tx
	report    Findings
	noProcess bool
	isCopy    bool   // see AsCopy
	foldable  string // requests from this id on have their receipts

	accounts map[string]*accountSums
	keys     map[string]*keySums
	holds    map[string]*openHold // open, by request
	series   map[int64]*seriesSums
	bySeries map[books.UsageSeries]*seriesSums // the same, including missing series
	factors  dayFactors
	over     map[overKey]*overSums
	today    int64
	billed   []func(BilledReceipt)
	receipts []func(JobReceipt)
	finally  []func() error
}

func newBooks(tx *store.Tx) *Books {
	return &Books{
		tx:       tx,
		report:   Findings{Checked: map[string]int64{}, Differences: []Difference{}},
		accounts: map[string]*accountSums{},
		keys:     map[string]*keySums{},
		holds:    map[string]*openHold{},
	}
}

func (b *Books) run(others []Check) error {
	now, err := b.tx.NowMS()
	if err != nil {
		return err
	}
	b.foldable, b.today = books.FoldBelow(now, 0), books.DayOf(now)
	for _, read := range []func() error{
		b.readAccounts, b.readKeys, b.readUsage, b.readFree, b.readFolded, b.readDays, b.readHolds, b.readEntries, b.readHits, b.readQuarantine,
		b.readSeries, b.readCharges, b.readOver, b.readParts,
	} {
		if err := read(); err != nil {
			return err
		}
	}
	for _, check := range others {
		if err := check(b.tx, b); err != nil {
			return err
		}
	}
	if err := b.readReceipts(); err != nil {
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
	b.compareDaySets()
	b.compareOver()
	for _, end := range b.finally {
		if err := end(); err != nil {
			return err
		}
	}
	return nil
}

// readQuarantine reports damaged holds that were moved away. A row stays until a person has
// examined and deleted it.
func (b *Books) readQuarantine() error {
	return b.each(func(scan scanner) error {
		d := Difference{What: "a damaged hold was moved to the quarantine"}
		var amount money.Amount
		if err := scan(&d.Request, &d.Account, &d.Key, &d.Model, &amount, &d.Computed); err != nil {
			return err
		}
		d.Recorded = amount.String()
		b.Report(d)
		return nil
	}, `SELECT id, account, key, model, amount_nano, cause FROM ledger_quarantine ORDER BY id`)
}

// Differ reports a difference.
func (b *Books) Report(d Difference) {
	if len(b.report.Differences) == maxDifferences {
		b.report.Omitted++
		return
	}
	b.report.Differences = append(b.report.Differences, d)
}

// unproved reports an incomparable figure.
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

// Checked counts checked items.
func (b *Books) Count(what string, n int64) { b.report.Checked[what] += n }

// OpenJobHold is the open hold of a job.
type OpenJobHold struct {
	Request, Job, Account, Key string
	Amount                     money.Amount
	Factor                     money.Factor
}

// JobHolds returns the open holds of jobs by the job's id.
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

// JobReceipts has fn called with the receipt of each job, and after them
// Finally's.
func (b *Books) JobReceipts(fn func(JobReceipt)) { b.receipts = append(b.receipts, fn) }

// Finally has fn called at the end.
func (b *Books) Finally(fn func() error) { b.finally = append(b.finally, fn) }

// MayBeDeleted reports whether the receipt of an account's request may have been deleted for its
// age.
func (b *Books) MayBeDeleted(account, request string) bool {
	a := b.accounts[account]
	return a != nil && a.folded > 0 && request < b.foldable
}

// Accounts calls fn for each account in the ledger.
func (b *Books) Accounts(fn func(id string)) {
	for id, a := range b.accounts {
		if a.exists {
			fn(id)
		}
	}
}

// Keys calls fn for each key in the ledger; closed reports whether the key was closed.
func (b *Books) Keys(fn func(id, account string, closed bool)) {
	for id, k := range b.keys {
		if k.exists {
			fn(id, k.account, k.closed)
		}
	}
}

// Credits calls fn for each credit whose note begins with an ASCII text.
func (b *Books) Credits(begins string, fn func(account, note string, amount money.Amount)) error {
	return b.each(func(scan scanner) error {
		var account, note string
		var amount money.Amount
		if err := scan(&account, &note, &amount); err != nil {
			return err
		}
		fn(account, note, amount)
		return nil
	}, `SELECT account, note, amount_nano FROM ledger_entry WHERE kind = 'credit' AND substr(note, 1, $1) = $2`, len(begins), begins)
}

type scanner func(dest ...any) error

// each calls row for every row of a result. An unreadable row, possible because SQLite stores any
// value, is a difference and not the end of the audit.
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
