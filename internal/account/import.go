package account

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"tollgate/internal/ledger"
	"tollgate/internal/store"
)

// ErrKeyTaken means that a key has this secret already. The key may be deleted, because a secret is
// never used again for another key.
var ErrKeyTaken = errors.New("there is a key with this secret already")

// ErrKeyHash means that another program's secret or its hash is invalid here.
var ErrKeyHash = fmt.Errorf("a key must have %d to %d characters, without blanks, and its hash be a SHA-256 in hexadecimal",
	minSecret, maxSecret)

// Proof has the hash and the hint of a secret from another program.
type Proof struct {
	Hash string // SHA-256 of the whole secret, 64 hexadecimal digits
	Hint string // for lists
}

// ProofOf returns the proof of a secret, or ErrKeyHash.
func ProofOf(secret string) (Proof, error) {
	if !wellFormed(secret) {
		return Proof{}, ErrKeyHash
	}
	return Proof{Hash: digestOf(secret).String(), Hint: HintOf(secret)}, nil
}

// check brings the hash into canonical form.
func (p *Proof) check() error {
	p.Hash = strings.ToLower(p.Hash)
	raw, err := hex.DecodeString(p.Hash)
	if err != nil || len(raw) != len(digest{}) {
		return ErrKeyHash
	}
	if len(p.Hint) > maxHint || strings.ContainsFunc(p.Hint, unicode.IsControl) {
		return ErrKeyHash
	}
	return nil
}

// maxHint bounds a hint in bytes, so that a hint never shows a whole secret.
const maxHint = 16

// ImportKeyTx creates a key of an account with a secret from another program, which the user already
// has. The gateway knows only the hash, so the other program is responsible for the quality of the
// secret. Errors: ErrKeyTaken, ErrKeyHash, and those of CreateKeyTx.
func ImportKeyTx(tx *store.Tx, account string, s KeySettings, p Proof) (Key, error) {
	values, err := s.check()
	if err != nil {
		return Key{}, err
	}
	if err := p.check(); err != nil {
		return Key{}, err
	}
	if _, err := GetTx(tx, account); err != nil {
		return Key{}, err
	}
	key, err := insertKeyTx(tx, account, values, p)
	if err != nil {
		return Key{}, err
	}
	return GetKeyTx(tx, key)
}

// insertKeyTx inserts a key and its ledger row, and returns the key's id. Error: ErrKeyTaken.
func insertKeyTx(tx *store.Tx, account string, values keyValues, p Proof) (string, error) {
	now, err := tx.NowMS()
	if err != nil {
		return "", err
	}
	key := newID("key_", now)
	inserted, err := tx.Exec(`INSERT INTO api_key (id, account, hash, name, hint, allowed_models, allowed_ips, created_ms, deleted,
			wait_pictures)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, $9) ON CONFLICT (hash) DO NOTHING`,
		key, account, p.Hash, values.name, p.Hint, storeList(values.models), storeList(ShowIPs(values.ips)), now, values.wait)
	if err != nil {
		return "", fmt.Errorf("insert key: %w", err)
	}
	if inserted == 0 {
		return "", ErrKeyTaken
	}
	return key, ledger.OpenKeyTx(tx, key, account, values.limits)
}
