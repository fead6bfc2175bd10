package webhook

import "tollgate/internal/store"

// queueRow is a delivery's row in the queue.
type queueRow struct {
	lease        string
	tries, dueMS int64
	state        int
}

// recordTx writes the results of finished attempts. A repetition after a commit with a lost answer
// changes nothing: a lease ends once, and an attempt has one row in the log. An attempt with a
// lease taken over meanwhile is logged too, and its success completes the delivery.
func (t *round) recordTx(tx *store.Tx) error {
	if len(t.finished) == 0 {
		return nil
	}
	held, err := t.queueRowsTx(tx)
	if err != nil {
		return err
	}
	var c changes
	attempts := insertAttempts.Make(len(t.finished))
	for _, f := range t.finished {
		o := f.outcome
		if o.kind != unsent {
			attempts = append(attempts, f.delivery, f.lease, o.atMS, int64(o.status), o.tookMS, o.err)
		}
		t.touched[f.receiver] = true
		row, queued := held[f.delivery]
		c.add(t, f, row, queued)
	}
	log := tx.Batch()
	log.Rows(insertAttempts, attempts)
	if err := tx.Run(log); err != nil {
		return err
	}
	return c.write(t, tx)
}

func (t *round) queueRowsTx(tx *store.Tx) (map[string]queueRow, error) {
	deliveries := make([]string, len(t.finished))
	for i, f := range t.finished {
		deliveries[i] = f.delivery
	}
	rows, err := tx.Query(leasedText+tx.In("q.delivery", 1), store.List(deliveries))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	held := map[string]queueRow{}
	for rows.Next() {
		var delivery string
		var row queueRow
		if err := rows.Scan(&delivery, &row.lease, &row.tries, &row.dueMS, &row.state); err != nil {
			return nil, err
		}
		held[delivery] = row
	}
	return held, rows.Err()
}

// changes collects the results of a round, so that few statements write them.
type changes struct {
	delivered, failed []string        // ids of deliveries with this new state
	drop, free        []string        // queue rows
	retry             map[int64]retry // by number of tries, which determines the wait
	well, failing     map[string]bool // receivers
}

type retry struct {
	dueMS      int64
	deliveries []string
}

// add adds the changes for one result.
func (c *changes) add(t *round, f *attempt, row queueRow, queued bool) {
	mine := queued && row.lease == f.lease
	c.setLane(f)
	if f.outcome.kind == delivered {
		c.delivered = append(c.delivered, f.delivery)
		if mine || (queued && row.lease == "") {
			c.drop = append(c.drop, f.delivery)
		}
		return
	}
	if !mine {
		return
	}
	v := decide(t.w.opts.Retries, row.tries, row.dueMS, t.nowMS, f.outcome)
	switch {
	case row.state == stateDelivered: // completed by a resend, or by an attempt presumed lost
		c.drop = append(c.drop, f.delivery)
	case v.state == stateFailed:
		c.failed = append(c.failed, f.delivery)
		c.drop = append(c.drop, f.delivery)
	case v.tries == row.tries:
		c.free = append(c.free, f.delivery)
	default:
		if c.retry == nil {
			c.retry = map[int64]retry{}
		}
		r := c.retry[v.tries]
		c.retry[v.tries] = retry{v.dueMS, append(r.deliveries, f.delivery)}
	}
}

// setLane moves a receiver to the lane of its last result.
func (c *changes) setLane(f *attempt) {
	if c.well == nil {
		c.well, c.failing = map[string]bool{}, map[string]bool{}
	}
	switch f.outcome.kind {
	case delivered:
		c.well[f.receiver] = true
		delete(c.failing, f.receiver)
	case failed:
		c.failing[f.receiver] = true
		delete(c.well, f.receiver)
	}
}

// write writes the changes.
func (c *changes) write(t *round, tx *store.Tx) error {
	t.final[stateDelivered], t.final[stateFailed] = len(c.delivered), len(c.failed)
	exec := func(list []string, text, column string, n int, args ...any) error {
		if len(list) == 0 {
			return nil
		}
		_, err := tx.Exec(text+tx.In(column, n), append(args, store.List(list))...)
		return err
	}
	if err := exec(c.delivered, stateText, "id", 2, stateDelivered); err != nil {
		return err
	}
	if err := exec(c.failed, stateText, "id", 2, stateFailed); err != nil {
		return err
	}
	if err := exec(c.drop, dropText, "delivery", 1); err != nil {
		return err
	}
	if err := exec(c.free, freeText, "delivery", 1); err != nil {
		return err
	}
	for tries, r := range c.retry {
		if err := exec(r.deliveries, retryText, "delivery", 3, r.dueMS, tries); err != nil {
			return err
		}
	}
	if err := exec(keys(c.well), failingText, "id", 2, laneWell); err != nil {
		return err
	}
	return exec(keys(c.failing), failingText, "id", 2, laneFailing)
}
