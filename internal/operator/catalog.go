package operator

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/store"
)

// ErrApplied reports that another catalog was applied after the revision on which a change is
// based.
var ErrApplied = errors.New("another catalog was applied in the meantime")

// ApplyTx makes doc the current catalog. If doc equals the current catalog, ApplyTx changes nothing
// and logs nothing.
func ApplyTx(tx *store.Tx, by Actor, doc *catalog.Document) (catalog.ApplyResult, error) {
	before, err := catalog.HeadTx(tx)
	if err != nil {
		return catalog.ApplyResult{}, err
	}
	applied, err := catalog.ApplyTx(tx, doc)
	if err != nil || applied.Revision == before {
		return applied, err
	}
	return applied, writeLogTx(tx, by, LogRow{Act: CatalogApply, Object: strconv.FormatInt(applied.Revision, 10),
		Before: Details{"revision": applied.Revision - 1}, After: Details{"revision": applied.Revision, "changes": applied.Changes}})
}

// ApplyOnTx is ApplyTx for a document based on revision. It returns ErrApplied, and changes
// nothing, if another revision is current.
func ApplyOnTx(tx *store.Tx, by Actor, doc *catalog.Document, revision int64) (catalog.ApplyResult, error) {
	head, err := catalog.HeadTx(tx)
	if err != nil {
		return catalog.ApplyResult{}, err
	}
	if head != revision {
		return catalog.ApplyResult{Revision: head}, ErrApplied
	}
	applied, err := ApplyTx(tx, by, doc)
	if err == nil && applied.Revision > revision+1 {
		// Another catalog was applied between the read and the lock.
		return applied, fmt.Errorf("revision %d: %w", applied.Revision-1, ErrApplied)
	}
	return applied, err
}

// SwitchTx sets the state of models in the current catalog, as one revision. It returns a
// *fault.Error if the catalog does not have one of the models.
func SwitchTx(tx *store.Tx, by Actor, state catalog.ModelState, models ...string) (catalog.ApplyResult, error) {
	doc, revision, err := catalog.CurrentTx(tx)
	if err != nil {
		return catalog.ApplyResult{}, err
	}
	changed := *doc
	changed.Models = slices.Clone(doc.Models)
	for _, id := range models {
		i := slices.IndexFunc(changed.Models, func(m catalog.Model) bool { return m.ID == id })
		if i < 0 {
			return catalog.ApplyResult{}, fault.New(fault.NotFound, "There is no model %q in the current catalog.", fault.Excerpt(id))
		}
		changed.Models[i].State = state // every model may have every state
	}
	return ApplyOnTx(tx, by, &changed, revision)
}
