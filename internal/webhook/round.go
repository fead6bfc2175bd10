package webhook

import (
	"context"
	"slices"
	"strings"
	"time"

	"tollgate/internal/ledger"
	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// attempt is an attempt of this node, from its claim until its result is recorded.
type attempt struct {
	message
	delivery  string
	lease     string
	account   string
	receiver  string
	lane      int
	disabled  bool      // the account is disabled
	claimedAt time.Time // a time before the claim, so the lease began later
	outcome   outcome   // after the attempt
}

// Bounds of a round.
const (
	maxClaims  = 256         // claimed deliveries in each lane
	maxFresh   = 1000        // new queue rows added to receivers
	checkEvery = time.Second // between checks for leases without a live owner
)

// leaseSlack is the length of a lease beyond the timeout of the HTTP exchange. Half of the slack is
// for a slow start, the other half for slow recording.
const leaseSlack = 20 * time.Second

// never is the ready time of a receiver without a pending delivery.
const never = 1 << 62

// runRound records finished attempts, makes the deliveries of abandoned attempts due again, claims
// due deliveries and starts attempts with attemptCtx. If attemptCtx is nil, runRound claims
// nothing. It returns the time until the next round unless Wake is called.
func (w *Webhooks) runRound(ctx, attemptCtx context.Context) (time.Duration, error) {
	w.roundMu.Lock()
	defer w.roundMu.Unlock()
	t := &round{w: w, startedAt: w.opts.Now(), epoch: w.opts.Node.Epoch(), claiming: attemptCtx != nil}
	t.finished = w.finishedAttempts()
	s, err := t.readPending(ctx)
	if err != nil {
		return 0, err
	}
	if s.allChecked && len(s.stale) == 0 {
		w.leasesCheckedAt = t.startedAt
	}
	if len(t.finished) == 0 && (!t.claiming || s.idle()) {
		return s.wait(), nil
	}
	if err := w.opts.DB.Update(ctx, func(tx *store.Tx) error { return t.run(tx, s) }); err != nil {
		return 0, err
	}
	w.lastReceived = t.lastReceived
	w.applyRound(attemptCtx, t)
	return t.wait, nil
}

// finishedAttempts returns the finished attempts that are not recorded yet.
func (w *Webhooks) finishedAttempts() []*attempt {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.finished[:len(w.finished):len(w.finished)]
}

// applyRound drops the attempts recorded by a committed round and starts the claimed ones.
func (w *Webhooks) applyRound(attemptCtx context.Context, t *round) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.finished = append([]*attempt(nil), w.finished[len(t.finished):]...)
	for _, a := range t.finished {
		delete(w.inFlight, a.lease)
		w.metrics.countAttempt(a.outcome)
	}
	for state, n := range t.final {
		w.metrics.countFinal(state, n)
	}
	for _, a := range t.claimed {
		w.inFlight[a.lease] = a
		w.workers.Go(func() { w.runAttempt(attemptCtx, a) })
	}
	w.metrics.inFlight.Set(float64(len(w.inFlight)))
}

// runAttempt makes one attempt.
func (w *Webhooks) runAttempt(ctx context.Context, a *attempt) {
	switch {
	case a.disabled:
		a.outcome = outcome{kind: disabled, atMS: w.opts.Now().UnixMilli(), err: "not sent: the account is disabled"}
	case w.opts.Now().Sub(a.claimedAt) > leaseSlack/2:
		a.outcome = outcome{kind: unsent}
	default:
		a.outcome = w.send(ctx, a.message)
	}
	w.mu.Lock()
	w.finished = append(w.finished, a)
	w.mu.Unlock()
	w.Wake()
}

// round is the state of one runRound. run sets the fields from nowMS on, again in each retry of the
// transaction.
type round struct {
	w         *Webhooks
	startedAt time.Time
	epoch     string
	claiming  bool
	finished  []*attempt

	nowMS        int64
	final        map[int]int // number of deliveries that reached the state, by state
	touched      map[string]bool
	claimed      []*attempt
	lastReceived string // see Webhooks.lastReceived
	wait         time.Duration
}

// pendingWork is the pending work of a round, read without locks.
type pendingWork struct {
	nowMS      int64
	fresh      bool    // there are new queue rows
	ready      int64   // the ready time of the next receiver
	allChecked bool    // leases and all fresh rows were checked
	from       string  // see Webhooks.lastReceived
	stale      []lease // leases without a live owner
	alive      bool    // the database lists this node as alive
}

// lease is the lease of a queue row.
type lease struct {
	delivery, id, receiver, epoch string
	untilMS                       int64
}

// idle reports whether the node has nothing to claim. A node that is not listed as alive claims
// nothing, because other nodes would treat its claims as abandoned.
func (w *pendingWork) idle() bool {
	return !w.alive || (!w.fresh && len(w.stale) == 0 && w.ready > w.nowMS)
}

// wait returns the time until there may be work.
func (w *pendingWork) wait() time.Duration {
	if !w.alive {
		return pollEvery
	}
	return waitUntil(w.ready, w.nowMS)
}

// waitUntil returns the time until readyMS, at most pollEvery.
func waitUntil(readyMS, nowMS int64) time.Duration {
	if readyMS-nowMS > pollEvery.Milliseconds() {
		return pollEvery
	}
	return max(time.Duration(readyMS-nowMS)*time.Millisecond, 0)
}

// readPending reads the pending work.
func (r *round) readPending(ctx context.Context) (*pendingWork, error) {
	s := &pendingWork{allChecked: r.startedAt.Sub(r.w.leasesCheckedAt) >= checkEvery}
	if !s.allChecked {
		s.from = r.w.lastReceived
	}
	err := r.w.opts.DB.View(ctx, func(tx *store.Tx) (err error) {
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
		s.alive = nodes.Lives(r.epoch)
		if s.allChecked {
			s.stale, err = r.staleTx(tx, nodes, s.nowMS)
		}
		return err
	})
	return s, err
}

// staleTx returns expired leases, leases of dead nodes, and leases of this node without a running
// attempt. A lease without an attempt remains if the commit of a claim succeeded but reported an error.
func (r *round) staleTx(tx *store.Tx, nodes node.Members, nowMS int64) ([]lease, error) {
	leases, err := store.Collect(tx, func(row store.Row) (l lease, err error) {
		err = row.Scan(&l.delivery, &l.id, &l.receiver, &l.epoch, &l.untilMS)
		return l, err
	}, runningText)
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	return slices.DeleteFunc(leases, func(l lease) bool {
		lost := l.epoch == r.epoch && r.w.inFlight[l.id] == nil
		return l.untilMS > nowMS && nodes.Lives(l.epoch) && !lost
	}), err
}

// run is the transaction of a round. Only one node executes run at a time.
func (r *round) run(tx *store.Tx, s *pendingWork) (err error) {
	r.final, r.touched, r.claimed, r.lastReceived = map[int]int{}, map[string]bool{}, nil, s.from
	if err := tx.Serialize(roundLock); err != nil {
		return err
	}
	if r.nowMS, err = tx.NowMS(); err != nil {
		return err
	}
	if err := r.recordTx(tx); err != nil {
		return err
	}
	if err := r.takeOverTx(tx, s.stale); err != nil {
		return err
	}
	if err := r.addReceiversTx(tx); err != nil {
		return err
	}
	if err := refreshTx(tx, r.touched, r.nowMS); err != nil {
		return err
	}
	more := false
	if r.claiming && s.alive {
		if more, err = r.claimTx(tx); err != nil {
			return err
		}
	}
	_, ready, err := dueTx(tx, r.lastReceived)
	if err != nil {
		return err
	}
	r.wait = waitUntil(ready, r.nowMS)
	switch {
	case more:
		r.wait = 0
	case ready <= r.nowMS: // no lane has a free slot; the end of an attempt wakes this node
		r.wait = pollEvery
	}
	return nil
}

// takeOverTx makes the deliveries of stale leases due again.
func (r *round) takeOverTx(tx *store.Tx, stale []lease) error {
	if len(stale) == 0 {
		return nil
	}
	var deliveries, leases []string
	for _, l := range stale {
		deliveries, leases = append(deliveries, l.delivery), append(leases, l.id)
		r.touched[l.receiver] = true
	}
	_, err := tx.Exec(freeText+tx.In("delivery", 1)+` AND `+tx.In("lease", 2), store.List(deliveries), store.List(leases))
	return err
}

// addReceiversTx updates the receivers for new queue rows.
func (r *round) addReceiversTx(tx *store.Tx) error {
	deliveries, err := store.Collect(tx, func(row store.Row) (delivery string, err error) {
		var receiver string
		err = row.Scan(&delivery, &receiver)
		r.touched[receiver] = true
		return delivery, err
	}, freshText, maxFresh, r.lastReceived)
	if err != nil || len(deliveries) == 0 {
		return err
	}
	if _, err := tx.Exec(receiverText+tx.In("q.delivery", 2)+` ON CONFLICT (id) DO NOTHING`, r.nowMS, store.List(deliveries)); err != nil {
		return err
	}
	r.lastReceived = deliveries[len(deliveries)-1]
	_, err = tx.Exec(receivedText+tx.In("delivery", 1), store.List(deliveries))
	return err
}

// claimTx claims deliveries in both lanes and reports whether another round could claim more.
func (r *round) claimTx(tx *store.Tx) (more bool, err error) {
	loads := r.w.loads(r.finished)
	checked := map[string]bool{} // all receivers read, with or without a due delivery
	for i := range lanes {
		alreadyChecked := len(checked)
		found, err := r.chooseTx(tx, i, &loads[i], checked)
		if err != nil {
			return false, err
		}
		more = more || len(found) >= maxClaims || len(checked)-alreadyChecked >= maxClaims
		r.claimed = append(r.claimed, found...)
	}
	if len(r.claimed) > 0 {
		if err := r.leaseTx(tx); err != nil {
			return false, err
		}
	}
	return more, refreshTx(tx, checked, r.nowMS)
}

// loads returns the number of running attempts on this node by lane, without the attempts recorded
// in this round.
func (w *Webhooks) loads(finished []*attempt) (loads [len(lanes)]load) {
	for i := range loads {
		loads[i].account = map[string]int{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	count := func(a *attempt, n int) {
		loads[a.lane].all += n
		loads[a.lane].account[a.account] += n
	}
	for _, a := range w.inFlight {
		count(a, 1)
	}
	for _, a := range finished {
		count(a, -1)
	}
	return loads
}

// chooseTx returns new attempts for a lane: due deliveries of the receivers with the longest wait, up
// to each receiver's limit.
func (r *round) chooseTx(tx *store.Tx, laneIndex int, l *load, checked map[string]bool) ([]*attempt, error) {
	n, full := l.free(lanes[laneIndex])
	if n = min(n, maxClaims); n == 0 {
		return nil, nil
	}
	var chosen []*attempt
	err := tx.Each(func(row store.Row) error {
		var receiver, account, due string
		var running int
		if err := row.Scan(&receiver, &account, &running, &due); err != nil {
			return err
		}
		checked[receiver] = true
		deliveries := strings.Fields(due)
		for _, delivery := range deliveries[:min(len(deliveries), max(lanes[laneIndex].each-running, 0))] {
			if len(chosen) < maxClaims && l.take(lanes[laneIndex], account) {
				chosen = append(chosen, &attempt{delivery: delivery, account: account, receiver: receiver, lane: laneIndex, claimedAt: r.startedAt})
			}
		}
		return nil
	}, readyText+tx.In("r.account", 3)+readyOrder, r.nowMS, laneIndex, store.List(full), n)
	return chosen, err
}

// leaseTx writes leases for the chosen attempts and reads their messages.
func (r *round) leaseTx(tx *store.Tx) error {
	byDelivery := map[string]*attempt{}
	accounts := map[string]bool{}
	prefix := id.New("lse_") + "."
	var deliveries []string
	for _, a := range r.claimed {
		a.lease = prefix + a.delivery
		byDelivery[a.delivery] = a
		deliveries = append(deliveries, a.delivery)
		accounts[a.account] = true
	}
	untilMS := r.nowMS + (r.w.opts.Timeout + leaseSlack).Milliseconds()
	if _, err := tx.Exec(leaseText+tx.In("delivery", 4), prefix, r.epoch, untilMS, store.List(deliveries)); err != nil {
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
	return tx.Each(func(row store.Row) error {
		var delivery string
		var m message
		if err := row.Scan(&delivery, &m.event, &m.url, &m.body); err != nil {
			return err
		}
		a := byDelivery[delivery]
		m.secret = secrets[a.account]
		a.message, a.disabled = m, states[a.account].Disabled
		return nil
	}, messageText+tx.In("id", 1), store.List(deliveries))
}
