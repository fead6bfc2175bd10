package app

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Limits on the lines of one kind within a time, and on the kinds of a message with a code. Further
// causes share one kind.
const (
	linesOfKind    = 20
	linesWithin    = 10 * time.Second
	kindsOfMessage = 32
	longestClass   = 80 // bytes
)

// alwaysSaid returns the prefixes of lines without sampling: those about money or damage, and those
// about a catalog's lines, because no caller causes them. Debug lines are not sampled either.
func alwaysSaid() []string {
	return []string{
		"ledger: ", "request cut off", "chat: an answer could not be settled", "job: a result file was gone", "the clock that limits go by",
		"catalog: ", "line: ", "slot: ",
	}
}

// sampling is a log handler that bounds the lines caused by strangers and callers: it writes some
// lines of each kind, and then the number of further ones. No other room needs to know. A kind is a
// level, a message, a code and the class of a cause. The first line of each kind is always written,
// up to kindsOfMessage causes of a message and code.
type sampling struct {
	slog.Handler
	samples *samples
}

// samples counts lines. All handlers derived from one share it.
type samples struct {
	plain  slog.Handler // writes how many were left out
	always []string
	now    func() time.Time

	mu    sync.Mutex
	kinds map[kind]*said
	count map[kind]int // kinds of each message and code, under the kind without a class
}

type kind struct {
	level                slog.Level
	message, code, class string
}

// said counts the lines of a kind since a time.
type said struct {
	since       time.Time
	lines, more int
}

func newSampling(to slog.Handler) *sampling {
	return &sampling{to, &samples{plain: to, always: alwaysSaid(), now: time.Now, kinds: make(map[kind]*said), count: make(map[kind]int)}}
}

// Handle implements slog.Handler.
func (s *sampling) Handle(ctx context.Context, r slog.Record) error {
	if !s.samples.sampled(r) {
		return s.Handler.Handle(ctx, r)
	}
	k := kindOf(r)
	say, before := s.samples.see(k)
	if before > 0 {
		s.samples.sayMore(k, before)
	}
	if !say {
		return nil
	}
	return s.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (s *sampling) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &sampling{s.Handler.WithAttrs(attrs), s.samples}
}

// WithGroup implements slog.Handler.
func (s *sampling) WithGroup(name string) slog.Handler {
	return &sampling{s.Handler.WithGroup(name), s.samples}
}

// Run logs the number of suppressed lines in time, also of kinds that have ended.
func (s *sampling) Run(ctx context.Context) {
	tick := time.NewTicker(linesWithin)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.samples.flush(s.samples.now().Add(-linesWithin))
		case <-ctx.Done():
			s.samples.flush(s.samples.now())
			return
		}
	}
}

func (s *samples) sampled(r slog.Record) bool {
	if r.Level < slog.LevelInfo {
		return false
	}
	for _, beginning := range s.always {
		if strings.HasPrefix(r.Message, beginning) {
			return false
		}
	}
	return true
}

// see counts a line. It reports whether to write the line, and how many lines of its kind were
// suppressed before it.
func (s *samples) see(k kind) (say bool, before int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, now := s.entry(k), s.now()
	if now.Sub(e.since) >= linesWithin {
		before = e.more
		*e = said{since: now}
	}
	if e.lines++; e.lines <= linesOfKind {
		return true, before
	}
	e.more++
	return false, before
}

func (s *samples) entry(k kind) *said {
	if e := s.kinds[k]; e != nil {
		return e
	}
	bare := kind{k.level, k.message, k.code, ""}
	if s.count[bare] >= kindsOfMessage {
		k.class = "others"
	}
	e := s.kinds[k]
	if e == nil {
		e = new(said)
		s.kinds[k] = e
		s.count[bare]++
	}
	return e
}

// flush logs the number of suppressed lines of the kinds that began no later than a time, and
// forgets these kinds.
func (s *samples) flush(until time.Time) {
	more := make(map[kind]int)
	s.mu.Lock()
	for k, e := range s.kinds {
		if e.since.After(until) {
			continue
		}
		if e.more > 0 {
			more[k] = e.more
		}
		delete(s.kinds, k)
		bare := kind{k.level, k.message, k.code, ""}
		if s.count[bare]--; s.count[bare] == 0 {
			delete(s.count, bare)
		}
	}
	s.mu.Unlock()
	for k, n := range more {
		s.sayMore(k, n)
	}
}

func (s *samples) sayMore(k kind, times int) {
	r := slog.NewRecord(s.now(), k.level, "more lines of a kind were left out", 0)
	r.AddAttrs(slog.String("like", k.message), slog.String("code", k.code), slog.String("class", k.class), slog.Int("times", times))
	_ = s.plain.Handle(context.Background(), r) // a failure cannot be reported anywhere else
}

// kindOf returns the kind of a line. Of an error it uses the root without numbers, so that errors
// with one cause share a class.
func kindOf(r slog.Record) kind {
	k := kind{level: r.Level, message: r.Message}
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "code":
			k.code = a.Value.String()
		case "cause", "error", "panic":
			k.class += classOf(a.Value.Any())
		}
		return true
	})
	return k
}

func classOf(cause any) string {
	err, ok := cause.(error)
	if !ok {
		return worded(fmt.Sprint(cause))
	}
	for {
		var next error
		switch e := any(err).(type) {
		case interface{ Unwrap() error }:
			next = e.Unwrap()
		case interface{ Unwrap() []error }:
			if all := e.Unwrap(); len(all) > 0 {
				next = all[0]
			}
		}
		if next == nil {
			return worded(err.Error())
		}
		err = next
	}
}

// worded is the beginning of a text without its numbers.
func worded(text string) string {
	if len(text) > longestClass {
		text = strings.ToValidUTF8(text[:longestClass], "")
	}
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, text)
}
