// Package account owns the customers of the gateway: accounts, their API keys with the allowlists,
// their console sign-ins, and the cache for the keys of requests.
//
// Invariants. A key's secret and a password are stored only as hashes; the secret leaves this
// package once, at its creation. The money side of an account or key (balance, limits, disabled
// flag, version) belongs to package ledger and changes in the same transaction; every change of a
// key raises its version there. The key cache may accept a key from memory, but rejects a key only
// after a database read that began after the request arrived. Lists are stored and shown in
// canonical form.
//
// Functions with the suffix Tx join the caller's transaction and have no effect outside it. They
// return *fault.Error for errors that a person can correct: 404 not_found for an unknown
// identifier, 400 invalid_request with the field. Row locks: an api_key row is locked before the
// ledger's rows. Never lock an api_key row while holding the ledger's rows.
package account

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// Account is one customer of the gateway, with its money side as of the transaction that read it.
type Account struct {
	ID        string // acct_…
	Name      string
	Email     string // contact address in canonical form; empty for none
	Note      string // visible only to operators
	CreatedMS int64
	Test      bool // a test account of an operator; see Principal.Test
	Prices    Prices
	Money     ledger.AccountState
	Over      money.Amount // usage beyond the holds
}

// DemoEmail is the contact address and the sign-in of the demo account, created by the first start.
const DemoEmail = "demo@example.com"

// DemoCredit is the initial credit of the demo account; its note is DemoNote.
const (
	DemoCredit = 10 * money.USD
	DemoNote   = "demo credit"
)

// NewAccount has the fields of a new account.
type NewAccount struct {
	// Name is required, at most 200 characters.
	Name string
	// Email is the contact address; empty for none.
	Email string
	// PasswordHash (see Passwords.Hash) makes Email a console sign-in too. If PasswordHash is
	// empty, no sign-in is created.
	PasswordHash string
	// Floor is the lowest balance allowed, zero or negative.
	Floor money.Amount
	// Factor and Prices replace the catalog's prices, as in Prices. Nil means the catalog's prices.
	Factor *money.Factor
	Prices map[string]money.Factor
	// Test marks the account as a test account of an operator.
	Test bool
}

// Check brings the texts into canonical form, and returns the joined errors of all invalid fields.
// CreateTx calls Check.
func (a *NewAccount) Check() error {
	var nameErr, emailErr, factorErr error
	a.Name, nameErr = checkName("name", a.Name, "")
	if a.Email != "" {
		a.Email, emailErr = ParseEmail(a.Email)
	} else if a.PasswordHash != "" {
		emailErr = fault.At(fault.InvalidRequest, "email",
			"A password needs an email: the two together are the console sign-in. Send both or neither.")
	}
	if a.Factor != nil {
		factorErr = checkFactor(*a.Factor)
	}
	return errors.Join(nameErr, emailErr, factorErr, checkPrices(a.Prices), checkFloor(a.Floor))
}

// CreateTx opens an account with a balance of zero. If there is a password hash, CreateTx also
// creates the first console sign-in.
func CreateTx(tx *store.Tx, o NewAccount) (Account, error) {
	if err := o.Check(); err != nil {
		return Account{}, err
	}
	now, err := tx.NowMS()
	if err != nil {
		return Account{}, err
	}
	a := Account{ID: newID("acct_", now), Name: o.Name, Email: o.Email, CreatedMS: now}
	factor := money.One
	if o.Factor != nil {
		factor = *o.Factor
	}
	if _, err := tx.Exec(`INSERT INTO account (id, name, email, created_ms, price_factor, prices, test) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		a.ID, a.Name, a.Email, a.CreatedMS, int64(factor), pricesText(o.Prices), store.Bool(o.Test)); err != nil {
		return Account{}, fmt.Errorf("insert account: %w", err)
	}
	if err := ledger.OpenAccountTx(tx, a.ID, o.Floor); err != nil {
		return Account{}, err
	}
	if o.PasswordHash != "" {
		if _, err := CreateUserTx(tx, a.ID, SignIn{Email: o.Email, PasswordHash: o.PasswordHash}); err != nil {
			return Account{}, err
		}
	}
	return GetTx(tx, a.ID)
}

// GetTx returns an account.
func GetTx(tx *store.Tx, account string) (Account, error) {
	a, err := scanAccount(tx.QueryRow(`SELECT `+accountColumns+` FROM account WHERE id = $1`, account))
	if errors.Is(err, sql.ErrNoRows) {
		return Account{}, notFound("account", account)
	}
	if err != nil {
		return Account{}, fmt.Errorf("read account: %w", err)
	}
	list := []Account{a}
	err = addMoney(tx, list)
	return list[0], err
}

// LockTx is GetTx with a row lock. Until this transaction ends, no other transaction can change the
// account, except for its money.
func LockTx(tx *store.Tx, account string) (Account, error) {
	if err := tx.Lock("account", "id", account); err != nil {
		return Account{}, err
	}
	return GetTx(tx, account)
}

// accountColumns are the columns read by scanAccount.
const accountColumns = `id, name, email, note, created_ms, price_factor, prices, test`

func scanAccount(row store.Row) (a Account, err error) {
	var factor any
	var prices string
	var test int64
	if err := row.Scan(&a.ID, &a.Name, &a.Email, &a.Note, &a.CreatedMS, &factor, &prices, &test); err != nil {
		return a, err
	}
	a.Prices, a.Test = loadPrices(factor, prices), test != 0
	return a, nil
}

const accountsPage = `SELECT ` + accountColumns + ` FROM account WHERE id > $1 ORDER BY id LIMIT $2`

// ListTx returns up to limit accounts in the order of their creation, starting after the
// identifier in after, and reports whether there are more.
func ListTx(tx *store.Tx, after string, limit int) ([]Account, bool, error) {
	list, more, err := listTx(tx, limit, scanAccount, accountsPage, after, limit+1)
	if err != nil {
		return nil, false, err
	}
	return list, more, addMoney(tx, list)
}

// addMoney sets the fields Money and Over of accounts from the ledger.
func addMoney(tx *store.Tx, list []Account) error {
	accounts := ids(list, func(a Account) string { return a.ID })
	states, err := ledger.AccountsTx(tx, accounts)
	if err != nil {
		return err
	}
	over, err := ledger.OverOfAccountsTx(tx, accounts)
	for i, a := range list {
		list[i].Money, list[i].Over = states[a.ID], over[a.ID]
	}
	return err
}

// Patch is a change of an account. Nil leaves a field unchanged.
type Patch struct {
	Name     *string
	Email    *string // the contact address, empty for none; sign-ins do not change
	Note     *string // at most 4000 characters
	Disabled *bool
	Floor    *money.Amount
	Factor   *money.Factor
	Prices   *map[string]money.Factor // replaces all factors of single models
	Test     *bool
}

// Check brings the texts of a patch of account a into canonical form, and returns the joined errors
// of all invalid fields. ChangeTx calls Check.
func (p *Patch) Check(a Account) error {
	var errs [6]error
	if p.Name != nil {
		var name string
		name, errs[0] = checkName("name", *p.Name, a.Name)
		p.Name = &name
	}
	if p.Note != nil {
		var note string
		note, errs[1] = checkNote(*p.Note, a.Note)
		p.Note = &note
	}
	if p.Email != nil {
		email := strings.TrimSpace(*p.Email)
		if email != "" && email != a.Email {
			email, errs[5] = ParseEmail(email)
		}
		p.Email = &email
	}
	if p.Floor != nil {
		errs[2] = checkFloor(*p.Floor)
	}
	if p.Factor != nil {
		errs[3] = checkFactor(*p.Factor)
	}
	if p.Prices != nil {
		errs[4] = checkPrices(*p.Prices)
	}
	return errors.Join(errs[:]...)
}

// ChangeTx changes an account and returns the new state. After disabling an account, call
// Keys.ForgetAccount after the commit, because all keys of the account must stop working. After a
// change of the prices, all nodes bill newly admitted requests by the new prices.
func ChangeTx(tx *store.Tx, account string, c Patch) (Account, error) {
	a, err := LockTx(tx, account)
	if err != nil {
		return Account{}, err
	}
	if err := c.Check(a); err != nil {
		return Account{}, err
	}
	if err := c.writeTx(tx, account); err != nil {
		return Account{}, err
	}
	if c.Disabled != nil || c.Floor != nil {
		if err := ledger.ChangeAccountTx(tx, account, ledger.AccountChange{Floor: c.Floor, Disabled: c.Disabled}); err != nil {
			return Account{}, err
		}
	}
	return GetTx(tx, account)
}

// writeTx changes an account's row. After a change of the prices or of Test, the account's keys get
// new versions, because nodes cache these with each key.
func (p *Patch) writeTx(tx *store.Tx, account string) error {
	var prices, test any
	if p.Prices != nil {
		prices = pricesText(*p.Prices)
	}
	if p.Test != nil {
		test = store.Bool(*p.Test)
	}
	_, err := tx.Exec(`UPDATE account SET name = COALESCE($1, name), email = COALESCE($2, email), note = COALESCE($3, note),
		price_factor = COALESCE($4, price_factor), prices = COALESCE($5, prices), test = COALESCE($6, test) WHERE id = $7`,
		p.Name, p.Email, p.Note, (*int64)(p.Factor), prices, test, account)
	if err != nil {
		return fmt.Errorf("change account: %w", err)
	}
	if p.Factor == nil && p.Prices == nil && p.Test == nil {
		return nil
	}
	return ledger.RecheckKeysTx(tx, account)
}

// checkFloor rejects an overdraft floor above zero.
func checkFloor(floor money.Amount) error {
	if floor > 0 {
		return fault.At(fault.InvalidRequest, "overdraft_floor_usd",
			"overdraft_floor_usd is the lowest balance allowed: it must be zero or negative, for example -5.")
	}
	return nil
}

// notFound returns the 404 for an unknown identifier.
func notFound(kind, id string) error {
	if kind == "account" { // no account is ever deleted
		return fault.New(fault.NotFound, "There is no account with the id %q. Check the id: `tollgate account list` shows all.", clip(id))
	}
	return fault.New(fault.NotFound, "There is no %s with the id %q. Check the id, or whether the %[1]s was deleted.", kind, clip(id))
}

// IsNotFound reports whether an error of this package is a 404.
func IsNotFound(err error) bool { return hasCode(err, fault.NotFound) }

// IsInvalid reports whether an error of this package is a 400 for an invalid field.
func IsInvalid(err error) bool { return hasCode(err, fault.InvalidRequest) }

func hasCode(err error, code fault.Code) bool {
	f, ok := errors.AsType[*fault.Error](err)
	return ok && f.Code == code
}

// newID returns an identifier that sorts by the database's clock, like the column created_ms.
func newID(prefix string, nowMS int64) string { return id.At(prefix, time.UnixMilli(nowMS)) }
