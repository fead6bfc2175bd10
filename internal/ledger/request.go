package ledger

import (
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"tollgate/internal/ledger/movement"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// RequestFilter selects receipts. Empty fields select all.
type RequestFilter struct {
	Account, Key, Model, Line string
	Status                    int    // the HTTP status
	Code                      string // of an error
	SinceMS, UntilMS          int64  // when they were received: from the one on, before the other
	MinDurationMS             int64
	After                     string // continue below this request id
	Limit                     int

	// of the account's log alone; 0: no bound
	fromSeq, belowSeq int64
}

// Receipt is one ended or refused request, as the request log shows it.
type Receipt struct {
	ID, Account, Key, Model, Endpoint string
	Job                               string // of a submission
	Outcome                           Outcome
	Status                            int
	Code, Line                        string
	Attempts                          json.RawMessage
	Tokens                            Tokens
	Source                            UsageSource
	Revision                          int64        // of the catalog that priced it
	Factor                            money.Factor // by which its prices were multiplied; 0: by none
	Cost, Held                        money.Amount
	Over                              money.Amount // what usage exceeded the hold by
	FirstByteMS, DurationMS           int64
	CreatedMS, EndedMS                int64
	// StandsFor is more than 1 where a flood of refusals was sampled.
	StandsFor int64
}

// ErrNoRequest means that the request log does not have a request.
var ErrNoRequest = errors.New("no such request")

// RequestTx returns one request of the log, or ErrNoRequest.
func RequestTx(tx *store.Tx, request string) (Receipt, error) {
	var r Receipt
	err := r.scan(tx.QueryRow(`SELECT `+logColumns+` FROM ledger_receipt WHERE id = $1`, request).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return r, ErrNoRequest
	}
	return r, err
}

// OwnRequestTx returns one request of an account's log, or ErrNoRequest.
func OwnRequestTx(tx *store.Tx, account, request string) (Receipt, error) {
	var r Receipt
	err := r.scan(tx.QueryRow(`SELECT `+logColumns+` FROM ledger_receipt WHERE id = $1 AND account = $2`, request, account).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return r, ErrNoRequest
	}
	return r, err
}

const logColumns = `id, account, key, model, endpoint, job, outcome, status, code, line, attempts, prompt_tokens, cached_tokens,
	completion_tokens, images, clips, video_ms, source, revision, cost_nano, held_nano, over_nano, first_byte_ms, duration_ms, created_ms,
	ended_ms, stands_for, price_factor`

// scan reads logColumns.
func (r *Receipt) scan(scan func(dest ...any) error) error {
	var attempts string
	t := &r.Tokens
	err := scan(&r.ID, &r.Account, &r.Key, &r.Model, &r.Endpoint, &r.Job, &r.Outcome, &r.Status, &r.Code, &r.Line, &attempts,
		&t.Prompt, &t.Cached, &t.Completion, &t.Images, &t.Clips, &t.VideoMS, &r.Source, &r.Revision,
		&r.Cost, &r.Held, &r.Over, &r.FirstByteMS, &r.DurationMS, &r.CreatedMS, &r.EndedMS, &r.StandsFor, &r.Factor)
	r.Attempts = json.RawMessage(attempts)
	return err
}

// RequestsTx lists receipts, newest first: by their id, which is when they were
// received, or of one account by when they ended. The bool tells whether there
// are more.
func RequestsTx(tx *store.Tx, f RequestFilter) ([]Receipt, bool, error) {
	if err := tx.ByIndex(); err != nil {
		return nil, false, err
	}
	if f.Key != "" {
		of, err := keyAccountTx(tx, f.Key)
		if err != nil || of == "" || f.Account != "" && f.Account != of {
			return nil, false, err
		}
		f.Account = of // whose log has all requests of the key
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
	read := f.walkTx
	if f.SinceMS > 0 && f.Account != "" && f.Code == "" && f.Status < 400 {
		read = f.stepwiseTx
	}
	receipts, err := read(tx, seq)
	return receipts[:min(len(receipts), f.Limit)], len(receipts) > f.Limit, err
}

// walkTx returns receipts in their order, one more than the limit if there are more.
func (f RequestFilter) walkTx(tx *store.Tx, seq int64) ([]Receipt, error) {
	text, args := f.statement(seq)
	rows, err := tx.Query(text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var receipts []Receipt
	for rows.Next() {
		var r Receipt
		if err := r.scan(rows.Scan); err != nil {
			return nil, err
		}
		receipts = append(receipts, r)
	}
	return receipts, rows.Err()
}

const (
	// logStep is how many receipts of an account's log are looked through at a time.
	logStep = 5_000
	// nodeSkew is how far the clock of a node, which says when a request came, may be
	// ahead of the database's, which says when it ended.
	nodeSkew = time.Minute
)

// stepRows are a step of an account's log, and stepEdge tells how far back it reaches,
// and when the last of it ended.
const (
	stepRows = `SELECT seq, ended_ms FROM ledger_receipt WHERE account = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3`
	stepEdge = `SELECT COUNT(*), COALESCE(MIN(s.seq), 0), COALESCE(MAX(s.ended_ms), 0) FROM (` + stepRows + `) s`
)

// stepwiseTx is walkTx in steps of an account's log, whose order is that of the ends,
// so that it ends where all of a step had ended before the first that is asked for came.
// Else it would look through the whole log for a key that was hardly used.
func (f RequestFilter) stepwiseTx(tx *store.Tx, seq int64) (receipts []Receipt, err error) {
	limit := f.Limit
	f.belowSeq = math.MaxInt64
	if f.After != "" {
		f.belowSeq = seq + 1
	}
	for len(receipts) <= limit {
		var n, ended int64
		if err := tx.QueryRow(stepEdge, f.Account, f.belowSeq, logStep).Scan(&n, &f.fromSeq, &ended); err != nil || n == 0 {
			return receipts, err
		}
		f.Limit = limit - len(receipts)
		found, err := f.walkTx(tx, seq)
		if receipts = append(receipts, found...); err != nil || ended < f.SinceMS-nodeSkew.Milliseconds() {
			return receipts, err
		}
		f.belowSeq = f.fromSeq
	}
	return receipts, nil
}

const afterReceipt = `SELECT seq FROM ledger_receipt WHERE id = $1 AND account || '' = $2`

// keyAccountTx returns whose a key is; empty: nobody's.
func keyAccountTx(tx *store.Tx, key string) (string, error) {
	var account string
	err := tx.QueryRow(`SELECT account FROM ledger_key WHERE id = $1`, key).Scan(&account)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return account, err
}

// slowMS is from when on a request is in the index of slow ones.
const slowMS = 10_000

// statement walks one index, in its order: that of the account, of failures, of
// slow requests, or else all receipts. What else is chosen by is written so that
// no other index can be taken for it, which would then have to be sorted. seq is
// that of the receipt called After.
func (f RequestFilter) statement(seq int64) (text string, args []any) {
	var where []string
	add := func(condition string, values ...any) {
		for _, value := range values {
			args = append(args, value)
			condition = strings.Replace(condition, "?", "$"+strconv.Itoa(len(args)), 1)
		}
		where = append(where, condition)
	}
	order, received := "id DESC", "id"
	if f.Account != "" {
		add("account = ?", f.Account)
		order, received = "seq DESC, id DESC", "id || ''"
		if f.belowSeq > 0 {
			add("seq >= ?", f.fromSeq)
			add("seq < ?", f.belowSeq)
		}
	}
	f.failures(add)
	if f.MinDurationMS > 0 {
		if f.MinDurationMS >= slowMS && f.Account == "" && f.Code == "" && f.Status < 400 {
			add("duration_ms >= " + strconv.Itoa(slowMS)) // the index of slow requests has it so
		}
		add("duration_ms + 0 >= ?", f.MinDurationMS)
	}
	for _, chosen := range []struct{ column, value string }{{"key", f.Key}, {"line", f.Line}, {"model", f.Model}} {
		if chosen.value != "" {
			add(chosen.column+" || '' = ?", chosen.value)
		}
	}
	if f.SinceMS > 0 {
		add(received+" >= ?", firstRequest(f.SinceMS))
	}
	if f.UntilMS > 0 {
		add(received+" < ?", firstRequest(f.UntilMS))
	}
	switch {
	case f.After != "" && f.Account != "":
		add("(seq, id) < (?, ?)", seq, f.After)
	case f.After != "":
		add("id < ?", f.After)
	}
	text = `SELECT ` + logColumns + ` FROM ledger_receipt`
	if len(where) > 0 {
		text += ` WHERE ` + strings.Join(where, " AND ")
	}
	args = append(args, f.Limit+1)
	return text + ` ORDER BY ` + order + ` LIMIT $` + strconv.Itoa(len(args)), args
}

// failures adds the conditions of code and status, by the index of one of them.
func (f RequestFilter) failures(add func(condition string, values ...any)) {
	byCode := f.Code != ""
	if byCode {
		add("code = ? AND code <> ''", f.Code)
	}
	switch {
	case f.Status == 0:
	case f.Status >= 400 && !byCode:
		add("status = ? AND status >= 400", f.Status)
	default:
		add("status + 0 = ?", f.Status)
	}
}

// firstRequest is the first id of a time.
func firstRequest(ms int64) string { return id.First(movement.RequestPrefix, time.UnixMilli(ms)) }
