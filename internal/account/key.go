package account

import (
	"database/sql"
	"errors"
	"fmt"
	"net/netip"

	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// maxRPM bounds the requests per minute of a key.
const maxRPM = 1_000_000

// Key is an API key without its secret. The limits and counters are as of the transaction that read
// the key.
type Key struct {
	ID            string // key_…
	Account       string
	Name          string
	Hint          string         // first and last characters of the secret
	AllowedModels []string       // nil for all
	AllowedIPs    []netip.Prefix // nil for all; canonical
	// WaitForPictures reports whether submissions of images wait for their result.
	WaitForPictures bool
	CreatedMS       int64
	Ledger          ledger.KeyState
	Over            money.Amount // usage beyond the holds
}

// KeySettings are the settings of a key.
type KeySettings struct {
	Name          string        // may be empty
	Disabled      bool          // requests with the key get 401
	RPM           *int64        // requests per minute, 1 to 1,000,000; nil means no limit
	DailyBudget   *money.Amount // per UTC day, not negative; nil means no limit
	TotalLimit    *money.Amount // over the key's life, not negative; nil means no limit
	AllowedModels []string      // nil for all; see ParseAllowedModels
	AllowedIPs    []string      // nil for all; see ParseAllowedIPs
	// WaitForPictures makes submissions of images wait for their result, for clients that cannot poll.
	WaitForPictures bool

	oldName string // the key's current name, for checkLabel
}

// keyValues are valid settings of a key in canonical form.
type keyValues struct {
	name   string
	models []string
	ips    []netip.Prefix
	wait   int64 // 1 if submissions of images wait
	limits ledger.KeyLimits
}

// Check returns the joined errors of all invalid fields. Functions that create or change a key do
// the same check.
func (s KeySettings) Check() error {
	_, err := s.check()
	return err
}

// check returns the settings in canonical form, and the joined errors of all invalid fields.
func (s KeySettings) check() (f keyValues, err error) {
	var nameErr, modelsErr, ipsErr, rpmErr, dailyErr, totalErr error
	f.name, nameErr = checkLabel("name", s.Name, s.oldName)
	f.models, modelsErr = ParseAllowedModels(s.AllowedModels)
	f.ips, ipsErr = ParseAllowedIPs(s.AllowedIPs)
	if s.RPM != nil && (*s.RPM < 1 || *s.RPM > maxRPM) {
		rpmErr = fault.At(fault.InvalidRequest, "rpm",
			"rpm must be a whole number from 1 to %d, or no limit (null; in the terminal none). To stop a key, disable it.", maxRPM)
	}
	if s.DailyBudget != nil && *s.DailyBudget < 0 {
		dailyErr = fault.At(fault.InvalidRequest, "daily_budget_usd",
			"daily_budget_usd must not be negative. For no limit, send null (in the terminal: none).")
	}
	if s.TotalLimit != nil && *s.TotalLimit < 0 {
		totalErr = fault.At(fault.InvalidRequest, "total_limit_usd",
			"total_limit_usd must not be negative. For no limit, send null (in the terminal: none).")
	}
	if s.WaitForPictures {
		f.wait = 1
	}
	f.limits = ledger.KeyLimits{RPM: s.RPM, DailyBudget: s.DailyBudget, TotalLimit: s.TotalLimit, Disabled: s.Disabled}
	return f, errors.Join(nameErr, modelsErr, ipsErr, rpmErr, dailyErr, totalErr)
}

// settings returns the current settings of a key.
func (k Key) settings() KeySettings {
	l := k.Ledger.Limits
	return KeySettings{Name: k.Name, Disabled: l.Disabled, RPM: l.RPM, DailyBudget: l.DailyBudget, TotalLimit: l.TotalLimit,
		AllowedModels: k.AllowedModels, AllowedIPs: ShowIPs(k.AllowedIPs), WaitForPictures: k.WaitForPictures, oldName: k.Name}
}

// CreateKeyTx creates a key for an account and returns the key with its secret, which is not
// stored.
func CreateKeyTx(tx *store.Tx, account string, s KeySettings) (Key, string, error) {
	values, err := s.check()
	if err != nil {
		return Key{}, "", err
	}
	if _, err := GetTx(tx, account); err != nil {
		return Key{}, "", err
	}
	secret := newSecret()
	key, err := insertKeyTx(tx, account, values, Proof{Hash: digestOf(secret).String(), Hint: HintOf(secret)})
	if err != nil {
		return Key{}, "", err
	}
	k, err := GetKeyTx(tx, key)
	return k, secret, err
}

const keyColumns = `id, account, name, hint, allowed_models, allowed_ips, wait_pictures, created_ms`

func scanKey(row store.Row) (k Key, err error) {
	var models, ips string
	var wait int64
	if err := row.Scan(&k.ID, &k.Account, &k.Name, &k.Hint, &models, &ips, &wait, &k.CreatedMS); err != nil {
		return k, err
	}
	k.WaitForPictures = wait == 1
	k.AllowedModels, k.AllowedIPs, err = loadAllowlists(models, ips)
	return k, err
}

func loadAllowlists(models, ips string) ([]string, []netip.Prefix, error) {
	allowedModels, err := loadList(models)
	if err != nil {
		return nil, nil, err
	}
	addresses, err := loadList(ips)
	if err != nil {
		return nil, nil, err
	}
	allowedIPs, err := ParseAllowedIPs(addresses)
	if err != nil {
		return nil, nil, fmt.Errorf("stored allowlist %q is damaged", clip(ips))
	}
	return allowedModels, allowedIPs, nil
}

// GetKeyTx returns a key unless it is deleted.
func GetKeyTx(tx *store.Tx, key string) (Key, error) {
	return oneKeyTx(tx, key, tx.QueryRow(`SELECT `+keyColumns+` FROM api_key WHERE id = $1 AND deleted = 0`, key))
}

// AccountKeyTx is GetKeyTx for a key of an account. A key of another account is not found.
func AccountKeyTx(tx *store.Tx, account, key string) (Key, error) {
	return oneKeyTx(tx, key, tx.QueryRow(`SELECT `+keyColumns+` FROM api_key WHERE id = $1 AND account = $2 AND deleted = 0`, key, account))
}

// oneKeyTx scans the row of a key and adds its state in the ledger.
func oneKeyTx(tx *store.Tx, key string, row *sql.Row) (Key, error) {
	k, err := scanKey(row)
	if errors.Is(err, sql.ErrNoRows) {
		return Key{}, notFound("key", key)
	}
	if err != nil {
		return Key{}, fmt.Errorf("read key: %w", err)
	}
	list := []Key{k}
	err = addKeyStates(tx, list)
	return list[0], err
}

const keysPage = `SELECT ` + keyColumns + ` FROM api_key WHERE account = $1 AND id > $2 AND deleted = 0 ORDER BY id LIMIT $3`

// ListKeysTx returns up to limit keys of an account in the order of their creation, starting after
// the identifier in after, and reports whether there are more. It leaves out deleted keys.
func ListKeysTx(tx *store.Tx, account, after string, limit int) ([]Key, bool, error) {
	return listKeysTx(tx, limit, account, keysPage, account, after, limit+1)
}

const newestKeys = `SELECT ` + keyColumns + ` FROM api_key WHERE account = $1 AND deleted = 0 ORDER BY id DESC LIMIT $2`

// NewestKeysTx returns up to limit keys of an account, newest first, and reports whether there are
// older keys. It leaves out deleted keys.
func NewestKeysTx(tx *store.Tx, account string, limit int) ([]Key, bool, error) {
	return listKeysTx(tx, limit, account, newestKeys, account, limit+1)
}

// listKeysTx is listTx for the keys of an account. The account must exist.
func listKeysTx(tx *store.Tx, limit int, account, query string, args ...any) ([]Key, bool, error) {
	if _, err := GetTx(tx, account); err != nil {
		return nil, false, err
	}
	list, more, err := listTx(tx, limit, scanKey, query, args...)
	if err != nil {
		return nil, false, err
	}
	return list, more, addKeyStates(tx, list)
}

// addKeyStates sets the fields Ledger and Over of keys. A key without a row in the ledger is an
// error, because such a key could be used without limits.
func addKeyStates(tx *store.Tx, list []Key) error {
	keys := ids(list, func(k Key) string { return k.ID })
	states, err := ledger.KeysTx(tx, keys)
	if err != nil {
		return err
	}
	over, err := ledger.OverOfKeysTx(tx, ids(list, func(k Key) string { return k.Account }), keys)
	if err != nil {
		return err
	}
	for i := range list {
		state, ok := states[list[i].ID]
		if !ok {
			return fmt.Errorf("key %s: %w", list[i].ID, ledger.ErrNoKey)
		}
		list[i].Ledger, list[i].Over = state, over[list[i].ID]
	}
	return nil
}

// ChangeKeyTx lets edit change a key's settings and stores the result. edit may run again and must
// have no other effect. The key's version rises, so that admission rejects requests that were
// checked against the old settings. Call Keys.Forget after the commit.
func ChangeKeyTx(tx *store.Tx, key string, edit func(*KeySettings) error) (Key, error) {
	if err := tx.Lock("api_key", "id", key); err != nil {
		return Key{}, err
	}
	k, err := GetKeyTx(tx, key)
	if err != nil {
		return Key{}, err
	}
	s := k.settings()
	if err := edit(&s); err != nil {
		return Key{}, err
	}
	values, err := s.check()
	if err != nil {
		return Key{}, err
	}
	if _, err := tx.Exec(`UPDATE api_key SET name = $1, allowed_models = $2, allowed_ips = $3, wait_pictures = $4 WHERE id = $5`,
		values.name, storeList(values.models), storeList(ShowIPs(values.ips)), values.wait, key); err != nil {
		return Key{}, fmt.Errorf("change key: %w", err)
	}
	if err := ledger.ChangeKeyTx(tx, key, values.limits); err != nil {
		return Key{}, err
	}
	return GetKeyTx(tx, key)
}

// DeleteKeyTx deletes a key permanently: requests with the key get a 401, and no list has the key.
// The key's row and receipts stay for the audit. The hash stays too, so the secret can never belong
// to another key. Call Keys.Forget after the commit.
func DeleteKeyTx(tx *store.Tx, key string) error {
	deleted, err := tx.Exec(`UPDATE api_key SET deleted = 1 WHERE id = $1 AND deleted = 0`, key)
	if err != nil {
		return fmt.Errorf("delete key: %w", err)
	}
	if deleted == 0 {
		return notFound("key", key)
	}
	return ledger.CloseKeyTx(tx, key)
}
