package exchange

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// slow is a provider's body. It returns its pieces and then blocks until the call is cancelled.
type slow struct {
	ctx    context.Context
	pieces []string
	end    bool // whether the body ends after the pieces
	closed bool
}

func (s *slow) Read(p []byte) (int, error) {
	if len(s.pieces) > 0 {
		n := copy(p, s.pieces[0])
		s.pieces = s.pieces[1:]
		return n, nil
	}
	if s.end {
		return 0, io.EOF
	}
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

func (s *slow) Close() error { s.closed = true; return nil }

// TestCloseReadsTheRest checks that Close after the last event reads the end of the HTTP body
// within a time limit before it cancels the call, and that Close before the last event reads
// nothing.
func TestCloseReadsTheRest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		pieces []string
		reads  int
		end    bool
		wait   time.Duration
	}{
		"body ends":            {pieces: []string{"data: [DONE]\n\n"}, reads: 1, end: true},
		"in pieces, CRLF":      {pieces: []string{"data: [DO", "NE]\r", "\n\r\n"}, reads: 3, end: true},
		"a named event":        {pieces: []string{"event: message_st", "op\ndata: {\"type\":\"message_stop\"}\n\n"}, reads: 2, end: true},
		"body does not end":    {pieces: []string{"data: [DONE]\n\n"}, reads: 1, wait: drainWait},
		"closed in the middle": {pieces: []string{"data: {}\n\n", "data: [DONE]\n\n"}, reads: 1},
		"closed before a read": {pieces: []string{"data: [DONE]\n\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				from := &slow{ctx: ctx, pieces: tt.pieces, end: tt.end}
				b := &body{src: from, cancel: cancel, ends: endFinder{words: []string{"[DONE]", "event: message_stop"}}}
				for range tt.reads {
					if _, err := b.Read(make([]byte, 64)); err != nil {
						t.Fatal(err)
					}
				}
				start := time.Now()
				b.Close()
				if took := time.Since(start); took != tt.wait {
					t.Errorf("Close took %s, want %s", took, tt.wait)
				}
				if ctx.Err() == nil || !from.closed {
					t.Error("the call was not cancelled")
				}
				if tt.reads == 1 && len(tt.pieces) == 2 && len(from.pieces) != 1 {
					t.Error("Close read from the stream before its last event")
				}
			})
		})
	}
}

// TestErrorBodyIsBoundedInTime tests classification of an error body cut off by the time limit.
func TestErrorBodyIsBoundedInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		b := &body{src: &slow{ctx: ctx, pieces: []string{`{"err`}}, cancel: cancel}
		start := time.Now()
		if got := string(b.readStart(maxErrorBody, errorBodyWait)); got != `{"err` {
			t.Errorf("read %q, want %q", got, `{"err`)
		}
		if took := time.Since(start); took != errorBodyWait {
			t.Errorf("took %s, want %s", took, errorBodyWait)
		}
		if !errors.Is(ctx.Err(), context.Canceled) {
			t.Error("the call continues")
		}
		b.Close()
	})
}
