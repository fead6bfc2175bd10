package offer

import (
	"sync"

	"tollgate/internal/catalog"
	"tollgate/internal/store"
)

// maxArchived bounds the revisions in memory.
const maxArchived = 16

// Archive reads models of former revisions, and caches the last revisions read. The zero value is
// ready for use. It is safe for concurrent use.
type Archive struct {
	mu    sync.Mutex
	docs  map[int64]*catalog.Document
	order []int64 // the revisions in docs, oldest first
}

// ModelTx returns a model of a revision, or nil if the revision does not have the model. It returns
// catalog.ErrNoRevision if there is no such revision.
func (a *Archive) ModelTx(tx *store.Tx, revision int64, model string) (*catalog.Model, error) {
	doc := a.get(revision)
	if doc == nil {
		var err error
		if doc, err = catalog.RevisionTx(tx, revision); err != nil {
			return nil, err
		}
		a.put(revision, doc)
	}
	for i := range doc.Models {
		if doc.Models[i].ID == model {
			return &doc.Models[i], nil
		}
	}
	return nil, nil
}

func (a *Archive) get(revision int64) *catalog.Document {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.docs[revision]
}

func (a *Archive) put(revision int64, doc *catalog.Document) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.docs == nil {
		a.docs = map[int64]*catalog.Document{}
	}
	if _, exists := a.docs[revision]; !exists {
		a.order = append(a.order, revision)
	}
	a.docs[revision] = doc
	if len(a.order) > maxArchived {
		delete(a.docs, a.order[0])
		a.order = a.order[1:]
	}
}
