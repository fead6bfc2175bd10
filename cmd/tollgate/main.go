// Command tollgate owns the command line of the product's one binary: subcommands,
// flags, environment, signals and exit codes. Package app does the work.
//
// Invariants. The exit code is 0 for success, 1 for a failure or a rejection by the
// operator API, and 2 for bad flags, settings or files. With exit code 2, nothing was
// changed. An error is one line on standard error. Standard output has the result,
// and no messages.
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
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	p := &process{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, environ: parseEnviron(os.Environ()), now: time.Now}
	os.Exit(p.run(os.Args[1:]))
}

// process is the environment of a command, with the parsed flags.
type process struct {
	ctx     context.Context // ends at the first SIGTERM or SIGINT
	stdin   io.Reader
	stdout  io.Writer
	stderr  io.Writer
	environ map[string]string
	now     func() time.Time

	flags  settingFlags
	config string // --config
	format format // --json, --csv
}

// parseEnviron returns the variables of os.Environ by name.
func parseEnviron(list []string) map[string]string {
	environ := make(map[string]string, len(list))
	for _, entry := range list {
		name, value, _ := strings.Cut(entry, "=")
		environ[name] = value
	}
	return environ
}

// lookupEnv is os.LookupEnv for the process's environment.
func (p *process) lookupEnv(name string) (string, bool) {
	value, ok := p.environ[name]
	return value, ok
}

func (p *process) settings() (*app.Settings, error) {
	s, err := app.ReadSettings(app.Sources{Flags: p.flags.values(), Environ: p.environ, File: p.config})
	if err != nil {
		return nil, usageError{err}
	}
	return s, nil
}

// usageError is an error in flags, settings or files.
type usageError struct{ error }

// Unwrap returns the cause.
func (e usageError) Unwrap() error { return e.error }

// run parses the command line, runs its command and returns the exit code.
func (p *process) run(args []string) int {
	ctx, stop := untilSignal(func() {
		printError(p.stderr, "second signal, stopping at once")
		os.Exit(exitFailed)
	})
	defer stop()
	p.ctx, p.flags = ctx, newSettingFlags()
	var commands commandLine
	parser, err := p.parser(&commands)
	if err != nil {
		return fail(p.stderr, err)
	}
	if needsSubcommand(parser.Model.Node, args) {
		args = append(args, "--help")
	}
	var parsed *kong.Context
	if args, err = prepareArgs(parser.Model.Node, args); err == nil {
		parsed, err = parser.Parse(args)
	}
	if err != nil {
		return fail(p.stderr, usageError{withHelpHint(err)})
	}
	p.config = commands.Config
	if err := parsed.Run(); err != nil {
		return fail(p.stderr, err)
	}
	return exitOK
}

// parser returns a parser for commands that run with p.
func (p *process) parser(commands *commandLine) (*kong.Kong, error) {
	return kong.New(commands,
		kong.Name("tollgate"),
		kong.Description("A gateway for reselling generative AI: one key, one balance, exact bills."),
		kong.Writers(p.stdout, p.stderr),
		kong.Embed(p.flags.target()),
		kong.ExplicitGroups([]kong.Group{{Key: settingsGroup, Title: "Settings (also TOLLGATE_… in the environment, or a YAML file):"}}),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Help(printHelp),
		kong.Bind(p),
		kong.BindToProvider(p.settings),
		kong.WithHyphenPrefixedParameters(true),
	)
}

// untilSignal returns a context that ends at the first SIGTERM or SIGINT, and calls
// onSecond at the second signal (see signalInterval). stop ends the handling of signals.
func untilSignal(onSecond func()) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		handleSignals(signals, quit, cancel, onSecond)
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(quit)
		<-done
		cancel()
	}
}

// signalInterval is the time after the first signal during which further signals are ignored,
// because some terminals and supervisors signal a process group twice.
const signalInterval = 2 * time.Second

// handleSignals calls onFirst at the first signal, and onSecond at the next signal that is
// not ignored (see signalInterval). It returns after onSecond, or when quit is closed.
func handleSignals(signals <-chan os.Signal, quit <-chan struct{}, onFirst, onSecond func()) {
	var firstTime time.Time
	for {
		select {
		case <-signals:
		case <-quit:
			return
		}
		switch {
		case firstTime.IsZero():
			firstTime = time.Now()
			onFirst()
		case time.Since(firstTime) >= signalInterval:
			onSecond()
			return
		}
	}
}

// fail prints an error as one line and returns its exit code.
func fail(stderr io.Writer, err error) int {
	code := exitFailed
	var usage usageError
	var setting *app.SettingError
	if errors.As(err, &usage) || errors.As(err, &setting) {
		code = exitUsage
	}
	printError(stderr, strings.ReplaceAll(err.Error(), "\n", "; "))
	return code
}

// printError prints a line for people. It ignores write errors.
func printError(stderr io.Writer, line string) { _, _ = fmt.Fprintln(stderr, "tollgate:", line) }
