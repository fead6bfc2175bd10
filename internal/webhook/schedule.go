package webhook

import "time"

// States of a delivery, as they are stored.
const (
	statePending   = 0
	stateDelivered = 1
	stateFailed    = 2
)

// kind is how an attempt ended.
type kind int

const (
	delivered kind = iota // a 2xx within the deadline
	failed                // anything else, and the receiver's to mend
	disabled              // nothing was sent: the account is disabled
	cut                   // this node stopped in the middle of it: it does not count
	unsent                // this node came too late to begin it: it was none
)

// outcome is what came of an attempt.
type outcome struct {
	kind   kind
	atMS   int64
	status int // 0: no answer
	tookMS int64
	err    string // in words for the user; empty after a 2xx
}

// verdict is what becomes of a delivery after an attempt.
type verdict struct {
	state int
	tries int64
	dueMS int64 // of a pending one
}

// decide returns what follows from an attempt that ended at nowMS: the end, or
// the wait that the schedule has for as many attempts as there were. An
// attempt that does not count leaves all as it was.
func decide(retries []time.Duration, tries, dueMS, nowMS int64, o outcome) verdict {
	switch {
	case o.kind == delivered:
		return verdict{state: stateDelivered, tries: tries + 1}
	case o.kind == cut, o.kind == unsent:
		return verdict{state: statePending, tries: tries, dueMS: dueMS}
	case tries >= int64(len(retries)):
		return verdict{state: stateFailed, tries: tries + 1}
	}
	return verdict{state: statePending, tries: tries + 1, dueMS: nowMS + retries[tries].Milliseconds()}
}

// The lanes: receivers whose last attempt failed have places of their own, so
// that they cannot use up those of the others, and so has each account a part.
const (
	laneWell    = 0
	laneFailing = 1
)

// lane is what a node gives to the receivers of one kind.
type lane struct {
	places  int // attempts at a time on this node
	account int // of them for one account
	each    int // for one receiver, over all nodes (ARCHITECTURE.md)
}

// lanes are by the column failing of the receivers. A receiver that fails gets
// one attempt at a time until one succeeds.
var lanes = [2]lane{
	laneWell:    {places: 1024, account: 768, each: 4},
	laneFailing: {places: 256, account: 192, each: 1},
}

// load is what runs on this node in a lane.
type load struct {
	all     int
	account map[string]int
}

// room returns how many attempts may begin in a lane, and the accounts that may
// begin none. The list is never nil: a nil one is NULL on SQLite, in which
// nothing is and nothing is not.
func (l load) room(in lane) (places int, full []string) {
	full = []string{}
	for account, n := range l.account {
		if n >= in.account {
			full = append(full, account)
		}
	}
	return max(in.places-l.all, 0), full
}

// take counts an attempt in, if its account has a place left.
func (l *load) take(in lane, account string) bool {
	if l.all >= in.places || l.account[account] >= in.account {
		return false
	}
	l.all++
	l.account[account]++
	return true
}
