package ledger

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"time"

	"tollgate/internal/store"
)

// ErrOtherBody reports an Idempotency-Key used before for another request.
var ErrOtherBody = errors.New("the Idempotency-Key was used for another request")

// Once is the Idempotency-Key of a request. The first answer is saved with the request's effects,
// and repeated requests within the window get the saved answer.
type Once struct {
	Scope, Key string
	// Fingerprint distinguishes requests that use the same key.
	Fingerprint []byte
	Window      time.Duration
}

// AnswerTx returns the answer saved for an Idempotency-Key within the window, or nil if the key is
// new. If nil, the caller must run the request and call SaveTx in the same transaction. Concurrent
// requests with the key wait for each other here. AnswerTx returns ErrOtherBody if the key belongs
// to a request with another fingerprint.
func AnswerTx(tx *store.Tx, o Once) ([]byte, error) {
	if err := tx.Serialize("once " + o.Scope + " " + o.Key); err != nil {
		return nil, err
	}
	now, err := tx.NowMS()
	if err != nil {
		return nil, err
	}
	var saved savedAnswer
	err = tx.QueryRow(selectSaved, o.Scope, o.Key).Scan(saved.dest()...)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if saved.createdMS > tx.Latest(now) { // saved while the clock was ahead
		if _, err := tx.Exec(`UPDATE ledger_once SET created_ms = $1 WHERE scope = $2 AND key = $3`, now, o.Scope, o.Key); err != nil {
			return nil, err
		}
	}
	// If only a jump of the clock has expired the answer, it is still valid: running the request
	// again could move money twice.
	if saved.expired(o, tx.Expiry(now)) {
		_, err := tx.Exec(`DELETE FROM ledger_once WHERE scope = $1 AND key = $2`, o.Scope, o.Key)
		return nil, err
	}
	if saved.fingerprint != hash(o.Fingerprint) {
		return nil, ErrOtherBody
	}
	// A read proves nothing. The commit of this write proves that the saved answer and its effects
	// cannot be lost (node.ConfirmState).
	_, err = tx.Exec(`UPDATE ledger_once SET created_ms = created_ms WHERE scope = $1 AND key = $2`, o.Scope, o.Key)
	return []byte(saved.answer), err
}

// SaveTx saves the answer of an Idempotency-Key.
func SaveTx(tx *store.Tx, o Once, answer []byte) error {
	now, err := tx.NowMS()
	if err != nil {
		return err
	}
	_, err = tx.Exec(`INSERT INTO ledger_once (scope, key, fingerprint, answer, created_ms) VALUES ($1, $2, $3, $4, $5)`,
		o.Scope, o.Key, hash(o.Fingerprint), string(answer), now)
	return err
}

const selectSaved = `SELECT fingerprint, answer, created_ms FROM ledger_once WHERE scope = $1 AND key = $2`

type savedAnswer struct {
	fingerprint, answer string
	createdMS           int64
}

func (s *savedAnswer) dest() []any { return []any{&s.fingerprint, &s.answer, &s.createdMS} }

func (s *savedAnswer) expired(o Once, expiryMS int64) bool {
	return expiryMS-s.createdMS > o.Window.Milliseconds()
}

// OnceHook saves the answer of an Idempotency-Key in the admission transaction of a job. The hook
// that writes the job calls the methods of OnceHook. The caller must not let two requests with the
// key into one batch, because neither would see the answer of the other. Requests on other nodes wait
// for the lock on the account.
type OnceHook struct {
	Once
	saved *savedAnswer
}

// Read adds the query for the saved answer.
func (o *OnceHook) Read(q *store.Batch) {
	o.saved = nil
	q.Query(func(row store.Row) error {
		o.saved = &savedAnswer{}
		return row.Scan(o.saved.dest()...)
	}, selectSaved, o.Scope, o.Key)
}

// Saved returns the saved answer, or nil if the caller must call Write. expiryMS is the time for
// expiry (store.Tx.Expiry). It returns ErrOtherBody like AnswerTx.
func (o *OnceHook) Saved(expiryMS int64) ([]byte, error) {
	switch {
	case o.saved == nil || o.saved.expired(o.Once, expiryMS):
		return nil, nil
	case o.saved.fingerprint != hash(o.Fingerprint):
		return nil, ErrOtherBody
	}
	return []byte(o.saved.answer), nil
}

// Write adds the statement that saves the answer.
func (o *OnceHook) Write(q *store.Batch, answer []byte, nowMS int64) {
	q.Exec(nil, `INSERT INTO ledger_once (scope, key, fingerprint, answer, created_ms) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (scope, key) DO UPDATE SET fingerprint = excluded.fingerprint, answer = excluded.answer, created_ms = excluded.created_ms`,
		o.Scope, o.Key, hash(o.Fingerprint), string(answer), nowMS)
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
