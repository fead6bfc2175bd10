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

// usageDays is the number of days in which RemovalWarningsTx looks for requests.
const usageDays = 30

// RemovalWarningsTx returns a warning for each model that doc removes from the current catalog and that
// had requests in the last usageDays days. Its callers will get an error.
func RemovalWarningsTx(tx *store.Tx, doc *catalog.Document) ([]string, error) {
	before, removed, err := removedModelsTx(tx, doc)
	if err != nil || len(removed) == 0 {
		return nil, err
	}
	now, err := tx.NowMS()
	if err != nil {
		return nil, fmt.Errorf("read the clock: %w", err)
	}
	rows, err := spending.ReadTx(tx, spending.Query{Since: books.DayOf(now) - usageDays, Until: books.DayOf(now) + 1,
		By: []spending.By{spending.ByModel}, Limit: maxUsageRows})
	if err != nil {
		return nil, fmt.Errorf("read which models are used: %w", err)
	}
	var out []string
	for _, r := range rows {
		if slices.Contains(removed, r.Model) && r.Requests > 0 {
			requests := "1 request"
			if r.Requests > 1 {
				requests = strconv.FormatInt(r.Requests, 10) + " requests"
			}
			out = append(out, fmt.Sprintf("models: this removes %s, which had %s in the last %d days. Revision %d still has the model",
				r.Model, requests, usageDays, before))
		}
	}
	return out, nil
}

// maxUsageRows bounds the rows of a usage report.
const maxUsageRows = 100_000

// removedModelsTx returns the current revision and its models missing in doc.
func removedModelsTx(tx *store.Tx, doc *catalog.Document) (revision int64, removed []string, err error) {
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
			removed = append(removed, m.ID)
		}
	}
	return revision, removed, nil
}
