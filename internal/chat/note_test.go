package chat

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/upstream"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		parts := []string{strings.Replace(hello, "Hello", `Hello\n`, 1)}
		for range 100 {
			parts = append(parts, strings.Replace(world, "world", "wonderful", 1))
		}
		tr := newTrial(t, reply{pieces: append(parts, stop, usage, doneEvent), gate: gate})
		go func() {
			for range len(parts) + 3 {
				time.Sleep(100 * time.Millisecond)
				gate <- struct{}{}
			}
		}()
		if out := tr.run(askStream); out.err != nil || out.cut {
			t.Fatalf("%+v", out)
		}
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
	begin := strings.Replace(hello, "Hello", `Hello\n`, 1)
	for name, slow := range map[string]bool{"of the provider": false, "of the client": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				gate := make(chan struct{})
				tr := newTrial(t, reply{pieces: []string{begin, world, world, ": x\n\n"}, gate: gate})
				go func() {
					gate <- struct{}{}
					gate <- struct{}{}
					time.Sleep(progressInterval / 2)
					gate <- struct{}{}
					time.Sleep(10 * time.Second)
					gate <- struct{}{}
				}()
				if slow {
					flushes := 0
					tr.client.onFlush = func(string) {
						if flushes++; flushes == 3 {
							time.Sleep(10 * time.Second)
						}
					}
				}
				var during []ledger.Progress
				time.AfterFunc(progressInterval+time.Second, func() {
					tr.books.mu.Lock()
					defer tr.books.mu.Unlock()
					during = slices.Clone(tr.books.progress)
				})
				tr.run(askStream)
				if len(during) != 1 || during[0].Cost == 0 {
					t.Fatalf("noted %+v within a second more than %s", during, progressInterval)
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
		gate := make(chan struct{})
		parts := []string{strings.Replace(hello, "Hello", `Hello\n`, 1)}
		for range 100 {
			parts = append(parts, world)
		}
		tr := newTrial(t, reply{pieces: append(parts, stop, usage, doneEvent), gate: gate})
		stopped, fed := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(fed)
			for {
				time.Sleep(100 * time.Millisecond)
				select {
				case gate <- struct{}{}:
				case <-stopped:
					return
				}
			}
		}()
		tr.books.failing = ledger.ErrNotSettled
		time.AfterFunc(3*time.Second, func() {
			tr.books.mu.Lock()
			defer tr.books.mu.Unlock()
			tr.books.lost = true
		})
		start := time.Now()
		out := tr.run(askStream)
		took := time.Since(start)
		close(stopped)
		<-fed
		if out.err != nil || out.cut || took > 3*time.Second+progressInterval {
			t.Fatalf("%+v after %s", out, took)
		}
		tr.provider.mu.Lock()
		left := tr.provider.left
		tr.provider.mu.Unlock()
		last := errorEvent((&upstream.Failure{Code: fault.ServiceUnavailable}).FaultInStream())
		if got := tr.client.body(); left != 1 || !strings.HasSuffix(got, last) {
			t.Errorf("the provider was left %d times, the client got %s", left, got)
		}
		if s := tr.lines.Statuses()[0]; *s.SuccessRate != 1 {
			t.Errorf("the line is to blame: success rate %g", *s.SuccessRate)
		}
	})
}
