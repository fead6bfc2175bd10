package line

import (
	"fmt"

	"tollgate/internal/catalog"
	"tollgate/internal/line/health"
	"tollgate/internal/store"
)

// control is the operator's decision about a line, for all nodes. The zero value means no decision.
type control struct {
	// drained is true if the line gets no new requests. Running requests continue.
	drained bool
	// resumes counts the resumes. A node clears the line's health when the number changes.
	resumes int64
}

// DrainTx takes a line out of use on every node, as soon as the node reads the controls. A drain
// survives restarts and new catalogs and may name a line of a later catalog. Draining a drained
// line has no effect.
func DrainTx(tx *store.Tx, line string) error {
	if _, err := tx.Exec(`INSERT INTO line_control (line, drained, generation) VALUES ($1, 1, 0)
		ON CONFLICT (line) DO UPDATE SET drained = 1`, line); err != nil {
		return fmt.Errorf("drain line %s: %w", line, err)
	}
	return nil
}

// ResumeTx brings a line back into use on every node after a drain, a rate limit, an open circuit,
// withdrawn credentials or missing models. Each call clears the line's health once on every node,
// so a second call is harmless.
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

// controlsTx returns the operator's decisions by line; lines without a decision have no entry.
func controlsTx(tx *store.Tx) (map[string]control, error) {
	controls := map[string]control{}
	err := tx.Each(func(row store.Row) error {
		var line string
		var c control
		err := row.Scan(&line, &c.drained, &c.resumes)
		controls[line] = c
		return err
	}, `SELECT line, drained, generation FROM line_control`)
	if err != nil {
		return nil, fmt.Errorf("read the decisions about lines: %w", err)
	}
	return controls, nil
}

// OperatorStatusTx returns the state of a line according to the catalog and the operator, without
// the line's health. It is for processes without running lines, and for decisions that a node has
// not applied yet.
func OperatorStatusTx(tx *store.Tx, spec catalog.LineSpec) (Status, error) {
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
