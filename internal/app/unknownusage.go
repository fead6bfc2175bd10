package app

import (
	"sync"
	"time"
)

// maxUnknownMembers bounds the distinct members of one line, so that no provider can create labels
// without end.
const maxUnknownMembers = 16

// unknownMembers remembers the reported members of usage and their days.
type unknownMembers struct {
	now func() time.Time

	mu    sync.Mutex
	lines map[string]map[string]string // line, member: the last day in the log
}

// note returns the name to count a member by, and whether to log it today.
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

// unknownUsage returns a function that counts unknown members of usage and logs
// each once a day and line.
func (a *App) unknownUsage() func(line, member string) {
	known := &unknownMembers{now: time.Now, lines: map[string]map[string]string{}}
	return func(line, member string) {
		label, log := known.note(line, member, known.now().UTC().Format(time.DateOnly))
		a.metrics.UnknownUsage(line, label)
		if log {
			a.log.Warn("a provider's usage has a member that is not known here; if the provider bills it, it is not charged",
				"line", line, "member", label)
		}
	}
}
