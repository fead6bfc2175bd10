package requestlog

import (
	"strings"

	"tollgate/internal/ledger/books"
	"tollgate/internal/store"
)

type row = books.ReceiptRow

// column is a column of ledger_receipt. The statements, the values of new rows and the scan of
// stored rows are derived from the list of columns.
type column struct {
	name  string               // name and type, or name and constant value, as for store.Insert
	value func(r *row) any     // of a new row, a string or an int64; nil for a constant
	dest  func(r *Receipt) any // of a stored row; nil if the request log does not show the column
}

var columns = [...]column{
	{"id text", func(r *row) any { return r.Hold.ID }, func(r *Receipt) any { return &r.ID }},
	{"account text", func(r *row) any { return r.Hold.Account }, func(r *Receipt) any { return &r.Account }},
	{"seq bigint", func(r *row) any { return r.Seq }, nil},
	{"key text", func(r *row) any { return r.Hold.Key }, func(r *Receipt) any { return &r.Key }},
	{"model text", func(r *row) any { return books.BoundedText(r.Hold.Model) }, func(r *Receipt) any { return &r.Model }},
	{"endpoint text", func(r *row) any { return books.BoundedText(r.Hold.Endpoint) }, func(r *Receipt) any { return &r.Endpoint }},
	{"day bigint", func(r *row) any { return r.Hold.Day }, nil},
	{"revision bigint", func(r *row) any { return r.Hold.Revision }, func(r *Receipt) any { return &r.Revision }},
	{"outcome bigint", func(r *row) any { return int64(r.End.Outcome) }, func(r *Receipt) any { return &r.Outcome }},
	{"status bigint", func(r *row) any { return int64(r.End.Status) }, func(r *Receipt) any { return &r.Status }},
	{"code text", func(r *row) any { return books.BoundedText(r.End.Code) }, func(r *Receipt) any { return &r.Code }},
	{"line text", func(r *row) any { return books.BoundedText(r.End.Line) }, func(r *Receipt) any { return &r.Line }},
	{"attempts text", func(r *row) any { return r.Attempts }, func(r *Receipt) any { return (*[]byte)(&r.Attempts) }},
	{"prompt_tokens bigint", func(r *row) any { return r.End.Tokens.Prompt }, func(r *Receipt) any { return &r.Tokens.Prompt }},
	{"cached_tokens bigint", func(r *row) any { return r.End.Tokens.Cached }, func(r *Receipt) any { return &r.Tokens.Cached }},
	{"completion_tokens bigint", func(r *row) any { return r.End.Tokens.Completion },
		func(r *Receipt) any { return &r.Tokens.Completion }},
	{"unit text", func(r *row) any { return string(r.End.Quantity.Unit) }, func(r *Receipt) any { return (*string)(&r.Quantity.Unit) }},
	{"quantity bigint", func(r *row) any { return r.End.Quantity.N }, func(r *Receipt) any { return &r.Quantity.N }},
	{"source bigint", func(r *row) any { return int64(r.End.Source) }, func(r *Receipt) any { return &r.Source }},
	{"cost_nano bigint", func(r *row) any { return int64(r.Cost) }, func(r *Receipt) any { return &r.Cost }},
	{"over_nano bigint", func(r *row) any { return int64(r.Over) }, func(r *Receipt) any { return &r.Over }},
	{"held_nano bigint", func(r *row) any { return int64(r.Hold.Amount) }, func(r *Receipt) any { return &r.Held }},
	{"balance_nano bigint", func(r *row) any { return int64(r.Balance) }, nil},
	{"line_cost_nano bigint", func(r *row) any { return int64(r.End.ProviderCost()) }, nil},
	{"price_factor bigint", func(r *row) any { return int64(r.Hold.Factor) }, func(r *Receipt) any { return &r.Factor }},
	{"first_byte_ms bigint", func(r *row) any { return r.End.FirstByte.Milliseconds() },
		func(r *Receipt) any { return &r.FirstByteMS }},
	{"duration_ms bigint", func(r *row) any { return r.End.Duration.Milliseconds() },
		func(r *Receipt) any { return &r.DurationMS }},
	{"created_ms bigint", func(r *row) any { return r.Hold.CreatedMS }, func(r *Receipt) any { return &r.CreatedMS }},
	{"ended_ms bigint", func(r *row) any { return r.EndedMS }, func(r *Receipt) any { return &r.EndedMS }},
	{"stands_for bigint", func(r *row) any { return r.StandsFor }, func(r *Receipt) any { return &r.StandsFor }},
	{"job text", func(r *row) any { return r.Hold.Job }, func(r *Receipt) any { return &r.Job }},
	{"free bigint", func(r *row) any { return store.Bool(r.Hold.Free) }, nil},
}

var (
	typedColumns  = names(func(c column) string { return c.name })
	insertEnded   = store.Insert("ledger_receipt", typedColumns, "")
	insertRefused = store.Insert("ledger_receipt", typedColumns, "ON CONFLICT (id) DO NOTHING")

	allColumns   = names(columnName)
	shownColumns = names(func(c column) string {
		if c.dest == nil {
			return ""
		}
		return columnName(c)
	})
)

// Columns returns the names of all columns of a receipt, separated by commas.
func Columns() string { return allColumns }

func columnName(c column) string {
	name, _, _ := strings.Cut(c.name, " ")
	return name
}

// names joins the results of nameOf for all columns, except empty results.
func names(nameOf func(column) string) string {
	var list []string
	for _, c := range columns {
		if name := nameOf(c); name != "" {
			list = append(list, name)
		}
	}
	return strings.Join(list, ", ")
}

// Write adds the statements that insert receipts. An existing row of a refusal stays, because a
// refusal may be written twice if the outcome of its batch is unknown.
func Write(q *store.Batch, receipts []books.ReceiptRow) {
	var refused []any
	ended := insertEnded.Make(len(receipts))
	for i := range receipts {
		if r := &receipts[i]; r.End.Outcome == books.Refused {
			refused = appendRow(refused, r)
		} else {
			ended = appendRow(ended, r)
		}
	}
	q.Rows(insertEnded, ended)
	q.Rows(insertRefused, refused)
}

func appendRow(values []any, r *books.ReceiptRow) []any {
	for i := range columns {
		if value := columns[i].value; value != nil {
			values = append(values, value(r))
		}
	}
	return values
}

// scan reads the shown columns.
func (r *Receipt) scan(scan func(dest ...any) error) error {
	dest := make([]any, 0, len(columns))
	for i := range columns {
		if to := columns[i].dest; to != nil {
			dest = append(dest, to(r))
		}
	}
	return scan(dest...)
}
