package commit

import (
	"sync"
	"time"

	"tollgate/internal/ledger/books"
)

// Refusal is a model call refused before or at admission. A refusal counts against no limit; its
// only trace is a row of the request log.
type Refusal struct {
	Request, Account, Key, Model, Endpoint string
	Status                                 int
	Code                                   string
	Received                               time.Time
	Duration                               time.Duration

	standsFor int64 // number of refusals that the row stands for
}

// Bounds on the refusals with a row of their own in the request log, on each node. Further refusals
// are counted, and the next row includes the count.
const (
	refusalsPerSecond  = 100 // of a key
	anonymousPerMinute = 10  // of all unknown callers, for each code
)

// anonymous reports whether the caller is unknown. Anonymous refusals are in no account's request
// log, and anybody can cause any number of them.
func (r *Refusal) anonymous() bool { return r.Account == "" }

// LogRefusal logs a refusal. It does not wait: the next batch writes the row.
func (c *Committer) LogRefusal(r Refusal, now time.Time) {
	if c.opts.Observer.Ended != nil {
		c.opts.Observer.Ended(books.EndedRequest{Refused: true, Model: r.Model, Code: r.Code})
	}
	r.standsFor = c.refusals.count(r, now)
	switch {
	case r.standsFor > 0:
		c.pushRefusal(r)
	case c.opts.Observer.Unlogged != nil:
		c.opts.Observer.Unlogged(!r.anonymous())
	}
}

// LogSampled logs the counted refusals of past windows.
func (c *Committer) LogSampled(now time.Time) {
	for _, r := range c.refusals.flush(now) {
		c.pushRefusal(r)
	}
}

func (c *Committer) pushRefusal(r Refusal) {
	if !c.queue.push(&Op{kind: opRefused, account: r.Account, refusal: r}) {
		c.refusals.putBack(r)
	}
}

// maxSampled bounds the sources of the sampler. Further keys share one source, and so do further
// codes.
const maxSampled = 10_000

// sampler decides which refusals get a row. The zero value is ready to use.
type sampler struct {
	mu      sync.Mutex
	since   time.Time // start of the first window; has a monotonic reading, so clock jumps do not move windows
	sources map[source]*sample
}

// source is a key, or a code of unknown callers. The sampler limits each source separately.
type source struct {
	anonymous bool
	name      string // the key or the code; empty for the shared source
}

// sample counts the refusals of a source.
type sample struct {
	window int64   // the second or minute in which rows are counted
	rows   int     // refusals with a row
	extra  int64   // refusals without a row since the last row
	last   Refusal // the newest refusal without a row
}

// count counts a refusal. It returns the number of refusals that its row stands for, or 0 if the
// refusal gets no row.
func (s *sampler) count(r Refusal, now time.Time) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit := refusalsPerSecond
	if r.anonymous() {
		limit = anonymousPerMinute
	}
	e := s.entry(r)
	if window := s.window(r.anonymous(), now); e.window != window {
		e.window, e.rows = window, 0
	}
	if e.rows >= limit {
		e.extra++
		e.last = r
		return 0
	}
	e.rows++
	n := e.extra + 1
	e.extra = 0
	return n
}

// window returns the number of the current second, or of the current minute for unknown callers.
func (s *sampler) window(anonymous bool, now time.Time) int64 {
	if s.since.IsZero() {
		s.since = now
	}
	if anonymous {
		return int64(now.Sub(s.since) / time.Minute)
	}
	return int64(now.Sub(s.since) / time.Second)
}

// entry returns the sample of a refusal's source.
func (s *sampler) entry(r Refusal) *sample {
	if s.sources == nil {
		s.sources = map[source]*sample{}
	}
	from := source{false, r.Key}
	if r.anonymous() {
		from = source{true, r.Code}
	}
	if _, known := s.sources[from]; !known && len(s.sources) >= maxSampled {
		from.name = "" // shared
	}
	e := s.sources[from]
	if e == nil {
		e = &sample{}
		s.sources[from] = e
	}
	return e
}

// flush removes the sources without refusals in the current window. It returns a row for each
// removed source that has refusals without a row.
func (s *sampler) flush(now time.Time) []Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	var rows []Refusal
	for from, e := range s.sources {
		if e.window >= s.window(from.anonymous, now) {
			continue
		}
		if e.extra > 0 {
			e.last.standsFor = e.extra
			rows = append(rows, e.last)
		}
		delete(s.sources, from)
	}
	return rows
}

// putBack counts a refusal again after the full queue rejected its row.
func (s *sampler) putBack(r Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entry(r)
	e.extra += r.standsFor
	e.last = r
}
