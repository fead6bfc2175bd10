package vault

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"tollgate/internal/catalog/secret"
	"tollgate/internal/fault"
	"tollgate/internal/store"
)

// Bounds of stored secrets.
const (
	maxValue   = 4096 // bytes
	maxSecrets = 1000
)

// SQL statements. Each change of a secret raises a number in the row that nodes poll.
const (
	upsertSecret = `INSERT INTO catalog_secret (name, sealed, changed_ms) VALUES ($1, $2, $3)
		ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed, changed_ms = excluded.changed_ms`
	updateSealed  = `UPDATE catalog_secret SET sealed = $2 WHERE name = $1`
	deleteSecret  = `DELETE FROM catalog_secret WHERE name = $1`
	selectSecrets = `SELECT name, sealed, changed_ms FROM catalog_secret ORDER BY name`
	raiseVersion  = `UPDATE catalog_head SET secrets = secrets + 1 WHERE id = 'current'`
)

// errNoKey reports a node that cannot store secrets.
var errNoKey = fault.New(fault.InvalidRequest, "This installation has no key to encrypt secrets with. "+
	"Write the output of `openssl rand -base64 32` to a file, set secret_key_file to it on every node, and restart the nodes.")

// StoredSecret describes a stored secret, without its value.
type StoredSecret struct {
	Name      string
	ChangedMS int64  // database clock, Unix milliseconds
	Key       string // the mark of its key of the installation
	Problem   string // why this node cannot decrypt it, or empty
}

// LockTx locks the secrets and the catalog until the end of the transaction.
func LockTx(tx *store.Tx) error {
	if err := tx.Lock("catalog_head", "id", "current"); err != nil {
		return fmt.Errorf("lock the catalog: %w", err)
	}
	return nil
}

// StoreTx encrypts and stores a secret, and replaces the secret with the same name, if any. The errors about the
// name, the value, a missing key of the installation and too many secrets are *fault.Error.
func (k KeyRing) StoreTx(tx *store.Tx, name, value string) error {
	value = strings.TrimSpace(value)
	switch {
	case !secret.IsName(name):
		return fault.At(fault.InvalidRequest, "name",
			"name must begin with a letter or digit and contain only letters, digits and . _ -, at most 64 characters.")
	case value == "":
		return fault.At(fault.InvalidRequest, "value", "value is required: the key that the provider gave you.")
	case len(value) > maxValue:
		return fault.At(fault.InvalidRequest, "value", "value must not have more than %d bytes. Paste only the key.", maxValue)
	case !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl):
		return fault.At(fault.InvalidRequest, "value", "value has a line break or another control character in it. Paste only the key.")
	case k.Empty():
		return errNoKey
	}
	if err := LockTx(tx); err != nil {
		return err
	}
	all, err := k.ListTx(tx)
	if err != nil {
		return err
	}
	if len(all) >= maxSecrets {
		return fault.New(fault.InvalidRequest, "There are %d secrets already. Delete the unused ones first.", len(all))
	}
	now, err := tx.NowMS()
	if err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	if _, err := tx.Exec(upsertSecret, name, k.seal(name, value), now); err != nil {
		return fmt.Errorf("store the secret %s: %w", name, err)
	}
	return raiseTx(tx)
}

// DeleteTx deletes a secret. It returns a *fault.Error if the secret does not exist.
func DeleteTx(tx *store.Tx, name string) error {
	n, err := tx.Exec(deleteSecret, name)
	switch {
	case err != nil:
		return fmt.Errorf("delete the secret %s: %w", name, err)
	case n == 0:
		return fault.New(fault.NotFound, "There is no secret %q.", fault.Excerpt(name))
	}
	return raiseTx(tx)
}

func raiseTx(tx *store.Tx) error {
	if _, err := tx.Exec(raiseVersion); err != nil {
		return fmt.Errorf("announce a changed secret: %w", err)
	}
	return nil
}

// RotateTx encrypts all secrets again with the first key of this node, and returns their names. If
// decryption of a secret fails, RotateTx changes nothing and returns a *fault.Error.
func (k KeyRing) RotateTx(tx *store.Tx) (names []string, err error) {
	if k.Empty() {
		return nil, errNoKey
	}
	if err := LockTx(tx); err != nil {
		return nil, err
	}
	rows, err := k.rowsTx(tx)
	if err != nil {
		return nil, err
	}
	names = []string{}
	for _, r := range rows {
		if r.Problem != "" {
			return nil, fault.New(fault.InvalidRequest, "Nothing was changed: %s.", r.Problem)
		}
		names = append(names, r.Name)
		if _, err := tx.Exec(updateSealed, r.Name, k.seal(r.Name, r.value)); err != nil {
			return nil, fmt.Errorf("encrypt the secret %s again: %w", r.Name, err)
		}
	}
	return names, raiseTx(tx)
}

// ListTx returns all secrets by name.
func (k KeyRing) ListTx(tx *store.Tx) ([]StoredSecret, error) {
	rows, err := k.rowsTx(tx)
	all := make([]StoredSecret, 0, len(rows))
	for _, r := range rows {
		all = append(all, r.StoredSecret)
	}
	return all, err
}

// row is a stored secret with its value on this node.
type row struct {
	StoredSecret

	value string
}

func (k KeyRing) rowsTx(tx *store.Tx) (rows []row, err error) {
	err = tx.Each(func(r store.Row) error {
		var s row
		var sealed string
		if err := r.Scan(&s.Name, &sealed, &s.ChangedMS); err != nil {
			return err
		}
		s.Key, _, _ = strings.Cut(sealed, ":")
		s.value, s.Problem = k.open(s.Name, sealed)
		rows = append(rows, s)
		return nil
	}, selectSecrets)
	if err != nil {
		return nil, fmt.Errorf("read the secrets of lines: %w", err)
	}
	return rows, nil
}

// Values are the secrets of a node, decrypted. The zero value has none.
type Values struct{ byName map[string]row }

// LoadTx returns all secrets. If this node cannot decrypt a secret, Lookup returns the reason; the other
// secrets are not affected.
func (k KeyRing) LoadTx(tx *store.Tx) (*Values, error) {
	rows, err := k.rowsTx(tx)
	if err != nil {
		return nil, err
	}
	v := &Values{byName: make(map[string]row, len(rows))}
	for _, r := range rows {
		v.byName[r.Name] = r
	}
	return v, nil
}

// KeepFrom keeps the earlier values of secrets if this node cannot decrypt the new values. Lines thus
// stay in service while a new key of the installation reaches the nodes. The error has the reasons for
// all secrets that this node cannot decrypt.
func (v *Values) KeepFrom(earlier *Values) error {
	var problems []error
	for name, r := range v.byName {
		if r.Problem == "" {
			continue
		}
		problems = append(problems, errors.New(r.Problem))
		if old, ok := earlier.byName[name]; ok && old.value != "" {
			r.value = old.value
			v.byName[name] = r
		}
	}
	return errors.Join(problems...)
}

// Lookup returns the value of a secret, or the reason for its absence and false.
func (v *Values) Lookup(name string) (string, bool) {
	switch r, ok := v.byName[name]; {
	case !ok:
		return fmt.Sprintf("the secret %s is not stored: store it on the page Providers, or change the reference", name), false
	case r.value == "":
		return r.Problem, false
	default:
		return r.value, true
	}
}
