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

func (serveCommand) Run(p *process, settings *app.Settings) error {
	reload := make(chan os.Signal, 1) // one pending signal is enough
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	a, err := app.New(p.ctx, settings, app.Options{
		Stdout: p.stdout, Stderr: p.stderr, Lookup: p.lookupEnv, Version: readBuildInfo().Version, Reread: reload,
		Restart: p.restart(os.Args[0]),
	})
	switch {
	case err != nil && p.ctx.Err() != nil:
		printError(p.stderr, "stopped before it was ready")
		return nil
	case err != nil:
		return err
	}
	return a.Serve(p.ctx)
}

// restart returns the shell command to start this service again, without the values of
// secrets. It also lists the environment variables with settings.
func (p *process) restart(name string) string {
	words := []string{cmp.Or(shellName(name), "tollgate"), "serve"}
	var variables []string
	if p.config != "" {
		words = append(words, "--config="+shellQuote(p.config))
	} else if p.environ[app.ConfigEnv] != "" {
		variables = append(variables, app.ConfigEnv)
	}
	values, hasSecret := p.flags.values(), false
	for _, s := range app.AllSettings() {
		value, isSet := values[s.Key]
		switch {
		case !isSet:
			if p.environ[s.Env()] != "" {
				variables = append(variables, s.Env())
			}
		case s.Hides(value):
			hasSecret = true
			words = append(words, "--"+s.Flag()+"=…")
		case s.Switch && value == "true":
			words = append(words, "--"+s.Flag())
		default:
			words = append(words, "--"+s.Flag()+"="+shellQuote(value))
		}
	}
	line := strings.Join(words, " ")
	if hasSecret {
		line += "\n\nReplace each … with your own secret value."
	}
	if len(variables) > 0 {
		line += "\n\nSet the same environment variables: " + strings.Join(variables, ", ")
	}
	return line
}

// shellName returns the program's name quoted for a shell, or "" if the name cannot be
// copied from a terminal.
func shellName(name string) string {
	if name == "" || strings.HasPrefix(name, "-") || printable(name) != name {
		return ""
	}
	return shellQuote(name)
}

func shellQuote(word string) string {
	const unquoted = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:,@%+"
	if word != "" && strings.Trim(word, unquoted) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(printable(word), "'", `'\''`) + "'"
}

type applyCommand struct {
	File   string `arg:"" help:"Catalog file, YAML or JSON; - reads standard input."`
	DryRun bool   `help:"Only show the changes."`
	Yes    bool   `help:"Do not ask before removing models with requests in the last 30 days." short:"y"`

	At            *moment `help:"Schedule the changes: a UTC day, an RFC 3339 time, or a duration such as 24h." placeholder:"TIME"`
	Note          string  `help:"With --at: a line for operators."`
	TellCustomers bool    `help:"With --at: customers see the new prices before, and get a mail if mail is on."`
}

func (c applyCommand) Run(p *process, settings *app.Settings) error {
	options := app.Applying{DryRun: c.DryRun, Lookup: p.lookupEnv, In: p.stdin, Streams: app.Streams{Out: p.stdout, Err: p.stderr}}
	if !c.Yes && p.canAsk() {
		options.Confirm = p.ask
	}
	if c.At != nil {
		options.At, options.Note, options.TellCustomers = c.At.resolve(p.now()), c.Note, c.TellCustomers
	} else if c.Note != "" || c.TellCustomers {
		return usageError{errors.New("--note and --tell-customers need --at")}
	}
	err := app.Apply(p.ctx, settings, c.File, options)
	if errors.Is(err, app.ErrCatalog) {
		err = usageError{err}
	}
	return err
}

type catalogCommand struct {
	History  bool   `help:"List the revisions with their changes." xor:"what"`
	Revision *int64 `help:"Print this revision instead of the current one." xor:"what" placeholder:"N"`

	Scheduled bool `help:"List the pending changes with their times." xor:"what"`
}

func (c catalogCommand) Run(p *process, settings *app.Settings) error {
	if c.History {
		return app.PrintHistory(p.ctx, settings, p.stdout)
	}
	if c.Scheduled {
		return app.PrintScheduled(p.ctx, settings, p.stdout)
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
	Account string `help:"Audit one account, by its id."`
	Copy    bool   `help:"Audit a copy that was taken while the service ran: open holds are counted, not reported."`
}

func (c auditCommand) Run(p *process, settings *app.Settings) error {
	report, err := app.Audit(p.ctx, settings, c.Account, c.Copy)
	if err != nil {
		return err
	}
	out := json.NewEncoder(p.stdout)
	out.SetIndent("", "  ")
	if err := out.Encode(report); err != nil {
		return err
	}
	if !report.OK {
		return fmt.Errorf("the books differ in %d places: see the list of differences in the output", len(report.Differences))
	}
	return nil
}

type healthCommand struct{}

// Run returns an error if the running service is not ready. Containers without other
// programs use it as their health check.
func (healthCommand) Run(p *process, settings *app.Settings) error {
	return app.AskHealth(p.ctx, settings)
}

type versionCommand struct{}

func (versionCommand) Run(p *process) error {
	_, err := fmt.Fprintln(p.stdout, readBuildInfo())
	return err
}
