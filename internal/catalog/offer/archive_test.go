package offer_test

import (
	"errors"
	"strings"
	"testing"

	"tollgate/internal/catalog"
	"tollgate/internal/catalog/offer"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// revisions is the number of revisions in TestArchive, more than an Archive holds in memory.
const revisions = 19

// apply applies a catalog as the next revision.
func apply(t *testing.T, db *store.DB, text string) {
	t.Helper()
	doc, _, err := catalog.Parse([]byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	storetest.Update(t, db, func(tx *store.Tx) error {
		_, err := catalog.ApplyTx(tx, doc)
		return err
	})
}

// TestArchive checks that an Archive returns the models of every revision, also if there are more
// revisions than it holds in memory.
func TestArchive(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var archive offer.Archive
		price := func(n int) string { return "0." + strings.Repeat("1", n+1) }
		for n := range revisions {
			apply(t, db, "lines: []\nmodels:\n  - {id: a, kind: chat, context_window: 10, max_output_tokens: 5, price: {input: "+
				price(n%9)+", output: "+price(n/9)+"}}\n")
		}
		storetest.View(t, db, func(tx *store.Tx) error {
			for range 2 {
				for n := range revisions {
					m, err := archive.ModelTx(tx, int64(n+1), "a")
					if err != nil {
						return err
					}
					if want := `{"input":` + price(n%9) + `,"output":` + price(n/9) + `}`; string(offer.Price(m)) != want {
						t.Errorf("price in revision %d = %s, want %s", n+1, offer.Price(m), want)
					}
				}
			}
			if m, err := archive.ModelTx(tx, 1, "none"); m != nil || err != nil {
				t.Errorf("ModelTx of an unknown model = %v, %v, want nil", m, err)
			}
			if _, err := archive.ModelTx(tx, 1000, "a"); !errors.Is(err, catalog.ErrNoRevision) {
				t.Errorf("ModelTx of an unknown revision: error %v, want %v", err, catalog.ErrNoRevision)
			}
			return nil
		})
	})
}
