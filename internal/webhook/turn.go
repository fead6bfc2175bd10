package webhook

import (
	"context"
	"strings"
	"time"

	"tollgate/internal/ledger"
	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// flight is one attempt of this node, from its claim until its result is recorded.
type flight struct {
	message
	delivery string
	lease    string
	account  string
	receiver string
	lane     int
	disabled bool      // the account is
	begun    time.Time // before the claim: the lease is no older
	outcome  outcome   // once it is among the ended
}

// Bounds of a turn.
const (
	maxClaims = 256 // deliveries, of each lane
	maxFresh  = 1000
	lookEvery = time.Second // for leases without a live owner
)

// leaseSlack is the time of a lease beyond the exchange: for a slow start, which may take half of
// the slack, and for slow recording.
const leaseSlack = 20 * time.Second

// never is the ready time of a receiver with no pending delivery.
const never = 1 << 62

// turn records finished attempts, takes over abandoned attempts, claims due deliveries and begins
// to send them under the context sending. If sending is nil, turn claims nothing. It returns the
// time until the next turn if there is no wake-up.
func (w *Webhooks) turn(ctx, sending context.Context) (time.Duration, error) {
	w.running.Lock()
	defer w.running.Unlock()
	t := &turn{w: w, begun: w.opts.Now(), epoch: w.opts.Epoch(), claiming: sending != nil}
	t.ended = w.landed()
	s, err := t.survey(ctx)
	if err != nil {
		return 0, err
	}
	if s.looked && len(s.stale) == 0 {
		w.looked = t.begun
	}
	if len(t.ended) == 0 && (!t.claiming || s.idle()) {
		return s.wait(), nil
	}
	if err := w.opts.DB.Update(ctx, func(tx *store.Tx) error { return t.run(tx, s) }); err != nil {
		return 0, err
	}
	w.adopted = t.adopted
	w.launch(sending, t)
	return t.wait, nil
}

// landed returns the finished attempts before they are recorded.
func (w *Webhooks) landed() []*flight {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended[:len(w.ended):len(w.ended)]
}

// launch forgets the attempts recorded by a committed turn and begins the claimed ones.
func (w *Webhooks) launch(sending context.Context, t *turn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = append([]*flight(nil), w.ended[len(t.ended):]...)
	for _, f := range t.ended {
		delete(w.flying, f.lease)
		w.metrics.ended(f.outcome)
	}
	for state, n := range t.final {
		w.metrics.final(state, n)
	}
	for _, f := range t.claimed {
		w.flying[f.lease] = f
		w.workers.Go(func() { w.fly(sending, f) })
	}
	w.metrics.inFlight.Set(float64(len(w.flying)))
}

// fly makes one attempt.
func (w *Webhooks) fly(ctx context.Context, f *flight) {
	switch {
	case f.disabled:
		f.outcome = outcome{kind: disabled, atMS: w.opts.Now().UnixMilli(), err: "not sent: the account is disabled"}
	case w.opts.Now().Sub(f.begun) > leaseSlack/2:
		f.outcome = outcome{kind: unsent}
	default:
		f.outcome = w.send(ctx, f.message)
	}
	w.mu.Lock()
	w.ended = append(w.ended, f)
	w.mu.Unlock()
	w.Wake()
}

// turn is one turn of a node. Its fields from final on are set by run, each
// time anew.
type turn struct {
	w        *Webhooks
	begun    time.Time
	epoch    string
	claiming bool
	ended    []*flight

	nowMS   int64
	final   map[int]int // number of deliveries that reached the state, by state
	touched map[string]bool
	claimed []*flight
	adopted string // see Webhooks.adopted
	wait    time.Duration
}

// survey is the pending work of a turn, read without locks.
type survey struct {
	nowMS  int64
	fresh  bool
	ready  int64   // when the next receiver is
	looked bool    // whether leases were looked through, and all fresh rows
	from   string  // see Webhooks.adopted
	stale  []lease // leases without a live owner
	living bool    // this node is known to live
}

// lease is the lease of a queue row.
type lease struct{ delivery, id, receiver, epoch string }

// idle reports whether there is nothing to claim. A node that is not known to be alive claims
// nothing, since other nodes would treat its claims as abandoned.
func (s *survey) idle() bool {
	return !s.living || (!s.fresh && len(s.stale) == 0 && s.ready > s.nowMS)
}

// wait is how long there is nothing to do.
func (s *survey) wait() time.Duration {
	if !s.living {
		return pollEvery
	}
	return waitUntil(s.ready, s.nowMS)
}

// waitUntil returns the time until readyMS, which may be never.
func waitUntil(readyMS, nowMS int64) time.Duration {
	if readyMS-nowMS > pollEvery.Milliseconds() {
		return pollEvery
	}
	return max(time.Duration(readyMS-nowMS)*time.Millisecond, 0)
}

// survey reads the pending work.
func (t *turn) survey(ctx context.Context) (*survey, error) {
	s := &survey{looked: t.begun.Sub(t.w.looked) >= lookEvery}
	if !s.looked {
		s.from = t.w.adopted
	}
	err := t.w.opts.DB.View(ctx, func(tx *store.Tx) (err error) {
		if s.nowMS, err = tx.NowMS(); err != nil {
			return err
		}
		if s.fresh, s.ready, err = dueTx(tx, s.from); err != nil {
			return err
		}
		nodes, err := node.MembersTx(tx)
		if err != nil {
			return err
		}
		s.living = nodes.Lives(t.epoch)
		if s.looked {
			s.stale, err = t.staleTx(tx, nodes, s.nowMS)
		}
		return err
	})
	return s, err
}

// staleTx returns expired leases, leases of dead nodes, and this node's leases without a running
// attempt: the answer to the commit of their claim was lost.
func (t *turn) staleTx(tx *store.Tx, nodes node.Members, nowMS int64) ([]lease, error) {
	rows, err := tx.Query(runningText)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	var stale []lease
	for rows.Next() {
		var l lease
		var untilMS int64
		if err := rows.Scan(&l.delivery, &l.id, &l.receiver, &l.epoch, &untilMS); err != nil {
			return nil, err
		}
		if untilMS <= nowMS || !nodes.Lives(l.epoch) || (l.epoch == t.epoch && t.w.flying[l.id] == nil) {
			stale = append(stale, l)
		}
	}
	return stale, rows.Err()
}

// run is the exclusive part of a turn.
func (t *turn) run(tx *store.Tx, s *survey) (err error) {
	t.final, t.touched, t.claimed, t.adopted = map[int]int{}, map[string]bool{}, nil, s.from
	if err := tx.Serialize(turnName); err != nil {
		return err
	}
	if t.nowMS, err = tx.NowMS(); err != nil {
		return err
	}
	if err := t.recordTx(tx); err != nil {
		return err
	}
	if err := t.takeOverTx(tx, s.stale); err != nil {
		return err
	}
	if err := t.adoptTx(tx); err != nil {
		return err
	}
	if err := refreshTx(tx, t.touched, t.nowMS); err != nil {
		return err
	}
	more := false
	if t.claiming && s.living {
		if more, err = t.claimTx(tx); err != nil {
			return err
		}
	}
	_, ready, err := dueTx(tx, t.adopted)
	if err != nil {
		return err
	}
	t.wait = waitUntil(ready, t.nowMS)
	switch {
	case more:
		t.wait = 0
	case ready <= t.nowMS: // no free place: the end of an attempt wakes this node
		t.wait = pollEvery
	}
	return nil
}

// takeOverTx makes the deliveries of stale leases due again.
func (t *turn) takeOverTx(tx *store.Tx, stale []lease) error {
	if len(stale) == 0 {
		return nil
	}
	var deliveries, leases []string
	for _, l := range stale {
		deliveries, leases = append(deliveries, l.delivery), append(leases, l.id)
		t.touched[l.receiver] = true
	}
	_, err := tx.Exec(freeText+tx.In("delivery", 1)+` AND `+tx.In("lease", 2), store.List(deliveries), store.List(leases))
	return err
}

// adoptTx updates the receivers for new queue rows.
func (t *turn) adoptTx(tx *store.Tx) error {
	rows, err := tx.Query(freshText, maxFresh, t.adopted)
	if err != nil {
		return err
	}
	defer rows.Close()
	var deliveries []string
	for rows.Next() {
		var delivery, receiver string
		if err := rows.Scan(&delivery, &receiver); err != nil {
			return err
		}
		deliveries = append(deliveries, delivery)
		t.touched[receiver] = true
		t.adopted = delivery
	}
	if err := rows.Err(); err != nil || len(deliveries) == 0 {
		return err
	}
	if _, err := tx.Exec(knowText+tx.In("q.delivery", 2)+` ON CONFLICT (id) DO NOTHING`, t.nowMS, store.List(deliveries)); err != nil {
		return err
	}
	_, err = tx.Exec(adoptText+tx.In("delivery", 1), store.List(deliveries))
	return err
}

// claimTx begins attempts in both lanes and reports whether more may fit.
func (t *turn) claimTx(tx *store.Tx) (more bool, err error) {
	loads := t.w.loads(t.ended)
	asked := map[string]bool{} // receivers, including those without a due delivery
	for i := range lanes {
		before := len(asked)
		found, err := t.chooseTx(tx, i, &loads[i], asked)
		if err != nil {
			return false, err
		}
		more = more || len(found) >= maxClaims || len(asked)-before >= maxClaims
		t.claimed = append(t.claimed, found...)
	}
	if len(t.claimed) > 0 {
		if err := t.leaseTx(tx); err != nil {
			return false, err
		}
	}
	return more, refreshTx(tx, asked, t.nowMS)
}

// loads returns the running attempts on this node by lane, without the attempts recorded in this
// turn.
func (w *Webhooks) loads(ended []*flight) (loads [len(lanes)]load) {
	for i := range loads {
		loads[i].account = map[string]int{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	count := func(f *flight, n int) {
		loads[f.lane].all += n
		loads[f.lane].account[f.account] += n
	}
	for _, f := range w.flying {
		count(f, 1)
	}
	for _, f := range ended {
		count(f, -1)
	}
	return loads
}

// chooseTx returns the attempts to begin in a lane: the due deliveries of the receivers with the
// longest wait, up to each receiver's limit.
func (t *turn) chooseTx(tx *store.Tx, in int, l *load, asked map[string]bool) ([]*flight, error) {
	places, full := l.room(lanes[in])
	if places = min(places, maxClaims); places == 0 {
		return nil, nil
	}
	rows, err := tx.Query(readyText+tx.In("r.account", 3)+readyOrder, t.nowMS, in, store.List(full), places)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var chosen []*flight
	for rows.Next() {
		var receiver, account string
		var runs int
		var due string
		if err := rows.Scan(&receiver, &account, &runs, &due); err != nil {
			return nil, err
		}
		asked[receiver] = true
		deliveries := strings.Fields(due)
		for _, delivery := range deliveries[:min(len(deliveries), max(lanes[in].each-runs, 0))] {
			if len(chosen) < maxClaims && l.take(lanes[in], account) {
				chosen = append(chosen, &flight{delivery: delivery, account: account, receiver: receiver, lane: in, begun: t.begun})
			}
		}
	}
	return chosen, rows.Err()
}

// leaseTx writes leases for the chosen attempts and reads their messages.
func (t *turn) leaseTx(tx *store.Tx) error {
	byDelivery := map[string]*flight{}
	accounts := map[string]bool{}
	prefix := id.New("lse_") + "."
	var deliveries []string
	for _, f := range t.claimed {
		f.lease = prefix + f.delivery
		byDelivery[f.delivery] = f
		deliveries = append(deliveries, f.delivery)
		accounts[f.account] = true
	}
	untilMS := t.nowMS + (t.w.opts.Timeout + leaseSlack).Milliseconds()
	if _, err := tx.Exec(leaseText+tx.In("delivery", 4), prefix, t.epoch, untilMS, store.List(deliveries)); err != nil {
		return err
	}
	secrets, err := secretsTx(tx, accounts)
	if err != nil {
		return err
	}
	states, err := ledger.AccountsTx(tx, keys(accounts))
	if err != nil {
		return err
	}
	rows, err := tx.Query(messageText+tx.In("id", 1), store.List(deliveries))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var delivery string
		var m message
		if err := rows.Scan(&delivery, &m.event, &m.url, &m.body); err != nil {
			return err
		}
		f := byDelivery[delivery]
		m.secret = secrets[f.account]
		f.message, f.disabled = m, states[f.account].Disabled
	}
	return rows.Err()
}
