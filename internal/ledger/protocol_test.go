package ledger

import (
	"strings"
	"testing"

	"tollgate/internal/node"
)

// This file models a node, its database with a synchronous standby, the node that sweeps after it
// and one client, and explores every reachable state. It supports ADR 3: under the rules of the
// code, no client gets a false answer about its charge, and no hold outlives its request. Under
// earlier rules, the explorer finds the known failures.

// rules are variants of the model. The zero value is the code's.
type rules struct {
	// deadSettleNothing: the node does not read the row of its dead epoch. It refuses settlements
	// and repeats admissions under their ids.
	deadSettleNothing bool
	// readResolves: a read alone resolves an unknown outcome.
	readResolves bool
	// cancelsCommit: a deadline during a COMMIT sends a cancel to the server.
	cancelsCommit bool
	// doubtIsRefusal: if the commit of a submission is unknown, the client gets an error, and the
	// job is undone later.
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
	batch   [2]int8 // of each epoch of the node
	dead    bool    // the first epoch was declared dead
	deleted bool    // and its row was deleted
	hold    openHold
	receipt receiptState
}

// transaction is a batch at the server.
type transaction struct {
	stage  int8 // 0: no transaction, 1: its COMMIT has not arrived, 2: it waits for the standby
	settle bool // it settles; otherwise it admits
	life   int8
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
	job          bool // the request submits a job, which another node may run
	seen, safe   database
	tx           transaction
	epoch, batch int8 // the node's epoch, and its last batch known to be committed
	settling     bool // the node settles; otherwise it admits
	sent         bool // a try waits for its answer
	lost         bool // the COMMIT of a try has no answer
	idle         bool // the node has nothing to do
	undo         bool // the job of a caller without an answer must be ended
	answer       answerState
	failovers    int8
	terminations int8
	stuck        bool // an operation can never be committed
}

type step struct {
	name string
	to   model
}

// proved returns the state after an answered synchronous commit: everything before it is durable.
func (m model) proved() model { m.safe = m.seen; return m }

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
		add("undo the job", to.proved())
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

// committed makes the transaction's rows visible.
func (m model) committed() model {
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

// answered returns the state after the node knows that its batch was committed.
func (m model) answered() model {
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

// resolve finds out why the fence was not raised.
func (m model) resolve(r rules) model {
	if !r.readResolves {
		m = m.proved()
	}
	fate := node.Fate{Found: !m.seen.deleted || m.epoch == 1, Dead: m.seen.dead && m.epoch == 0, Batch: int64(m.seen.batch[m.epoch])}
	v, _ := resultOf(fate, int64(m.batch))
	if r.deadSettleNothing && (v == resultCommittedThenFenced || v == resultUnknowable) {
		v = resultFenced
	}
	if !m.lost && v == resultUnknowable {
		v = resultFenced
	}
	switch {
	case v == resultCommittedBefore && m.lost:
		return m.answered()
	case v == resultCommittedThenFenced && m.lost && (m.settling || m.job):
		return m.answered()
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

// end ends the request on this node.
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
			add("COMMIT is answered", m.committed().proved().answered())
			add("the node drops the connection", unanswered)
		}
		add("COMMIT succeeds, its answer is lost", unanswered.committed().proved())
		if r.cancelsCommit && m.sent {
			add("a deadline cancels the wait for the standby", unanswered.committed())
		}
		if m.terminations == 0 {
			to := unanswered.committed()
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
		add("declare the node dead", to.proved())
	}
	if m.seen.dead && m.seen.hold == ofFirstLife {
		to := m
		to.seen.hold = noHold
		if m.seen.receipt == noReceipt {
			to.seen.receipt = uncharged
		} else {
			to.stuck = true
		}
		add("sweep", to.proved())
	}
	if m.seen.dead && !m.seen.deleted && m.seen.hold != ofFirstLife && m.tx.stage == 0 {
		to := m
		to.seen.deleted = true
		add("forget the dead node", to.proved())
	}
	if m.job && m.seen.hold == ofJob {
		to := m
		to.seen.hold, to.seen.receipt = noHold, chargedOnce
		add("another node runs the job", to.proved())
	}
}

// wrong returns the broken invariant in m, or "".
func (m model) wrong() string {
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

// explore visits every state and returns the failures with their paths.
func explore(r rules, first model) (wrongs map[string]string, states int) {
	type origin struct {
		from model
		name string
	}
	came := map[model]origin{first: {}}
	back := map[model][]model{}
	var ends []model
	wrongs = map[string]string{}
	report := func(what string, m model) {
		if wrongs[what] != "" {
			return
		}
		var way []string
		for at := m; at != first; at = came[at].from {
			way = append([]string{came[at].name}, way...)
		}
		wrongs[what] = strings.Join(way, "; ")
	}
	for queue := []model{first}; len(queue) > 0; {
		m := queue[0]
		queue = queue[1:]
		if what := m.wrong(); what != "" {
			report(what, m)
			ends = append(ends, m)
			continue
		}
		steps := m.next(r)
		if len(steps) == 0 || (m.idle && m.seen.hold == noHold) {
			ends = append(ends, m)
			if m.seen.hold != noHold {
				report("a hold that nobody ends", m)
			}
		}
		for _, s := range steps {
			back[s.to] = append(back[s.to], m)
			if _, known := came[s.to]; !known {
				came[s.to] = origin{m, s.name}
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
			queue = append(queue, back[m]...)
		}
	}
	for m := range came {
		if !ended[m] {
			report("a request that never ends", m)
		}
	}
	return wrongs, len(came)
}

// TestProtocol explores the model under the rules of the code, which have no failures, and under
// rules with known failures, which it must find exactly.
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
		{"a read resolves", chat, rules{readResolves: true}, []string{"a complete answer without its charge", "a hold that nobody ends"}},
		{"a read resolves, and deadlines cancel", chat, rules{readResolves: true, cancelsCommit: true},
			[]string{"a complete answer without its charge", "a hold that nobody ends"}},
		{"deadlines cancel, but a write resolves", chat, rules{cancelsCommit: true}, nil},
		{"a job in doubt is refused", job, rules{doubtIsRefusal: true}, []string{"a charged error"}},
		{"a read resolves a job", job, rules{readResolves: true}, []string{"an accepted job that is not there"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			wrongs, states := explore(c.rules, model{job: c.job})
			t.Logf("%d states", states)
			want := map[string]bool{}
			for _, what := range c.wrong {
				want[what] = true
				if wrongs[what] == "" {
					t.Errorf("the explorer does not find %s", what)
				}
			}
			for what, way := range wrongs {
				if !want[what] {
					t.Errorf("%s: %s", what, way)
				} else {
					t.Logf("as it must: %s: %s", what, way)
				}
			}
			if states < 100 {
				t.Errorf("only %d states", states)
			}
		})
	}
}
