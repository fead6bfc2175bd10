// Package requestlog owns the request log: the columns of its rows, single requests, and lists by
// filter, for users and for operators.
//
// Invariants: a list follows an index in the index's order and examines a bounded number of rows
// with any filter; if the bound ends a page, the page reports where the next one continues.
package requestlog

import (
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/books"
	"tollgate/internal/ledger/measure"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// Receipt is one ended or refused request, as the request log shows it.
type Receipt struct {
	ID, Account, Key, Model, Endpoint string
	Job                               string // of a submission
	Outcome                           books.Outcome
	Status                            int
	Code, Line                        string
	Attempts                          json.RawMessage
	Tokens                            books.Tokens
	Quantity                          measure.Quantity
	Source                            books.UsageSource
	Revision                          int64        // the catalog revision of the prices
	Factor                            money.Factor // of the prices; 0 means no factor
	Cost, Held                        money.Amount
	Over                              money.Amount // usage above the hold
	FirstByteMS, DurationMS           int64
	CreatedMS, EndedMS                int64
	// StandsFor is the number of refusals that a sampled row stands for.
	StandsFor int64
}

// ErrNone means that a request is not in the request log.
var ErrNone = errors.New("no such request")

// GetTx returns one request of the log, or ErrNone.
func GetTx(tx *store.Tx, request string) (Receipt, error) {
	return oneTx(tx.QueryRow(`SELECT `+shownColumns+` FROM ledger_receipt WHERE id = $1`, request))
}

// OwnTx returns one request of an account's log, or ErrNone.
func OwnTx(tx *store.Tx, account, request string) (Receipt, error) {
	return oneTx(tx.QueryRow(`SELECT `+shownColumns+` FROM ledger_receipt WHERE id = $1 AND account = $2`, request, account))
}

func oneTx(row *sql.Row) (r Receipt, err error) {
	if err = r.scan(row.Scan); errors.Is(err, sql.ErrNoRows) {
		return r, ErrNone
	}
	return r, err
}

// Span parses since and until of a list: RFC 3339 times or UTC days. The results are Unix
// milliseconds, sinceMS inclusive and untilMS exclusive; 0 means no bound. A day of until is
// included. The error is a *fault.Error about one of the two.
func Span(since, until string) (sinceMS, untilMS int64, err error) {
	if sinceMS, err = bound("since", since, 0); err != nil {
		return 0, 0, err
	}
	untilMS, err = bound("until", until, 1)
	return sinceMS, untilMS, err
}

// bound parses one end of a span into Unix milliseconds, or 0 if text is empty. If text is a UTC day,
// bound adds days to the start of the day.
func bound(name, text string, days int) (int64, error) {
	if text == "" {
		return 0, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		at, err = time.Parse(time.DateOnly, text)
		at = at.AddDate(0, 0, days)
	}
	if err != nil || at.Year() < 1970 || at.Year() > 9999 {
		return 0, fault.At(fault.InvalidRequest, name, "%s must be an RFC 3339 time such as 2026-05-31T08:00:00Z, or a UTC day.", name)
	}
	return max(1, at.UnixMilli()), nil
}
