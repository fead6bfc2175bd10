package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"tollgate/internal/store"
)

// An audit reads one range of accounts after the other, each in a snapshot of its own, so that no
// snapshot stays open for long: a snapshot keeps the database from cleaning up SQLite's write-ahead
// log or PostgreSQL's dead rows. All figures of an account, of its keys and of its series are compared
// within one snapshot, so requests that end between two snapshots cause no differences. The last
// snapshot is for the rows that belong to no account (readRest).

// rangeRows is the number of movements after which a range ends. A range takes some seconds. A range
// has at least one account.
const rangeRows = 250_000

// Options select what to audit, and how.
type Options struct {
	Checks []Check
	// Account is the only account to audit. If empty, the whole books are audited.
	Account string
	// RangeRows is the number of movements after which a range ends. Zero means 250,000.
	RangeRows int64
	// From continues an audit that was interrupted. The zero value starts a new audit.
	From Progress
	// Save, if not nil, is called after each range. If Save returns an error, the audit returns that error.
	Save func(ctx context.Context, p Progress) error
}

// Progress is the state of an audit after a range.
type Progress struct {
	// After is the last account of the range.
	After string `json:"after,omitempty"`
	// Accounts is true if all accounts have been read, and Done if the audit is complete.
	Accounts bool `json:"accounts,omitempty"`
	Done     bool `json:"done,omitempty"`
	Findings
}

// ErrNoAccount means that the books do not contain the account to audit.
var ErrNoAccount = errors.New("no such account")

// Run audits the books with the other rooms' checks. See RunWith.
func Run(ctx context.Context, db *store.DB, checks ...Check) (Findings, error) {
	return RunWith(ctx, db, Options{Checks: checks})
}

// RunWith audits the books. It is safe while the service runs. Each range of accounts is read in one
// snapshot, and each receipt is read once. The audit checks:
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
// Other rooms add their checks in the same snapshots.
func RunWith(ctx context.Context, db *store.DB, o Options) (Findings, error) {
	p := o.From
	for !p.Done {
		var next Progress
		err := db.View(ctx, func(tx *store.Tx) (err error) {
			next, err = o.stepTx(tx, p)
			return err
		})
		if err != nil {
			return p.Findings, fmt.Errorf("audit: %w", err)
		}
		if p = next; o.Save != nil {
			if err := o.Save(ctx, p); err != nil {
				return p.Findings, fmt.Errorf("save the progress of an audit: %w", err)
			}
		}
	}
	return p.Findings, nil
}

// RunTx is like RunWith, in the caller's transaction, which must be a read-only snapshot.
func RunTx(tx *store.Tx, o Options) (Findings, error) {
	p := o.From
	for !p.Done {
		next, err := o.stepTx(tx, p)
		if err != nil {
			return p.Findings, fmt.Errorf("audit: %w", err)
		}
		p = next
	}
	return p.Findings, nil
}

// stepTx audits the next range after p.
func (o Options) stepTx(tx *store.Tx, p Progress) (Progress, error) {
	// At the end of request_retention, whole tables of receipts are moved and dropped. A snapshot does
	// not protect them.
	if err := tx.Keep("ledger_receipt_old"); err != nil {
		return p, err
	}
	p.Checked = maps.Clone(p.Checked)
	if p.Checked == nil {
		p.Checked = map[string]int64{}
	}
	p.Differences = append([]Difference{}, p.Differences...) // JSON: a list, never null
	p.Unproved = slices.Clone(p.Unproved)
	b := newBooks(tx, &p.Findings)
	var err error
	switch {
	case p.Accounts:
		b.span = span{none: true}
		if err = b.readRest(); err == nil {
			err = b.runChecks(o.Checks)
		}
		p.Done = true
	case o.Account != "":
		b.span = span{one: o.Account}
		err = b.run(o.Checks)
		if p.Done = true; err == nil && p.Checked["accounts"] == 0 && len(p.Differences) == 0 {
			err = ErrNoAccount
		}
	default:
		b.span, p.Accounts, err = nextSpan(tx, p.After, max(o.RangeRows, 0))
		if p.After = b.span.until; err == nil {
			err = b.run(o.Checks)
		}
	}
	p.OK = len(p.Differences) == 0
	return p, err
}

// span is a range of accounts. The zero value has all accounts.
type span struct {
	none         bool
	one          string // the only account
	after, until string // exclusive and inclusive; empty means no bound
}

// nextSpan returns the range that follows an account, and whether it is the last one.
func nextSpan(tx *store.Tx, after string, rows int64) (s span, last bool, err error) {
	if rows == 0 {
		rows = rangeRows
	}
	s.after, s.until = after, after
	const page = 1000
	for sum := int64(0); ; {
		accounts, err := store.Collect(tx, func(row store.Row) (a accountSize, err error) {
			err = row.Scan(&a.id, &a.movements)
			return a, err
		}, `SELECT id, seq FROM ledger_account WHERE id > $1 ORDER BY id LIMIT $2`, s.until, page)
		if err != nil {
			return s, false, err
		}
		for i, a := range accounts {
			// A damaged row must not make the sum wrong.
			if sum += 1 + min(max(a.movements, 0), rows); sum >= rows && (i+1 < len(accounts) || len(accounts) == page) {
				s.until = a.id
				return s, false, nil
			}
		}
		if len(accounts) < page {
			s.until = ""
			return s, true, nil
		}
		s.until = accounts[page-1].id
	}
}

// accountSize is an account with the number of its movements.
type accountSize struct {
	id        string
	movements int64
}

// Where returns a condition for the accounts of the audit's current range, and the arguments of a
// statement: args, then the arguments of the condition. In the last step (Rest), no row meets the
// condition.
func (b *Books) Where(column string, args ...any) (condition string, all []any) {
	place := func(value any) string {
		args = append(args, value)
		return "$" + strconv.Itoa(len(args))
	}
	switch s := b.span; {
	case s.none:
		return "1 = 0", args
	case s.one != "":
		condition = column + " = " + place(s.one)
	case s.after != "" && s.until != "":
		condition = column + " > " + place(s.after) + " AND " + column + " <= " + place(s.until)
	case s.after != "":
		condition = column + " > " + place(s.after)
	case s.until != "":
		condition = column + " <= " + place(s.until)
	default:
		condition = "1 = 1"
	}
	return "(" + condition + ")", args
}

// whereFree is Where for the subjects of free quotas, ACCOUNT/MODEL. The character 0 follows the
// slash in ASCII, so ACCOUNT0 is above all subjects of the account.
func (b *Books) whereFree() (condition string, args []any) {
	s := b.span
	low, high := s.after, s.until
	if s.one != "" {
		low, high = s.one, s.one
	}
	condition = "subject LIKE '%/%'"
	switch {
	case s.one != "":
		low += "/"
	case low != "":
		low += "0"
	}
	if low != "" {
		args = append(args, low)
		condition += " AND subject >= $" + strconv.Itoa(len(args))
	}
	if high != "" {
		args = append(args, high+"0")
		condition += " AND subject < $" + strconv.Itoa(len(args))
	}
	return condition, args
}

// Rest reports whether this is the last step of an audit of all accounts, which is for rows of no
// account.
func (b *Books) Rest() bool { return b.span.none }

// readRest reports the rows that belong to no account. Each table has an index that begins with the
// column, so the search for the next value skips all rows with the same value.
func (b *Books) readRest() error {
	for _, rest := range []struct{ what, table, column, others string }{
		{"a day is of a series that is not there", "ledger_day", "series", `SELECT 1 FROM ledger_series o WHERE o.id = v.value`},
		{"a rate window is of a key that is not there", "ledger_hit", "key", `SELECT 1 FROM ledger_key o WHERE o.id = v.value`},
		{keyWithoutBudget, "ledger_limit", "subject",
			`SELECT 1 FROM ledger_key o WHERE o.id = v.value OR v.value LIKE '%/%'`},
		{unknownInCharge, "ledger_charge", "account",
			`SELECT 1 FROM ledger_word o WHERE o.id = v.value`},
	} {
		err := b.each(func(scan scanner) error {
			d := Difference{What: rest.what}
			if err := scan(&d.Recorded); err != nil {
				return err
			}
			b.Report(d)
			return nil
		}, `WITH RECURSIVE v(value) AS (SELECT MIN(`+rest.column+`) FROM `+rest.table+`
			UNION ALL SELECT (SELECT MIN(`+rest.column+`) FROM `+rest.table+` WHERE `+rest.column+` > v.value) FROM v WHERE v.value IS NOT NULL)
			SELECT CAST(value AS TEXT) FROM v WHERE value IS NOT NULL AND NOT EXISTS (`+rest.others+`)`)
		if err != nil {
			return err
		}
	}
	return b.each(func(scan scanner) error {
		d := Difference{What: "an open hold has a receipt of another account"}
		if err := scan(&d.Account, &d.Request, &d.Recorded); err != nil {
			return err
		}
		b.Report(d)
		return nil
	}, `SELECT h.account, h.id, r.account FROM ledger_hold h JOIN ledger_receipt r ON r.id = h.id
		WHERE r.outcome <> 4 AND r.account <> h.account`)
}
