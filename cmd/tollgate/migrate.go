package main

import (
	"fmt"
	"strings"

	"tollgate/internal/app"
)

type migrateCommand struct {
	DryRun bool `help:"Only list the migrations that would run."`
}

func (c migrateCommand) Run(p *process, settings *app.Settings) error {
	files, err := app.Migrate(p.ctx, settings, c.DryRun)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, file := range files {
		fmt.Fprintln(&text, file)
	}
	switch {
	case len(files) == 0:
		text.WriteString("nothing to do: the database already has the schema of this version\n")
	case c.DryRun:
		fmt.Fprintf(&text, "dry run: nothing was changed, %d migrations would run\n", len(files))
	default:
		fmt.Fprintf(&text, "%d migrations ran\n", len(files))
	}
	_, err = fmt.Fprint(p.stdout, text.String())
	return err
}
