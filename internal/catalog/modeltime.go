package catalog

import (
	"context"
	"fmt"
	"sync/atomic"

	"tollgate/internal/store"
)

const (
	selectModels = `SELECT id, created_ms FROM catalog_model`
	insertModel  = `INSERT INTO catalog_model (id, created_ms) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING`
)

// ModelTimes caches when models were first in an applied catalog. It is safe for concurrent use.
type ModelTimes struct {
	db    *store.DB
	cache atomic.Pointer[modelTimes]
}

// modelTimes holds the times of a revision's models.
type modelTimes struct {
	revision int64
	ms       map[string]int64
}

// NewModelTimes returns an empty cache of the times in db.
func NewModelTimes(db *store.DB) *ModelTimes { return &ModelTimes{db: db} }

// FirstSeen returns when each model of a revision was first in an applied catalog, in Unix
// milliseconds. The time does not change when a model is removed and added again. The map may
// include models of other revisions; callers must not change the map. FirstSeen reads the database
// once for each revision.
func (t *ModelTimes) FirstSeen(ctx context.Context, revision int64) (map[string]int64, error) {
	if cached := t.cache.Load(); cached != nil && cached.revision == revision {
		return cached.ms, nil
	}
	ms, err := store.Read(ctx, t.db, modelTimesTx)
	if err != nil {
		return nil, err
	}
	t.cache.Store(&modelTimes{revision, ms})
	return ms, nil
}

// recordModelsTx records the models of a new catalog.
func recordModelsTx(tx *store.Tx, doc *Document, nowMS int64) error {
	for i := range doc.Models {
		if _, err := tx.Exec(insertModel, doc.Models[i].ID, nowMS); err != nil {
			return fmt.Errorf("record the first appearance of model %s: %w", doc.Models[i].ID, err)
		}
	}
	return nil
}

func modelTimesTx(tx *store.Tx) (map[string]int64, error) {
	times := map[string]int64{}
	err := tx.Each(func(row store.Row) error {
		var id string
		var ms int64
		err := row.Scan(&id, &ms)
		times[id] = ms
		return err
	}, selectModels)
	if err != nil {
		return nil, fmt.Errorf("read the first appearances of models: %w", err)
	}
	return times, nil
}
