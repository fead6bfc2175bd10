package webhook

import (
	"maps"
	"slices"

	"tollgate/internal/store"
)

// roundLock is the lock that makes rounds exclusive over all nodes.
const roundLock = "tollgate webhook turn"

// Statements of a round. Statements ending in WHERE or AND continue with a list.
const (
	runningText  = `SELECT delivery, lease, receiver, epoch, until_ms FROM webhook_queue WHERE lease <> ''`
	freshText    = `SELECT delivery, receiver FROM webhook_queue WHERE fresh = 1 AND delivery > $2 ORDER BY delivery LIMIT $1`
	receiverText = `INSERT INTO webhook_receiver (id, account, failing, ready_ms)
		SELECT DISTINCT q.receiver, q.account, 0, CAST($1 AS BIGINT) FROM webhook_queue q WHERE `
	receivedText = `UPDATE webhook_queue SET fresh = 0 WHERE `
	freeText     = `UPDATE webhook_queue SET lease = '', epoch = '', until_ms = 0 WHERE `
	retryText    = `UPDATE webhook_queue SET due_ms = $1, tries = $2, lease = '', epoch = '', until_ms = 0 WHERE `
	leaseText    = `UPDATE webhook_queue SET lease = CAST($1 AS TEXT) || delivery, epoch = $2, until_ms = $3 WHERE lease = '' AND `
	dropText     = `DELETE FROM webhook_queue WHERE `
	leasedText   = `SELECT q.delivery, q.lease, q.tries, q.due_ms, d.state FROM webhook_queue q
		JOIN webhook_delivery d ON d.id = q.delivery WHERE `
	stateText = `UPDATE webhook_delivery SET state = $1 WHERE `
	logText   = `INSERT INTO webhook_attempt (delivery, id, at_ms, status, took_ms, error) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (delivery, id) DO NOTHING`
	failingText   = `UPDATE webhook_receiver SET failing = $1 WHERE failing <> $1 AND `
	recoveredText = `DELETE FROM webhook_report WHERE `
	messageText   = `SELECT id, event, url, body FROM webhook_delivery WHERE `

	// dueText returns 1 if the queue has a fresh delivery after $2, or else 0, and the time when the
	// next receiver of each lane is ready.
	dueText = `SELECT (SELECT COUNT(*) FROM (SELECT q.delivery FROM webhook_queue q WHERE q.fresh = 1 AND q.delivery > $2 LIMIT 1) f),
		COALESCE((SELECT r.ready_ms FROM webhook_receiver r WHERE r.failing = 0 ORDER BY r.ready_ms LIMIT 1), $1),
		COALESCE((SELECT r.ready_ms FROM webhook_receiver r WHERE r.failing = 1 ORDER BY r.ready_ms LIMIT 1), $1)`

	// refreshText sets when receivers are ready. A receiver with the maximum number of running
	// attempts is never ready. Any other receiver is ready when its next delivery is due, but not
	// before now, so that a receiver with a long queue goes behind waiting receivers.
	refreshText = `UPDATE webhook_receiver SET ready_ms = CASE
		WHEN (SELECT COUNT(*) FROM webhook_queue q WHERE q.receiver = webhook_receiver.id AND q.lease <> '')
			>= CASE WHEN failing = 1 THEN CAST($1 AS BIGINT) ELSE CAST($2 AS BIGINT) END THEN CAST($3 AS BIGINT)
		ELSE COALESCE((SELECT CASE WHEN q.due_ms < $4 THEN $4 ELSE q.due_ms END FROM webhook_queue q
			WHERE q.receiver = webhook_receiver.id AND q.lease = '' ORDER BY q.due_ms LIMIT 1), $3) END WHERE `
	forgetText = `DELETE FROM webhook_receiver WHERE ready_ms = $1
		AND NOT EXISTS (SELECT 1 FROM webhook_queue q WHERE q.receiver = webhook_receiver.id AND q.lease <> '') AND `

	// readyText returns the ready receivers of a lane, their running attempts, and the first four
	// due deliveries. One scan finds all four: deliveries completed since the last vacuum leave
	// dead entries at the front of PostgreSQL's index, and every scan reads all of the dead
	// entries.
	readyText = `SELECT r.id, r.account,
		(SELECT COUNT(*) FROM webhook_queue q WHERE q.receiver = r.id AND q.lease <> ''),
		COALESCE((SELECT string_agg(d.delivery, ' ' ORDER BY d.due_ms, d.delivery) FROM
			(SELECT q.delivery, q.due_ms FROM webhook_queue q WHERE q.receiver = r.id AND q.lease = '' AND q.due_ms <= $1
			ORDER BY q.due_ms, q.delivery LIMIT 4) d), '')
		FROM webhook_receiver r WHERE r.failing = $2 AND r.ready_ms <= $1 AND NOT `
	readyOrder = ` ORDER BY r.ready_ms, r.id LIMIT $4`
)

// insertAttempts is like logText, for many attempts.
var insertAttempts = store.Insert("webhook_attempt", "delivery text, id text, at_ms bigint, status bigint, took_ms bigint, error text",
	"ON CONFLICT (delivery, id) DO NOTHING")

// dueTx reports whether the queue has a delivery after lastReceived that is not in its receiver's
// row yet, and when the next receiver is ready.
func dueTx(tx *store.Tx, lastReceived string) (fresh bool, ready int64, err error) {
	var hasFresh, healthy, failing int64
	err = tx.QueryRow(dueText, int64(never), lastReceived).Scan(&hasFresh, &healthy, &failing)
	return hasFresh > 0, min(healthy, failing), err
}

// refreshTx updates receivers from their queues and deletes receivers with an empty queue.
func refreshTx(tx *store.Tx, receivers map[string]bool, nowMS int64) error {
	if len(receivers) == 0 {
		return nil
	}
	list := store.List(keys(receivers))
	healthy, failing := lanes[laneHealthy].each, lanes[laneFailing].each
	if _, err := tx.Exec(refreshText+tx.In("id", 5), failing, healthy, int64(never), nowMS, list); err != nil {
		return err
	}
	_, err := tx.Exec(forgetText+tx.In("id", 2), int64(never), list)
	return err
}

// secretsTx returns the signing secrets of accounts and creates missing secrets.
func secretsTx(tx *store.Tx, accounts map[string]bool) (map[string]string, error) {
	secrets, err := readSecretsTx(tx, keys(accounts))
	if err != nil || len(secrets) == len(accounts) {
		return secrets, err
	}
	for _, account := range keys(accounts) {
		if secrets[account] == "" {
			if err := OpenTx(tx, account); err != nil {
				return nil, err
			}
		}
	}
	return readSecretsTx(tx, keys(accounts))
}

func readSecretsTx(tx *store.Tx, accounts []string) (map[string]string, error) {
	secrets := map[string]string{}
	return secrets, tx.Each(func(row store.Row) error {
		var account, secret string
		err := row.Scan(&account, &secret)
		secrets[account] = secret
		return err
	}, `SELECT account, secret FROM webhook_endpoint WHERE `+tx.In("account", 1), store.List(accounts))
}

// keys returns the members of a set in ascending order.
func keys(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
