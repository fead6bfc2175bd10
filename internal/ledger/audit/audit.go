// Package audit owns the proof of the books: it recomputes every stored figure and checks every
// row, in one snapshot, while the service runs.
//
// Invariants: an audit changes nothing. It shares no code with the writers of the books, so it
// cannot repeat their faults; only the constants and the few rules of package books are common to
// both. Each receipt is read once. The transaction that deletes receipts writes the records that
// replace them (Chain).
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
	// Omitted counts the differences that are not listed.
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

// auditTimeout bounds an audit. Its snapshot keeps the database from cleaning up SQLite's
// write-ahead log or PostgreSQL's dead rows.
const auditTimeout = 15 * time.Minute

// Run checks the books in one snapshot. It is safe while the service runs, and reads each receipt
// once:
//   - The balance is credits less charges, and each movement's running balance is the one before it
//     plus the movement, up to the account's row.
//   - The days of each series are the sums of its receipts, including deleted ones.
//   - The spent sums of keys are the sums of their days, and so are the sums of daily budgets. The
//     used parts of free quotas are the counts of their requests.
//   - The kept charges of deleted receipts are unchanged. With the receipts, they are the charges of
//     the days.
//   - Usage above holds is the sum of the receipts, and the segments of each key lead to all of its
//     requests.
//   - The rules of billing allow each receipt, hold and movement, and each belongs to an account
//     and to a key of that account.
//   - Each open hold belongs to a living node or to a job, and has no receipt.
//
// Other rooms add their checks in the same snapshot.
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

// RunTx is like Run, in the caller's transaction, which must be a read-only snapshot.
func RunTx(tx *store.Tx, others ...Check) (Findings, error) {
	b := newBooks(tx)
	if err := b.run(others); err != nil {
		return b.report, fmt.Errorf("audit: %w", err)
	}
	b.report.OK = len(b.report.Differences) == 0
	return b.report, nil
}

// Check is another room's check. It is called after the audit has read all of the ledger's tables
// but the receipts. It can register functions for receipts with JobReceipts, BilledReceipts and
// Finally.
type Check func(tx *store.Tx, books *Books) error

// WithoutProcess returns the Check of a database that may have no serving process. If served
// returns false, the open holds of nodes belong to a killed process and are differences.
// WithoutProcess calls served after the snapshot was taken, because a process that starts later has
// ended the old holds.
func WithoutProcess(served func() (bool, error)) Check {
	return func(_ *store.Tx, books *Books) error {
		is, err := served()
		books.noProcess = !is
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

// Books are the books of one snapshot.
type Books struct {
	tx        *store.Tx
	report    Findings
	noProcess bool
	isCopy    bool   // see AsCopy
	foldable  string // receipts from this request id on are not deleted

	accounts map[string]*accountSums
	keys     map[string]*keySums
	holds    map[string]*openHold // the open holds, by request
	limits   map[books.LimitKey]*limitSums
	series   map[int64]*seriesSums
	bySeries map[books.UsageSeries]*seriesSums // series, and those only named by receipts
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
		limits:   map[books.LimitKey]*limitSums{},
	}
}

func (b *Books) run(others []Check) error {
	// The end of request_retention moves and drops whole tables of receipts, which a snapshot does not
	// undo.
	if err := b.tx.Keep("ledger_receipt_old"); err != nil {
		return err
	}
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
	b.compareLimits()
	b.compareOver()
	for _, end := range b.finally {
		if err := end(); err != nil {
			return err
		}
	}
	return nil
}

// readQuarantine reports the damaged holds in the quarantine. A row stays until a person has
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

// Report adds a difference to the findings.
func (b *Books) Report(d Difference) {
	if len(b.report.Differences) == maxDifferences {
		b.report.Omitted++
		return
	}
	b.report.Differences = append(b.report.Differences, d)
}

// unproved adds a figure that cannot be compared.
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

// Accounts calls fn for each account in the ledger.
func (b *Books) Accounts(fn func(id string)) {
	for id, a := range b.accounts {
		if a.exists {
			fn(id)
		}
	}
}

// Keys calls fn for each key in the ledger.
func (b *Books) Keys(fn func(id, account string, closed bool)) {
	for id, k := range b.keys {
		if k.exists {
			fn(id, k.account, k.closed)
		}
	}
}

// Credits calls fn for each credit whose note begins with an ASCII prefix.
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
