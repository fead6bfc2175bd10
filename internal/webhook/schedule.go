package webhook

import "time"

// States of a delivery, as they are stored.
const (
	statePending   = 0
	stateDelivered = 1
	stateFailed    = 2
)

// kind is the kind of an attempt's outcome.
type kind int

const (
	delivered kind = iota // a 2xx within the deadline
	failed                // the receiver is at fault
	disabled              // nothing was sent, because the account is disabled
	aborted               // this node stopped during the attempt; the attempt does not count
	unsent                // this node was too late to begin the attempt
)

// outcome is the result of an attempt.
type outcome struct {
	kind   kind
	atMS   int64
	status int // zero if there was no answer
	tookMS int64
	err    string // in words for the user; empty after a 2xx
}

// decision is the next state of a delivery after an attempt.
type decision struct {
	state int
	tries int64
	dueMS int64 // of a pending delivery
}

// decide returns the decision after an attempt that ended at nowMS: a final state, or the next wait
// of the schedule. An aborted or unsent attempt changes nothing.
func decide(retries []time.Duration, tries, dueMS, nowMS int64, o outcome) decision {
	switch {
	case o.kind == delivered:
		return decision{state: stateDelivered, tries: tries + 1}
	case o.kind == aborted, o.kind == unsent:
		return decision{state: statePending, tries: tries, dueMS: dueMS}
	case tries >= int64(len(retries)):
		return decision{state: stateFailed, tries: tries + 1}
	}
	return decision{state: statePending, tries: tries + 1, dueMS: nowMS + retries[tries].Milliseconds()}
}

// The lanes. Receivers with a failed last attempt have separate slots, so that failing receivers cannot
// use up the slots of healthy receivers. Each account has a share of the slots.
const (
	laneHealthy = 0
	laneFailing = 1
)

// lane holds a node's limits for one kind of receiver.
type lane struct {
	total   int // attempts at a time on this node
	account int // attempts at a time for one account
	each    int // attempts at a time for one receiver, over all nodes (ARCHITECTURE.md)
}

// lanes is indexed by the receivers' column failing. A failing receiver gets one attempt at a time
// until an attempt succeeds.
var lanes = [2]lane{
	laneHealthy: {total: 1024, account: 768, each: 4},
	laneFailing: {total: 256, account: 192, each: 1},
}

// load counts the running attempts on this node in a lane.
type load struct {
	all     int
	account map[string]int
}

// free returns the number of free slots in a lane, and the accounts without a free slot. The list is
// never nil: nil is NULL on SQLite, and both IN NULL and NOT IN NULL match no row.
func (l load) free(limits lane) (n int, full []string) {
	full = []string{}
	for account, n := range l.account {
		if n >= limits.account {
			full = append(full, account)
		}
	}
	return max(limits.total-l.all, 0), full
}

// take counts one more attempt of account and returns true. If the lane or the account has no free
// slot, it returns false.
func (l *load) take(limits lane, account string) bool {
	if l.all >= limits.total || l.account[account] >= limits.account {
		return false
	}
	l.all++
	l.account[account]++
	return true
}
