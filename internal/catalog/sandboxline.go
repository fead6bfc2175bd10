package catalog

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"tollgate/internal/store"
)

const (
	selectLines = `SELECT id, sandbox FROM catalog_line`
	upsertLine  = `INSERT INTO catalog_line (id, sandbox) VALUES ($1, $2)
		ON CONFLICT (id) DO UPDATE SET sandbox = catalog_line.sandbox * excluded.sandbox`
)

// lineKinds has the IDs of all lines ever enabled. The value is true if the line has always been a
// sandbox line.
type lineKinds map[string]bool

// add adds the enabled lines of a document.
func (k lineKinds) add(doc *Document) {
	for i := range doc.Lines {
		l := &doc.Lines[i]
		if before, ok := k[l.ID]; l.Enabled {
			k[l.ID] = l.IsSandbox() && (before || !ok)
		}
	}
}

// SandboxUse names the requests that the operator's totals leave out: requests to Lines, and
// requests to Models that failed before a line answered. Both are sorted IDs.
type SandboxUse struct{ Lines, Models []string }

// SandboxTx returns the lines that were sandbox lines in every catalog in which they were enabled,
// and the models of the current catalog with only such lines. It returns the zero SandboxUse if no
// line of another provider was ever enabled, because then the catalog is a trial.
func SandboxTx(tx *store.Tx) (s SandboxUse, err error) {
	kinds, err := lineKindsTx(tx)
	if err != nil {
		return s, err
	}
	doc, _, err := CurrentTx(tx)
	if err != nil && !errors.Is(err, ErrNoRevision) {
		return s, err
	}
	for _, id := range slices.Sorted(maps.Keys(kinds)) {
		if kinds[id] {
			s.Lines = append(s.Lines, id)
		}
	}
	if doc == nil || len(s.Lines) == len(kinds) {
		return SandboxUse{}, nil
	}
	onlySandbox := map[string]bool{}
	for i := range doc.Lines {
		l := &doc.Lines[i]
		for model := range l.Models {
			if before, ok := onlySandbox[model]; l.Enabled {
				onlySandbox[model] = kinds[l.ID] && (before || !ok)
			}
		}
	}
	for _, model := range slices.Sorted(maps.Keys(onlySandbox)) {
		if onlySandbox[model] {
			s.Models = append(s.Models, model)
		}
	}
	return s, nil
}

// recordLinesTx records the enabled lines of a new document.
func recordLinesTx(tx *store.Tx, doc *Document) error {
	oldKinds, err := lineKindsTx(tx)
	if err != nil {
		return err
	}
	kinds := maps.Clone(oldKinds)
	kinds.add(doc)
	for _, id := range slices.Sorted(maps.Keys(kinds)) {
		if oldKind, ok := oldKinds[id]; ok && oldKind == kinds[id] {
			continue
		}
		if _, err := tx.Exec(upsertLine, id, store.Bool(kinds[id])); err != nil {
			return fmt.Errorf("record line %s: %w", id, err)
		}
	}
	return nil
}

// lineKindsTx reads the recorded lines.
func lineKindsTx(tx *store.Tx) (lineKinds, error) {
	kinds := lineKinds{}
	err := tx.Each(func(row store.Row) error {
		var id string
		var sandbox int64
		err := row.Scan(&id, &sandbox)
		kinds[id] = sandbox != 0
		return err
	}, selectLines)
	if err != nil {
		return nil, fmt.Errorf("read the recorded lines: %w", err)
	}
	return kinds, nil
}
