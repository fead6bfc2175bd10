package requestlog

import (
	"database/sql"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"tollgate/internal/ledger/movement"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// Selection chooses receipts. Empty fields select all.
type Selection struct {
	Account, Key, Model, Line string
	Status                    int    // the HTTP status
	Code                      string // of an error
	SinceMS, UntilMS          int64  // when they were received: from the one on, before the other
	MinDurationMS             int64
	After                     string // continue below this request id
	Limit                     int
}

// Page is a part of a list.
type Page struct {
	Receipts []Receipt
	More     bool   // there may be more
	Next     string // then what the next part is After: the last receipt, or the last one that was looked at
	// BackMS is, of a page that has fewer receipts than its limit because it has looked
	// through as much as one may, when the last one that was looked at was received.
	BackMS int64
}

const (
	// lookMost is how many receipts are looked through for a page, firstStep in the
	// first of the steps, each of which looks through stepGrowth times as many as the
	// one before.
	lookMost   = 20_000
	firstStep  = 1_000
	stepGrowth = 4
	// nodeSkew is how far the clock of a node, which says when a request came, may be
	// ahead of the database's, which says when it ended.
	nodeSkew = time.Minute
	// endsWithin is how long after it came a request has ended that a list of one account
	// finds by UntilMS: a day is longer than any may take whose node lives.
	endsWithin = 24 * time.Hour
	// slowMS is from when on a request is in the index of slow ones.
	slowMS = 10_000
)

// ListTx lists receipts, newest first: by their id, which is when they were received, or
// of one account by when they ended. A key's are those of its account.
func ListTx(tx *store.Tx, f Selection) (Page, error) {
	w, err := listTx(tx, f)
	return w.page, err
}

func listTx(tx *store.Tx, f Selection) (walk, error) {
	w := walk{tx: tx, Selection: f, at: top, left: lookMost}
	if err := tx.ByIndex(); err != nil {
		return w, err
	}
	begun, err := w.beginTx()
	if err != nil || !begun {
		return w, err
	}
	switch {
	case !w.searches():
		err = w.readTx(w.low)
	case w.Key != "" && !w.failing():
		err = w.byPartsTx()
	default:
		_, err = w.stepsTx(w.low)
	}
	return w, err
}

// place is a row of the log: of one account's by number and id, of all accounts' by id.
type place struct {
	seq int64
	id  string
}

// top is above all rows, and bottom below them.
var (
	top    = place{seq: math.MaxInt64}
	bottom = place{}
)

// walk is a listing on its way down the log.
type walk struct {
	tx *store.Tx
	Selection
	page Page
	at   place // what stands from here on up has been looked through
	low  place // nothing below it is looked at
	left int   // so many rows may be looked through yet
}

// beginTx finds where the walk begins and ends; false: there is nothing.
func (w *walk) beginTx() (bool, error) {
	if w.Key != "" {
		of, err := keyAccountTx(w.tx, w.Key)
		if err != nil || of == "" || w.Account != "" && w.Account != of {
			return false, err
		}
		w.Account = of // whose log has all requests of the key
	}
	if w.Account == "" {
		w.at.id = w.After
		return true, nil
	}
	if err := w.boundTx(); err != nil {
		return false, err
	}
	if w.After == "" {
		return true, nil
	}
	var seq int64
	err := w.tx.QueryRow(afterReceipt, w.After, w.Account).Scan(&seq)
	if errors.Is(err, sql.ErrNoRows) { // its receipt is gone, and all that is older
		return false, nil
	}
	if after := (place{seq, w.After}); after.below(w.at) {
		w.at = after
	}
	return true, err
}

// below tells whether a place is further down an account's log.
func (p place) below(q place) bool { return p.seq < q.seq || p.seq == q.seq && p.id < q.id }

// boundTx finds the part of an account's log that a span of time is in. It has the order
// of the ends, but refusals have the number of what ended before them.
func (w *walk) boundTx() error {
	if w.SinceMS > 0 {
		first, err := movement.PlaceTx(w.tx, w.Account, w.SinceMS-nodeSkew.Milliseconds())
		if err != nil {
			return err
		}
		w.low = place{first - 1, firstRequest(w.SinceMS)}
	}
	if w.UntilMS > 0 {
		first, err := movement.PlaceTx(w.tx, w.Account, w.UntilMS+endsWithin.Milliseconds())
		if err != nil {
			return err
		}
		w.at = place{first - 1, firstRequest(w.UntilMS)}
	}
	return nil
}

// failing tells whether what failed is chosen, which has indexes of its own.
func (w *walk) failing() bool { return w.Code != "" || w.Status >= 400 }

// bySlow tells whether the index of slow requests is walked.
func (w *walk) bySlow() bool { return w.MinDurationMS >= slowMS && w.Account == "" && !w.failing() }

// searches tells whether rows of the index that is walked are left out.
func (w *walk) searches() bool {
	switch {
	case w.Key != "", w.Model != "", w.Line != "":
		return true
	case w.Status != 0 && (w.Status < 400 || w.Code != ""):
		return true
	case w.MinDurationMS > 0 && (!w.bySlow() || w.MinDurationMS > slowMS):
		return true
	}
	return w.Account != "" && (w.SinceMS > 0 || w.UntilMS > 0)
}

// stepsTx looks through the log down to a place, or until the page is full or as much has
// been looked through as may be: then false.
func (w *walk) stepsTx(low place) (ended bool, err error) {
	for step := firstStep; ; step *= stepGrowth {
		step = min(step, w.left)
		edge, err := w.edgeTx(low, step)
		if err != nil {
			return false, err
		}
		if edge == bottom {
			err := w.readTx(low)
			return !w.page.More, err
		}
		if err := w.readTx(edge); err != nil || w.page.More {
			return false, err
		}
		if w.left -= step; w.left <= 0 {
			return false, w.stopTx(edge.id)
		}
		w.at = edge
	}
}

// stopTx ends a page at a row that was looked at.
func (w *walk) stopTx(last string) error {
	w.page.More, w.page.Next = true, last
	return w.tx.QueryRow(`SELECT created_ms FROM ledger_receipt WHERE id = $1`, last).Scan(&w.page.BackMS)
}

// edgeTx finds the last of the next so many rows of the index; bottom: there are fewer.
func (w *walk) edgeTx(low place, step int) (edge place, err error) {
	text, args := w.edge(low, step)
	err = w.tx.QueryRow(text, args...).Scan(&edge.seq, &edge.id)
	if errors.Is(err, sql.ErrNoRows) {
		return bottom, nil
	}
	return edge, err
}

// readTx adds the chosen receipts down to a place to the page, which is full when it has
// found one more than fits.
func (w *walk) readTx(low place) error {
	text, args := w.read(low)
	rows, err := w.tx.Query(text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	p := &w.page
	for rows.Next() {
		var r Receipt
		if err := r.scan(rows.Scan); err != nil {
			return err
		}
		if len(p.Receipts) == w.Limit {
			p.More, p.Next = true, p.Receipts[w.Limit-1].ID
			return nil
		}
		p.Receipts = append(p.Receipts, r)
	}
	return rows.Err()
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

// conditions are those of a statement, with their values.
type conditions struct {
	where []string
	args  []any
}

func (c *conditions) add(condition string, values ...any) {
	for _, value := range values {
		c.args = append(c.args, value)
		condition = strings.Replace(condition, "?", "$"+strconv.Itoa(len(c.args)), 1)
	}
	c.where = append(c.where, condition)
}

// text is a statement that chooses columns by them, in the order of the index.
func (c *conditions) text(choose, order string, limit int, offset int) (string, []any) {
	text := `SELECT ` + choose + ` FROM ledger_receipt`
	if len(c.where) > 0 {
		text += ` WHERE ` + strings.Join(c.where, " AND ")
	}
	args := append(c.args, limit)
	text += ` ORDER BY ` + order + ` LIMIT $` + strconv.Itoa(len(args))
	if offset > 0 {
		args = append(args, offset)
		text += ` OFFSET $` + strconv.Itoa(len(args))
	}
	return text, args
}

// index are the conditions of the one index that a walk goes along, between where it is
// and a place, and the order of its rows: that of the account, of failures, of slow
// requests, or else of all receipts.
func (w *walk) index(low place) (c conditions, order string) {
	order = "id DESC"
	if w.Account != "" {
		c.add("account = ?", w.Account)
		order = "seq DESC, id DESC"
	}
	switch {
	case w.Code != "":
		c.add("code = ? AND code <> ''", w.Code)
	case w.Status >= 400:
		c.add("status = ? AND status >= 400", w.Status)
	case w.bySlow():
		c.add("duration_ms >= " + strconv.Itoa(slowMS)) // as the index has it
	}
	if w.Account != "" {
		if w.at != top {
			c.add("(seq, id) < (?, ?)", w.at.seq, w.at.id)
		}
		if low != bottom {
			c.add("(seq, id) >= (?, ?)", low.seq, low.id)
		}
		return c, order
	}
	if w.at.id != "" {
		c.add("id < ?", w.at.id)
	}
	if low.id != "" {
		c.add("id >= ?", low.id)
	}
	if w.SinceMS > 0 {
		c.add("id >= ?", firstRequest(w.SinceMS))
	}
	if w.UntilMS > 0 {
		c.add("id < ?", firstRequest(w.UntilMS))
	}
	return c, order
}

// edge is the statement that finds the last of the next so many rows of the index.
func (w *walk) edge(low place, step int) (string, []any) {
	c, order := w.index(low)
	seq := "0"
	if w.Account != "" {
		seq = "seq"
	}
	return c.text(seq+", id", order, 1, step-1)
}

// read is the statement that brings the chosen rows of the index. What is chosen by
// beside the index is written so that no other index can be taken for it, which would
// then have to be sorted.
func (w *walk) read(low place) (string, []any) {
	c, order := w.index(low)
	if w.Status != 0 && (w.Status < 400 || w.Code != "") {
		c.add("status + 0 = ?", w.Status)
	}
	if w.MinDurationMS > 0 {
		c.add("duration_ms + 0 >= ?", w.MinDurationMS)
	}
	for _, chosen := range []struct{ column, value string }{{"key", w.Key}, {"line", w.Line}, {"model", w.Model}} {
		if chosen.value != "" {
			c.add(chosen.column+" || '' = ?", chosen.value)
		}
	}
	if w.Account != "" && w.SinceMS > 0 {
		c.add("id || '' >= ?", firstRequest(w.SinceMS))
	}
	if w.Account != "" && w.UntilMS > 0 {
		c.add("id || '' < ?", firstRequest(w.UntilMS))
	}
	return c.text(columns, order, w.Limit-len(w.page.Receipts)+1, 0)
}

// firstRequest is the first id of a time.
func firstRequest(ms int64) string { return id.First(movement.RequestPrefix, time.UnixMilli(ms)) }
