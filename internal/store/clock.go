package store

import (
	"sync"
	"time"
)

// smallStep is how far a clock may be from where the process's monotonic clock
// expects it without having jumped. On SQLite a clock that is put back by less
// runs at half its pace until it is right; PostgreSQL's is taken as it is.
const smallStep = time.Second

// steadyPace is how many times faster than the process's monotonic clock the
// steady time may pass, by which things run out. An hour of a wrong clock takes
// at most four hours of anything's life; a service that was down for a day
// deletes as it should after eight hours.
const steadyPace = 4

// clock watches the time that decides with the process's monotonic clock, which
// runs on whatever is done to the other one. It is safe for concurrent use.
type clock struct {
	wall    func() time.Time
	elapsed func() time.Duration     // monotonic; nil: nothing is watched
	stepped func(jump time.Duration) // may be nil

	mu       sync.Mutex
	lite     time.Time     // SQLite: the last time that was given out
	liteAt   time.Duration // and when
	read     bool          // there is a last reading
	last     int64         // it, in Unix milliseconds
	from, to time.Duration // and between when and when it was made
	steps    int64
	steady   int64         // the steady time, in Unix milliseconds
	steadyAt time.Duration // and when it was that
}

func newClock(o Options) *clock {
	c := &clock{wall: o.Now, elapsed: o.Elapsed, stepped: o.Stepped}
	if o.Now == nil {
		start := time.Now()
		c.wall, c.elapsed = time.Now, func() time.Duration { return time.Since(start) }
	}
	return c
}

// begin returns when a reading begins, for observe.
func (c *clock) begin() time.Duration {
	if c.elapsed == nil {
		return 0
	}
	return c.elapsed()
}

// smooth returns the time of SQLite: the machine's, but for steps back of less
// than smallStep.
func (c *clock) smooth() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, at := c.wall().Round(0), c.elapsed() // Round: compared as a wall clock
	if behind := c.lite.Sub(now); behind > 0 && behind < smallStep {
		now = c.lite.Add(max(0, at-c.liteAt) / 2)
	}
	c.lite, c.liteAt = now, at
	return now
}

// localMS reads the time that decides where it is no server's, in Unix
// milliseconds.
func (db *DB) localMS() int64 {
	c := db.clock
	if c.elapsed == nil {
		return c.wall().UnixMilli()
	}
	begun := c.begin()
	read := c.wall
	if db.dialect == SQLite {
		read = c.smooth
	}
	now := read()
	c.observe(now.UnixMilli(), begun)
	return now.UnixMilli()
}

// observe takes note of a reading of the time that decides, made between begun
// and now, and tells of a jump since the one before.
func (c *clock) observe(ms int64, begun time.Duration) {
	if c.elapsed == nil {
		return
	}
	if jump := c.note(ms, begun, c.elapsed()); jump != 0 && c.stepped != nil {
		c.stepped(jump)
	}
}

func (c *clock) note(ms int64, begun, ended time.Duration) (jump time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.read {
		c.steady, c.steadyAt = ms, ended
	} else {
		passed := time.Duration(ms-c.last) * time.Millisecond
		if passed < begun-c.to-smallStep || passed > ended-c.from+smallStep {
			jump = passed - (begun+ended-c.from-c.to)/2
			c.steps++
		}
	}
	c.steady, c.steadyAt = c.steadyBy(ms, ended), max(c.steadyAt, ended)
	c.read, c.last, c.from, c.to = true, ms, begun, ended
	return jump
}

// steadyBy returns the steady time when the time that decides is ms: it follows
// it at steadyPace and never goes back.
func (c *clock) steadyBy(ms int64, at time.Duration) int64 {
	return max(c.steady, min(ms, c.steady+steadyPace*max(0, at-c.steadyAt).Milliseconds()))
}

// Steady returns the steady time when the time that decides is nowMS, both in
// Unix milliseconds. It is the same, unless the clock has jumped or the service
// was down: it follows a clock that is ahead at steadyPace only, and waits for
// one that went back.
func (db *DB) Steady(nowMS int64) int64 {
	c := db.clock
	if c.elapsed == nil {
		return nowMS
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.read {
		return nowMS
	}
	return c.steadyBy(nowMS, c.elapsed())
}

// Expiry returns the time by which things run out when the time that decides
// is nowMS: the earlier of it and the steady time. So a clock that is wrong for
// a moment deletes nothing that has time left.
func (db *DB) Expiry(nowMS int64) int64 { return min(nowMS, db.Steady(nowMS)) }

// Latest returns the latest time that can have been written by a clock that was
// right, when the time that decides is nowMS: the later of it and the steady
// time. What is later was written while the clock was ahead, and is to be taken
// for written now.
func (db *DB) Latest(nowMS int64) int64 { return max(nowMS, db.Steady(nowMS)) }

// ResumeSteady lets the steady time go on from ms, where a former process had
// brought it. Call it before anything is deleted.
func (db *DB) ResumeSteady(ms int64) {
	c := db.clock
	if c.elapsed == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steady, c.steadyAt = ms, c.elapsed()
}

// Steps counts the jumps of the time that decides that this process has seen.
func (db *DB) Steps() int64 {
	db.clock.mu.Lock()
	defer db.clock.mu.Unlock()
	return db.clock.steps
}

// ExpiryMS is the Expiry of NowMS: what ended before it less its retention is
// deleted.
func (tx *Tx) ExpiryMS() (int64, error) {
	now, err := tx.NowMS()
	return tx.db.Expiry(now), err
}

// Expiry is the database's.
func (tx *Tx) Expiry(nowMS int64) int64 { return tx.db.Expiry(nowMS) }

// Latest is the database's.
func (tx *Tx) Latest(nowMS int64) int64 { return tx.db.Latest(nowMS) }
