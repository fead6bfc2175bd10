package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/catalog/secret"
	"tollgate/internal/invoice"
	"tollgate/internal/job/proof"
	"tollgate/internal/ledger/audit"
	"tollgate/internal/operator"
	"tollgate/internal/store"
	"tollgate/internal/topup"
)

// ErrCatalog means that a catalog file was rejected for several faults, printed one per line. A
// single fault is a SettingError.
var ErrCatalog = errors.New("the catalog file has faults, so nothing was changed")

// Streams are the outputs of a command: Out for programs, Err for people.
type Streams struct{ Out, Err io.Writer }

// ErrDeclined means that the operator did not confirm the catalog.
var ErrDeclined = errors.New("not confirmed, so nothing was changed: the catalog removes models in use (--yes applies it without asking)")

// Applying configures how a catalog is applied.
type Applying struct {
	DryRun  bool              // only prints
	Confirm func(string) bool // asks before models in use are dropped; nil means no question
	Lookup  func(name string) (string, bool)
	In      io.Reader // read for the path "-"
	// At, if set, schedules the changes for that time. Note and TellCustomers are then Note and
	// Announced of catalog.Schedule.
	At            time.Time
	Note          string
	TellCustomers bool
	Streams
}

// Apply checks a catalog file, prints warnings and changes, and makes the catalog current, or schedules
// the catalog if options.At is set. It creates a missing database; a dry run without a database compares
// with an empty catalog and prints a warning. On an error, ErrCatalog, ErrDeclined or a SettingError,
// nothing was changed.
func Apply(ctx context.Context, s *Settings, path string, options Applying) (err error) {
	dryRun, out := options.DryRun, options.Streams
	doc, err := readCatalog(path, options)
	if err != nil {
		return err
	}
	for _, words := range unreadVariables(s.Unknown, variables(), doc.Lines) {
		printMessage(out.Err, "warning: %s\n", words)
	}
	db, err := OpenDatabase(ctx, s, !dryRun)
	if dryRun && errors.Is(err, ErrNoDatabase) {
		warnOfLines(doc, options)
		printMessage(out.Err, "warning: %s\n", err)
		_, err = io.WriteString(out.Out, describe(catalog.ApplyResult{Changes: catalog.Changes(nil, doc)}, dryRun))
		return err
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if options.Lookup, err = withStoredSecrets(ctx, s, db, options); err != nil {
		return fmt.Errorf("apply %s: %w", path, err)
	}
	warnOfLines(doc, options)
	if err := warnOfRemovals(ctx, db, doc, options); err != nil {
		return fmt.Errorf("apply %s: %w", path, err)
	}
	if !options.At.IsZero() && !dryRun {
		return schedule(ctx, db, doc, options)
	}
	var applied catalog.ApplyResult
	if dryRun {
		applied, err = store.Read(ctx, db, func(tx *store.Tx) (catalog.ApplyResult, error) { return catalog.PreviewTx(tx, doc) })
	} else {
		applied, err = store.Write(ctx, db, func(tx *store.Tx) (catalog.ApplyResult, error) {
			return operator.ApplyTx(tx, operator.Actor{Way: operator.Shell, Role: account.Owner}, doc)
		})
	}
	if err != nil {
		return fmt.Errorf("apply %s: %w", path, err)
	}
	_, err = io.WriteString(out.Out, describe(applied, dryRun))
	return err
}

// withStoredSecrets returns options.Lookup with the secrets in the database added. If the key of the
// secrets cannot be read, it prints a warning, because the service may have the key.
func withStoredSecrets(ctx context.Context, s *Settings, db *store.DB, options Applying) (func(string) (string, bool), error) {
	keys := s.SecretKeys
	if with, err := withSecretKey(s); err == nil {
		keys = with.SecretKeys
	} else {
		printMessage(options.Err, "warning: %s\n", err)
	}
	stored, err := store.Read(ctx, db, keys.LoadTx)
	if err != nil {
		return nil, err
	}
	return secret.Lookup(options.Lookup, stored.Lookup), nil
}

// warnOfLines prints the warnings about the lines of a document.
func warnOfLines(doc *catalog.Document, options Applying) {
	for _, w := range catalog.NodeWarnings(doc, Providers(), options.Lookup) {
		note := ""
		if strings.HasPrefix(w.Path, "lines[") {
			note = " (checked in this terminal; the service may have it)"
		}
		printMessage(options.Err, "warning: %s%s\n", w, note)
	}
}

// schedule schedules a catalog and prints the change.
func schedule(ctx context.Context, db *store.DB, doc *catalog.Document, options Applying) error {
	c, err := store.Write(ctx, db, func(tx *store.Tx) (catalog.ScheduledChange, error) {
		return operator.ScheduleTx(tx, operator.Actor{Way: operator.Shell, Role: account.Owner}, doc, 0,
			catalog.Schedule{AtMS: options.At.UnixMilli(), Note: options.Note, Announced: options.TellCustomers})
	})
	if err != nil {
		return fmt.Errorf("schedule the changes: %w", err)
	}
	return printChange(options.Out, c)
}

func printChange(w io.Writer, c catalog.ScheduledChange) error {
	_, err := fmt.Fprintf(w, "change %s, scheduled for %s\n  %s\n", c.ID, time.UnixMilli(c.AtMS).UTC().Format(time.RFC3339),
		strings.Join(c.Changes, "\n  "))
	return err
}

// PrintScheduled lists the pending changes of the catalog by time.
func PrintScheduled(ctx context.Context, s *Settings, w io.Writer) error {
	return view(ctx, s, func(tx *store.Tx) error {
		pending, err := catalog.PendingChangesTx(tx)
		for _, c := range pending {
			if err := printChange(w, c); err != nil {
				return err
			}
		}
		return err
	})
}

// warnOfRemovals warns of models in use that a document drops, and asks for confirmation.
func warnOfRemovals(ctx context.Context, db *store.DB, doc *catalog.Document, options Applying) error {
	removals, err := store.Read(ctx, db, func(tx *store.Tx) ([]string, error) { return operator.RemovalWarningsTx(tx, doc) })
	if err != nil {
		return err
	}
	for _, l := range removals {
		printMessage(options.Err, "warning: %s\n", l)
	}
	if len(removals) > 0 && !options.DryRun && options.Confirm != nil && !options.Confirm("Apply it anyway?") {
		return ErrDeclined
	}
	return nil
}

// describe describes the result of an apply, or of a dry run.
func describe(applied catalog.ApplyResult, dryRun bool) string {
	lines := applied.Changes
	switch {
	case len(applied.Changes) == 0:
		lines = append(lines, fmt.Sprintf("no changes: revision %d stays current", applied.Revision))
	case dryRun && applied.Revision == 0:
		lines = append(lines, "dry run: nothing was changed, and there is no revision yet")
	case dryRun:
		lines = append(lines, fmt.Sprintf("dry run: nothing was changed, revision %d stays current", applied.Revision))
	default:
		lines = append(lines, fmt.Sprintf("revision %d is current now", applied.Revision))
	}
	return strings.Join(lines, "\n") + "\n"
}

// readCatalog reads a catalog file and prints its faults and warnings.
func readCatalog(path string, options Applying) (*catalog.Document, error) {
	out := options.Streams
	var raw []byte
	var err error
	if path == "-" {
		raw, err = io.ReadAll(options.In)
	} else {
		raw, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, &SettingError{"file", ExplainPermission(err)}
	}
	doc, warnings, err := catalog.Parse(raw, Providers())
	if faults, ok := errors.AsType[catalog.Faults](err); ok && len(faults) > 1 {
		for _, f := range faults {
			printMessage(out.Err, "%s: %s\n", path, f)
		}
		return nil, ErrCatalog
	}
	if err != nil {
		return nil, &SettingError{"file", fmt.Errorf("%s: %w", path, err)}
	}
	for _, w := range warnings {
		printMessage(out.Err, "warning: %s\n", w)
	}
	return doc, nil
}

// printMessage prints a text for people. A failure cannot be reported anywhere else.
func printMessage(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }

// ErrNoCatalog means that no catalog was applied yet.
var ErrNoCatalog = errors.New("there is no catalog yet: run `tollgate apply FILE`")

// PrintCatalog prints a revision of the catalog as YAML, the current one for 0.
func PrintCatalog(ctx context.Context, s *Settings, revision int64, w io.Writer) error {
	var doc *catalog.Document
	err := view(ctx, s, func(tx *store.Tx) (err error) {
		if revision > 0 {
			doc, err = catalog.RevisionTx(tx, revision)
			return err
		}
		doc, _, err = catalog.CurrentTx(tx)
		return err
	})
	switch {
	case errors.Is(err, catalog.ErrNoRevision) && revision > 0:
		return fmt.Errorf("there is no catalog revision %d: see `tollgate catalog --history`", revision)
	case errors.Is(err, catalog.ErrNoRevision):
		return ErrNoCatalog
	case err != nil:
		return err
	}
	_, err = w.Write(doc.YAML())
	return err
}

// historyPage is the number of revisions read at a time.
const historyPage = 100

// PrintHistory lists all revisions, newest first, with their changes.
func PrintHistory(ctx context.Context, s *Settings, w io.Writer) error {
	return view(ctx, s, func(tx *store.Tx) error {
		for before, more := int64(0), true; more; {
			var list []catalog.Revision
			var err error
			if list, more, err = catalog.HistoryTx(tx, before, historyPage); err != nil {
				return err
			}
			for _, r := range list {
				before = r.Number
				if _, err := fmt.Fprintf(w, "revision %d, applied %s\n", r.Number, time.UnixMilli(r.AppliedMS).UTC().Format(time.RFC3339)); err != nil {
					return err
				}
				for _, change := range r.Changes {
					if _, err := fmt.Fprintf(w, "  %s\n", change); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
}

// Audit recomputes the books of the settings' database, or of one account if only is not empty. If
// copied is true, the database is a copy taken while the service ran.
func Audit(ctx context.Context, s *Settings, only string, copied bool) (report audit.Findings, err error) {
	db, err := OpenDatabase(ctx, s, false)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	checks := []audit.Check{audit.WithoutProcess(db.IsServed), account.AuditTx, topup.AuditTx, invoice.AuditTx, operator.Check(),
		proof.Check(s.JobRetention)}
	if copied {
		checks = append(checks, audit.AsCopy)
	}
	report, err = audit.RunWith(ctx, db, audit.Options{Account: only, Checks: checks})
	if errors.Is(err, audit.ErrNoAccount) {
		err = fmt.Errorf("there is no account %q; `tollgate account list` shows the accounts", only)
	}
	return report, err
}

// view runs fn on a snapshot of the settings' database.
func view(ctx context.Context, s *Settings, fn func(tx *store.Tx) error) (err error) {
	db, err := OpenDatabase(ctx, s, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.View(ctx, fn)
}
