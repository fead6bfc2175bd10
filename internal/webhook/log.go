package webhook

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"tollgate/internal/fault"
	"tollgate/internal/store"
)

// Delivery is one entry of the log.
type Delivery struct {
	ID        string
	Account   string
	Event     string // evt_…, the webhook-id header
	Type      string
	URL       string
	State     string // pending, delivered or failed
	CreatedMS int64
	NextMS    int64 // when the next attempt is due; 0 if the delivery has ended
	Attempts  []DeliveryAttempt
}

// DeliveryAttempt is the result of one attempt to send an event.
type DeliveryAttempt struct {
	AtMS   int64
	Status int   // of the answer; 0 without an answer
	TookMS int64 // until the answer or the failure
	Error  string
}

func stateName(state int) string {
	return [...]string{statePending: "pending", stateDelivered: "delivered", stateFailed: "failed"}[state]
}

const (
	deliveryColumns = `SELECT d.id, d.account, d.event, d.type, d.url, d.state, d.created_ms, COALESCE(q.due_ms, 0) FROM `
	deliveryText    = deliveryColumns + `webhook_delivery d LEFT JOIN webhook_queue q ON q.delivery = d.id WHERE `
	// waitingText reads the queue, because the queue is short even if the log is long.
	waitingText = deliveryColumns + `webhook_queue q JOIN webhook_delivery d ON d.id = q.delivery WHERE d.state = 0 AND `
)

// validText selects the entries within the retention, and queued entries. Other expired entries
// disappear before their rows are deleted.
const validText = `(d.created_ms >= $1 OR q.delivery IS NOT NULL)`

// DeliveryFilter selects entries of the log. Empty fields match all entries.
type DeliveryFilter struct {
	Account, State string
	After          string // only older entries than this id
	Limit          int
}

// statement returns the query for f over entries created at oldestMS or later.
func (f DeliveryFilter) statement(oldestMS int64) (text string, args []any) {
	text, order := deliveryText+validText, "d.id"
	switch f.State {
	case "pending":
		text, order = waitingText+validText, "q.delivery"
	case "delivered":
		text += ` AND d.state = 1`
	case "failed":
		text += ` AND d.state = 2`
	}
	args = append(args, oldestMS)
	add := func(condition string, value any) {
		args = append(args, value)
		text += condition + strconv.Itoa(len(args))
	}
	if f.Account != "" {
		add(` AND d.account = $`, f.Account)
	}
	if f.After != "" {
		add(` AND `+order+` < $`, f.After)
	}
	add(` ORDER BY `+order+` DESC LIMIT $`, f.Limit+1)
	return text, args
}

// DeliveriesTx is like LogTx for one account. It returns at most limit entries, only older than the
// entry after if after is not empty.
func (w *Webhooks) DeliveriesTx(tx *store.Tx, account, after string, limit int) (list []Delivery, more bool, err error) {
	return w.LogTx(tx, DeliveryFilter{Account: account, After: after, Limit: limit})
}

// LogTx returns the log entries selected by f, newest first, and reports whether there are more.
// Each entry has all of its attempts in order.
func (w *Webhooks) LogTx(tx *store.Tx, f DeliveryFilter) (list []Delivery, more bool, err error) {
	if err := tx.ByIndex(); err != nil {
		return nil, false, err
	}
	oldest, err := w.oldestTx(tx)
	if err != nil {
		return nil, false, err
	}
	text, args := f.statement(oldest)
	if list, err = readDeliveriesTx(tx, text, args...); err != nil {
		return nil, false, err
	}
	if len(list) > f.Limit {
		list, more = list[:f.Limit], true
	}
	return list, more, attemptsTx(tx, list)
}

// oldestTx returns the creation time of the oldest entry within the retention. A clock that is
// ahead for a moment expires no entry.
func (w *Webhooks) oldestTx(tx *store.Tx) (int64, error) {
	now, err := tx.ExpiryMS()
	return now - w.opts.Retention.Milliseconds(), err
}

// OwnDeliveryTx returns an entry of an account. An entry of another account is not found.
func (w *Webhooks) OwnDeliveryTx(tx *store.Tx, account, id string) (Delivery, error) {
	d, found, err := w.oneTx(tx, `d.id = $2 AND d.account = $3`, id, account)
	if err == nil && !found {
		return Delivery{}, w.noDelivery()
	}
	return d, err
}

// OwnEventTx returns the newest entry of an account's event, and false if the log has no such
// entry.
func (w *Webhooks) OwnEventTx(tx *store.Tx, account, event string) (Delivery, bool, error) {
	return w.oneTx(tx, `d.event = $2 AND d.account = $3 ORDER BY d.id DESC LIMIT 1`, event, account)
}

// BodyTx returns the body of every attempt of a delivery.
func BodyTx(tx *store.Tx, delivery string) (body string, err error) {
	err = tx.QueryRow(`SELECT body FROM webhook_delivery WHERE id = $1`, delivery).Scan(&body)
	return body, err
}

// noDelivery returns the 404 for an entry missing from the log.
func (w *Webhooks) noDelivery() error {
	return fault.New(fault.NotFound, "There is no delivery with this id. The log of deliveries is kept for %s.", days(w.opts.Retention))
}

// deliveryTx returns one entry, and false if there is no such entry.
func (w *Webhooks) deliveryTx(tx *store.Tx, id string) (Delivery, bool, error) {
	return w.oneTx(tx, `d.id = $2`, id)
}

// oneTx returns the log entry selected by a condition.
func (w *Webhooks) oneTx(tx *store.Tx, where string, args ...any) (Delivery, bool, error) {
	oldest, err := w.oldestTx(tx)
	if err != nil {
		return Delivery{}, false, err
	}
	list, err := readDeliveriesTx(tx, deliveryText+validText+` AND `+where, append([]any{oldest}, args...)...)
	if err != nil || len(list) == 0 {
		return Delivery{}, false, err
	}
	return list[0], true, attemptsTx(tx, list)
}

func readDeliveriesTx(tx *store.Tx, text string, args ...any) ([]Delivery, error) {
	list, err := store.Collect(tx, func(row store.Row) (d Delivery, err error) {
		var state int
		err = row.Scan(&d.ID, &d.Account, &d.Event, &d.Type, &d.URL, &state, &d.CreatedMS, &d.NextMS)
		d.State = stateName(state)
		return d, err
	}, text, args...)
	if err != nil {
		return nil, fmt.Errorf("read deliveries: %w", err)
	}
	return list, nil
}

// attemptsTx adds the attempts to the entries.
func attemptsTx(tx *store.Tx, list []Delivery) error {
	ids, byID := make([]string, len(list)), make(map[string]*Delivery, len(list))
	for i := range list {
		ids[i], byID[list[i].ID] = list[i].ID, &list[i]
	}
	err := tx.Each(func(row store.Row) error {
		var id string
		var a DeliveryAttempt
		if err := row.Scan(&id, &a.AtMS, &a.Status, &a.TookMS, &a.Error); err != nil {
			return err
		}
		byID[id].Attempts = append(byID[id].Attempts, a)
		return nil
	}, `SELECT delivery, at_ms, status, took_ms, error FROM webhook_attempt WHERE `+tx.In("delivery", 1)+` ORDER BY at_ms, id`,
		store.List(ids))
	if err != nil {
		return fmt.Errorf("read attempts: %w", err)
	}
	return nil
}

// maxForget is the maximum number of entries that a transaction deletes.
const maxForget = 500

// Forget deletes log entries past the retention, with their attempts. Queued entries stay. Run calls
// Forget from time to time; any number of nodes may call it.
func (w *Webhooks) Forget(ctx context.Context) error {
	if err := w.fixFutureTimes(ctx); err != nil {
		return err
	}
	for {
		deleted, err := store.Write(ctx, w.opts.DB, w.forgetTx)
		if err != nil {
			return fmt.Errorf("delete old deliveries: %w", err)
		}
		if len(deleted) < maxForget {
			return nil
		}
	}
}

// fixFutureTimes makes deliveries due that were postponed while the clock was ahead. Otherwise these
// deliveries would wait until the clock reaches the future times.
func (w *Webhooks) fixFutureTimes(ctx context.Context) error {
	err := w.opts.DB.Update(ctx, func(tx *store.Tx) error {
		if err := tx.Serialize(roundLock); err != nil {
			return err
		}
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		latest := tx.Latest(now)
		for _, wait := range w.opts.Retries {
			latest = max(latest, tx.Latest(now)+wait.Milliseconds())
		}
		if _, err := tx.Exec(`UPDATE webhook_queue SET due_ms = $1 WHERE lease = '' AND due_ms > $2`, now, latest); err != nil {
			return err
		}
		_, err = tx.Exec(`UPDATE webhook_receiver SET ready_ms = $1 WHERE ready_ms > $2 AND ready_ms < $3`, now, latest, int64(never))
		return err
	})
	if err != nil {
		return fmt.Errorf("lower due times in the future: %w", err)
	}
	return nil
}

func (w *Webhooks) forgetTx(tx *store.Tx) ([]string, error) {
	oldest, err := w.oldestTx(tx)
	if err != nil {
		return nil, err
	}
	old, err := store.Column[string](tx, oldText, oldest, maxForget)
	if err != nil || len(old) == 0 {
		return nil, err
	}
	if _, err := tx.Exec(`DELETE FROM webhook_attempt WHERE `+tx.In("delivery", 1), store.List(old)); err != nil {
		return nil, err
	}
	_, err = tx.Exec(`DELETE FROM webhook_delivery WHERE `+tx.In("id", 1), store.List(old))
	return old, err
}

const oldText = `SELECT d.id FROM webhook_delivery d WHERE d.created_ms < $1
	AND NOT EXISTS (SELECT 1 FROM webhook_queue q WHERE q.delivery = d.id) ORDER BY d.created_ms LIMIT $2`

// AccountOfEventTx returns the account of an event, or "" if the event is not in the log.
func AccountOfEventTx(tx *store.Tx, event string) (string, error) {
	var account string
	err := tx.QueryRow(`SELECT account FROM webhook_delivery WHERE event = $1 LIMIT 1`, event).Scan(&account)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return account, err
}
