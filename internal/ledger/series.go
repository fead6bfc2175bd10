package ledger

import (
	"fmt"
	"strconv"

	"tollgate/internal/ledger/audit"
	"tollgate/internal/ledger/books"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

const figureColumns = `id, key, model, line, endpoint, day, unit, outcome, cost_nano, line_cost_nano, prompt_tokens, cached_tokens,
	completion_tokens, quantity`

// receiptFigures are the columns of a receipt that count in its day.
type receiptFigures struct {
	id       string
	series   books.UsageSeries
	day      books.Day
	outcome  Outcome
	cost     money.Amount
	lineCost money.Amount
	tokens   Tokens
	quantity int64
}

// dest returns the destinations of figureColumns.
func (r *receiptFigures) dest() []any {
	return []any{&r.id, &r.series.Key, &r.series.Model, &r.series.Line, &r.series.Endpoint, &r.day.Day, (*string)(&r.day.Unit),
		(*int64)(&r.outcome), (*int64)(&r.cost), (*int64)(&r.lineCost), &r.tokens.Prompt, &r.tokens.Cached, &r.tokens.Completion,
		&r.quantity}
}

func (r *receiptFigures) figures() books.DayFigures {
	return books.FiguresOf(r.outcome, r.cost, r.lineCost, r.tokens, r.quantity)
}

var updateFolded = store.Update("ledger_series", "folded bigint, id bigint")

// foldSeriesTx records the marks of deleted receipts with their series, so that the days can be
// proved without them.
func foldSeriesTx(tx *store.Tx, marks map[int64]uint64) error {
	ids := make([]string, 0, len(marks))
	for id := range marks {
		ids = append(ids, strconv.FormatInt(id, 10))
	}
	rows := updateFolded.Make(len(marks))
	if err := tx.Each(func(row store.Row) error {
		var id, folded int64
		err := row.Scan(&id, &folded)
		rows = append(rows, int64(uint64(folded)+marks[id]), id)
		return err
	}, `SELECT id, folded FROM ledger_series WHERE `+tx.InNumbers("id", 1), store.List(ids)); err != nil {
		return fmt.Errorf("read series: %w", err)
	}
	if len(rows) != 2*len(marks) {
		return fmt.Errorf("%d series of deleted receipts are missing", len(marks)-len(rows)/2)
	}
	b := tx.Batch()
	b.Rows(updateFolded, rows)
	return tx.Run(b)
}

func (r *receiptFigures) mark() uint64 { return audit.DayMark(r.day, r.figures()) }
