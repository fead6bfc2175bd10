package node

import "time"

// watch remembers when the heartbeat of each other node last changed, on this
// node's own monotonic clock.
type watch struct {
	seen map[string]seenBeat
	last time.Time // of the last look that reached the database
}

type seenBeat struct {
	beat int64
	at   time.Time
}

// stale returns the nodes whose heartbeat has not changed for a lease. A look
// that comes more than half a lease after the one before begins afresh: while
// the database was away, nobody could renew.
func (w *watch) stale(rows []Record, self string, lease time.Duration, now time.Time) []Record {
	if w.last.IsZero() || now.Sub(w.last) > lease/2 {
		w.seen = map[string]seenBeat{}
	}
	w.last = now
	seen := make(map[string]seenBeat, len(rows))
	var stale []Record
	for _, row := range rows {
		if row.Epoch == self || row.Dead {
			continue
		}
		before, known := w.seen[row.Epoch]
		if !known || before.beat != row.Beat {
			before = seenBeat{beat: row.Beat, at: now}
		}
		seen[row.Epoch] = before
		if now.Sub(before.at) >= lease {
			stale = append(stale, row)
		}
	}
	w.seen = seen
	return stale
}
