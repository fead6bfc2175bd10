package chat

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tollgate/internal/call"
	"tollgate/internal/fault"
	"tollgate/internal/ledger"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		words := slices.Repeat([]string{strings.Replace(world, "world", "wonderful", 1)}, 100)
		tr := newTrial(t, reply{pieces: slices.Concat([]string{firstLine}, words, []string{stop, usage, doneEvent}),
			delays: []time.Duration{100 * time.Millisecond}})
		tr.mustRun(askStream)
		if n := len(tr.books.progress); n < 4 || n > 5 { // ten seconds
			t.Fatalf("%d notes of progress", n)
		}
		last := tr.books.progress[0]
		for _, p := range tr.books.progress[1:] {
			if p.Cost <= last.Cost || p.Tokens.Completion <= last.Tokens.Completion || p.Line != "first" {
				t.Errorf("progress %+v after %+v", p, last)
			}
			last = p
		}
		if last.Cost > tr.books.amounts[0].Amount {
			t.Errorf("progress %s above the hold", last.Cost)
		}
	})
}

// TestProgressOfAPause checks that the part before a pause is reported during the pause, also if
// the client reads slowly.
func TestProgressOfAPause(t *testing.T) {
	t.Parallel()
	for name, slow := range map[string]bool{"of the provider": false, "of the client": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tr := newTrial(t, reply{pieces: []string{firstLine, world, world, ": x\n\n"},
					delays: []time.Duration{0, 0, call.ProgressInterval / 2, 10 * time.Second}})
				if slow {
					flushes := 0
					tr.client.onFlush = func(string) {
						if flushes++; flushes == 3 {
							time.Sleep(10 * time.Second)
						}
					}
				}
				var during []ledger.Progress
				time.AfterFunc(call.ProgressInterval+time.Second, func() {
					tr.books.mu.Lock()
					defer tr.books.mu.Unlock()
					during = slices.Clone(tr.books.progress)
				})
				tr.run(askStream)
				if len(during) != 1 || during[0].Cost == 0 {
					t.Fatalf("noted %+v within a second more than %s", during, call.ProgressInterval)
				}
				if n := len(tr.books.progress); n != 1 {
					t.Errorf("%d notes, of which one has news", n)
				}
				// The report estimates the whole part sent to the client.
				text := int64(len("Hello\n world world"))
				if got := during[0].Tokens.Completion; got < text/4 {
					t.Errorf("%d tokens noted of %d bytes", got, text)
				}
			})
		})
	}
}

// TestNodeIsDeclaredDead checks that a stream is cancelled, for its client and at its provider,
// after its node was declared dead, because its rest cannot be charged.
func TestNodeIsDeclaredDead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr := newTrial(t, reply{pieces: slices.Concat([]string{firstLine}, slices.Repeat([]string{world}, 100), []string{stop, usage, doneEvent}),
			delays: []time.Duration{100 * time.Millisecond}})
		tr.books.failing = ledger.ErrNotSettled
		time.AfterFunc(3*time.Second, func() {
			tr.books.mu.Lock()
			defer tr.books.mu.Unlock()
			tr.books.lost = true
		})
		start := time.Now()
		tr.mustRun(askStream)
		if took := time.Since(start); took > 3*time.Second+call.ProgressInterval {
			t.Errorf("it took %s", took)
		}
		if got := tr.client.body(); tr.provider.left != 1 || !strings.HasSuffix(got, errorEvent(fault.ServiceUnavailable)) {
			t.Errorf("the provider was left %d times, the client got %s", tr.provider.left, got)
		}
		if s := tr.lines.Statuses()[0]; *s.SuccessRate != 1 {
			t.Errorf("the line is to blame: success rate %g", *s.SuccessRate)
		}
	})
}
