package app

import (
	"sync"
	"time"
)

// maxUnknownMembers bounds the distinct members of one line, so that no provider can create unlimited
// metric labels.
const maxUnknownMembers = 16

// unknownMembers remembers, by line, the unknown members of usage and the day of the last log entry.
type unknownMembers struct {
	now func() time.Time

	mu    sync.Mutex
	lines map[string]map[string]string // by line and member: the day of the last log entry
}

// note returns the metric label of a member, and whether to log the member today.
func (u *unknownMembers) note(line, member, day string) (label string, log bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	members := u.lines[line]
	if members == nil {
		members = map[string]string{}
		u.lines[line] = members
	}
	if _, known := members[member]; !known && len(members) >= maxUnknownMembers {
		member = "other"
	}
	log = members[member] != day
	members[member] = day
	return member, log
}

// unknownUsage returns a function that counts unknown members of usage and logs each member once a day
// for each line.
func (a *App) unknownUsage() func(line, member string) {
	members := &unknownMembers{now: time.Now, lines: map[string]map[string]string{}}
	return func(line, member string) {
		label, log := members.note(line, member, members.now().UTC().Format(time.DateOnly))
		a.metrics.UnknownUsage(line, label)
		if log {
			a.log.Warn("a provider reports an unknown member of usage; if the provider bills for it, the customer is not charged for it",
				"line", line, "member", label)
		}
	}
}
