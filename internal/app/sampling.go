package app

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits on the lines of one kind in a period, and on the kinds with one message and code.
const (
	linesPerKind    = 20
	samplingPeriod  = 10 * time.Second
	kindsPerMessage = 32
	maxClass        = 80 // bytes
)

// unsampledMessages returns the prefixes of lines without sampling: lines about money, damage or a
// catalog's lines, because no caller causes them. Debug lines are not sampled either.
func unsampledMessages() []string {
	return []string{
		"ledger: ", "request cut off", "an answer could not be settled", "job: a result file was missing", "the clock for limits jumped",
		"catalog: ", "line: ", "slot: ",
	}
}

// sampling is a log handler that bounds the lines caused by callers. In each period it writes the
// first lines of each kind, and at the end the number of dropped ones. A kind is a level, a message,
// a code and the class of a cause; a flood of one cause does not hide another cause. ADR 18 says why
// there is no library for this.
type sampling struct {
	slog.Handler
	counts *lineCounts
}

// lineCounts counts the lines of a period. All handlers derived from one share it.
type lineCounts struct {
	summary   slog.Handler // writes the numbers of dropped lines
	unsampled []string
	now       func() time.Time

	mu    sync.Mutex
	start time.Time // of the period
	lines map[kind]int
	kinds map[kind]int // by level, message and code (class is empty): the number of classes
}

type kind struct {
	level                slog.Level
	message, code, class string
}

func newSampling(to slog.Handler) *sampling {
	return &sampling{to, &lineCounts{summary: to, unsampled: unsampledMessages(), now: time.Now,
		lines: make(map[kind]int), kinds: make(map[kind]int)}}
}

// Handle implements slog.Handler.
func (s *sampling) Handle(ctx context.Context, r slog.Record) error {
	if !s.counts.sampled(r) || s.counts.add(kindOf(r)) {
		return s.Handler.Handle(ctx, r)
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (s *sampling) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &sampling{s.Handler.WithAttrs(attrs), s.counts}
}

// WithGroup implements slog.Handler.
func (s *sampling) WithGroup(name string) slog.Handler {
	return &sampling{s.Handler.WithGroup(name), s.counts}
}

// Run ends periods on time even if no further line is logged.
func (s *sampling) Run(ctx context.Context) {
	tick := time.NewTicker(samplingPeriod)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.counts.endPeriod(samplingPeriod)
		case <-ctx.Done():
			s.counts.endPeriod(0)
			return
		}
	}
}

func (c *lineCounts) sampled(r slog.Record) bool {
	return r.Level >= slog.LevelInfo &&
		!slices.ContainsFunc(c.unsampled, func(prefix string) bool { return strings.HasPrefix(r.Message, prefix) })
}

// add counts a line and reports whether to write it.
func (c *lineCounts) add(k kind) bool {
	c.endPeriod(samplingPeriod)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lines[k] == 0 {
		group := kind{k.level, k.message, k.code, ""}
		if c.kinds[group] >= kindsPerMessage {
			k.class = "others"
		} else {
			c.kinds[group]++
		}
	}
	c.lines[k]++
	return c.lines[k] <= linesPerKind
}

// endPeriod ends the period if it has lasted for at least age, and logs the numbers of dropped lines.
func (c *lineCounts) endPeriod(age time.Duration) {
	c.mu.Lock()
	now, ended := c.now(), c.lines
	if now.Sub(c.start) < age {
		c.mu.Unlock()
		return
	}
	c.start = now
	c.lines, c.kinds = make(map[kind]int), make(map[kind]int)
	c.mu.Unlock()
	for k, lines := range ended {
		if dropped := lines - linesPerKind; dropped > 0 {
			r := slog.NewRecord(now, k.level, "more lines of a kind were left out", 0)
			r.AddAttrs(slog.String("like", k.message), slog.String("code", k.code), slog.String("class", k.class), slog.Int("times", dropped))
			_ = c.summary.Handle(context.Background(), r) // a failure cannot be reported anywhere else
		}
	}
}

// kindOf returns the kind of a line. The class of an error is its root cause without digits.
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
		return withoutDigits(fmt.Sprint(cause))
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
			return withoutDigits(err.Error())
		}
		err = next
	}
}

// withoutDigits returns the beginning of a text without its digits.
func withoutDigits(text string) string {
	if len(text) > maxClass {
		text = strings.ToValidUTF8(text[:maxClass], "")
	}
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, text)
}
