package webhook

import (
	"context"
	"fmt"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// TestResult is the receiver's result for a test event.
type TestResult struct {
	Status     int    // of the answer; 0 without an answer
	ResponseMS int64  // until the answer, or until the attempt failed
	Error      string // in words for the user; empty after a 2xx
}

// Test sends webhook.test to an account's address now, even if the account did not choose the type. It
// makes one attempt, records the attempt in the log and returns the result. The account must exist.
// Test returns a *fault.Error if the account has no address or is disabled. A crash before the result
// is recorded leaves no trace of the event.
func (w *Webhooks) Test(ctx context.Context, account string) (TestResult, error) {
	release, err := w.acquire(ctx, account)
	if err != nil {
		return TestResult{}, err
	}
	defer release()
	var m message
	var receiver string
	var nowMS int64
	err = w.opts.DB.Update(ctx, func(tx *store.Tx) (err error) {
		if nowMS, err = tx.NowMS(); err != nil {
			return err
		}
		e, err := EndpointTx(tx, account)
		if err != nil {
			return err
		}
		if e.URL == "" {
			return fault.New(fault.InvalidRequest, "The account has no webhook address to test. Set one first.")
		}
		if err := enabledTx(tx, account); err != nil {
			return err
		}
		m = message{event: eventID(nowMS), url: e.URL, secret: e.Secret}
		return tx.QueryRow(`SELECT receiver FROM webhook_endpoint WHERE account = $1`, account).Scan(&receiver)
	})
	if err != nil {
		return TestResult{}, err
	}
	m.body = string(envelope(m.event, TestEvent, nowMS,
		[]byte(`{"message":"This is a test event. Your receiver works if it verifies the signature and answers with a 2xx status."}`)))
	o := w.sendNow(ctx, m)
	state := stateFailed
	if o.kind == delivered {
		state = stateDelivered
	}
	err = w.record(ctx, func(tx *store.Tx) error {
		delivery := deliveryID(nowMS)
		if _, err := tx.Exec(`INSERT INTO webhook_delivery (id, account, event, type, url, receiver, body, state, created_ms)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, delivery, account, m.event, TestEvent, m.url, receiver, m.body, state, nowMS); err != nil {
			return err
		}
		return logTx(tx, delivery, o)
	})
	return TestResult{Status: o.status, ResponseMS: o.tookMS, Error: o.err}, err
}

// maxAttempts bounds the attempts of one delivery, resends included.
const maxAttempts = 200

// Resend sends the event of a delivery again now, with the same id and bytes to the same address and a
// new signature, and adds the attempt to the log. The schedule does not change, except that a 2xx
// completes the delivery and ends automatic retries. Resend returns the log entry after the attempt,
// or a *fault.Error if the delivery does not exist or its account is disabled.
func (w *Webhooks) Resend(ctx context.Context, delivery string) (Delivery, error) {
	var d Delivery
	err := w.opts.DB.View(ctx, func(tx *store.Tx) (err error) {
		d, _, err = w.deliveryTx(tx, delivery)
		return err
	})
	if err != nil {
		return Delivery{}, err
	}
	release, err := w.acquire(ctx, d.Account)
	if err != nil {
		return Delivery{}, err
	}
	defer release()
	var m message
	err = w.opts.DB.Update(ctx, func(tx *store.Tx) (err error) {
		var found bool
		if d, found, err = w.deliveryTx(tx, delivery); err != nil {
			return err
		}
		switch {
		case !found:
			return w.noDelivery()
		case len(d.Attempts) >= maxAttempts:
			return fault.New(fault.InvalidRequest, "This event was sent %d times already, which is the most.", maxAttempts)
		}
		if err := enabledTx(tx, d.Account); err != nil {
			return err
		}
		secrets, err := secretsTx(tx, map[string]bool{d.Account: true})
		if err != nil {
			return err
		}
		m = message{secret: secrets[d.Account]}
		return tx.QueryRow(messageText+`id = $1`, delivery).Scan(&d.ID, &m.event, &m.url, &m.body)
	})
	if err != nil {
		return Delivery{}, err
	}
	o := w.sendNow(ctx, m)
	err = w.record(ctx, func(tx *store.Tx) error {
		if err := recordResendTx(tx, delivery, o); err != nil {
			return err
		}
		entry, found, err := w.deliveryTx(tx, delivery)
		if found { // otherwise the entry has expired
			d = entry
		}
		return err
	})
	return d, err
}

// recordResendTx records a resend. A successful resend ends the schedule, even while a scheduled
// attempt is in flight.
func recordResendTx(tx *store.Tx, delivery string, o outcome) error {
	if err := tx.Serialize(roundLock); err != nil {
		return err
	}
	if err := logTx(tx, delivery, o); err != nil || o.kind != delivered {
		return err
	}
	if _, err := tx.Exec(`UPDATE webhook_delivery SET state = $1 WHERE id = $2`, stateDelivered, delivery); err != nil {
		return err
	}
	_, err := tx.Exec(`DELETE FROM webhook_queue WHERE delivery = $1 AND lease = ''`, delivery)
	return err
}

// enabledTx returns an error if the account is disabled.
func enabledTx(tx *store.Tx, account string) error {
	states, err := ledger.AccountsTx(tx, []string{account})
	if err == nil && states[account].Disabled {
		err = fault.New(fault.InvalidRequest, "The account is disabled, so nothing is sent for it. Enable it first.")
	}
	return err
}

// acquire waits until the account may send one more test or resend. An account may send
// maxManualEach at a time, so that slow receivers do not block other accounts. Callers must read
// secrets after acquire, because a secret may be rolled during the wait.
func (w *Webhooks) acquire(ctx context.Context, account string) (release func(), err error) {
	releaseAccount, err := w.manualByAccount.Acquire(ctx, account)
	if err != nil {
		return nil, fmt.Errorf("wait to send a webhook: %w", err)
	}
	releaseNode, err := w.manual.Acquire(ctx, struct{}{})
	if err != nil {
		releaseAccount()
		return nil, fmt.Errorf("wait to send a webhook: %w", err)
	}
	return func() { releaseNode(); releaseAccount() }, nil
}

// sendNow makes one attempt outside of the queue. The caller cannot cancel an attempt that has begun,
// because the receiver may already have the event.
func (w *Webhooks) sendNow(ctx context.Context, m message) outcome {
	o := w.send(context.WithoutCancel(ctx), m)
	w.metrics.countAttempt(o)
	return o
}

// record writes a result to the log even if ctx is canceled.
func (w *Webhooks) record(ctx context.Context, fn func(tx *store.Tx) error) error {
	if err := w.opts.DB.Update(context.WithoutCancel(ctx), fn); err != nil {
		return fmt.Errorf("record an attempt: %w", err)
	}
	return nil
}

// logTx adds an attempt to the log.
func logTx(tx *store.Tx, delivery string, o outcome) error {
	_, err := tx.Exec(logText, delivery, id.New("att_"), o.atMS, o.status, o.tookMS, o.err)
	return err
}

// days formats a retention for people.
func days(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= day && d%day == 0 {
		return fmt.Sprintf("%d days", d/day)
	}
	return d.String()
}
