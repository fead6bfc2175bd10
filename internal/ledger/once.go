package ledger

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"time"

	"tollgate/internal/store"
)

// ErrOtherBody means that an Idempotency-Key was used before, for something
// else.
var ErrOtherBody = errors.New("the Idempotency-Key was used for another request")

// OnceTx returns the answer that was saved for an Idempotency-Key within the
// window, or nil if the key is new: then do what was asked and call SaveOnceTx
// in the same transaction. Concurrent twins wait for each other here.
// ErrOtherBody: the key belongs to a request with another fingerprint.
func OnceTx(tx *store.Tx, scope, key string, fingerprint []byte, window time.Duration) ([]byte, error) {
	if err := tx.Serialize("once " + scope + " " + key); err != nil {
		return nil, err
	}
	now, err := tx.NowMS()
	if err != nil {
		return nil, err
	}
	var print, answer string
	var created int64
	err = tx.QueryRow(`SELECT fingerprint, answer, created_ms FROM ledger_once WHERE scope = $1 AND key = $2`, scope, key).Scan(&print, &answer, &created)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if created > tx.Latest(now) { // saved while the clock was ahead
		if _, err := tx.Exec(`UPDATE ledger_once SET created_ms = $1 WHERE scope = $2 AND key = $3`, now, scope, key); err != nil {
			return nil, err
		}
	}
	// What ran out for a clock that is ahead has not run out: doing it again
	// could move money twice.
	if tx.Expiry(now)-created > window.Milliseconds() {
		_, err := tx.Exec(`DELETE FROM ledger_once WHERE scope = $1 AND key = $2`, scope, key)
		return nil, err
	}
	if print != hash(fingerprint) {
		return nil, ErrOtherBody
	}
	// A read proves nothing: the commit of this write is what proves that the
	// saved answer, and what it tells of, cannot be lost (store.Batch.ProveNode).
	_, err = tx.Exec(`UPDATE ledger_once SET created_ms = created_ms WHERE scope = $1 AND key = $2`, scope, key)
	return []byte(answer), err
}

// SaveOnceTx saves the answer of an Idempotency-Key.
func SaveOnceTx(tx *store.Tx, scope, key string, fingerprint, answer []byte) error {
	now, err := tx.NowMS()
	if err != nil {
		return err
	}
	_, err = tx.Exec(`INSERT INTO ledger_once (scope, key, fingerprint, answer, created_ms) VALUES ($1, $2, $3, $4, $5)`,
		scope, key, hash(fingerprint), string(answer), now)
	return err
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
