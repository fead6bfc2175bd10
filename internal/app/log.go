package app

import (
	"io"
	"log/slog"
)

// newLog returns what writes the process's log on w, in the format and from the
// level that the settings name.
func newLog(s *Settings, w io.Writer) *sampling {
	options := &slog.HandlerOptions{Level: s.LogLevel}
	if s.LogFormat == "json" {
		return newSampling(slog.NewJSONHandler(w, options))
	}
	return newSampling(slog.NewTextHandler(w, options))
}

// quiet is the log of commands that say on standard error themselves what went
// wrong.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
