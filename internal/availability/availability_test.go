package availability

import (
	"context"
	"errors"
	"testing"
	"time"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// node returns the availability of a node with a clock.
func node(db *store.DB, now func() time.Time) *Availability {
	a := New(Options{DB: db, Known: func(model string) bool { return model != "unknown" }})
	a.now = now
	return a
}

// ended counts a request that ran, for each code.
func (a *Availability) ended(model string, codes ...string) {
	for _, code := range codes {
		a.Ended(model, code, false)
	}
}

// write writes the counts of a node.
func write(t *testing.T, a *Availability) {
	t.Helper()
	if err := a.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// newest returns the counts of the newest day of a model.
func newest(t *testing.T, a *Availability, db *store.DB, model string) DayCount {
	t.Helper()
	a.cache.until = time.Time{}
	r, err := a.History(func(read func(tx *store.Tx) error) error { return db.View(t.Context(), read) })
	if err != nil {
		t.Fatal(err)
	}
	if r.Models[model] == nil {
		return DayCount{}
	}
	return r.Models[model][Days-1]
}

// TestMinutes judges minutes by the codes of their requests.
func TestMinutes(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := node(db, time.Now)
		for model, c := range map[string]struct {
			codes, refusals []string
			minutes, up     int64
		}{
			"success":            {codes: []string{""}, minutes: 1, up: 1},
			"provider failed":    {codes: []string{"upstream_error"}, minutes: 1},
			"providers busy":     {codes: []string{"rate_limit_exceeded"}, minutes: 1},
			"half failed":        {codes: []string{"", "upstream_timeout"}, minutes: 1, up: 1},
			"most failed":        {codes: []string{"", "upstream_unavailable", "empty_completion"}, minutes: 1},
			"rejected":           {codes: []string{"content_filter", "a provider's word", "upstream_prompt_filter"}, minutes: 1, up: 1},
			"job failed":         {codes: []string{"render_failed", "wait_timeout"}, minutes: 1},
			"job's input":        {codes: []string{"content_policy"}, minutes: 1, up: 1},
			"left":               {codes: []string{"client_closed"}},
			"over limits":        {refusals: []string{"rate_limit_exceeded", "insufficient_quota", "invalid_api_key", "permission_denied"}},
			"database down":      {refusals: []string{"service_unavailable"}, minutes: 1},
			"limits and success": {codes: []string{""}, refusals: []string{"rate_limit_exceeded", "rate_limit_exceeded"}, minutes: 1, up: 1},
			"unknown":            {codes: []string{"", "upstream_error"}},
		} {
			a.ended(model, c.codes...)
			for _, code := range c.refusals {
				a.Ended(model, code, true)
			}
			write(t, a)
			if got := newest(t, a, db, model); got.Minutes != c.minutes || got.Up != c.up {
				t.Errorf("%s: %+v, want %d of %d minutes up", model, got, c.up, c.minutes)
			}
		}
	})
}

// TestNodesAndDays adds the minutes of two nodes, keeps those of a failed write for the next one, and deletes
// old days. The clock of one node is wrong by more than Days.
func TestNodesAndDays(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		a := node(db, clock.Now)
		b := node(db, func() time.Time { return clock.Now().Add(2 * Days * 24 * time.Hour) })
		start := clock.Now().UnixMilli()
		want := func(c DayCount) {
			t.Helper()
			for _, n := range []*Availability{a, b} {
				if got := newest(t, n, db, "m"); got != c {
					t.Errorf("got %+v, want %+v", got, c)
				}
			}
		}
		a.ended("m", "")
		write(t, a)
		write(t, a) // a minute without requests
		want(DayCount{1, 1, start, true})
		clock.Advance(time.Minute)
		a.ended("m", "")
		b.ended("m", "upstream_error")
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if err := a.Write(canceled); !errors.Is(err, context.Canceled) {
			t.Fatalf("a write without a database: got the error %v", err)
		}
		clock.Advance(time.Minute)
		a.ended("m", "")
		write(t, a)
		write(t, b)
		want(DayCount{4, 3, start + 2*60_000, false})
		clock.Advance(Days * 24 * time.Hour)
		b.ended("m", "")
		write(t, b)
		want(DayCount{1, 1, clock.Now().UnixMilli(), true})
		storetest.View(t, db, func(tx *store.Tx) error {
			var rows int
			err := tx.QueryRow(`SELECT COUNT(*) FROM availability_day`).Scan(&rows)
			if rows != 1 {
				t.Errorf("%d rows are left, want today's alone", rows)
			}
			return err
		})
	})
}

// TestHistoryIsCached reads the database at most once a minute.
func TestHistoryIsCached(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		now := time.Now()
		a := node(db, func() time.Time { return now })
		reads := 0
		for _, want := range []int{1, 1, 2} {
			if _, err := a.History(func(read func(tx *store.Tx) error) error {
				reads++
				return db.View(t.Context(), read)
			}); err != nil || reads != want {
				t.Errorf("%d reads, %v, want %d", reads, err, want)
			}
			now = now.Add(cacheTime / 2)
		}
	})
}
