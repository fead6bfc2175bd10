package node

import "time"

// watch records the last change of each other node's heartbeat on this node's monotonic clock.
type watch struct {
	seen map[string]seenBeat // by epoch
	last time.Time           // time of the last successful read of the table
}

// seenBeat is the newest heartbeat of a node and the time when it was first read.
type seenBeat struct {
	beat int64
	at   time.Time
}

// stale returns the nodes without a new heartbeat for a lease. If the last read is more than half a
// lease ago, all leases start again, because no node could write while the database was unavailable.
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
