// Package imports owns the import of what another gateway holds: into which files and
// which database it goes, and what its operator does next. Invariant: a dry run leaves
// no file and no database behind that were not there.
package imports

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"tollgate/internal/app"
	"tollgate/internal/importer"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// Order says what to import from another gateway, and where to.
type Order struct {
	Program  string // one-api, new-api or litellm
	Source   string // a database or its dump; see importer.Options
	Name     string
	Config   string
	Settings string
	Models   string
	// Catalog is the file that models and lines are written to; the credentials of
	// lines go into a folder beside it.
	Catalog   string
	Unlimited string // US dollars
	DryRun    bool
	Now       time.Time
}

// secretsFolder is the folder for credentials beside an imported catalog.
const secretsFolder = "secrets"

// Run writes what another gateway holds into files and the settings' database,
// which is made where there is none, and reports. A dry run changes nothing. A source
// that cannot be read is a SettingError.
func Run(ctx context.Context, s *app.Settings, in Order) (_ *importer.Carried, err error) {
	plan, err := readImport(ctx, in)
	if err != nil {
		return nil, err
	}
	db, done, err := openForImport(ctx, s, in.DryRun)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	files, err := plan.WriteFiles(in.Catalog, in.DryRun)
	if err != nil {
		return nil, err
	}
	report, err := plan.Write(ctx, db, in.DryRun)
	if err != nil {
		return nil, err
	}
	report.Files = files
	return report, nil
}

// readImport reads the source.
func readImport(ctx context.Context, in Order) (*importer.Contents, error) {
	catalog, err := filepath.Abs(in.Catalog)
	if err != nil {
		return nil, &app.SettingError{Key: "catalog", Err: err}
	}
	o := importer.Options{Program: importer.Program(in.Program), Source: in.Source, Name: in.Name, Config: in.Config,
		Settings: in.Settings, Models: in.Models, Secrets: filepath.Join(filepath.Dir(catalog), secretsFolder), Now: in.Now,
		Providers: app.Providers()}
	if in.Unlimited != "" {
		if o.Unlimited, err = money.Parse(in.Unlimited); err != nil {
			return nil, &app.SettingError{Key: "unlimited-usd", Err: err}
		}
	}
	plan, err := importer.Read(ctx, o)
	if err != nil {
		return nil, &app.SettingError{Key: "import", Err: app.ExplainPermission(err)}
	}
	return plan, nil
}

// openForImport opens the settings' database. A dry run makes none: where there is
// none, it works on an empty one that is gone afterwards.
func openForImport(ctx context.Context, s *app.Settings, dryRun bool) (db *store.DB, done func() error, err error) {
	db, err = app.OpenDatabase(ctx, s, !dryRun)
	if !dryRun || !errors.Is(err, app.ErrNoDatabase) {
		return db, closer(db), err
	}
	folder, err := os.MkdirTemp("", "tollgate-import-")
	if err != nil {
		return nil, nil, fmt.Errorf("make an empty database: %w", err)
	}
	empty := *s
	empty.Database = "sqlite:" + filepath.Join(folder, "empty.db")
	if db, err = app.OpenDatabase(ctx, &empty, true); err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(folder))
	}
	return db, func() error { return errors.Join(db.Close(), os.RemoveAll(folder)) }, nil
}

// closer closes a database that was opened.
func closer(db *store.DB) func() error {
	if db == nil {
		return nil
	}
	return db.Close
}

// NextSteps tells what to do after an import, a line a step.
func NextSteps(in Order, report *importer.Carried) []string {
	if report.DryRun {
		return []string{"This was a dry run: nothing was changed. Run it without --dry-run."}
	}
	steps := []string{"Prove the books with `tollgate audit`."}
	for _, f := range report.Files {
		if f.Path != in.Catalog {
			continue
		}
		steps = append(steps, "Look at "+in.Catalog+", then make it current with `tollgate apply "+in.Catalog+"`.")
		if f.Kept {
			steps = append(steps, in.Catalog+" was there, and was left as it is: move it away to have it written anew.")
		}
	}
	return steps
}
