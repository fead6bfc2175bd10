package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tollgate/internal/app"
	"tollgate/internal/importer"
	"tollgate/internal/store"
)

type importCommand struct {
	Program string `arg:"" enum:"one-api,new-api,litellm" help:"one-api, new-api or litellm."`
	Source  string `arg:"" optional:"" help:"SQLite file, postgres:// URL, MySQL USER:PASSWORD@tcp(HOST)/NAME, or - for standard input."`

	DryRun        bool    `help:"Only report what would be done."`
	WriteCatalog  string  `help:"Catalog to write; keys of lines go into secrets beside it." default:"imported.yaml" placeholder:"FILE"`
	LitellmConfig string  `name:"litellm-config" help:"LiteLLM's config.yaml." placeholder:"FILE"`
	Options       string  `help:"File with the answer of GET /api/option/ of one-api or new-api." placeholder:"FILE"`
	Models        string  `help:"LiteLLM's model_prices_and_context_window.json, for limits and prices." placeholder:"FILE"`
	UnlimitedUSD  *usd    `name:"unlimited-usd" help:"Opening balance of accounts without a LiteLLM budget (default 0)." placeholder:"USD"`
	Name          string  `help:"Name of the source, if you import several databases of one program." placeholder:"TEXT"`
	Report        *string `help:"File for the report as JSON." placeholder:"FILE"`
	JSON          bool    `help:"Print the report as JSON (default if the output is not a terminal)."`
}

func (c *importCommand) Run(p *process) error {
	if c.Source == "" && c.Program != "litellm" { // LiteLLM may have only a config file
		return usageError{errors.New("name the database of " + c.Program +
			": an SQLite file, a postgres:// URL, or a MySQL address USER:PASSWORD@tcp(HOST:3306)/DATABASE; or - to read standard input")}
	}
	settings, err := p.settings()
	if err != nil {
		return err
	}
	plan, err := c.read(p)
	if err != nil {
		return err
	}
	report, err := c.write(p, settings, plan)
	if err != nil {
		return err
	}
	raw, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	raw = append(raw, '\n')
	if c.Report != nil {
		if err := os.WriteFile(*c.Report, raw, 0o600); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
	}
	if !c.JSON && terminalWidth(p.stdout) > 0 {
		raw = []byte(report.Text())
	}
	if _, err := p.stdout.Write(raw); err != nil {
		return err
	}
	if c.DryRun {
		printError(p.stderr, "This was a dry run. It changed nothing. To import, run the command without --dry-run.")
		return nil
	}
	printError(p.stderr, "Check the balances with `tollgate audit`.")
	for _, f := range report.Files {
		if f.Path != c.WriteCatalog {
			continue
		}
		printError(p.stderr, "Check "+f.Path+", then apply it with `tollgate apply "+f.Path+"`.")
		if f.Kept {
			printError(p.stderr, f.Path+" existed already and was not changed. To write a new one, move this file away and repeat the import.")
		}
	}
	return nil
}

// read reads the source. All errors are SettingErrors.
func (c *importCommand) read(p *process) (*importer.Contents, error) {
	catalog, err := filepath.Abs(c.WriteCatalog)
	if err != nil {
		return nil, &app.SettingError{Key: "write-catalog", Err: err}
	}
	options := importer.Options{Program: importer.Program(c.Program), Name: c.Name, Config: c.LitellmConfig, Settings: c.Options,
		Models: c.Models, Secrets: filepath.Join(filepath.Dir(catalog), "secrets"), Now: p.now(), Providers: app.Providers()}
	if c.UnlimitedUSD != nil {
		options.Unlimited = c.UnlimitedUSD.amount
	}
	if options.Source, err = p.orInput(c.Source, "the source"); err != nil {
		return nil, err
	}
	plan, err := importer.Read(p.ctx, options)
	if err != nil {
		return nil, &app.SettingError{Key: "import", Err: app.ExplainPermission(err)}
	}
	return plan, nil
}

// write writes the files and the database. A dry run changes neither.
func (c *importCommand) write(p *process, s *app.Settings, plan *importer.Contents) (_ *importer.ImportReport, err error) {
	db, closeDB, err := openForImport(p.ctx, s, c.DryRun)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeDB()) }()
	files, err := plan.WriteFiles(c.WriteCatalog, c.DryRun)
	if err != nil {
		return nil, err
	}
	report, err := plan.Write(p.ctx, db, c.DryRun)
	if err != nil {
		return nil, err
	}
	report.Files = files
	return report, nil
}

// openForImport opens or creates the settings' database, and returns a function that closes
// the database. If there is no database, a dry run gets an empty temporary database, and the
// returned function also deletes this database.
func openForImport(ctx context.Context, s *app.Settings, dryRun bool) (*store.DB, func() error, error) {
	db, err := app.OpenDatabase(ctx, s, !dryRun)
	if err == nil {
		return db, db.Close, nil
	}
	if !dryRun || !errors.Is(err, app.ErrNoDatabase) {
		return nil, nil, err
	}
	folder, err := os.MkdirTemp("", "tollgate-import-")
	if err != nil {
		return nil, nil, fmt.Errorf("create an empty database: %w", err)
	}
	empty := *s
	empty.Database = "sqlite:" + filepath.Join(folder, "empty.db")
	if db, err = app.OpenDatabase(ctx, &empty, true); err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(folder))
	}
	return db, func() error { return errors.Join(db.Close(), os.RemoveAll(folder)) }, nil
}
