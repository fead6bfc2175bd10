// Package requestlog owns how the request log is read: one request, and the lists of
// those that a filter chooses, for users and for operators.
//
// Invariants: a list is walked along an index in the index's order, and looks through a
// bounded number of rows, whatever is chosen by: where that is not enough it says from
// where on it goes on. Nothing is written but which parts of an account's log a key has
// requests in (part.go).
package requestlog

import (
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/books"
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
	Source                            books.UsageSource
	Revision                          int64        // of the catalog that priced it
	Factor                            money.Factor // by which its prices were multiplied; 0: by none
	Cost, Held                        money.Amount
	Over                              money.Amount // what usage exceeded the hold by
	FirstByteMS, DurationMS           int64
	CreatedMS, EndedMS                int64
	// StandsFor is more than 1 where a flood of refusals was sampled.
	StandsFor int64
}

// ErrNone means that the request log does not have a request.
var ErrNone = errors.New("no such request")

// GetTx returns one request of the log, or ErrNone.
func GetTx(tx *store.Tx, request string) (Receipt, error) {
	return oneTx(tx.QueryRow(`SELECT `+columns+` FROM ledger_receipt WHERE id = $1`, request))
}

// OwnTx returns one request of an account's log, or ErrNone.
func OwnTx(tx *store.Tx, account, request string) (Receipt, error) {
	return oneTx(tx.QueryRow(`SELECT `+columns+` FROM ledger_receipt WHERE id = $1 AND account = $2`, request, account))
}

func oneTx(row *sql.Row) (r Receipt, err error) {
	if err = r.scan(row.Scan); errors.Is(err, sql.ErrNoRows) {
		return r, ErrNone
	}
	return r, err
}

const columns = `id, account, key, model, endpoint, job, outcome, status, code, line, attempts, prompt_tokens, cached_tokens,
	completion_tokens, images, clips, video_ms, source, revision, cost_nano, held_nano, over_nano, first_byte_ms, duration_ms, created_ms,
	ended_ms, stands_for, price_factor`

// scan reads columns.
func (r *Receipt) scan(scan func(dest ...any) error, more ...any) error {
	var attempts string
	t := &r.Tokens
	err := scan(append([]any{&r.ID, &r.Account, &r.Key, &r.Model, &r.Endpoint, &r.Job, &r.Outcome, &r.Status, &r.Code, &r.Line, &attempts,
		&t.Prompt, &t.Cached, &t.Completion, &t.Images, &t.Clips, &t.VideoMS, &r.Source, &r.Revision,
		&r.Cost, &r.Held, &r.Over, &r.FirstByteMS, &r.DurationMS, &r.CreatedMS, &r.EndedMS, &r.StandsFor, &r.Factor}, more...)...)
	r.Attempts = json.RawMessage(attempts)
	return err
}

// Span reads since and until of a list: RFC 3339 times or UTC days, until a day
// included; empty: no bound. In Unix milliseconds, from the one on, before the other; 0:
// no bound. The error is a *fault.Error about the one or the other.
func Span(since, until string) (sinceMS, untilMS int64, err error) {
	if sinceMS, err = bound("since", since, 0); err != nil {
		return 0, 0, err
	}
	untilMS, err = bound("until", until, 1)
	return sinceMS, untilMS, err
}

// bound is one of the times of a span; of a day it is that of so many days later.
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
