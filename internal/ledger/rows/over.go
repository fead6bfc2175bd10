package rows

import (
	"tollgate/internal/ledger/books"
	"tollgate/internal/store"
)

var addOver = `INSERT INTO ledger_over (account, key, line, over_nano) VALUES ($1, $2, $3, $4)
	ON CONFLICT (account, key, line) DO UPDATE SET ` + store.Add("ledger_over", "over_nano")

// writeOver adds usage above holds to the stored sums. A hold is the maximum cost. If usage is above
// the hold, a line ignores its limit or the catalog is wrong. The excess is not charged.
func (b *Books) writeOver(q *store.Batch) {
	for _, r := range b.Receipts {
		if r.Over > 0 {
			q.Exec(nil, addOver, r.Hold.Account, r.Hold.Key, books.BoundedText(r.End.Line), int64(r.Over))
		}
	}
}
