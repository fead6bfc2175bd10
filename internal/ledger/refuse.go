package ledger

import (
	"context"
	"sync"
	"time"

	"tollgate/internal/ledger/books"
)

// Refusal is a model call refused before or at admission. It counts against no limit and appears
// only in the request log.
type Refusal struct {
	Request, Account, Key, Model, Endpoint string
	Status                                 int
	Code                                   string
	Received                               time.Time
	Duration                               time.Duration

	standsFor int64
}

// Refusals with a log row of their own: of a key in a second, of unknown callers in a minute, on
// this node and for each code. Further ones are counted, and the next row carries their number.
const (
	refusalsPerSecond  = 100
	strangersPerMinute = 10
)

// strange reports whether the caller is unknown: no account's request log lacks the row, and
// strangers can cause any number of refusals.
func (r *Refusal) strange() bool { return r.Account == "" }

// Refused logs a refusal. It never waits: the row follows with the next batch.
func (l *Ledger) Refused(r Refusal) { l.refused(r, l.now()) }

func (l *Ledger) refused(r Refusal, now time.Time) {
	if l.opts.Observer.Ended != nil {
		l.opts.Observer.Ended(books.EndedRequest{Model: r.Model, Code: r.Code})
	}
	r.standsFor = l.refuses.see(r, now)
	switch {
	case r.standsFor > 0:
		l.logRefusal(r)
	case l.opts.Observer.LeftOut != nil:
		l.opts.Observer.LeftOut(!r.strange())
	}
}

// flushRefusals logs the counted refusals without a row.
func (l *Ledger) flushRefusals(context.Context) error {
	l.logCounted(l.now())
	return nil
}

func (l *Ledger) logCounted(now time.Time) {
	for _, r := range l.refuses.flush(now) {
		l.logRefusal(r)
	}
}

func (l *Ledger) logRefusal(r Refusal) {
	if !l.queue.push(&op{kind: opRefused, account: r.Account, refusal: r}) {
		l.refuses.putBack(r)
	}
}

// maxSampled bounds the keys known to the sampler; all others share one entry.
const maxSampled = 10_000

// sampler decides which refusals get a row. The zero value is ready.
type sampler struct {
	mu      sync.Mutex
	since   time.Time // the first reading, the start of all window numbers: a jump of the machine's clock moves none
	sources map[source]*sampled
}

// source is one separately sampled origin: a key's refusals, or a code of strangers.
type source struct {
	strange bool
	name    string
}

type sampled struct {
	window int64 // the current second or minute of rows
	rows   int
	extra  int64   // refusals without a row since the last row
	last   Refusal // the newest of them
}

// see counts a refusal and returns the number of refusals represented by its row, or 0 if it gets
// no row.
func (s *sampler) see(r Refusal, now time.Time) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := refusalsPerSecond
	if r.strange() {
		most = strangersPerMinute
	}
	e := s.entry(r)
	if window := s.window(r.strange(), now); e.window != window {
		e.window, e.rows = window, 0
	}
	if e.rows >= most {
		e.extra++
		e.last = r
		return 0
	}
	e.rows++
	n := e.extra + 1
	e.extra = 0
	return n
}

// window returns the number of the second of a time, or of the minute for strangers.
func (s *sampler) window(strange bool, now time.Time) int64 {
	if s.since.IsZero() {
		s.since = now
	}
	if strange {
		return int64(now.Sub(s.since) / time.Minute)
	}
	return int64(now.Sub(s.since) / time.Second)
}

func (s *sampler) entry(r Refusal) *sampled {
	if s.sources == nil {
		s.sources = map[source]*sampled{}
	}
	from := source{false, r.Key}
	if r.strange() {
		from = source{true, r.Code}
	}
	if _, known := s.sources[from]; !known && len(s.sources) >= maxSampled {
		from.name = "" // shared
	}
	e := s.sources[from]
	if e == nil {
		e = &sampled{}
		s.sources[from] = e
	}
	return e
}

// flush returns a row for every source with unlogged refusals, and forgets quiet sources.
func (s *sampler) flush(now time.Time) []Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	var rows []Refusal
	for from, e := range s.sources {
		if e.window >= s.window(from.strange, now) {
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

// putBack counts a refusal again after its row found no room.
func (s *sampler) putBack(r Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entry(r)
	e.extra += r.standsFor
	e.last = r
}
