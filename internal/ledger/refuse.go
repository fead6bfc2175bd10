package ledger

import (
	"context"
	"sync"
	"time"
)

// Refusal is a model call that was refused before or at admission: it counts
// against no limit and stands in the request log only.
type Refusal struct {
	Request, Account, Key, Model, Endpoint string
	Status                                 int
	Code                                   string
	Received                               time.Time
	Duration                               time.Duration

	standsFor int64
}

// refusalsPerSecond is how many refusals of one key get a log row of their own
// in a second. Further ones are counted, and the next row says how many it
// stands for.
const refusalsPerSecond = 100

// Refused logs a refusal. It never waits: the row follows with the next batch.
func (l *Ledger) Refused(r Refusal) {
	r.standsFor = l.refuses.see(r, time.Now())
	if r.standsFor > 0 {
		l.logRefusal(r)
	}
}

// flushRefusals logs what was counted and has had no row since.
func (l *Ledger) flushRefusals(context.Context) error {
	for _, r := range l.refuses.flush(time.Now()) {
		l.logRefusal(r)
	}
	return nil
}

func (l *Ledger) logRefusal(r Refusal) {
	if !l.queue.push(&op{kind: opRefused, account: r.Account, refusal: r}) {
		l.refuses.putBack(r)
	}
}

// maxSampled bounds the keys that the sampler remembers; all others share one
// entry.
const maxSampled = 10_000

// sampler decides which refusals get a row. The zero value is ready.
type sampler struct {
	mu   sync.Mutex
	keys map[string]*sampled
}

type sampled struct {
	second int64 // the second that rows counts
	rows   int
	extra  int64   // refusals since the last row that got none
	last   Refusal // the newest of them
}

// see counts a refusal and returns how many its row stands for; 0: no row.
func (s *sampler) see(r Refusal, now time.Time) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entry(r.Key)
	if second := now.Unix(); e.second != second {
		e.second, e.rows = second, 0
	}
	if e.rows >= refusalsPerSecond {
		e.extra++
		e.last = r
		return 0
	}
	e.rows++
	n := e.extra + 1
	e.extra = 0
	return n
}

func (s *sampler) entry(key string) *sampled {
	if s.keys == nil {
		s.keys = map[string]*sampled{}
	}
	if _, known := s.keys[key]; !known && len(s.keys) >= maxSampled {
		key = "" // shared
	}
	e := s.keys[key]
	if e == nil {
		e = &sampled{}
		s.keys[key] = e
	}
	return e
}

// flush returns a row for every key with uncounted refusals, and forgets keys
// that have been quiet.
func (s *sampler) flush(now time.Time) []Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	var rows []Refusal
	for key, e := range s.keys {
		if e.second >= now.Unix() {
			continue
		}
		if e.extra > 0 {
			e.last.standsFor = e.extra
			rows = append(rows, e.last)
		}
		delete(s.keys, key)
	}
	return rows
}

// putBack counts a refusal again whose row found no room.
func (s *sampler) putBack(r Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entry(r.Key)
	e.extra += r.standsFor
	e.last = r
}
