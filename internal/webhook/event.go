package webhook

import (
	"bytes"
	"fmt"
	"net/url"
	"time"

	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// Statements for events. enqueue copies the delivery's row, so an event without a delivery gets no
// queue row.
const (
	emitChosen = `INSERT INTO webhook_delivery (id, account, event, type, url, receiver, body, state, created_ms)
		SELECT CAST($1 AS TEXT), e.account, CAST($2 AS TEXT), CAST($3 AS TEXT), e.url, e.receiver, CAST($4 AS TEXT), 0, CAST($5 AS BIGINT)
		FROM webhook_endpoint e WHERE e.account = $6 AND e.url <> '' AND e.events LIKE $7`
	emitCallback = `INSERT INTO webhook_delivery (id, account, event, type, url, receiver, body, state, created_ms)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 0, $8)`
	enqueue = `INSERT INTO webhook_queue (delivery, account, receiver, due_ms, tries, fresh, lease, epoch, until_ms)
		SELECT d.id, d.account, d.receiver, d.created_ms, 0, 1, '', '', 0 FROM webhook_delivery d WHERE d.id = $1`
)

// JobEnd describes the end of a job for its event.
type JobEnd struct {
	Account string
	Type    string // ImageCompleted, ImageFailed, VideoCompleted or VideoFailed
	Body    []byte // the job object, with the same bytes as in the polling answer
	// Callback is the address from the request, already checked. If empty, the account's endpoint
	// gets the event if the account chose the type.
	Callback string
}

// EmitJob adds the statements for the event of a job's end to q, a batch inside the transaction that
// ends the job. A callback gets the job object; without a callback, the account's endpoint gets an
// event. The statements lock no row and read the account's choice of types within the transaction.
// Call Wake after the commit. Each call creates an event with a new id.
func (w *Webhooks) EmitJob(q *store.Batch, nowMS int64, e JobEnd) {
	if e.Callback == "" {
		emit(q, nowMS, e.Account, e.Type, e.Body)
		return
	}
	u, err := url.Parse(e.Callback)
	if err != nil { // the address was checked before; a bad address fails at its attempts
		u = &url.URL{}
	}
	delivery := deliveryID(nowMS)
	q.Exec(nil, emitCallback, delivery, e.Account, eventID(nowMS), e.Type, e.Callback, receiverOf(e.Account, u), string(e.Body), nowMS)
	q.Exec(nil, enqueue, delivery)
}

// EmitLow adds the statements for the event balance.low to q, like EmitJob. balance is the amount
// after the charge, and below threshold.
func (w *Webhooks) EmitLow(q *store.Batch, nowMS int64, account string, balance, threshold money.Amount) {
	emit(q, nowMS, account, BalanceLow, lowData(balance, threshold))
}

// EmitLowTx is like EmitLow for a transaction without a batch, for example when the operator takes
// money back. A process that does not deliver may call EmitLowTx, because nodes look for new deliveries
// every second even without Wake.
func EmitLowTx(tx *store.Tx, account string, balance, threshold money.Amount) error {
	nowMS, err := tx.NowMS()
	if err != nil {
		return err
	}
	q := tx.Batch()
	emit(q, nowMS, account, BalanceLow, lowData(balance, threshold))
	if err := tx.Run(q); err != nil {
		return fmt.Errorf("write an event: %w", err)
	}
	return nil
}

// lowData is the data of balance.low.
func lowData(balance, threshold money.Amount) []byte {
	return fmt.Appendf(nil, `{"balance_credits":%s,"threshold_credits":%s}`, balance.Credits(), threshold.Credits())
}

// emit adds an event for the account's endpoint if the account has chosen the type.
func emit(q *store.Batch, nowMS int64, account, eventType string, data []byte) {
	delivery, event := deliveryID(nowMS), eventID(nowMS)
	q.Exec(nil, emitChosen, delivery, event, eventType, string(envelope(event, eventType, nowMS, data)), nowMS, account,
		"% "+eventType+" %")
	q.Exec(nil, enqueue, delivery)
}

// envelope returns the body of an event with an unchanged copy of data.
func envelope(event, eventType string, nowMS int64, data []byte) []byte {
	return fmt.Appendf(nil, `{"id":"%s","object":"event","type":"%s","created_at":%d,"data":%s}`, event, eventType, nowMS/1000,
		bytes.TrimSpace(data))
}

func eventID(nowMS int64) string    { return id.At("evt_", time.UnixMilli(nowMS)) }
func deliveryID(nowMS int64) string { return id.At("dlv_", time.UnixMilli(nowMS)) }
