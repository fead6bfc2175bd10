package topup

import (
	"database/sql"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// TopupState is the state of a top-up.
type TopupState string

// The states of a top-up. A top-up goes from created to pending to paid. If the customer pays late, a failed
// or expired one still becomes paid. A paid top-up never becomes unpaid again.
const (
	Created        TopupState = "created" // the customer was not sent to the provider yet
	Pending        TopupState = "pending" // the provider waits for the payment
	Paid           TopupState = "paid"    // the payment has come and was credited
	PartlyRefunded TopupState = "partly_refunded"
	Refunded       TopupState = "refunded"
	Disputed       TopupState = "disputed" // the customer's bank has claimed the money back
	Failed         TopupState = "failed"
	Expired        TopupState = "expired"
)

// States returns all states in the order of the console's filter.
func States() []TopupState {
	return []TopupState{Created, Pending, Paid, PartlyRefunded, Refunded, Disputed, Failed, Expired}
}

// Topup is a payment of an account and its credit.
type Topup struct {
	ID       string // topup_…; it also names the payment at the provider
	Account  string
	Provider string // Info.Name
	Method   string // Method.Name, or empty
	Live     bool   // false if the provider was in test mode
	State    TopupState
	Currency Currency
	Minor    int64 // to pay, in the currency's smallest unit, without tax
	Rate     Rate  // at the time of the order
	Bonus    Bonus
	Credit   money.Amount // with the bonus
	Session  string       // the provider's id of the payment page, or empty
	Address  string       // of the payment page, or empty
	Payment  string       // the provider's id of the payment; empty until it is paid
	Total    int64        // paid, in the smallest unit, with tax; 0 until it is paid

	CreatedMS int64
	ExpiresMS int64 // the customer can pay until then
	PaidMS    int64 // 0 until it is paid

	SavesCard bool   // the customer wants the card saved for automatic top-ups
	Customer  string // the provider's id of the customer with the saved card, or empty
	Card      string // the provider's id of the saved card of an automatic top-up; empty for other top-ups

	version int64 // number of changes of the row
	checkMS int64 // time of the next question to the provider; 0 means never
}

// IsPaid reports whether the payment was credited.
func (t Topup) IsPaid() bool { return t.PaidMS != 0 }

// IsAutomatic reports whether the top-up was begun by the customer's settings, not by the customer.
func (t Topup) IsAutomatic() bool { return t.Card != "" }

// IsRefused reports whether the provider has refused to begin the payment, so that nothing was charged.
func (t Topup) IsRefused() bool { return t.State == Failed && t.Session == "" }

// IsOpen reports whether the customer may still pay.
func (t Topup) IsOpen() bool { return t.State == Created || t.State == Pending }

// Reference returns the reference of the credit in the ledger.
func (t Topup) Reference() string { return t.Provider + ":" + t.Payment }

// TakenAt returns the credit to take back if minor of the payment is refunded or disputed: Credit times
// minor divided by Total, rounded half up, and at most Credit.
func (t Topup) TakenAt(minor int64) money.Amount {
	if t.Total <= 0 || minor >= t.Total {
		return t.Credit
	}
	part := new(big.Int).Mul(big.NewInt(int64(t.Credit)), big.NewInt(max(0, minor)))
	return money.Amount(roundHalfUp(part, big.NewInt(t.Total)).Int64())
}

// columns are the columns read by scanTopup.
const columns = `id, account, provider, method, live, state, currency, decimals, minor, rate_nano, bonus_millionths, credit_nano,
	session, address, payment, total_minor, created_ms, expires_ms, paid_ms, version, check_ms, saves_card, customer, card`

func scanTopup(row store.Row) (t Topup, err error) {
	var live, saves int64
	err = row.Scan(&t.ID, &t.Account, &t.Provider, &t.Method, &live, &t.State, &t.Currency.Code, &t.Currency.Decimals, &t.Minor, &t.Rate,
		&t.Bonus, &t.Credit, &t.Session, &t.Address, &t.Payment, &t.Total, &t.CreatedMS, &t.ExpiresMS, &t.PaidMS, &t.version, &t.checkMS,
		&saves, &t.Customer, &t.Card)
	t.Live, t.SavesCard = live != 0, saves != 0
	return t, err
}

// insertTx writes a new row.
func insertTx(tx *store.Tx, t Topup) error {
	_, err := tx.Exec(`INSERT INTO topup (`+columns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, '', '', '', 0, $13, $14, 0, 0, $15, $16, $17, $18)`,
		t.ID, t.Account, t.Provider, t.Method, store.Bool(t.Live), string(t.State), t.Currency.Code, t.Currency.Decimals, t.Minor,
		int64(t.Rate), int64(t.Bonus), int64(t.Credit), t.CreatedMS, t.ExpiresMS, t.checkMS,
		store.Bool(t.SavesCard), t.Customer, t.Card)
	if err != nil {
		return fmt.Errorf("insert a top-up: %w", err)
	}
	return nil
}

// saveTx writes the changeable columns of a locked row and increments its version.
func saveTx(tx *store.Tx, t Topup) error {
	_, err := tx.Exec(`UPDATE topup SET state = $1, session = $2, address = $3, payment = $4, total_minor = $5, paid_ms = $6,
		version = version + 1, check_ms = $7 WHERE id = $8`,
		string(t.State), t.Session, t.Address, t.Payment, t.Total, t.PaidMS, t.checkMS, t.ID)
	if err != nil {
		return fmt.Errorf("save a top-up: %w", err)
	}
	return nil
}

// lockTx locks and reads a row. found is false for an unknown id.
func lockTx(tx *store.Tx, id string) (t Topup, found bool, err error) {
	if err := tx.Lock("topup", "id", id); err != nil {
		return Topup{}, false, err
	}
	return readTx(tx, id)
}

func readTx(tx *store.Tx, id string) (t Topup, found bool, err error) {
	t, err = scanTopup(tx.QueryRow(`SELECT `+columns+` FROM topup WHERE id = $1`, id))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Topup{}, false, nil
	case err != nil:
		return Topup{}, false, fmt.Errorf("read a top-up: %w", err)
	}
	return t, true, nil
}

// GetTx returns a top-up. The error for an unknown id is a 404.
func GetTx(tx *store.Tx, id string) (Topup, error) {
	t, found, err := readTx(tx, id)
	if err == nil && !found {
		err = fault.New(fault.NotFound, "There is no top-up with the id %q. Check the id.", fault.Excerpt(id))
	}
	return t, err
}

// ListFilter selects top-ups. Empty fields select all.
type ListFilter struct {
	Account  string
	State    TopupState
	Provider string
	Payment  string // the provider's id of the payment or of its session
	// SinceMS (inclusive) and UntilMS (exclusive) bound the time of creation; 0 means no bound.
	SinceMS, UntilMS int64
	After            string // the last id of the page before
	Limit            int
}

// ListTx returns top-ups, newest first, and reports whether there are more.
func ListTx(tx *store.Tx, f ListFilter) ([]Topup, bool, error) {
	where, args := []string{"1 = 1"}, []any{}
	add := func(condition string, value any) {
		args = append(args, value)
		where = append(where, strings.ReplaceAll(condition, "?", "$"+strconv.Itoa(len(args))))
	}
	for _, c := range []struct{ condition, value string }{{"account = ?", f.Account}, {"state = ?", string(f.State)},
		{"provider = ?", f.Provider}, {"(payment = ? OR session = ?)", f.Payment}, {"id < ?", f.After}} {
		if c.value != "" {
			add(c.condition, c.value)
		}
	}
	if f.SinceMS != 0 {
		add("created_ms >= ?", f.SinceMS)
	}
	if f.UntilMS != 0 {
		add("created_ms < ?", f.UntilMS)
	}
	add("1 = 1 ORDER BY id DESC LIMIT ?", f.Limit+1)
	list, err := store.Collect(tx, scanTopup, `SELECT `+columns+` FROM topup WHERE `+strings.Join(where, " AND "), args...)
	if err != nil {
		return nil, false, fmt.Errorf("list top-ups: %w", err)
	}
	if len(list) > f.Limit {
		return list[:f.Limit], true, nil
	}
	return list, false, nil
}
