package commit

import (
	"strings"
	"testing"

	"tollgate/internal/node"
)

// This file models a node, its database with a synchronous standby, another node that sweeps after
// the first, and one client, and explores every reachable state. It supports ADR 3: under the rules
// of the code, no client gets a false answer about its charge, and no hold outlives its request.
// Under earlier rules, explore finds the known failures.

// rules selects a variant of the model. The zero value has the rules of the code.
type rules struct {
	// deadSettleNothing makes a node ignore the row of its dead epoch: it refuses settlements and
	// repeats admissions with the same ids.
	deadSettleNothing bool
	// readResolves makes a mere read resolve an unknown outcome.
	readResolves bool
	// cancelsCommit makes a deadline during a COMMIT cancel the COMMIT at the server.
	cancelsCommit bool
	// doubtIsRefusal gives the client an error if the commit of a submission is unknown, and undoes
	// the job later.
	doubtIsRefusal bool
}

// openHold is the epoch of a hold.
type openHold int8

const (
	noHold openHold = iota
	ofFirstLife
	ofSecondLife
	ofJob
)

type receiptState int8

const (
	noReceipt receiptState = iota
	uncharged
	chargedOnce
)

// database is the state of the database.
type database struct {
	batch   [2]int8 // last batch of each epoch of the node
	dead    bool    // the first epoch was declared dead
	deleted bool    // the row of the first epoch was deleted
	hold    openHold
	receipt receiptState
}

// transaction is a batch at the server.
type transaction struct {
	stage  int8 // 0: no transaction; 1: before the arrival of COMMIT; 2: waiting for the standby
	settle bool // a settlement, else an admission
	life   int8 // the epoch of the node
	undone bool // the settlement's caller has left, so nothing is charged
}

type answerState int8

const (
	waiting answerState = iota
	complete
	refused // an error: "you were not charged"
	cut     // no answer
)

// model is a state of the whole system.
type model struct {
	job          bool     // the request submits a job, and another node may run the job
	seen, safe   database // as readable now, and as on the standby
	tx           transaction
	epoch, batch int8 // the node's epoch, and its last batch known to be committed
	settling     bool // the node settles the request, else admits the request
	sent         bool // the node waits for the answer to a try
	lost         bool // the COMMIT of a try has no answer
	idle         bool // the node has nothing to do
	undo         bool // the job must be undone, because the client got a refusal
	answer       answerState
	failovers    int8
	terminations int8
	stuck        bool // an operation can never be committed
}

type step struct {
	name string
	to   model
}

// durable returns the state after an answered synchronous commit: all rows are on the standby.
func (m model) durable() model { m.safe = m.seen; return m }

// next returns every possible step in m.
func (m model) next(r rules) []step {
	var steps []step
	add := func(name string, to model) { steps = append(steps, step{name, to}) }
	m.nodeSteps(r, add)
	m.serverSteps(r, add)
	m.otherSteps(r, add)
	return steps
}

// nodeSteps adds the steps of the committer and the waiting client.
func (m model) nodeSteps(r rules, add func(string, model)) {
	if !m.idle && !m.sent && m.tx.stage == 0 { // otherwise the row is locked
		alive := m.epoch == 1 || (!m.seen.dead && !m.seen.deleted)
		if alive && m.seen.batch[m.epoch] == m.batch {
			add("try", m.try())
		} else {
			add("resolve", m.resolve(r))
		}
	}
	if m.answer == waiting && !m.idle && (m.sent || m.lost) {
		to := m
		to.answer = cut
		if (!m.job && !m.settling) || (m.job && r.doubtIsRefusal) {
			to.answer = refused
		}
		add("the client's patience ends", to)
	}
	if m.undo && m.seen.hold == ofJob {
		to := m
		to.undo, to.seen.hold, to.seen.receipt = false, noHold, uncharged
		add("undo the job", to.durable())
	}
}

// try begins the batch's transaction. The fence was raised, so no earlier try is open.
func (m model) try() model {
	m.lost = false
	if m.answer != waiting && !m.settling && !m.job { // the caller of the admission has left
		m.idle = true
		return m
	}
	if m.settling && m.seen.receipt != noReceipt { // the receipt exists, so the insert fails
		m.stuck, m.idle, m.answer = true, true, refused
		return m
	}
	m.sent = true
	m.tx = transaction{stage: 1, settle: m.settling, life: m.epoch, undone: m.answer != waiting}
	return m
}

// commit returns the state with the transaction's rows visible.
func (m model) commit() model {
	m.seen.batch[m.tx.life]++
	switch {
	case m.tx.settle && m.tx.undone:
		m.seen.hold, m.seen.receipt = noHold, uncharged
	case m.tx.settle:
		m.seen.hold, m.seen.receipt = noHold, chargedOnce
	case m.job:
		m.seen.hold = ofJob
	case m.tx.life == 0:
		m.seen.hold = ofFirstLife
	default:
		m.seen.hold = ofSecondLife
	}
	m.tx = transaction{}
	return m
}

// confirm returns the state after the node knows that its batch was committed.
func (m model) confirm() model {
	m.batch++
	m.sent, m.lost = false, false
	switch {
	case m.job, m.settling:
		m.idle = true
		if m.answer == waiting {
			m.answer = complete
		} else if m.job && m.answer == refused {
			m.undo = true
		}
	default:
		m.settling = true
	}
	return m
}

// resolve returns the state after the node has found out why it could not raise the fence.
func (m model) resolve(r rules) model {
	if !r.readResolves {
		m = m.durable()
	}
	state := node.EpochState{Found: !m.seen.deleted || m.epoch == 1, Dead: m.seen.dead && m.epoch == 0, Batch: int64(m.seen.batch[m.epoch])}
	v, _ := resultOf(state, int64(m.batch))
	if r.deadSettleNothing && (v == resultCommittedThenFenced || v == resultUnknowable) {
		v = resultFenced
	}
	if !m.lost && v == resultUnknowable {
		v = resultFenced
	}
	switch {
	case v == resultCommittedBefore && m.lost:
		return m.confirm()
	case v == resultCommittedThenFenced && m.lost && (m.settling || m.job):
		return m.confirm()
	case v == resultCommittedThenFenced && m.lost: // the sweep owns the hold of an admitted chat request
		return m.end(refused)
	case v == resultUnknowable && !m.settling && !m.job:
		return m.end(refused)
	case v == resultUnknowable:
		return m.end(cut)
	case m.settling:
		return m.end(refused)
	}
	m.epoch, m.batch, m.lost = 1, 0, false // the admission is repeated in the new epoch
	return m
}

// end returns the state after the end of the request on this node.
func (m model) end(answer answerState) model {
	m.idle, m.lost = true, false
	if m.answer == waiting {
		m.answer = answer
	}
	return m
}

// serverSteps adds the steps of a transaction at the server.
func (m model) serverSteps(r rules, add func(string, model)) {
	unanswered := m
	unanswered.sent, unanswered.lost = false, m.lost || m.sent
	switch m.tx.stage {
	case 1:
		to := m
		to.tx.stage = 2
		add("COMMIT arrives", to)
		to = unanswered
		to.tx = transaction{}
		add("the connection breaks before COMMIT", to)
	case 2:
		if m.sent {
			add("COMMIT is answered", m.commit().durable().confirm())
			add("the node drops the connection", unanswered)
		}
		add("COMMIT succeeds, its answer is lost", unanswered.commit().durable())
		if r.cancelsCommit && m.sent {
			add("a deadline cancels the wait for the standby", unanswered.commit())
		}
		if m.terminations == 0 {
			to := unanswered.commit()
			to.terminations++
			add("the backend is terminated as it waits for the standby", to)
		}
	}
}

// otherSteps adds the steps of other nodes and operators.
func (m model) otherSteps(r rules, add func(string, model)) {
	if m.failovers == 0 {
		to := m
		to.failovers++
		to.seen, to.tx = m.safe, transaction{}
		to.sent, to.lost = false, m.lost || m.sent
		add("fail over to the standby", to)
	}
	if m.tx.stage == 0 && !m.seen.dead {
		to := m
		to.seen.dead = true
		add("declare the node dead", to.durable())
	}
	if m.seen.dead && m.seen.hold == ofFirstLife {
		to := m
		to.seen.hold = noHold
		if m.seen.receipt == noReceipt {
			to.seen.receipt = uncharged
		} else {
			to.stuck = true
		}
		add("sweep", to.durable())
	}
	if m.seen.dead && !m.seen.deleted && m.seen.hold != ofFirstLife && m.tx.stage == 0 {
		to := m
		to.seen.deleted = true
		add("forget the dead node", to.durable())
	}
	if m.job && m.seen.hold == ofJob {
		to := m
		to.seen.hold, to.seen.receipt = noHold, chargedOnce
		add("another node runs the job", to.durable())
	}
}

// violation returns the broken invariant in m, or "".
func (m model) violation() string {
	switch {
	case m.answer == refused && m.seen.receipt == chargedOnce:
		return "a charged error"
	case m.answer == complete && !m.job && m.seen.receipt != chargedOnce:
		return "a complete answer without its charge"
	case m.answer == complete && m.job && m.seen.hold != ofJob && m.seen.receipt == noReceipt:
		return "an accepted job that is not there"
	case m.stuck:
		return "an operation that can never be committed"
	}
	return ""
}

// explore visits every state reachable from first. It returns each violation with a path to it.
func explore(r rules, first model) (violations map[string]string, states int) {
	type origin struct {
		from model
		name string
	}
	origins := map[model]origin{first: {}}
	previous := map[model][]model{}
	var ends []model
	violations = map[string]string{}
	report := func(what string, m model) {
		if violations[what] != "" {
			return
		}
		var path []string
		for at := m; at != first; at = origins[at].from {
			path = append([]string{origins[at].name}, path...)
		}
		violations[what] = strings.Join(path, "; ")
	}
	for queue := []model{first}; len(queue) > 0; {
		m := queue[0]
		queue = queue[1:]
		if what := m.violation(); what != "" {
			report(what, m)
			ends = append(ends, m)
			continue
		}
		steps := m.next(r)
		if len(steps) == 0 || (m.idle && m.seen.hold == noHold) {
			ends = append(ends, m)
			if m.seen.hold != noHold {
				report("a hold that never ends", m)
			}
		}
		for _, s := range steps {
			previous[s.to] = append(previous[s.to], m)
			if _, known := origins[s.to]; !known {
				origins[s.to] = origin{m, s.name}
				queue = append(queue, s.to)
			}
		}
	}
	// Every state must have a path to an end.
	ended := map[model]bool{}
	for queue := ends; len(queue) > 0; {
		m := queue[0]
		queue = queue[1:]
		if !ended[m] {
			ended[m] = true
			queue = append(queue, previous[m]...)
		}
	}
	for m := range origins {
		if !ended[m] {
			report("a request that never ends", m)
		}
	}
	return violations, len(origins)
}

// TestProtocol checks that the rules of the code have no violations, and that other rules have
// exactly the known violations.
func TestProtocol(t *testing.T) {
	t.Parallel()
	const chat, job = false, true
	for _, c := range []struct {
		name  string
		job   bool
		rules rules
		wrong []string
	}{
		{"chat", chat, rules{}, nil},
		{"job", job, rules{}, nil},
		{"a dead node settles nothing", chat, rules{deadSettleNothing: true},
			[]string{"a charged error", "an operation that can never be committed"}},
		{"a read resolves", chat, rules{readResolves: true}, []string{"a complete answer without its charge", "a hold that never ends"}},
		{"a read resolves, and deadlines cancel", chat, rules{readResolves: true, cancelsCommit: true},
			[]string{"a complete answer without its charge", "a hold that never ends"}},
		{"deadlines cancel, but a write resolves", chat, rules{cancelsCommit: true}, nil},
		{"a job in doubt is refused", job, rules{doubtIsRefusal: true}, []string{"a charged error"}},
		{"a read resolves a job", job, rules{readResolves: true}, []string{"an accepted job that is not there"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			violations, states := explore(c.rules, model{job: c.job})
			t.Logf("%d states", states)
			want := map[string]bool{}
			for _, what := range c.wrong {
				want[what] = true
				if violations[what] == "" {
					t.Errorf("explore found no %s, want one", what)
				}
			}
			for what, path := range violations {
				if !want[what] {
					t.Errorf("explore found %s, want none: %s", what, path)
				} else {
					t.Logf("expected: %s: %s", what, path)
				}
			}
			if states < 100 {
				t.Errorf("explored %d states, want at least 100", states)
			}
		})
	}
}
