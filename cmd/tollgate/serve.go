package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"tollgate/internal/app"
)

type serveCommand struct{}

// Run serves until a signal; SIGHUP makes it read secrets again.
func (serveCommand) Run(p *process) error {
	settings, err := p.settings()
	if err != nil {
		return err
	}
	reread := make(chan os.Signal, 1) // one that waits stands for all
	signal.Notify(reread, syscall.SIGHUP)
	defer signal.Stop(reread)
	a, err := app.New(p.ctx, settings, app.Options{
		Stdout: p.stdout, Stderr: p.stderr, Lookup: os.LookupEnv, Version: app.ReadBuild().Version, Reread: reread,
	})
	switch {
	case err != nil && p.ctx.Err() != nil: // as it was told to
		tell(p.stderr, "stopped before it was ready")
		return nil
	case err != nil:
		return err
	}
	return a.Serve(p.ctx)
}

type applyCommand struct {
	File   string `arg:"" help:"Catalog file, YAML or JSON."`
	DryRun bool   `help:"Only show what would change."`
}

// Run makes a file the current catalog.
func (c applyCommand) Run(p *process) error {
	settings, err := p.settings()
	if err != nil {
		return err
	}
	err = app.Apply(p.ctx, settings, c.File, c.DryRun, app.Streams{Out: p.stdout, Err: p.stderr})
	if errors.Is(err, app.ErrCatalog) {
		err = usageError{err}
	}
	return err
}

type catalogCommand struct {
	History  bool   `help:"List the revisions and what each changed." xor:"what"`
	Revision *int64 `help:"Print this revision instead of the current one." xor:"what" placeholder:"N"`
}

// Run prints the catalog or its history.
func (c catalogCommand) Run(p *process) error {
	settings, err := p.settings()
	if err != nil {
		return err
	}
	if c.History {
		return app.PrintHistory(p.ctx, settings, p.stdout)
	}
	if c.Revision == nil {
		return app.PrintCatalog(p.ctx, settings, 0, p.stdout)
	}
	if *c.Revision < 1 {
		return usageError{errors.New("--revision: must be at least 1")}
	}
	return app.PrintCatalog(p.ctx, settings, *c.Revision, p.stdout)
}

type auditCommand struct{}

// Run proves the books.
func (auditCommand) Run(p *process) error {
	settings, err := p.settings()
	if err != nil {
		return err
	}
	report, err := app.Audit(p.ctx, settings)
	if err != nil {
		return err
	}
	out := json.NewEncoder(p.stdout)
	out.SetIndent("", "  ")
	if err := out.Encode(report); err != nil {
		return err
	}
	if !report.OK {
		return fmt.Errorf("the books differ in %d places", len(report.Differences))
	}
	return nil
}

type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run(p *process) error {
	_, err := fmt.Fprintln(p.stdout, app.ReadBuild())
	return err
}
