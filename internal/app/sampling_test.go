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
// dropped ones, and that lines of other kinds are written in between.
func TestFloodsOfLinesAreSampled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out := new(scene.Buffer)
		s := newSampling(slog.NewTextHandler(out, nil))
		log := slog.New(s)
		lines := func(part string, want int) {
			t.Helper()
			if n := out.Count(part); n != want {
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
		lines("request failed", linesPerKind)
		log.Error("request failed", "code", "service_unavailable", "cause", fmt.Errorf("ask: %w", fs.ErrExist))
		log.Error("request failed", "code", "invalid_request", "cause", fs.ErrClosed)
		log.Warn("request failed", "code", "service_unavailable", "cause", fs.ErrClosed)
		log.With("node", 1).Error("request panicked", "panic", "index out of range [5]")
		lines("request failed", linesPerKind+3)
		lines("request panicked", 1)
		time.Sleep(samplingPeriod)
		flood(1)
		lines("msg=\"request failed\"", linesPerKind+4)
		lines("times=980", 1)
		flood(1000)
		time.Sleep(2 * samplingPeriod)
		s.counts.endPeriod(samplingPeriod)
		lines("times=981", 1)
		if len(s.counts.lines) != 0 || len(s.counts.kinds) != 0 {
			t.Error("counts outlive their period")
		}
	})
}

// TestKindsOfLinesAreBounded checks that text from callers in causes creates a bounded number of
// kinds.
func TestKindsOfLinesAreBounded(t *testing.T) {
	t.Parallel()
	out := new(scene.Buffer)
	s := newSampling(slog.NewTextHandler(out, nil))
	for i := range 10_000 {
		slog.New(s).Error("request failed", "cause", errors.New(strings.Repeat("x", i%100)+strings.Repeat("y", i/100)))
	}
	if n := out.Count("request failed"); n > (kindsPerMessage+1)*linesPerKind {
		t.Errorf("%d lines", n)
	}
	if n := len(s.counts.lines); n > kindsPerMessage+1 {
		t.Errorf("%d kinds", n)
	}
}

// TestUnsampledMessages checks that lines about money and debug lines are always written, and that
// the messages exist in the code.
func TestUnsampledMessages(t *testing.T) {
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
	out := new(scene.Buffer)
	log := slog.New(newSampling(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	for _, message := range append(unsampledMessages(), "stopped") {
		if !strings.Contains(code.String(), `"`+message) {
			t.Errorf("no line begins with %q", message)
		}
		level := slog.LevelError
		if message == "stopped" {
			level = slog.LevelDebug
		}
		for range 3 * linesPerKind {
			log.Log(t.Context(), level, message+" something")
		}
		if n := out.Count(`msg="` + strings.TrimSpace(message)); n != 3*linesPerKind {
			t.Errorf("%q was logged %d times", message, n)
		}
	}
}

func BenchmarkDroppedLines(b *testing.B) {
	log := slog.New(newSampling(slog.NewTextHandler(new(scene.Buffer), nil)))
	cause := fmt.Errorf("look up keys: %w", errors.New("too many unknown keys wait to be looked up"))
	for b.Loop() {
		log.Error("request failed", "request", "req_1", "endpoint", "/v1/chat/completions", "code", "service_unavailable", "cause", cause)
	}
}
