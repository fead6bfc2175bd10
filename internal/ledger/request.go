package ledger

import (
	"database/sql"
	"encoding/json"
	"errors"
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

// RequestsTx lists receipts, newest first: by their id, which is when they were
// received, or of one account by when they ended. The bool tells whether there
// are more.
func RequestsTx(tx *store.Tx, f RequestFilter) ([]Receipt, bool, error) {
	if err := tx.ByIndex(); err != nil {
		return nil, false, err
	}
	var seq int64
	if f.Account != "" && f.After != "" {
		err := tx.QueryRow(afterReceipt, f.After, f.Account).Scan(&seq)
		if errors.Is(err, sql.ErrNoRows) { // its receipt is gone, and all that is older
			return nil, false, nil
		}
		if err != nil {
			return nil, false, err
		}
	}
	text, args := f.statement(seq)
	rows, err := tx.Query(text, args...)
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

const afterReceipt = `SELECT seq FROM ledger_receipt WHERE id = $1 AND account || '' = $2`

// statement walks one index, in its order: that of the account, of failures, or
// else all receipts. What else is chosen by is written so that no other index
// can be taken for it, which would then have to be sorted. seq is that of the
// receipt called After.
func (f RequestFilter) statement(seq int64) (text string, args []any) {
	var where []string
	add := func(condition string, values ...any) {
		for _, value := range values {
			args = append(args, value)
			condition = strings.Replace(condition, "?", "$"+strconv.Itoa(len(args)), 1)
		}
		where = append(where, condition)
	}
	order := "id DESC"
	if f.Account != "" {
		add("account = ?", f.Account)
		order = "seq DESC, id DESC"
	}
	switch {
	case f.Status >= 400:
		add("status = ? AND status >= 400", f.Status)
	case f.Status != 0:
		add("status + 0 = ?", f.Status)
	}
	if f.Line != "" {
		add("line || '' = ?", f.Line)
	}
	if f.Model != "" {
		add("model || '' = ?", f.Model)
	}
	switch {
	case f.After != "" && f.Account != "":
		add("(seq, id) < (?, ?)", seq, f.After)
	case f.After != "":
		add("id < ?", f.After)
	}
	text = `SELECT id, account, key, model, endpoint, status, code, line, attempts, prompt_tokens, cached_tokens, completion_tokens, images,
		cost_nano, held_nano, over_nano, first_byte_ms, duration_ms, created_ms, stands_for FROM ledger_receipt`
	if len(where) > 0 {
		text += ` WHERE ` + strings.Join(where, " AND ")
	}
	args = append(args, f.Limit+1)
	return text + ` ORDER BY ` + order + ` LIMIT $` + strconv.Itoa(len(args)), args
}
