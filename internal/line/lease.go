package line

import (
	"context"
	"fmt"

	"tollgate/internal/node"
	"tollgate/internal/store"
)

// leaseTime is the maximum time for which one node may probe a line.
const leaseTime = 2 * probeWait

// lease acquires the right to probe a line, for leaseTime at most. It returns false if another node
// has the right, or if this node has not adopted all findings about the line yet. The caller must
// release each lease.
func (l *Lines) lease(ctx context.Context, t target) (leased bool) {
	if !l.mayHavePeers() {
		return true
	}
	s := &l.findings
	adopted := s.versions(t)
	s.leaseMu.Lock()
	defer s.leaseMu.Unlock()
	if s.leases[t] > 0 {
		s.leases[t]++
		return true
	}
	leased, err := store.Write(ctx, l.db, func(tx *store.Tx) (bool, error) { return leaseTx(tx, t, l.node.Epoch(), adopted) })
	if err != nil {
		l.log.Warn("line: a probe waits because its lease could not be acquired", "line", t.line, "error", err)
		return false
	}
	if leased {
		s.leases[t]++
	}
	return leased
}

// leaseTx acquires the lease. adopted is the result of versions, to compare with the table.
func leaseTx(tx *store.Tx, t target, epoch string, adopted int64) (bool, error) {
	members, err := node.MembersTx(tx)
	if err != nil {
		return false, fmt.Errorf("lease a probe: %w", err)
	}
	now, err := tx.NowMS()
	if err != nil {
		return false, fmt.Errorf("lease a probe: %w", err)
	}
	var holder string
	err = tx.QueryRow(`SELECT COALESCE((SELECT epoch FROM line_probe WHERE line = $1 AND target = $2), '')`, t.line, t.digest).Scan(&holder)
	if err != nil {
		return false, fmt.Errorf("lease a probe: %w", err)
	}
	replaceable := epoch
	if !members.Lives(holder) {
		replaceable = holder // a dead node's lease
	}
	n, err := tx.Exec(`INSERT INTO line_probe (line, target, epoch, until_ms) VALUES ($1, $2, $3, $4)
		ON CONFLICT (line, target) DO UPDATE SET epoch = excluded.epoch, until_ms = excluded.until_ms
		WHERE line_probe.until_ms < $5 OR line_probe.epoch = $6`, t.line, t.digest, epoch, now+leaseTime.Milliseconds(), now, replaceable)
	if err != nil {
		return false, fmt.Errorf("lease a probe: %w", err)
	}
	if n != 1 {
		return false, nil
	}
	// A node writes the finding of its probe before it releases the lease, so the findings must be
	// read after the lease is acquired.
	var stored int64
	err = tx.QueryRow(`SELECT CAST(COALESCE((SELECT SUM(version) FROM line_finding WHERE line = $1 AND target = $2), 0) AS BIGINT)`,
		t.line, t.digest).Scan(&stored)
	if err != nil {
		return false, fmt.Errorf("lease a probe: %w", err)
	}
	if stored == adopted {
		return true, nil
	}
	if _, err := tx.Exec(`DELETE FROM line_probe WHERE line = $1 AND target = $2 AND epoch = $3`, t.line, t.digest, epoch); err != nil {
		return false, fmt.Errorf("lease a probe: %w", err)
	}
	return false, nil
}

// versions adds up the versions of the line's rows that this node has adopted.
func (s *findings) versions(t target) (sum int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.agreements[t] {
		sum += a.version
	}
	return sum
}

// leaseAgain counts another probe of a line leased by this node.
func (l *Lines) leaseAgain(t target) {
	if !l.mayHavePeers() {
		return
	}
	l.findings.leaseMu.Lock()
	defer l.findings.leaseMu.Unlock()
	l.findings.leases[t]++
}

// release ends a probe. It writes this node's findings first, so that the next prober reads them.
func (l *Lines) release(ctx context.Context, t target) {
	if !l.mayHavePeers() {
		return
	}
	s := &l.findings
	err := l.Exchange(ctx)
	s.leaseMu.Lock()
	defer s.leaseMu.Unlock()
	if s.leases[t]--; s.leases[t] > 0 {
		return
	}
	delete(s.leases, t)
	if err == nil {
		err = l.db.Update(ctx, func(tx *store.Tx) error {
			_, err := tx.Exec(`DELETE FROM line_probe WHERE line = $1 AND target = $2 AND epoch = $3`, t.line, t.digest, l.node.Epoch())
			return err
		})
	}
	if err != nil && ctx.Err() == nil {
		l.log.Warn("line: the lease of a probe could not be released; it expires by itself", "line", t.line, "error", err)
	}
}
