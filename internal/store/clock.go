package store

import (
	"sync"
	"time"
)

// smallStep is the largest difference between the database's clock and the process's monotonic
// clock that is not a jump. On SQLite a clock put back by less than smallStep runs at half its pace
// until it is right again; PostgreSQL's clock is used as it is.
const smallStep = time.Second

// steadyPace limits the pace of the steady time to a multiple of the monotonic clock's. Rows expire
// by the steady time. One hour of a wrong clock shortens a lifetime by at most four hours; after a
// day without the service, deletions have caught up within eight hours.
const steadyPace = 4

// clock compares the database's clock with the process's monotonic clock, which no change of the
// system's time affects. It is safe for concurrent use.
type clock struct {
	wall    func() time.Time
	elapsed func() time.Duration     // monotonic; if nil, jumps are not detected
	onJump  func(jump time.Duration) // may be nil

	mu           sync.Mutex
	sqliteLast   time.Time     // SQLite: the last returned time
	sqliteLastAt time.Duration // monotonic time of sqliteLast
	read         bool          // the clock was read before
	last         int64         // the last reading, in Unix milliseconds
	from, to     time.Duration // monotonic times around the last reading
	steps        int64
	steady       int64         // the steady time, in Unix milliseconds
	steadyAt     time.Duration // monotonic time of steady
}

func newClock(o Options) *clock {
	c := &clock{wall: o.Now, elapsed: o.Elapsed, onJump: o.OnJump}
	if o.Now == nil {
		start := time.Now()
		c.wall, c.elapsed = time.Now, func() time.Duration { return time.Since(start) }
	}
	return c
}

// begin returns the monotonic time before a reading, for observe.
func (c *clock) begin() time.Duration {
	if c.elapsed == nil {
		return 0
	}
	return c.elapsed()
}

// smooth returns the machine's time for SQLite, without steps back of less than smallStep.
func (c *clock) smooth() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, at := c.wall().Round(0), c.elapsed() // Round: compared as a wall clock
	if stepBack := c.sqliteLast.Sub(now); stepBack > 0 && stepBack < smallStep {
		now = c.sqliteLast.Add(max(0, at-c.sqliteLastAt) / 2)
	}
	c.sqliteLast, c.sqliteLastAt = now, at
	return now
}

// localMS returns the time of this process's clock, for databases without a server's clock, in Unix
// milliseconds.
func (db *DB) localMS() int64 {
	c := db.clock
	if c.elapsed == nil {
		return c.wall().UnixMilli()
	}
	start := c.begin()
	read := c.wall
	if db.dialect == SQLite {
		read = c.smooth
	}
	now := read()
	c.observe(now.UnixMilli(), start)
	return now.UnixMilli()
}

// observe records a reading of the database's clock made between start and now, and reports a jump
// to onJump.
func (c *clock) observe(ms int64, start time.Duration) {
	if c.elapsed == nil {
		return
	}
	if jump := c.record(ms, start, c.elapsed()); jump != 0 && c.onJump != nil {
		c.onJump(jump)
	}
}

// record stores a reading made between start and end. It returns the jump since the previous reading,
// or 0.
func (c *clock) record(ms int64, start, end time.Duration) (jump time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.read {
		c.steady, c.steadyAt = ms, end
	} else {
		passed := time.Duration(ms-c.last) * time.Millisecond
		if passed < start-c.to-smallStep || passed > end-c.from+smallStep {
			jump = passed - (start+end-c.from-c.to)/2
			c.steps++
		}
	}
	c.steady, c.steadyAt = c.steadyBy(ms, end), max(c.steadyAt, end)
	c.read, c.last, c.from, c.to = true, ms, start, end
	return jump
}

// steadyBy returns the steady time for the database's time ms. The steady time never goes back, and
// advances toward ms by at most steadyPace times the elapsed monotonic time.
func (c *clock) steadyBy(ms int64, at time.Duration) int64 {
	return max(c.steady, min(ms, c.steady+steadyPace*max(0, at-c.steadyAt).Milliseconds()))
}

// Steady returns the steady time for the database's time nowMS, both in Unix milliseconds. They are
// equal unless the clock has jumped or the service was down: the steady time follows a clock ahead
// of it only at steadyPace, and waits for a clock behind it.
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

// Expiry returns the time for expiry at the database's time nowMS: the earlier of nowMS and the
// steady time. A clock that is wrong for a moment therefore deletes nothing early.
func (db *DB) Expiry(nowMS int64) int64 { return min(nowMS, db.Steady(nowMS)) }

// Latest returns the latest time that a correct clock can have written before the database's time
// nowMS: the later of nowMS and the steady time. A later time was written by a clock ahead, and
// counts as written now.
func (db *DB) Latest(nowMS int64) int64 { return max(nowMS, db.Steady(nowMS)) }

// ResumeSteady continues the steady time from ms, the stored time of a former process. Call it
// before anything is deleted.
func (db *DB) ResumeSteady(ms int64) {
	c := db.clock
	if c.elapsed == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steady, c.steadyAt = ms, c.elapsed()
}

// Steps counts the jumps of the database's clock seen by this process.
func (db *DB) Steps() int64 {
	db.clock.mu.Lock()
	defer db.clock.mu.Unlock()
	return db.clock.steps
}

// ExpiryMS returns the Expiry of NowMS. Things are deleted if they ended earlier than ExpiryMS
// minus their retention.
func (tx *Tx) ExpiryMS() (int64, error) {
	now, err := tx.NowMS()
	return tx.db.Expiry(now), err
}

// Expiry is DB.Expiry.
func (tx *Tx) Expiry(nowMS int64) int64 { return tx.db.Expiry(nowMS) }

// Latest is DB.Latest.
func (tx *Tx) Latest(nowMS int64) int64 { return tx.db.Latest(nowMS) }
