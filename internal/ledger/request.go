package ledger

import (
	"encoding/json"
	"strconv"
	"strings"

	"tollgate/internal/money"
	"tollgate/internal/store"
)

// RequestFilter selects receipts. Empty fields select all.
type RequestFilter struct {
	Account, Model, Line string
	Status               int    // the HTTP status
	After                string // continue below this request id
	Limit                int
}

// Receipt is one ended or refused request, as the request log shows it.
type Receipt struct {
	ID, Account, Key, Model, Endpoint string
	Status                            int
	Code, Line                        string
	Attempts                          json.RawMessage
	Tokens                            Tokens
	Cost, Held                        money.Amount
	Over                              money.Amount // what usage exceeded the hold by
	FirstByteMS, DurationMS           int64
	CreatedMS                         int64
	// StandsFor is more than 1 where a flood of refusals was sampled.
	StandsFor int64
}

// RequestsTx lists receipts, newest first by their id; the bool tells whether
// there are more.
func RequestsTx(tx *store.Tx, f RequestFilter) ([]Receipt, bool, error) {
	var where []string
	var args []any
	add := func(condition string, value any) {
		args = append(args, value)
		where = append(where, strings.ReplaceAll(condition, "?", "$"+strconv.Itoa(len(args))))
	}
	if f.Account != "" {
		add("account = ?", f.Account)
	}
	if f.Model != "" {
		add("model = ?", f.Model)
	}
	if f.Line != "" {
		add("line = ?", f.Line)
	}
	if f.Status != 0 {
		add("status = ?", f.Status)
	}
	if f.After != "" {
		add("id < ?", f.After)
	}
	text := `SELECT id, account, key, model, endpoint, status, code, line, attempts, prompt_tokens, cached_tokens, completion_tokens, images,
		cost_nano, held_nano, over_nano, first_byte_ms, duration_ms, created_ms, stands_for FROM ledger_receipt`
	if len(where) > 0 {
		text += ` WHERE ` + strings.Join(where, " AND ")
	}
	args = append(args, f.Limit+1)
	rows, err := tx.Query(text+` ORDER BY id DESC LIMIT $`+strconv.Itoa(len(args)), args...)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	var receipts []Receipt
	for rows.Next() {
		var r Receipt
		var attempts string
		if err := rows.Scan(&r.ID, &r.Account, &r.Key, &r.Model, &r.Endpoint, &r.Status, &r.Code, &r.Line, &attempts,
			&r.Tokens.Prompt, &r.Tokens.Cached, &r.Tokens.Completion, &r.Tokens.Images,
			&r.Cost, &r.Held, &r.Over, &r.FirstByteMS, &r.DurationMS, &r.CreatedMS, &r.StandsFor); err != nil {
			return nil, false, err
		}
		r.Attempts = json.RawMessage(attempts)
		receipts = append(receipts, r)
	}
	if len(receipts) > f.Limit {
		return receipts[:f.Limit], true, rows.Err()
	}
	return receipts, false, rows.Err()
}
