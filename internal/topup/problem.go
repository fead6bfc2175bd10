package topup

import (
	"fmt"

	"tollgate/internal/fault"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// problemKind is the kind of a problem.
type problemKind string

const (
	problemUnknown       problemKind = "unknown_topup"  // a payment names a missing top-up
	problemOtherTopup    problemKind = "other_topup"    // a payment names another top-up
	problemMode          problemKind = "mode"           // test and live mode were mixed
	problemCurrency      problemKind = "currency"       // paid in another currency
	problemAmount        problemKind = "amount"         // another amount was paid
	problemMethod        problemKind = "method"         // paid in another way than chosen
	problemProvider      problemKind = "provider"       // a message of one provider names a top-up of another
	problemSecondPayment problemKind = "second_payment" // a top-up was paid twice
	problemUnpaid        problemKind = "unpaid"         // credited, but not paid at the provider
	problemDispute       problemKind = "dispute"
	problemWarning       problemKind = "warning"    // the provider warns about a payment
	problemRefund        problemKind = "refund"     // the provider refuses a refund
	problemRefunded      problemKind = "refunded"   // the provider paid back an amount that it does not report
	problemUnanswered    problemKind = "unanswered" // the provider has not answered about a top-up for long
	problemOrder         problemKind = "order"      // the provider refuses to begin payments
	problemAutomatic     problemKind = "automatic"  // the settings of the shop stop automatic top-ups
)

// problemKinds returns all kinds.
func problemKinds() []problemKind {
	return []problemKind{problemUnknown, problemOtherTopup, problemMode, problemCurrency, problemAmount, problemMethod, problemProvider,
		problemSecondPayment, problemUnpaid, problemDispute, problemWarning, problemRefund, problemRefunded, problemUnanswered,
		problemOrder, problemAutomatic}
}

// Problem is trouble with a payment. An operator must examine it. Repetitions count on the same row.
type Problem struct {
	ID       string // problem_…
	Provider string
	Kind     problemKind
	Object   string // the provider's id of the object, or of the cause
	Topup    string // the newest top-up with the problem
	Account  string // empty if no top-up is known
	Detail   string
	Count    int64 // how often it was seen
	FirstMS  int64
	LastMS   int64
	ClosedMS int64 // when an operator closed it; 0 while it is open
	DueMS    int64 // when the provider needs the answer to a dispute; 0 if it needs none
}

// problemObject returns the provider's most specific id of a payment.
func problemObject(t Topup, p ProviderPayment) string {
	for _, object := range []string{p.ID, p.Session, t.Payment, t.Session} {
		if object != "" {
			return object
		}
	}
	return t.ID
}

const problemColumns = `id, provider, kind, object, topup, account, detail, seen, first_ms, last_ms, closed_ms, due_ms`

func scanProblem(row store.Row) (p Problem, err error) {
	err = row.Scan(&p.ID, &p.Provider, &p.Kind, &p.Object, &p.Topup, &p.Account, &p.Detail, &p.Count, &p.FirstMS, &p.LastMS, &p.ClosedMS,
		&p.DueMS)
	return p, err
}

// recurs reports whether a closed problem of the kind opens again if it is seen again.
func (k problemKind) recurs() bool {
	return k == problemUnanswered || k == problemOrder || k == problemAutomatic
}

// reportTx records a problem. A closed problem stays closed, unless its kind recurs.
func reportTx(tx *store.Tx, p Problem) error {
	now, err := tx.NowMS()
	if err != nil {
		return err
	}
	_, err = tx.Exec(`INSERT INTO topup_problem (`+problemColumns+`, mailed) VALUES ($1, $2, $3, $4, $5, $6, $7, 1, $8, $8, 0, 0, 0)
		ON CONFLICT (provider, kind, object) DO UPDATE SET seen = topup_problem.seen + 1, last_ms = excluded.last_ms,
		topup = excluded.topup, account = excluded.account, detail = excluded.detail,
		mailed = CASE WHEN $9 = 1 AND topup_problem.closed_ms > 0 THEN 0 ELSE topup_problem.mailed END,
		closed_ms = CASE WHEN $9 = 1 THEN 0 ELSE topup_problem.closed_ms END`,
		id.New("problem_"), p.Provider, string(p.Kind), p.Object, p.Topup, p.Account, p.Detail, now, store.Bool(p.Kind.recurs()))
	if err != nil {
		return fmt.Errorf("record a problem of a payment: %w", err)
	}
	return nil
}

// hasProblemTx reports whether a top-up has, or had, a problem of a kind.
func hasProblemTx(tx *store.Tx, t Topup, kind problemKind) (has bool, err error) {
	err = tx.QueryRow(`SELECT EXISTS (SELECT 1 FROM topup_problem WHERE provider = $1 AND kind = $2 AND object = $3)`,
		t.Provider, string(kind), t.Payment).Scan(&has)
	if err != nil {
		return false, fmt.Errorf("look for a problem of a payment: %w", err)
	}
	return has, nil
}

// dueTx records the earliest deadline among the open disputes of a payment.
func dueTx(tx *store.Tx, t Topup, disputes []ProviderDispute) error {
	due := int64(0)
	for _, d := range disputes {
		if d.Open && d.DueMS > 0 && (due == 0 || d.DueMS < due) {
			due = d.DueMS
		}
	}
	_, err := tx.Exec(`UPDATE topup_problem SET due_ms = $1 WHERE provider = $2 AND kind = $3 AND object = $4 AND due_ms <> $1`,
		due, t.Provider, string(problemDispute), t.Payment)
	if err != nil {
		return fmt.Errorf("record the end of a dispute: %w", err)
	}
	return nil
}

// ProblemsTx returns the open problems, newest first, at most limit. If after is not empty, the list begins
// after the problem with that id. more reports whether there are further ones.
func ProblemsTx(tx *store.Tx, after string, limit int) (list []Problem, more bool, err error) {
	list, err = store.Collect(tx, scanProblem, `SELECT `+problemColumns+` FROM topup_problem WHERE closed_ms = 0
		AND ($1 = '' OR id < $1) ORDER BY id DESC LIMIT $2`, after, limit+1)
	if err != nil {
		return nil, false, fmt.Errorf("list the problems of payments: %w", err)
	}
	return list[:min(len(list), limit)], len(list) > limit, nil
}

// CloseProblemTx closes a problem and returns it. isNew is false if the problem was closed before.
func CloseProblemTx(tx *store.Tx, problem string) (p Problem, isNew bool, err error) {
	now, err := tx.NowMS()
	if err != nil {
		return Problem{}, false, err
	}
	changed, err := tx.Exec(`UPDATE topup_problem SET closed_ms = $1 WHERE id = $2 AND closed_ms = 0`, now, problem)
	if err != nil {
		return Problem{}, false, fmt.Errorf("close a problem: %w", err)
	}
	list, err := store.Collect(tx, scanProblem, `SELECT `+problemColumns+` FROM topup_problem WHERE id = $1`, problem)
	if err != nil {
		return Problem{}, false, fmt.Errorf("read a problem: %w", err)
	}
	if len(list) == 0 {
		return Problem{}, false, fault.New(fault.NotFound, "There is no problem with the id %q. Check the id.", fault.Excerpt(problem))
	}
	return list[0], changed == 1, nil
}
