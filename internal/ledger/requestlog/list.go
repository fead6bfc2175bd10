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

// Selection selects receipts. An empty field selects all receipts.
type Selection struct {
	Account, Key, Model, Line string
	Status                    int    // the HTTP status
	Code                      string // the error code
	SinceMS, UntilMS          int64  // the time of arrival: SinceMS inclusive, UntilMS exclusive
	MinDurationMS             int64
	After                     string // continue after this request id
	Limit                     int
}

// Page is a part of a list.
type Page struct {
	Receipts []Receipt
	More     bool   // further receipts may follow
	Next     string // the After of the next page: the id of the last listed or last examined receipt
	// BackMS is the arrival time of the last examined receipt. It is set only if the bound on
	// examined receipts ended the page.
	BackMS int64
}

const (
	// maxExamined bounds the receipts examined for a page. The first step examines firstStep receipts,
	// and each further step stepGrowth times as many as the one before.
	maxExamined = 20_000
	firstStep   = 1_000
	stepGrowth  = 4
	// nodeSkew is how far a node's clock may be ahead of the database's clock. Arrival times come
	// from the node, end times from the database.
	nodeSkew = time.Minute
	// endsWithin bounds the time from the arrival to the end of a request: no request of a live
	// node takes a day. With UntilMS, a list of one account misses slower requests.
	endsWithin = 24 * time.Hour
	// slowMS is the shortest duration in the index of slow requests.
	slowMS = 10_000
)

// ListTx lists receipts, newest first. Receipts of one account are in the order in which the requests
// ended. All other lists are in the order of arrival, the order of ids.
func ListTx(tx *store.Tx, f Selection) (Page, error) {
	l, err := listTx(tx, f)
	return l.page, err
}

func listTx(tx *store.Tx, f Selection) (listing, error) {
	l := listing{tx: tx, Selection: f, pos: top, left: maxExamined}
	if err := tx.ByIndex(); err != nil {
		return l, err
	}
	found, err := l.beginTx()
	if err != nil || !found {
		return l, err
	}
	switch {
	case !l.filters():
		err = l.readTx(l.low)
	case l.Key != "" && !l.onlyFailures():
		err = l.bySegmentsTx()
	default:
		_, err = l.stepsTx(l.low)
	}
	return l, err
}

// position is a place in the log. In one account's log it consists of the number and id of a row,
// in the whole log only of the id.
type position struct {
	seq int64
	id  string
}

// top is above all rows, bottom below all rows.
var (
	top    = position{seq: math.MaxInt64}
	bottom = position{}
)

// listing is the state of ListTx. It examines the log from newer to older rows.
type listing struct {
	tx *store.Tx
	Selection
	page Page
	pos  position // rows at and above pos have been examined
	low  position // rows below low are not selected
	left int      // number of rows that may still be examined
}

// beginTx finds the first and the last position. It returns false if there is nothing to list.
func (l *listing) beginTx() (bool, error) {
	if l.Key != "" {
		account, err := keyAccountTx(l.tx, l.Key)
		if err != nil || account == "" || l.Account != "" && l.Account != account {
			return false, err
		}
		l.Account = account // all requests of the key are in the account's log
	}
	if l.Account == "" {
		l.pos.id = l.After
		return true, nil
	}
	if err := l.boundTx(); err != nil {
		return false, err
	}
	if l.After == "" {
		return true, nil
	}
	var seq int64
	err := l.tx.QueryRow(afterReceipt, l.After, l.Account).Scan(&seq)
	if errors.Is(err, sql.ErrNoRows) { // the receipt and all older ones are deleted
		return false, nil
	}
	if after := (position{seq, l.After}); after.below(l.pos) {
		l.pos = after
	}
	return true, err
}

// below reports whether p is older than q in an account's log.
func (p position) below(q position) bool { return p.seq < q.seq || p.seq == q.seq && p.id < q.id }

// boundTx finds the positions for a span of time in an account's log. The log is in the order in
// which requests ended; a refusal has the number of the last request that ended before it.
func (l *listing) boundTx() error {
	if l.SinceMS > 0 {
		first, err := movement.SeqAtTx(l.tx, l.Account, l.SinceMS-nodeSkew.Milliseconds())
		if err != nil {
			return err
		}
		l.low = position{first - 1, firstRequest(l.SinceMS)}
	}
	if l.UntilMS > 0 {
		first, err := movement.SeqAtTx(l.tx, l.Account, l.UntilMS+endsWithin.Milliseconds())
		if err != nil {
			return err
		}
		l.pos = position{first - 1, firstRequest(l.UntilMS)}
	}
	return nil
}

// onlyFailures reports whether only failures are selected. Failures have their own indexes.
func (l *listing) onlyFailures() bool { return l.Code != "" || l.Status >= 400 }

// usesSlowIndex reports whether the listing uses the index of slow requests.
func (l *listing) usesSlowIndex() bool {
	return l.MinDurationMS >= slowMS && l.Account == "" && !l.onlyFailures()
}

// filters reports whether the listing skips rows of its index, because the index does not cover all
// conditions.
func (l *listing) filters() bool {
	switch {
	case l.Key != "", l.Model != "", l.Line != "":
		return true
	case l.Status != 0 && (l.Status < 400 || l.Code != ""):
		return true
	case l.MinDurationMS > 0 && (!l.usesSlowIndex() || l.MinDurationMS > slowMS):
		return true
	}
	return l.Account != "" && (l.SinceMS > 0 || l.UntilMS > 0)
}

// stepsTx examines the log down to low. It reports whether it reached low before the page was full
// and before the bound on examined rows.
func (l *listing) stepsTx(low position) (complete bool, err error) {
	for step := firstStep; ; step *= stepGrowth {
		step = min(step, l.left)
		edge, err := l.edgeTx(low, step)
		if err != nil {
			return false, err
		}
		if edge == bottom {
			err := l.readTx(low)
			return !l.page.More, err
		}
		if err := l.readTx(edge); err != nil || l.page.More {
			return false, err
		}
		if l.left -= step; l.left <= 0 {
			return false, l.stopTx(edge.id)
		}
		l.pos = edge
	}
}

// stopTx ends a page at an examined row.
func (l *listing) stopTx(last string) error {
	l.page.More, l.page.Next = true, last
	return l.tx.QueryRow(`SELECT created_ms FROM ledger_receipt WHERE id = $1`, last).Scan(&l.page.BackMS)
}

// edgeTx returns the position of the last of the next step rows of the index, or bottom if fewer
// rows are left.
func (l *listing) edgeTx(low position, step int) (edge position, err error) {
	text, args := l.edge(low, step)
	err = l.tx.QueryRow(text, args...).Scan(&edge.seq, &edge.id)
	if errors.Is(err, sql.ErrNoRows) {
		return bottom, nil
	}
	return edge, err
}

// readTx adds the selected receipts down to low to the page. It reads one receipt more than the
// page holds to find out whether more receipts exist.
func (l *listing) readTx(low position) error {
	text, args := l.read(low)
	rows, err := l.tx.Query(text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	p := &l.page
	for rows.Next() {
		var r Receipt
		if err := r.scan(rows.Scan); err != nil {
			return err
		}
		if len(p.Receipts) == l.Limit {
			p.More, p.Next = true, p.Receipts[l.Limit-1].ID
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

// conditions collects the conditions of a statement and the values of their parameters.
type conditions struct {
	where []string
	args  []any
}

// add adds a condition. Each ? in the condition stands for the next value.
func (c *conditions) add(condition string, values ...any) {
	for _, value := range values {
		c.args = append(c.args, value)
		condition = strings.Replace(condition, "?", "$"+strconv.Itoa(len(c.args)), 1)
	}
	c.where = append(c.where, condition)
}

// text returns the statement that selects columns by the conditions.
func (c *conditions) text(columns, order string, limit int, offset int) (string, []any) {
	text := `SELECT ` + columns + ` FROM ledger_receipt`
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

// index chooses an index and returns its order and the conditions for its rows from the current
// position down to low. The log has indexes by account, of failures, of slow requests, and by id.
func (l *listing) index(low position) (c conditions, order string) {
	order = "id DESC"
	if l.Account != "" {
		c.add("account = ?", l.Account)
		order = "seq DESC, id DESC"
	}
	switch {
	case l.Code != "":
		c.add("code = ? AND code <> ''", l.Code)
	case l.Status >= 400:
		c.add("status = ? AND status >= 400", l.Status)
	case l.usesSlowIndex():
		c.add("duration_ms >= " + strconv.Itoa(slowMS)) // the same text as in the index
	}
	if l.Account != "" {
		if l.pos != top {
			c.add("(seq, id) < (?, ?)", l.pos.seq, l.pos.id)
		}
		if low != bottom {
			c.add("(seq, id) >= (?, ?)", low.seq, low.id)
		}
		return c, order
	}
	if l.pos.id != "" {
		c.add("id < ?", l.pos.id)
	}
	if low.id != "" {
		c.add("id >= ?", low.id)
	}
	if l.SinceMS > 0 {
		c.add("id >= ?", firstRequest(l.SinceMS))
	}
	if l.UntilMS > 0 {
		c.add("id < ?", firstRequest(l.UntilMS))
	}
	return c, order
}

// edge returns the statement for the last of the next step rows of the index.
func (l *listing) edge(low position, step int) (string, []any) {
	c, order := l.index(low)
	seq := "0"
	if l.Account != "" {
		seq = "seq"
	}
	return c.text(seq+", id", order, 1, step-1)
}

// read returns the statement for the selected rows of the index. Conditions on columns outside the
// index are written as expressions, because the database must not use another index: that would
// need a sort.
func (l *listing) read(low position) (string, []any) {
	c, order := l.index(low)
	if l.Status != 0 && (l.Status < 400 || l.Code != "") {
		c.add("status + 0 = ?", l.Status)
	}
	if l.MinDurationMS > 0 {
		c.add("duration_ms + 0 >= ?", l.MinDurationMS)
	}
	for _, filter := range []struct{ column, value string }{{"key", l.Key}, {"line", l.Line}, {"model", l.Model}} {
		if filter.value != "" {
			c.add(filter.column+" || '' = ?", filter.value)
		}
	}
	if l.Account != "" && l.SinceMS > 0 {
		c.add("id || '' >= ?", firstRequest(l.SinceMS))
	}
	if l.Account != "" && l.UntilMS > 0 {
		c.add("id || '' < ?", firstRequest(l.UntilMS))
	}
	return c.text(shownColumns, order, l.Limit-len(l.page.Receipts)+1, 0)
}

// firstRequest returns the lowest request id of a millisecond.
func firstRequest(ms int64) string { return id.First(movement.RequestPrefix, time.UnixMilli(ms)) }
