package app

import (
	"io"
	"log/slog"
)

// newLog returns the process's log on w, in the format and level of the settings.
func newLog(s *Settings, w io.Writer) *sampling {
	options := &slog.HandlerOptions{Level: s.LogLevel}
	if s.LogFormat == "json" {
		return newSampling(slog.NewJSONHandler(w, options))
	}
	return newSampling(slog.NewTextHandler(w, options))
}

// quiet returns the log for commands that report their errors on standard error themselves.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
