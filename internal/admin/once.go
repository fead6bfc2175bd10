package admin

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/store"
)

// Idempotency keys of the operator API. Saved answers are kept for a day (operator.md, Operator API).
const (
	onceScope         = "admin"
	onceWindow        = 24 * time.Hour
	maxIdempotencyKey = 255 // bytes
)

// secretAnswer is an answer with a secret for the first request. withoutSecret returns the answer for
// repetitions of the request.
type secretAnswer interface{ withoutSecret() any }

// update runs fn in one transaction and returns the answer of fn. If the request has an
// Idempotency-Key, the same transaction saves the answer, and a repetition of the request gets the
// saved answer without running fn. If fn returns an error, the Idempotency-Key is not used up.
func (s *server) update(c *call, body object, fn func(tx *store.Tx) (any, error)) (any, error) {
	key, err := c.idempotencyKey()
	if err != nil {
		return nil, err
	}
	if key == "" {
		return change(s, c, fn)
	}
	once := s.once(c, key, body)
	replayed := false
	out, err := change(s, c, func(tx *store.Tx) (any, error) {
		saved, err := ledger.AnswerTx(tx, once)
		if errors.Is(err, ledger.ErrOtherBody) {
			return nil, otherRequest()
		}
		if replayed = saved != nil; err != nil || replayed {
			return json.RawMessage(saved), err
		}
		out, err := fn(tx)
		if err != nil {
			return nil, err
		}
		replay := out
		if f, ok := out.(secretAnswer); ok {
			replay = f.withoutSecret()
		}
		return out, ledger.SaveTx(tx, once, encode(replay))
	})
	if err == nil && replayed {
		c.markReplayed()
	}
	return out, err
}

func (c *call) markReplayed() { c.Header().Set("Idempotent-Replayed", "true") }

// once returns the request's idempotency key and fingerprint.
func (s *server) once(c *call, key string, body object) ledger.Once {
	return ledger.Once{Scope: onceScope, Key: key, Fingerprint: s.fingerprint(c, body), Window: onceWindow}
}

// otherRequest returns the error for an Idempotency-Key used by another request.
func otherRequest() error {
	return fault.At(fault.InvalidRequest, "Idempotency-Key",
		"This Idempotency-Key was used for another request within the last 24 hours. Use a new one for a new request; repeat a request with "+
			"exactly the same path and body.")
}

// change runs fn in one transaction.
func change[T any](s *server, c *call, fn func(tx *store.Tx) (T, error)) (T, error) {
	return store.Write(c.ctx, s.DB, fn)
}

// view runs fn on one snapshot.
func view[T any](s *server, c *call, fn func(tx *store.Tx) (T, error)) (T, error) {
	return store.Read(c.ctx, s.DB, fn)
}

// idempotencyKey returns the request's Idempotency-Key, or "" if the header is missing.
func (c *call) idempotencyKey() (string, error) {
	values := c.Request.Header.Values("Idempotency-Key")
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	if len(values) > 1 || key == "" || len(key) > maxIdempotencyKey || !isPlain(key) {
		return "", fault.At(fault.InvalidRequest, "Idempotency-Key",
			"Send one Idempotency-Key of 1 to %d printable characters, a fresh UUID for example.", maxIdempotencyKey)
	}
	return key, nil
}

// fingerprint returns a hash to distinguish requests with the same Idempotency-Key. The hash is
// keyed, because a plain hash could reveal a password in the body.
func (s *server) fingerprint(c *call, body object) []byte {
	mac := hmac.New(sha256.New, s.OnceSecret)
	_, _ = io.WriteString(mac, c.Request.Method+" "+c.Request.URL.Path+"\n") // a hash's Write never fails
	_, _ = mac.Write(body.raw)
	return mac.Sum(nil)
}
