package mail

import "time"

// States of a mail, as they are stored.
const (
	stateWaiting = 0
	stateFailed  = 1 // the last attempt failed; another one follows
	stateSent    = 2
	stateGivenUp = 3
)

// giveUpAfter is the maximum age of a mail at an attempt.
const giveUpAfter = 24 * time.Hour

// pause returns the wait after an attempt, from a minute after the first one (1) up to an hour.
func pause(attempt int64) time.Duration {
	switch attempt {
	case 1:
		return time.Minute
	case 2:
		return 5 * time.Minute
	case 3:
		return 15 * time.Minute
	case 4:
		return 30 * time.Minute
	}
	return time.Hour
}

// decision is the next state of a mail after an attempt.
type decision struct {
	state int
	dueMS int64 // of the next attempt, if there is one
}

// decide returns the decision after an attempt to send c, at nowMS. A server's final refusal
// (5xx) gives up. Anything else is repeated until the mail is giveUpAfter old. A test has one attempt.
// A resend of a mail in a final state is one attempt too: if it fails, the state stays.
func decide(c leasedMail, nowMS int64, o outcome) decision {
	next := nowMS + pause(c.attempts+1).Milliseconds()
	switch {
	case o.sent:
		return decision{stateSent, nowMS}
	case c.state == stateSent || c.state == stateGivenUp:
		return decision{c.state, nowMS}
	case o.refused || c.kind == Test || next > c.createdMS+giveUpAfter.Milliseconds():
		return decision{stateGivenUp, nowMS}
	}
	return decision{stateFailed, next}
}
