package main

import (
	"fmt"
	"log/slog"
	"strings"

	"tollgate/internal/app"
)

type migrateCommand struct {
	DryRun bool `help:"Only list the migrations that would run."`
}

func (c migrateCommand) Run(p *process, settings *app.Settings) error {
	result, err := app.Migrate(p.ctx, settings, c.DryRun, slog.New(slog.NewTextHandler(p.stderr, nil)))
	if err != nil {
		return err
	}
	files := result.Pending
	var text strings.Builder
	for _, file := range files {
		fmt.Fprintln(&text, file)
	}
	switch {
	case len(files) == 0 && result.Version > result.Newest:
		text.WriteString("nothing to do: the database has a newer schema, which this version can serve\n")
	case len(files) == 0:
		text.WriteString("nothing to do: the database already has the schema of this version\n")
	case c.DryRun:
		fmt.Fprintf(&text, "dry run: nothing was changed, %d migrations would run\n", len(files))
	default:
		fmt.Fprintf(&text, "%d migrations ran\n", len(files))
	}
	for _, b := range result.Backfills {
		fmt.Fprintf(&text, "backfill %s: %d rows so far; the service changes the others while it runs\n", b.Name, b.Changed)
	}
	_, err = fmt.Fprint(p.stdout, text.String())
	return err
}
