// Package availability owns the availability of models by day, for the public status page.
//
// Each node counts the ended requests of a minute in memory and judges the minute of each model: a minute
// is down if more than half of its requests failed for reasons of the gateway or of providers. Once a
// minute, the node adds its minutes to the rows of their days.
//
// Invariants: a request never waits for this package. A minute is added once, unless the answer to a COMMIT
// is lost. A killed node loses at most the minutes that it has not added yet. The database's clock decides
// to which day a minute belongs and when a day is deleted, so a node with a wrong clock does no harm.
package availability

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/loop"
	"tollgate/internal/store"
)

// Days is the number of days that are kept and reported, including the current one.
const Days = 90

const (
	period       = time.Minute
	writeTimeout = 5 * time.Second
	cacheTime    = time.Minute
	msOfDay      = 24 * 60 * 60 * 1000
)

// Options configure an Availability. DB and Known are required.
type Options struct {
	DB *store.DB
	// Known reports whether the catalog has a model. Requests of other models are not counted.
	Known func(model string) bool
	// Log gets the failures of Run. If nil, nothing is logged.
	Log *slog.Logger
}

// Availability counts the requests of a node and reports the availability over all nodes. It is safe for
// concurrent use.
type Availability struct {
	options Options
	now     func() time.Time // this node's clock, which may be wrong

	mu      sync.Mutex
	minute  map[string]tally      // under mu; the requests of the current minute, by model
	pending map[dayModel]DayCount // under mu; minutes that are not written yet

	cache struct {
		sync.Mutex
		history History   // under the lock
		until   time.Time // under the lock
	}
}

// tally has the ended requests of a model in a minute.
type tally struct{ requests, failed int }

type dayModel struct {
	day   int64
	model string
}

// DayCount counts the minutes of a model. Each node adds its own minutes, so one minute can count several times.
type DayCount struct {
	Minutes int64 // minutes with requests
	Up      int64 // minutes with requests that were not down
	// NewestMS is the end of the newest minute, and NewestUp reports whether the newest minute was up.
	NewestMS int64
	NewestUp bool
}

// New returns an Availability. Call Run to write its counts.
func New(o Options) *Availability {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Availability{options: o, now: time.Now, minute: map[string]tally{}, pending: map[dayModel]DayCount{}}
}

// Ended counts an ended request of a model by its code in the request log. The code is empty for success.
// refused is true if the request was refused before or at admission. Such a request counts only if its code
// is a failure of the gateway or a provider. Requests dropped by their clients do not count.
func (a *Availability) Ended(model, code string, refused bool) {
	failed := isServiceFailure(fault.Code(code), refused)
	if refused && !failed || fault.Code(code) == fault.ClientClosed || !a.options.Known(model) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.minute[model]
	t.requests++
	if failed {
		t.failed++
	}
	a.minute[model] = t
}

// isServiceFailure reports whether the code of a request or job means a failure of the gateway or a provider. It
// returns false for a code outside the tables of fault: a provider's code for a bad request.
func isServiceFailure(code fault.Code, refused bool) bool {
	switch code {
	case fault.RateLimitExceeded: // if refused, the client exceeded its own limit; otherwise all providers were busy
		return !refused
	case fault.UpstreamPromptFilter:
		return false
	}
	if row, ok := fault.Lookup(code); ok {
		return row.Status >= 500
	}
	row := fault.LookupJob(code)
	return row.Code == code && row.Status() >= 500
}

// Run writes the counts once a minute, and when ctx ends.
func (a *Availability) Run(ctx context.Context) {
	loop.Run(ctx, loop.Loop{
		Room: "availability", Does: "write the availability of models", Log: a.options.Log, Period: period, Later: true, Step: a.Write,
	})
	if err := a.Write(context.WithoutCancel(ctx)); err != nil {
		a.options.Log.Warn("availability: the last minutes are not written", "error", err)
	}
}

// Write judges the requests since the previous call as one minute and adds the minute to the database.
// After a failure, the next call adds it too. Write also deletes the rows of days that are no longer
// reported.
func (a *Availability) Write(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	pending := a.take()
	if len(pending) == 0 {
		return nil
	}
	rows := make([]dayModel, 0, len(pending))
	for row := range pending {
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(x, y dayModel) int { return cmp.Or(cmp.Compare(x.day, y.day), cmp.Compare(x.model, y.model)) })
	err := a.options.DB.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		ahead := a.now().UnixMilli() - now // of this node's clock
		for _, row := range rows {
			c := pending[row]
			c.NewestMS -= ahead
			if err := addTx(tx, dayModel{c.NewestMS / msOfDay, row.model}, c); err != nil {
				return err
			}
		}
		_, err = tx.Exec(`DELETE FROM availability_day WHERE day <= $1`, tx.Expiry(now)/msOfDay-Days)
		return err
	})
	if err != nil {
		a.giveBack(pending)
		return fmt.Errorf("write the availability of models: %w", err)
	}
	return nil
}

// take judges the current minute and returns and clears all minutes that are not written.
func (a *Availability) take() map[dayModel]DayCount {
	now := a.now().UnixMilli()
	a.mu.Lock()
	defer a.mu.Unlock()
	for model, t := range a.minute {
		c := DayCount{Minutes: 1, NewestMS: now, NewestUp: 2*t.failed <= t.requests}
		if c.NewestUp {
			c.Up = 1
		}
		row := dayModel{now / msOfDay, model}
		a.pending[row] = a.pending[row].plus(c)
	}
	pending := a.pending
	a.minute, a.pending = map[string]tally{}, map[dayModel]DayCount{}
	return pending
}

// giveBack puts back minutes that could not be written.
func (a *Availability) giveBack(counts map[dayModel]DayCount) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for row, c := range counts {
		a.pending[row] = c.plus(a.pending[row])
	}
}

// plus returns the sum of two counts.
func (c DayCount) plus(d DayCount) DayCount {
	newest := c
	if d.NewestMS >= c.NewestMS {
		newest = d
	}
	return DayCount{c.Minutes + d.Minutes, c.Up + d.Up, newest.NewestMS, newest.NewestUp}
}

// addTx adds minutes to the row of a day and a model.
func addTx(tx *store.Tx, row dayModel, c DayCount) error {
	_, err := tx.Exec(`INSERT INTO availability_day AS a (day, model, minutes, up, newest_ms, newest_up) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (day, model) DO UPDATE SET minutes = a.minutes + excluded.minutes, up = a.up + excluded.up,
			newest_up = CASE WHEN excluded.newest_ms >= a.newest_ms THEN excluded.newest_up ELSE a.newest_up END,
			newest_ms = CASE WHEN excluded.newest_ms >= a.newest_ms THEN excluded.newest_ms ELSE a.newest_ms END`,
		row.day, row.model, c.Minutes, c.Up, c.NewestMS, store.Bool(c.NewestUp))
	return err
}

// History has the availability of the models with requests in the last Days.
type History struct {
	AtMS     int64                 // the time of the query
	FirstDay int64                 // the UTC day of the first element of each list, in days since 1970
	Models   map[string][]DayCount // Days elements each
}

// History returns the history. The result is at most a minute old. read runs a function on a snapshot of the
// database, such as store.DB.View.
func (a *Availability) History(read func(func(tx *store.Tx) error) error) (History, error) {
	a.cache.Lock()
	defer a.cache.Unlock()
	now := a.now()
	if now.Before(a.cache.until) {
		return a.cache.history, nil
	}
	var r History
	if err := read(func(tx *store.Tx) (err error) {
		if r.AtMS, err = tx.NowMS(); err != nil {
			return err
		}
		r.FirstDay = r.AtMS/msOfDay - Days + 1
		r.Models, err = modelsTx(tx, r.FirstDay)
		return err
	}); err != nil {
		return History{}, err
	}
	a.cache.history, a.cache.until = r, now.Add(cacheTime)
	return r, nil
}

// modelsTx returns the counts of Days from first on, by model.
func modelsTx(tx *store.Tx, first int64) (models map[string][]DayCount, err error) {
	rows, err := tx.Query(`SELECT day, model, minutes, up, newest_ms, newest_up FROM availability_day WHERE day >= $1 AND day < $2`,
		first, first+Days)
	if err != nil {
		return nil, fmt.Errorf("read the availability of models: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	models = map[string][]DayCount{}
	for rows.Next() {
		var row dayModel
		var c DayCount
		if err := rows.Scan(&row.day, &row.model, &c.Minutes, &c.Up, &c.NewestMS, &c.NewestUp); err != nil {
			return nil, err
		}
		if models[row.model] == nil {
			models[row.model] = make([]DayCount, Days)
		}
		models[row.model][row.day-first] = c
	}
	return models, rows.Err()
}
