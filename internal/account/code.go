package account

import (
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// A code has 100 random bits, in groups for reading aloud. The alphabet has no letters that look
// like digits.
const (
	codeAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	codeDigits   = 20
	codeGroup    = 5
)

// maxCodes bounds the codes of one batch.
const maxCodes = 1000

// RedeemCode is a code that can be redeemed once for a credit. It does not have the code's text.
type RedeemCode struct {
	ID         string // code_…
	Batch      string // batch_…, common to all codes of one call
	Hint       string // end of the code's text
	Value      money.Amount
	CreatedMS  int64
	ExpiresMS  int64  // zero for never
	Account    string // the account that redeemed the code, or empty
	RedeemedMS int64
	VoidedMS   int64 // zero if the code was not voided
}

// The states of a code.
const (
	CodeUnused  = "unused"
	CodeUsed    = "used"
	CodeExpired = "expired"
	CodeVoid    = "void"
)

// State returns the state of the code at nowMS.
func (c RedeemCode) State(nowMS int64) string {
	switch {
	case c.RedeemedMS != 0:
		return CodeUsed
	case c.VoidedMS != 0:
		return CodeVoid
	case c.ExpiresMS != 0 && nowMS >= c.ExpiresMS:
		return CodeExpired
	}
	return CodeUnused
}

// NewCodes describes a batch of new codes.
type NewCodes struct {
	Value     money.Amount // value of each code, more than zero
	Count     int64        // 1 to 1000
	ExpiresMS int64        // zero for never
}

// CreateCodesTx creates a batch of codes and returns the codes and their texts. The texts are not
// stored.
func CreateCodesTx(tx *store.Tx, n NewCodes) ([]RedeemCode, []string, error) {
	now, err := tx.NowMS()
	if err != nil {
		return nil, nil, err
	}
	switch {
	case n.Value <= 0:
		return nil, nil, fault.At(fault.InvalidRequest, "usd",
			"The amount (usd) must be above 0: it is the value of each code in US dollars.")
	case n.Count < 1 || n.Count > maxCodes:
		return nil, nil, fault.At(fault.InvalidRequest, "count", "count must be a whole number from 1 to %d.", maxCodes)
	case n.ExpiresMS != 0 && n.ExpiresMS <= now:
		return nil, nil, fault.At(fault.InvalidRequest, "expires", "expires must lie in the future, in Unix seconds.")
	}
	batch := newID("batch_", now)
	codes, texts := make([]RedeemCode, n.Count), make([]string, n.Count)
	for i := range codes {
		text := newCode()
		c := RedeemCode{ID: newID("code_", now), Batch: batch, Hint: text[len(text)-codeGroup:], Value: n.Value, CreatedMS: now,
			ExpiresMS: n.ExpiresMS}
		if _, err := tx.Exec(`INSERT INTO account_code
			(hash, id, batch, hint, usd_nano, created_ms, expires_ms, account, redeemed_ms, voided_ms)
			VALUES ($1, $2, $3, $4, $5, $6, $7, '', 0, 0)`,
			hashText(canonicalCode(text)), c.ID, c.Batch, c.Hint, int64(c.Value), c.CreatedMS, c.ExpiresMS); err != nil {
			return nil, nil, fmt.Errorf("insert code: %w", err)
		}
		codes[i], texts[i] = c, text
	}
	return codes, texts, nil
}

// newCode creates the text of a code.
func newCode() string {
	var raw [codeDigits]byte
	rand.Read(raw[:]) // never fails (crypto/rand)
	var text strings.Builder
	for i, b := range raw {
		if i > 0 && i%codeGroup == 0 {
			text.WriteByte('-')
		}
		text.WriteByte(codeAlphabet[int(b)%len(codeAlphabet)]) // 256 is a multiple of 32
	}
	return text.String()
}

// canonicalCode returns the code's text in the form for hashText, which is the same for all
// spellings of the code.
func canonicalCode(text string) string {
	return strings.NewReplacer("-", "", " ", "", "\t", "", "O", "0", "I", "1", "L", "1").Replace(strings.ToUpper(text))
}

const codeColumns = `id, batch, hint, usd_nano, created_ms, expires_ms, account, redeemed_ms, voided_ms`

func scanCode(row store.Row) (c RedeemCode, err error) {
	err = row.Scan(&c.ID, &c.Batch, &c.Hint, &c.Value, &c.CreatedMS, &c.ExpiresMS, &c.Account, &c.RedeemedMS, &c.VoidedMS)
	return c, err
}

const (
	newestCodes = `SELECT ` + codeColumns + ` FROM account_code ORDER BY id DESC LIMIT $1`
	codesPage   = `SELECT ` + codeColumns + ` FROM account_code WHERE id < $1 ORDER BY id DESC LIMIT $2`
)

// ListCodesTx returns up to limit codes, newest first, beginning after the identifier after, and
// reports whether there are more.
func ListCodesTx(tx *store.Tx, after string, limit int) ([]RedeemCode, bool, error) {
	text, args := newestCodes, []any{limit + 1}
	if after != "" {
		text, args = codesPage, []any{after, limit + 1}
	}
	return listTx(tx, limit, scanCode, text, args...)
}

// GetCodeTx returns a code.
func GetCodeTx(tx *store.Tx, code string) (RedeemCode, error) {
	c, err := codeTx(tx, `id = $1`, code)
	if errors.Is(err, sql.ErrNoRows) {
		return RedeemCode{}, notFound("code", code)
	}
	return c, err
}

// VoidCodeTx voids a code. A redeemed code is an error; voiding twice changes nothing.
func VoidCodeTx(tx *store.Tx, code string) (RedeemCode, error) {
	if err := tx.Lock("account_code", "id", code); err != nil {
		return RedeemCode{}, err
	}
	c, err := GetCodeTx(tx, code)
	if err != nil {
		return RedeemCode{}, err
	}
	if c.RedeemedMS != 0 {
		return RedeemCode{}, fault.New(fault.InvalidRequest,
			"This code is redeemed already. Take its value back from the account %s instead.", c.Account)
	}
	if c.VoidedMS != 0 {
		return c, nil
	}
	if c.VoidedMS, err = tx.NowMS(); err != nil {
		return RedeemCode{}, err
	}
	if _, err := tx.Exec(`UPDATE account_code SET voided_ms = $1 WHERE id = $2`, c.VoidedMS, c.ID); err != nil {
		return RedeemCode{}, fmt.Errorf("void code: %w", err)
	}
	return c, nil
}

func codeTx(tx *store.Tx, where string, arg string) (RedeemCode, error) {
	c, err := scanCode(tx.QueryRow(`SELECT `+codeColumns+` FROM account_code WHERE `+where, arg))
	if err != nil {
		return RedeemCode{}, fmt.Errorf("read code: %w", err)
	}
	return c, nil
}

// RedeemTx credits a code's value to an existing account, and returns the code's new state and the
// account's new balance. Only one of several concurrent calls redeems a code, because RedeemTx locks
// the code. A *fault.Error at `code` gives the reason for a failure.
func RedeemTx(tx *store.Tx, account, text string) (RedeemCode, money.Amount, error) {
	hash := hashText(canonicalCode(text))
	if err := tx.Lock("account_code", "hash", hash); err != nil {
		return RedeemCode{}, 0, err
	}
	c, err := codeTx(tx, `hash = $1`, hash)
	if errors.Is(err, sql.ErrNoRows) {
		return RedeemCode{}, 0, fault.At(fault.InvalidRequest, "code", "There is no such code. Check it letter by letter.")
	}
	if err != nil {
		return RedeemCode{}, 0, err
	}
	now, err := tx.NowMS()
	if err != nil {
		return RedeemCode{}, 0, err
	}
	if err := redeemable(c, account, now); err != nil {
		return RedeemCode{}, 0, err
	}
	balance, err := ledger.CreditTx(tx, account, c.Value, codeNote+c.ID)
	if errors.Is(err, ledger.ErrRange) {
		err = fault.At(fault.InvalidRequest, "code",
			"This would bring the balance out of its range. Nothing was changed, and the code is still valid.")
	}
	if err != nil {
		return RedeemCode{}, 0, err
	}
	states, err := ledger.AccountsTx(tx, []string{account}) // the credit has locked the account
	switch {
	case err != nil:
		return RedeemCode{}, 0, err
	case states[account].Disabled:
		return RedeemCode{}, 0, fault.At(fault.InvalidRequest, "code",
			"Your account is disabled, so nothing was credited. The code is still valid. Ask the operator to enable the account.")
	}
	c.Account, c.RedeemedMS = account, now
	if _, err := tx.Exec(`UPDATE account_code SET account = $1, redeemed_ms = $2 WHERE hash = $3`, c.Account, c.RedeemedMS, hash); err != nil {
		return RedeemCode{}, 0, fmt.Errorf("redeem code: %w", err)
	}
	return c, balance, nil
}

// redeemable returns an error unless the account can redeem the code.
func redeemable(c RedeemCode, account string, nowMS int64) error {
	date := func(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05 UTC") }
	switch state := c.State(nowMS); {
	case state == CodeUsed && c.Account == account:
		return fault.At(fault.InvalidRequest, "code", "You redeemed this code already, on %s. Its value was credited then.", date(c.RedeemedMS))
	case state == CodeUsed:
		return fault.At(fault.InvalidRequest, "code", "This code was redeemed already.")
	case state == CodeExpired:
		return fault.At(fault.InvalidRequest, "code", "This code expired on %s. Ask for another one.", date(c.ExpiresMS))
	case state == CodeVoid:
		return fault.At(fault.InvalidRequest, "code", "This code is no longer valid. Ask for another one.")
	}
	return nil
}
