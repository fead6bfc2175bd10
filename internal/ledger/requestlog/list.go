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
	Next     string // After of the next page: the last receipt, or the last one examined
	// BackMS is the arrival time of the last receipt examined, if the page has fewer receipts than
	// its limit because it reached the bound on examined receipts.
	BackMS int64
}

const (
	// lookMost bounds the receipts examined for a page. The first step examines firstStep receipts,
	// and each further step stepGrowth times as many as the one before.
	lookMost   = 20_000
	firstStep  = 1_000
	stepGrowth = 4
	// nodeSkew bounds how far a node's clock, the source of arrival times, may be ahead of the
	// database's clock, the source of end times.
	nodeSkew = time.Minute
	// endsWithin bounds the time from arrival to end of the requests found by UntilMS in a list of
	// one account: no request of a living node may take a day.
	endsWithin = 24 * time.Hour
	// slowMS is from when on a request is in the index of slow ones.
	slowMS = 10_000
)

// ListTx lists receipts, newest first: by id, in the order of arrival, or for one account by their
// end. A key's receipts are those of its account.
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
	at   place // everything from here on up has been examined
	low  place // nothing below it is looked at
	left int   // rows that may still be examined
}

// beginTx finds the start and end of the walk. It returns false if there is nothing to list.
func (w *walk) beginTx() (bool, error) {
	if w.Key != "" {
		of, err := keyAccountTx(w.tx, w.Key)
		if err != nil || of == "" || w.Account != "" && w.Account != of {
			return false, err
		}
		w.Account = of // the account's log has all requests of the key
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
	if errors.Is(err, sql.ErrNoRows) { // its receipt and all older ones are deleted
		return false, nil
	}
	if after := (place{seq, w.After}); after.below(w.at) {
		w.at = after
	}
	return true, err
}

// below reports whether p is further down an account's log than q.
func (p place) below(q place) bool { return p.seq < q.seq || p.seq == q.seq && p.id < q.id }

// boundTx finds the part of an account's log for a span of time. The log has the order of the ends,
// but refusals have the number of the last end before them.
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

// failing reports whether only failures are selected; they have indexes of their own.
func (w *walk) failing() bool { return w.Code != "" || w.Status >= 400 }

// bySlow reports whether the walk uses the index of slow requests.
func (w *walk) bySlow() bool { return w.MinDurationMS >= slowMS && w.Account == "" && !w.failing() }

// searches reports whether the walk skips rows of its index.
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

// stopTx ends a page at an examined row.
func (w *walk) stopTx(last string) error {
	w.page.More, w.page.Next = true, last
	return w.tx.QueryRow(`SELECT created_ms FROM ledger_receipt WHERE id = $1`, last).Scan(&w.page.BackMS)
}

// edgeTx finds the last of the next step rows of the index, or bottom if there are fewer.
func (w *walk) edgeTx(low place, step int) (edge place, err error) {
	text, args := w.edge(low, step)
	err = w.tx.QueryRow(text, args...).Scan(&edge.seq, &edge.id)
	if errors.Is(err, sql.ErrNoRows) {
		return bottom, nil
	}
	return edge, err
}

// readTx adds the selected receipts down to a place to the page. The page is full when it has found
// one receipt more than its limit.
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

// keyAccountTx returns the account of a key, or "" if the key is unknown.
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

// text returns the statement that selects columns by the conditions, in the order of the index.
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

// index returns the conditions of the walk's one index, from the current place down to low, and the
// order of its rows: the account's, that of failures, that of slow requests, or else that of all
// receipts.
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

// edge returns the statement that finds the last of the next step rows of the index.
func (w *walk) edge(low place, step int) (string, []any) {
	c, order := w.index(low)
	seq := "0"
	if w.Account != "" {
		seq = "seq"
	}
	return c.text(seq+", id", order, 1, step-1)
}

// read returns the statement for the selected rows of the index. The other conditions are written
// so that the database cannot use another index, which would need a sort.
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
	return c.text(shownColumns, order, w.Limit-len(w.page.Receipts)+1, 0)
}

// firstRequest is the first id of a time.
func firstRequest(ms int64) string { return id.First(movement.RequestPrefix, time.UnixMilli(ms)) }
