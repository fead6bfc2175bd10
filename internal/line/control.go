package line

import (
	"fmt"

	"tollgate/internal/catalog"
	"tollgate/internal/line/health"
	"tollgate/internal/store"
)

// control is what the operator decided about a line, for all nodes. The zero
// value is that of a line about which nothing was ever decided.
type control struct {
	// drained lines get no new requests; what runs on them ends as it will.
	drained bool
	// resumes grows with each resume: a node that sees it grow forgets what
	// it held against the line.
	resumes int64
}

// DrainTx takes a line out of use on every node, from the time on at which the
// node next looks. It outlasts restarts and new catalogs, and holds for a line
// that only a later catalog has; a line that is drained already stays so.
func DrainTx(tx *store.Tx, line string) error {
	if _, err := tx.Exec(`INSERT INTO line_control (line, drained, generation) VALUES ($1, 1, 0)
		ON CONFLICT (line) DO UPDATE SET drained = 1`, line); err != nil {
		return fmt.Errorf("drain line %s: %w", line, err)
	}
	return nil
}

// ResumeTx brings a line back into use on every node, whatever kept it out: a
// drain, a rate limit, an open circuit, withdrawn credentials, models that it
// did not have. Each call clears the line's health once on every node, so that
// doing it twice is harmless.
func ResumeTx(tx *store.Tx, line string) error {
	if _, err := tx.Exec(`INSERT INTO line_control (line, drained, generation) VALUES ($1, 0, 1)
		ON CONFLICT (line) DO UPDATE SET drained = 0, generation = line_control.generation + 1`, line); err != nil {
		return fmt.Errorf("resume line %s: %w", line, err)
	}
	if _, err := tx.Exec(`DELETE FROM line_finding WHERE line = $1`, line); err != nil {
		return fmt.Errorf("resume line %s: %w", line, err)
	}
	return nil
}

// controlsTx returns what was decided, by line; lines without a decision have
// no entry.
func controlsTx(tx *store.Tx) (map[string]control, error) {
	rows, err := tx.Query(`SELECT line, drained, generation FROM line_control`)
	if err != nil {
		return nil, fmt.Errorf("read what was decided about lines: %w", err)
	}
	defer rows.Close()
	controls := map[string]control{}
	for rows.Next() {
		var (
			line    string
			drained int64
			c       control
		)
		if err := rows.Scan(&line, &drained, &c.resumes); err != nil {
			return nil, fmt.Errorf("read what was decided about lines: %w", err)
		}
		c.drained = drained != 0
		controls[line] = c
	}
	return controls, rows.Err()
}

// DecidedTx returns the state of a line as far as it was decided, by the
// catalog or the operator: what can be said about it where no line runs, or
// before this node has taken a decision over.
func DecidedTx(tx *store.Tx, spec catalog.LineSpec) (Status, error) {
	controls, err := controlsTx(tx)
	if err != nil {
		return Status{}, err
	}
	status := Status{Line: spec.ID, Provider: spec.Provider, State: health.StateInService, MaxConcurrent: spec.MaxConcurrent}
	switch {
	case !spec.Enabled:
		status.State = stateDisabled
	case controls[spec.ID].drained:
		status.State, status.Cause = stateDrained, causeDrained
	}
	return status, nil
}
