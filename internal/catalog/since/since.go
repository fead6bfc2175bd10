// Package since owns the time of a model's first appearance in a catalog.
//
// Invariants: the recorded time of a model never changes, even if the model leaves the catalog and
// returns.
package since

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"

	"tollgate/internal/store"
)

const (
	selectTimes = `SELECT id, created_ms FROM catalog_model`
	insertTime  = `INSERT INTO catalog_model (id, created_ms) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING`
	selectNext  = `SELECT revision, document, applied_ms FROM catalog_revision WHERE revision > $1 ORDER BY revision LIMIT 1`
)

// Times caches the times of a revision's models. It is safe for concurrent use.
type Times struct {
	db    *store.DB
	known atomic.Pointer[times]
}

// times holds the times of a revision's models.
type times struct {
	revision int64
	ms       map[string]int64
}

// NewTimes returns the times of a database.
func NewTimes(db *store.DB) *Times { return &Times{db: db} }

// Of returns the time of each model's first appearance in an applied catalog, in Unix milliseconds,
// by model, and may include other models. Callers must not change the map. Of reads the database
// once for each revision.
func (t *Times) Of(ctx context.Context, revision int64, models []string) (map[string]int64, error) {
	if known := t.known.Load(); known != nil && known.revision == revision {
		return known.ms, nil
	}
	ms, err := store.Read(ctx, t.db, func(tx *store.Tx) (map[string]int64, error) { return ReadTx(tx, models) })
	if err != nil {
		return nil, err
	}
	t.known.Store(&times{revision, ms})
	return ms, nil
}

// ReadTx is Times.Of without the cache.
func ReadTx(tx *store.Tx, models []string) (map[string]int64, error) {
	recorded, err := recordedTx(tx)
	if err != nil {
		return nil, err
	}
	for _, id := range models {
		if _, ok := recorded[id]; !ok { // applied by a former version
			found, err := searchTx(tx)
			maps.Copy(found, recorded)
			return found, err
		}
	}
	return recorded, nil
}

// NoteTx records the models of a new catalog. Before the first record, it records the models of the
// history.
func NoteTx(tx *store.Tx, models []string, nowMS int64) error {
	recorded, err := recordedTx(tx)
	if err != nil {
		return err
	}
	first := map[string]int64{}
	if len(recorded) == 0 {
		if first, err = searchTx(tx); err != nil {
			return err
		}
	}
	for _, id := range models {
		if _, ok := first[id]; !ok {
			first[id] = nowMS
		}
	}
	for id, ms := range first {
		if _, ok := recorded[id]; ok {
			continue
		}
		if _, err := tx.Exec(insertTime, id, ms); err != nil {
			return fmt.Errorf("record the first appearance of model %s: %w", id, err)
		}
	}
	return nil
}

// recordedTx reads the recorded times.
func recordedTx(tx *store.Tx) (map[string]int64, error) {
	recorded := map[string]int64{}
	err := tx.Each(func(row store.Row) error {
		var id string
		var ms int64
		err := row.Scan(&id, &ms)
		recorded[id] = ms
		return err
	}, selectTimes)
	if err != nil {
		return nil, fmt.Errorf("read the first appearances of models: %w", err)
	}
	return recorded, nil
}

// searchTx finds the first revision of each model in the history.
func searchTx(tx *store.Tx) (map[string]int64, error) {
	first := map[string]int64{}
	for last := int64(0); ; {
		var raw string
		var ms int64
		found, err := nextTx(tx, &last, &raw, &ms)
		if err != nil || !found {
			return first, err
		}
		var doc struct{ Models []struct{ ID string } }
		if err := json.Unmarshal([]byte(raw), &doc); err != nil {
			continue // skip an unreadable revision
		}
		for _, m := range doc.Models {
			if _, ok := first[m.ID]; !ok {
				first[m.ID] = ms
			}
		}
	}
}

// nextTx reads the revision after the last one. It returns false at the end.
func nextTx(tx *store.Tx, last *int64, raw *string, ms *int64) (bool, error) {
	err := tx.QueryRow(selectNext, *last).Scan(last, raw, ms)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the catalog's history: %w", err)
	}
	return true, nil
}
