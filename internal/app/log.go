package app

import (
	"io"
	"log/slog"
)

// NewLog returns the process's log on w, in the format and from the level that
// the settings name.
func NewLog(s *Settings, w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: s.LogLevel}
	if s.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// quiet is the log of commands that say on standard error themselves what went
// wrong.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
