package app

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tollgate/internal/gatewaytest/scene"
)

// TestFloodsOfLinesAreSampled checks that some lines of a kind are written, then the number of
// further ones, and that the first line of another kind is written in between.
func TestFloodsOfLinesAreSampled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		said := new(scene.Buffer)
		s := newSampling(slog.NewTextHandler(said, nil))
		log := slog.New(s)
		lines := func(part string, want int) {
			t.Helper()
			if n := said.Count(part); n != want {
				t.Errorf("%d lines with %s, want %d", n, part, want)
			}
		}
		flood := func(n int) {
			for i := range n {
				log.Error("request failed", "request", fmt.Sprint("req_", i), "code", "service_unavailable",
					"cause", fmt.Errorf("ask %d: %w", i, fs.ErrClosed))
			}
		}
		flood(1000)
		lines("request failed", linesOfKind)
		log.Error("request failed", "code", "service_unavailable", "cause", fmt.Errorf("ask: %w", fs.ErrExist))
		log.Error("request failed", "code", "invalid_request", "cause", fs.ErrClosed)
		log.Warn("request failed", "code", "service_unavailable", "cause", fs.ErrClosed)
		log.With("node", 1).Error("request panicked", "panic", "index out of range [5]")
		lines("request failed", linesOfKind+3)
		lines("request panicked", 1)
		time.Sleep(linesWithin)
		flood(1)
		lines("msg=\"request failed\"", linesOfKind+4)
		lines("times=980", 1)
		flood(1000)
		time.Sleep(2 * linesWithin)
		s.samples.flush(time.Now().Add(-linesWithin))
		lines("times=981", 1)
		if len(s.samples.kinds) != 0 || len(s.samples.count) != 0 {
			t.Error("quiet kinds are remembered")
		}
	})
}

// TestKindsOfLinesAreBounded: a stranger's text in a cause makes no kind without
// end.
func TestKindsOfLinesAreBounded(t *testing.T) {
	t.Parallel()
	said := new(scene.Buffer)
	s := newSampling(slog.NewTextHandler(said, nil))
	for i := range 10_000 {
		slog.New(s).Error("request failed", "cause", errors.New(strings.Repeat("x", i%100)+strings.Repeat("y", i/100)))
	}
	if n := said.Count("request failed"); n > (kindsOfMessage+1)*linesOfKind {
		t.Errorf("%d lines", n)
	}
	if n := len(s.samples.kinds); n > kindsOfMessage+1 {
		t.Errorf("%d kinds", n)
	}
}

// TestWhatTellsOfMoneyIsAlwaysSaid checks that lines about money and debug lines are always
// written, and that the messages exist in the code.
func TestWhatTellsOfMoneyIsAlwaysSaid(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	err := filepath.WalkDir("..", func(path string, f fs.DirEntry, err error) error {
		if err != nil || f.IsDir() || !strings.HasSuffix(path, ".go") || filepath.Base(path) == "sampling.go" {
			return err
		}
		text, err := os.ReadFile(path)
		code.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	said := new(scene.Buffer)
	log := slog.New(newSampling(slog.NewTextHandler(said, &slog.HandlerOptions{Level: slog.LevelDebug})))
	for _, message := range append(alwaysSaid(), "stopped") {
		if !strings.Contains(code.String(), `"`+message) {
			t.Errorf("no line begins with %q", message)
		}
		level := slog.LevelError
		if message == "stopped" {
			level = slog.LevelDebug
		}
		for range 3 * linesOfKind {
			log.Log(t.Context(), level, message+" something")
		}
		if n := said.Count(`msg="` + strings.TrimSpace(message)); n != 3*linesOfKind {
			t.Errorf("%q is said %d times", message, n)
		}
	}
}

func BenchmarkLinesLeftOut(b *testing.B) {
	log := slog.New(newSampling(slog.NewTextHandler(new(scene.Buffer), nil)))
	cause := fmt.Errorf("look up keys: %w", errors.New("too many unknown keys wait to be looked up"))
	for b.Loop() {
		log.Error("request failed", "request", "req_1", "endpoint", "/v1/chat/completions", "code", "service_unavailable", "cause", cause)
	}
}
