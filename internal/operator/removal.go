package operator

import (
	"fmt"
	"slices"
	"strconv"

	"tollgate/internal/catalog"
	"tollgate/internal/ledger/books"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/store"
)

// usedWithin is the number of days in which a request marks a model as used.
const usedWithin = 30

// LossTx returns a warning for each removed model with requests in the last 30 days: its callers
// will get an error.
func LossTx(tx *store.Tx, doc *catalog.Document) ([]string, error) {
	before, dropped, err := droppedTx(tx, doc)
	if err != nil || len(dropped) == 0 {
		return nil, err
	}
	now, err := tx.NowMS()
	if err != nil {
		return nil, fmt.Errorf("read the clock: %w", err)
	}
	rows, err := spending.ReadTx(tx, spending.Query{Since: books.DayOf(now) - usedWithin, Until: books.DayOf(now) + 1,
		By: []spending.By{spending.ByModel}, Limit: maxUsed})
	if err != nil {
		return nil, fmt.Errorf("read which models are used: %w", err)
	}
	var out []string
	for _, r := range rows {
		if slices.Contains(dropped, r.Model) && r.Requests > 0 {
			requests := "1 request"
			if r.Requests > 1 {
				requests = strconv.FormatInt(r.Requests, 10) + " requests"
			}
			out = append(out, fmt.Sprintf("models: this removes %s, which had %s in the last %d days. Revision %d still has the model",
				r.Model, requests, usedWithin, before))
		}
	}
	return out, nil
}

// maxUsed bounds the models read with their numbers of requests.
const maxUsed = 100_000

// droppedTx returns the models of the current revision without those of doc.
func droppedTx(tx *store.Tx, doc *catalog.Document) (revision int64, dropped []string, err error) {
	head, err := catalog.HeadTx(tx)
	if err != nil || head == 0 {
		return 0, nil, err
	}
	current, revision, err := catalog.CurrentTx(tx)
	if err != nil {
		return 0, nil, nil //nolint:nilerr // an unreadable document must not prevent the apply of a valid one
	}
	for _, m := range current.Models {
		if !slices.ContainsFunc(doc.Models, func(kept catalog.Model) bool { return kept.ID == m.ID }) {
			dropped = append(dropped, m.ID)
		}
	}
	return revision, dropped, nil
}
