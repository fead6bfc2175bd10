package store

import (
	"context"
	"path/filepath"
	"testing"
	"time"
)

// times are the clocks of a test: the database's and the monotonic one.
type times struct {
	wall    time.Time
	elapsed time.Duration
	jumps   []time.Duration
}

func newTimes() *times { return &times{wall: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)} }

func (f *times) options() Options {
	return Options{
		Now: func() time.Time { return f.wall }, Elapsed: func() time.Duration { return f.elapsed },
		OnJump: func(jump time.Duration) { f.jumps = append(f.jumps, jump) },
	}
}

// pass lets time pass on both.
func (f *times) pass(d time.Duration) { f.wall, f.elapsed = f.wall.Add(d), f.elapsed+d }

func sqliteClock(t *testing.T, f *times) *DB {
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

func TestEachJumpIsToldOnce(t *testing.T) {
	t.Parallel()
	f := newTimes()
	db := sqliteClock(t, f)
	run := func(want ...time.Duration) {
		t.Helper()
		f.jumps = nil
		for range 20 {
			db.localMS()
			f.pass(3 * time.Second)
		}
		if len(f.jumps) != len(want) || (len(want) > 0 && f.jumps[0] != want[0]) {
			t.Errorf("told of %v, want %v", f.jumps, want)
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
		t.Errorf("%d jumps were counted; want 8", db.Steps())
	}
}

// A slow reading proves only that the time was read during the call.
func TestASlowReadingIsNoJump(t *testing.T) {
	t.Parallel()
	f := newTimes()
	c := newClock(f.options())
	base := f.wall.UnixMilli()
	for i, step := range []struct {
		ms           int64
		begun, ended time.Duration
		jump         time.Duration
	}{
		{0, 0, 0, 0},
		{1000, 1 * time.Second, 31 * time.Second, 0}, // the answer lay there for 30 s
		{32_000, 32 * time.Second, 32 * time.Second, 0},
		{33_000, 20 * time.Second, 33 * time.Second, 0}, // it waited for a lock first
		{29_000, 28 * time.Second, 34 * time.Second, 0}, // read before the last one, noted after it
		{95_000, 35 * time.Second, 35 * time.Second, 62 * time.Second},
	} {
		if jump := c.record(base+step.ms, step.begun, step.ended); jump.Round(10*time.Second) != step.jump.Round(10*time.Second) {
			t.Errorf("reading %d: a jump of %v, want %v", i, jump, step.jump)
		}
	}
}

// The process's clock on SQLite continues after a step back of any size, and does not go back by the
// small steps of a clock that is being set right.
func TestStepBackDoesNotFreezeSQLite(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{2 * time.Second, time.Hour, 24 * time.Hour} {
		f := newTimes()
		db := sqliteClock(t, f)
		db.localMS()
		f.wall = f.wall.Add(-d)
		for range 3 {
			if got, want := db.localMS(), f.wall.UnixMilli(); got != want {
				t.Errorf("after %v back the time is %d ms off", d, got-want)
			}
			f.pass(time.Second)
		}
	}
	f := newTimes()
	db := sqliteClock(t, f)
	last := db.localMS()
	f.wall = f.wall.Add(-900 * time.Millisecond)
	for range 2000 {
		f.pass(time.Millisecond)
		now := db.localMS()
		if now < last || now > last+2 {
			t.Fatalf("from %d to %d in a millisecond", last, now)
		}
		last = now
	}
	if last != f.wall.UnixMilli() {
		t.Errorf("after 2 s a clock put back by 0.9 s is still %d ms off", last-f.wall.UnixMilli())
	}
}

func TestExpiryDoesNotJump(t *testing.T) {
	t.Parallel()
	f := newTimes()
	db := sqliteClock(t, f)
	lag := func() time.Duration {
		now := db.localMS()
		return time.Duration(now-db.Expiry(now)) * time.Millisecond
	}
	for range 10 {
		if l := lag(); l != 0 {
			t.Fatalf("a steady clock: %v behind", l)
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
		t.Errorf("in a minute of a wrong clock, expiry came %v nearer", early)
	}
	f.wall = f.wall.Add(-year)
	if l := lag(); l != 0 {
		t.Errorf("the clock is right again, and expiry %v behind", l)
	}
	// The steady time catches up with a clock put ahead for good.
	f.pass(5 * time.Minute)
	lag()
	f.wall = f.wall.Add(3 * time.Hour)
	lag()
	f.pass(30 * time.Minute)
	if l := lag(); l != 90*time.Minute {
		t.Errorf("half an hour after a jump of 3 h: %v behind; want 1 h 30 min", l)
	}
	f.pass(30 * time.Minute)
	if l := lag(); l != 0 {
		t.Errorf("an hour after a jump of 3 h: %v behind", l)
	}
	// A clock put back takes the expiry along, and no time is known to be in the future.
	written := db.localMS()
	f.wall = f.wall.Add(-40 * 24 * time.Hour)
	f.pass(time.Hour)
	if l := lag(); l != 0 || db.Latest(db.localMS()) < written {
		t.Errorf("after a step back: %v behind, and what was written before it is of the future", l)
	}
	f.wall = f.wall.Add(40 * 24 * time.Hour)
	if l := lag(); l > time.Hour {
		t.Errorf("the clock is right again, and expiry %v behind", l)
	}
	if now := db.localMS(); db.Latest(now) >= now+1 {
		t.Errorf("times up to %d ms from now are not of the future", db.Latest(now)-now)
	}
	// The next process starts while the clock is wrong.
	f.pass(30 * time.Minute)
	lag()
	before := f.wall.UnixMilli()
	f.wall, f.elapsed = f.wall.Add(year), 0
	next := sqliteClock(t, f)
	now := next.localMS()
	next.ResumeSteady(before)
	if got := next.Expiry(now); got != before {
		t.Errorf("a restart moved expiry by %d ms", got-before)
	}
}
