package webhook

import "tollgate/internal/store"

// queueRow is a delivery's row in the queue.
type queueRow struct {
	lease        string
	tries, dueMS int64
	state        int
}

// recordTx writes the results of finished attempts. A retry after a commit with an unknown outcome
// changes nothing, because a lease ends once and an attempt has one row in the log. If another node has taken
// over the lease in the meantime, recordTx still logs the attempt, and a success completes the
// delivery.
func (r *round) recordTx(tx *store.Tx) error {
	if len(r.finished) == 0 {
		return nil
	}
	rows, err := r.queueRowsTx(tx)
	if err != nil {
		return err
	}
	var c changes
	attempts := insertAttempts.Make(len(r.finished))
	for _, a := range r.finished {
		o := a.outcome
		if o.kind != unsent {
			attempts = append(attempts, a.delivery, a.lease, o.atMS, int64(o.status), o.tookMS, o.err)
		}
		r.touched[a.receiver] = true
		row, queued := rows[a.delivery]
		c.add(r, a, row, queued)
	}
	log := tx.Batch()
	log.Rows(insertAttempts, attempts)
	if err := tx.Run(log); err != nil {
		return err
	}
	return c.write(r, tx)
}

// queueRowsTx returns the queue rows of the finished attempts by delivery.
func (r *round) queueRowsTx(tx *store.Tx) (map[string]queueRow, error) {
	deliveries := make([]string, len(r.finished))
	for i, a := range r.finished {
		deliveries[i] = a.delivery
	}
	rows := map[string]queueRow{}
	return rows, tx.Each(func(row store.Row) error {
		var delivery string
		var queued queueRow
		err := row.Scan(&delivery, &queued.lease, &queued.tries, &queued.dueMS, &queued.state)
		rows[delivery] = queued
		return err
	}, leasedText+tx.In("q.delivery", 1), store.List(deliveries))
}

// changes collects the results of a round, so that few statements write them.
type changes struct {
	delivered, failed []string        // ids of deliveries with this new state
	drop, free        []string        // deliveries with a queue row to delete, or a lease to end
	retry             map[int64]retry // by the number of tries
	healthy, failing  map[string]bool // receivers
}

// retry is the next attempt of deliveries with the same number of tries.
type retry struct {
	dueMS      int64
	deliveries []string
}

// add adds the changes for one result.
func (c *changes) add(t *round, a *attempt, row queueRow, queued bool) {
	held := queued && row.lease == a.lease
	c.setLane(a)
	if a.outcome.kind == delivered {
		c.delivered = append(c.delivered, a.delivery)
		if held || (queued && row.lease == "") {
			c.drop = append(c.drop, a.delivery)
		}
		return
	}
	if !held {
		return
	}
	v := decide(t.w.opts.Retries, row.tries, row.dueMS, t.nowMS, a.outcome)
	switch {
	case row.state == stateDelivered: // completed by a resend, or by an attempt presumed lost
		c.drop = append(c.drop, a.delivery)
	case v.state == stateFailed:
		c.failed = append(c.failed, a.delivery)
		c.drop = append(c.drop, a.delivery)
	case v.tries == row.tries:
		c.free = append(c.free, a.delivery)
	default:
		if c.retry == nil {
			c.retry = map[int64]retry{}
		}
		r := c.retry[v.tries]
		c.retry[v.tries] = retry{v.dueMS, append(r.deliveries, a.delivery)}
	}
}

// setLane moves a receiver to the lane for the result of its last attempt.
func (c *changes) setLane(a *attempt) {
	if c.healthy == nil {
		c.healthy, c.failing = map[string]bool{}, map[string]bool{}
	}
	switch a.outcome.kind {
	case delivered:
		c.healthy[a.receiver] = true
		delete(c.failing, a.receiver)
	case failed:
		c.failing[a.receiver] = true
		delete(c.healthy, a.receiver)
	}
}

// write runs the statements for the changes.
func (c *changes) write(t *round, tx *store.Tx) error {
	t.final[stateDelivered], t.final[stateFailed] = len(c.delivered), len(c.failed)
	var err error
	exec := func(list []string, text, column string, n int, args ...any) {
		if err == nil && len(list) > 0 {
			_, err = tx.Exec(text+tx.In(column, n), append(args, store.List(list))...)
		}
	}
	exec(c.delivered, stateText, "id", 2, stateDelivered)
	exec(c.failed, stateText, "id", 2, stateFailed)
	exec(c.drop, dropText, "delivery", 1)
	exec(c.free, freeText, "delivery", 1)
	for tries, r := range c.retry {
		exec(r.deliveries, retryText, "delivery", 3, r.dueMS, tries)
	}
	exec(keys(c.healthy), failingText, "id", 2, laneHealthy)
	exec(keys(c.healthy), recoveredText, "receiver", 1)
	exec(keys(c.failing), failingText, "id", 2, laneFailing)
	return err
}
