package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
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
		Stdout: p.stdout, Stderr: p.stderr, Lookup: os.LookupEnv, Version: readBuildInfo().Version, Reread: reread,
		Restart: p.restart(os.Args[0]),
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

// restart returns the command that starts this service again, for a shell: the program's
// name, the flags that it was started with, and the variables that settings came from. The
// values of secrets are left out.
func (p *process) restart(name string) string {
	words := []string{cmp.Or(callable(name), "tollgate"), "serve"}
	var named []string
	if p.config != "" {
		words = append(words, "--config="+quoted(p.config))
	} else if os.Getenv(app.ConfigEnv) != "" {
		named = append(named, app.ConfigEnv)
	}
	given, secret := p.flags.given(), false
	for _, s := range app.AllSettings() {
		value, set := given[s.Key]
		switch {
		case !set:
			if os.Getenv(s.Env()) != "" {
				named = append(named, s.Env())
			}
		case s.Secret && !s.NamesFile():
			secret = true
			words = append(words, "--"+s.Flag()+"=…")
		case s.Switch && value == "true":
			words = append(words, "--"+s.Flag())
		default:
			words = append(words, "--"+s.Flag()+"="+quoted(value))
		}
	}
	line := strings.Join(words, " ")
	if secret {
		line += "\n\nPut your own value in place of each …, which is a secret."
	}
	if len(named) > 0 {
		line += "\n\nThe environment must have the same variables: " + strings.Join(named, ", ")
	}
	return line
}

// callable is how a shell calls the program that was started by a name; empty: nobody
// could copy that.
func callable(name string) string {
	if name == "" || strings.HasPrefix(name, "-") || harmless(name) != name {
		return ""
	}
	return quoted(name)
}

// quoted returns a word as a shell reads it.
func quoted(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:,@%+"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(harmless(word), "'", `'\''`) + "'"
}

type applyCommand struct {
	File   string `arg:"" help:"Catalog file, YAML or JSON; - reads standard input."`
	DryRun bool   `help:"Only show what would change."`
	Yes    bool   `help:"Do not ask before models that had requests in the last 30 days are removed." short:"y"`
}

// Run makes a file the current catalog.
func (c applyCommand) Run(p *process) error {
	settings, err := p.settings()
	if err != nil {
		return err
	}
	how := app.Applying{DryRun: c.DryRun, Lookup: os.LookupEnv, In: p.stdin, Streams: app.Streams{Out: p.stdout, Err: p.stderr}}
	if !c.Yes && p.canAsk() {
		how.Confirm = p.ask
	}
	err = app.Apply(p.ctx, settings, c.File, how)
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

type auditCommand struct {
	Copy bool `help:"The database is a copy that was taken while the service ran: count the open holds of the process, do not report them."`
}

// Run proves the books.
func (c auditCommand) Run(p *process) error {
	settings, err := p.settings()
	if err != nil {
		return err
	}
	report, err := app.Audit(p.ctx, settings, c.Copy)
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

type healthCommand struct{}

// Run asks the running service, for the health checks of containers that hold
// nothing but the binary. It says nothing where all is well.
func (healthCommand) Run(p *process) error {
	s, err := p.settings()
	if err != nil {
		return err
	}
	return app.AskHealth(p.ctx, s)
}

type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run(p *process) error {
	_, err := fmt.Fprintln(p.stdout, readBuildInfo())
	return err
}
