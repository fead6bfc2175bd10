// Command tollgate owns the command line, the environment, signals and exit
// codes of the product's one binary: the service and the commands that manage
// it. What the commands do lives in package app.
//
// Invariants: the exit code is 0 for what was done, 1 for what was refused or
// failed, 2 for bad flags, settings or files, and then nothing was changed; an
// error is one clear line on standard error; output that programs read is on
// standard output alone.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"tollgate/internal/app"
)

// Exit codes.
const (
	exitDone    = 0
	exitRefused = 1
	exitUsage   = 2
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// process is what every command works with.
type process struct {
	ctx    context.Context // ends at the first SIGTERM or SIGINT
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	flags  settingFlags
	config string // --config
	now    func() time.Time
	format format // --json, --csv
}

// settings reads the settings of the process.
func (p *process) settings() (*app.Settings, error) {
	s, err := app.ReadSettings(app.Sources{Flags: p.flags.given(), Lookup: os.LookupEnv, Names: variables(), File: p.config})
	if err != nil {
		return nil, usageError{err}
	}
	return s, nil
}

// variables returns the names of the environment.
func variables() []string {
	all := os.Environ()
	for i := range all {
		all[i], _, _ = strings.Cut(all[i], "=")
	}
	return all
}

// usageError is a mistake in flags, settings or files.
type usageError struct{ error }

// Unwrap returns the mistake.
func (e usageError) Unwrap() error { return e.error }

// run parses the command line, runs its command and returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := untilSignal(func() {
		tell(stderr, "second signal, stopping at once")
		os.Exit(exitRefused)
	})
	defer stop()
	var commands commandLine
	p := &process{ctx: ctx, stdin: os.Stdin, stdout: stdout, stderr: stderr, flags: newSettingFlags(), now: time.Now}
	parser, err := p.parser(&commands)
	if err != nil {
		return fail(stderr, err)
	}
	if asksForCommands(parser.Model.Node, args) {
		args = append(args, "--help")
	}
	var parsed *kong.Context
	if args, err = settled(parser.Model.Node, args); err == nil {
		parsed, err = parser.Parse(args)
	}
	if err != nil {
		return fail(stderr, usageError{whereHelpIs(err)})
	}
	p.config = commands.Config
	if err := parsed.Run(); err != nil {
		return fail(stderr, err)
	}
	return exitDone
}

// parser makes the parser of the command line, whose commands run with p.
func (p *process) parser(commands *commandLine) (*kong.Kong, error) {
	return kong.New(commands,
		kong.Name("tollgate"),
		kong.Description("A gateway to generative models: one key, one balance, exact bills."),
		kong.Writers(p.stdout, p.stderr),
		kong.Embed(p.flags.target()),
		kong.ExplicitGroups([]kong.Group{{Key: settingsGroup, Title: "Settings (also TOLLGATE_… in the environment, or a YAML file):"}}),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Help(printHelp),
		kong.Bind(p),
		kong.WithHyphenPrefixedParameters(true),
	)
}

// untilSignal returns a context that ends at the first SIGTERM or SIGINT, and
// calls atOnce at the second (see sameSignal). Both are counted from here on, so
// that none is lost between them. stop ends the counting.
func untilSignal(atOnce func()) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	stopped, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		heed(signals, stopped, cancel, atOnce)
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(stopped)
		<-gone
		cancel()
	}
}

// sameSignal is how long after the first signal others count as the same one:
// terminals and supervisors send it to a whole group, and some send it twice.
const sameSignal = 2 * time.Second

// heed calls first at the first signal and then at the first that is another one,
// until stopped.
func heed(signals <-chan os.Signal, stopped <-chan struct{}, first, then func()) {
	var since time.Time
	for {
		select {
		case <-signals:
		case <-stopped:
			return
		}
		switch {
		case since.IsZero():
			since = time.Now()
			first()
		case time.Since(since) >= sameSignal:
			then()
			return
		}
	}
}

// fail says what went wrong, in one line, and returns the exit code for it.
func fail(stderr io.Writer, err error) int {
	code := exitRefused
	var usage usageError
	var setting *app.SettingError
	if errors.As(err, &usage) || errors.As(err, &setting) {
		code = exitUsage
	}
	tell(stderr, strings.ReplaceAll(err.Error(), "\n", "; "))
	return code
}

// tell prints one line for people; where they cannot be reached nobody else can
// be told.
func tell(stderr io.Writer, line string) { _, _ = fmt.Fprintln(stderr, "tollgate:", line) }
