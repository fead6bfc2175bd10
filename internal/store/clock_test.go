package store

import (
	"context"
	"path/filepath"
	"testing"
	"time"
)

// fakeClocks are the database's clock and the monotonic clock of a test.
type fakeClocks struct {
	wall    time.Time
	elapsed time.Duration
	jumps   []time.Duration
}

func newFakeClocks() *fakeClocks {
	return &fakeClocks{wall: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)}
}

func (f *fakeClocks) options() Options {
	return Options{
		Now: func() time.Time { return f.wall }, Elapsed: func() time.Duration { return f.elapsed },
		OnJump: func(jump time.Duration) { f.jumps = append(f.jumps, jump) },
	}
}

// pass advances both clocks.
func (f *fakeClocks) pass(d time.Duration) { f.wall, f.elapsed = f.wall.Add(d), f.elapsed+d }

// openWithClocks opens a new SQLite file.
func openWithClocks(t *testing.T, f *fakeClocks) *DB {
	t.Helper()
	db, err := Open(context.Background(), "sqlite:"+filepath.Join(t.TempDir(), "t.db"), f.options())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func TestEachJumpIsReportedOnce(t *testing.T) {
	t.Parallel()
	f := newFakeClocks()
	db := openWithClocks(t, f)
	run := func(want ...time.Duration) {
		t.Helper()
		f.jumps = nil
		for range 20 {
			db.localMS()
			f.pass(3 * time.Second)
		}
		if len(f.jumps) != len(want) || (len(want) > 0 && f.jumps[0] != want[0]) {
			t.Errorf("reported jumps %v, want %v", f.jumps, want)
		}
	}
	run()
	for _, d := range []time.Duration{time.Hour, 40 * 24 * time.Hour, 400 * 24 * time.Hour, 2 * time.Second} {
		f.wall = f.wall.Add(d)
		run(d)
		f.wall = f.wall.Add(-d)
		run(-d)
	}
	f.wall = f.wall.Add(-300 * time.Millisecond)
	run() // a clock that is being set right
	if db.Steps() != 8 {
		t.Errorf("got %d jumps, want 8", db.Steps())
	}
}

// TestASlowReadingIsNoJump checks that a reading is compared with the whole duration of its call.
func TestASlowReadingIsNoJump(t *testing.T) {
	t.Parallel()
	f := newFakeClocks()
	c := newClock(f.options())
	base := f.wall.UnixMilli()
	for i, step := range []struct {
		ms           int64
		begun, ended time.Duration
		jump         time.Duration
	}{
		{0, 0, 0, 0},
		{1000, 1 * time.Second, 31 * time.Second, 0}, // the answer waited 30 s in the connection
		{32_000, 32 * time.Second, 32 * time.Second, 0},
		{33_000, 20 * time.Second, 33 * time.Second, 0}, // the call waited for a lock first
		{29_000, 28 * time.Second, 34 * time.Second, 0}, // read before the previous reading, recorded after it
		{95_000, 35 * time.Second, 35 * time.Second, 62 * time.Second},
	} {
		if jump := c.record(base+step.ms, step.begun, step.ended); jump.Round(10*time.Second) != step.jump.Round(10*time.Second) {
			t.Errorf("reading %d: got a jump of %v, want about %v", i, jump, step.jump)
		}
	}
}

// TestStepBackDoesNotFreezeSQLite checks that the time on SQLite continues after a step back of any
// size, and does not go back by steps of less than smallStep.
func TestStepBackDoesNotFreezeSQLite(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{2 * time.Second, time.Hour, 24 * time.Hour} {
		f := newFakeClocks()
		db := openWithClocks(t, f)
		db.localMS()
		f.wall = f.wall.Add(-d)
		for range 3 {
			if got, want := db.localMS(), f.wall.UnixMilli(); got != want {
				t.Errorf("after a step back of %v: got %d, want %d", d, got, want)
			}
			f.pass(time.Second)
		}
	}
	f := newFakeClocks()
	db := openWithClocks(t, f)
	last := db.localMS()
	f.wall = f.wall.Add(-900 * time.Millisecond)
	for range 2000 {
		f.pass(time.Millisecond)
		now := db.localMS()
		if now < last || now > last+2 {
			t.Fatalf("got %d one millisecond after %d, want at most 2 more", now, last)
		}
		last = now
	}
	if last != f.wall.UnixMilli() {
		t.Errorf("2 s after a step back of 0.9 s: got %d, want %d", last, f.wall.UnixMilli())
	}
}

func TestExpiryDoesNotJump(t *testing.T) {
	t.Parallel()
	f := newFakeClocks()
	db := openWithClocks(t, f)
	lag := func() time.Duration {
		now := db.localMS()
		return time.Duration(now-db.Expiry(now)) * time.Millisecond
	}
	for range 10 {
		if l := lag(); l != 0 {
			t.Fatalf("without a jump, expiry is %v behind, want 0", l)
		}
		f.pass(time.Minute)
	}
	year := 400 * 24 * time.Hour
	lag()
	right := f.wall
	f.wall = f.wall.Add(year)
	for range 60 {
		f.pass(time.Second)
		lag()
	}
	if early := f.wall.Add(-lag()).Sub(right); early > 4*time.Minute {
		t.Errorf("in a minute of a wrong clock, expiry advanced by %v, want at most 4m", early)
	}
	f.wall = f.wall.Add(-year)
	if l := lag(); l != 0 {
		t.Errorf("the clock is right again, and expiry is %v behind, want 0", l)
	}
	// The steady time catches up with a clock put ahead for good.
	f.pass(5 * time.Minute)
	lag()
	f.wall = f.wall.Add(3 * time.Hour)
	lag()
	f.pass(30 * time.Minute)
	if l := lag(); l != 90*time.Minute {
		t.Errorf("half an hour after a jump of 3 h: expiry is %v behind, want 1h30m", l)
	}
	f.pass(30 * time.Minute)
	if l := lag(); l != 0 {
		t.Errorf("an hour after a jump of 3 h: expiry is %v behind, want 0", l)
	}
	// After a step back, expiry follows the clock, and no stored time counts as a future time.
	written := db.localMS()
	f.wall = f.wall.Add(-40 * 24 * time.Hour)
	f.pass(time.Hour)
	if l, latest := lag(), db.Latest(db.localMS()); l != 0 || latest < written {
		t.Errorf("after a step back: expiry is %v behind, want 0; the latest time is %d, want at least %d", l, latest, written)
	}
	f.wall = f.wall.Add(40 * 24 * time.Hour)
	if l := lag(); l > time.Hour {
		t.Errorf("the clock is right again, and expiry is %v behind, want at most 1h", l)
	}
	if now := db.localMS(); db.Latest(now) > now {
		t.Errorf("the latest time is %d, want at most the current time %d", db.Latest(now), now)
	}
	// The next process starts while the clock is wrong.
	f.pass(30 * time.Minute)
	lag()
	before := f.wall.UnixMilli()
	f.wall, f.elapsed = f.wall.Add(year), 0
	next := openWithClocks(t, f)
	now := next.localMS()
	next.ResumeSteady(before)
	if got := next.Expiry(now); got != before {
		t.Errorf("after a restart: expiry is %d, want %d", got, before)
	}
}
