package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"tollgate/internal/app"
)

// asksForCommands tells whether a command line stops where a command has to follow:
// that shows which there are, as well-made tools do, and is no mistake.
func asksForCommands(node *kong.Node, args []string) bool {
	for _, arg := range args {
		if node = childOf(node, arg); node == nil {
			return false
		}
	}
	return !node.Leaf()
}

// childOf returns the command of a name below a command; nil: there is none.
func childOf(node *kong.Node, name string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == name || slices.Contains(child.Aliases, name) {
			return child
		}
	}
	return nil
}

// hideFlags leaves those flags of all commands out that a command, nil for none, does
// not show: serve uses all settings, the others the database.
func hideFlags(root, command *kong.Node) {
	serve := command != nil && command.Name == "serve"
	for _, flag := range root.Flags {
		switch {
		case flag.Name == "version":
			flag.Hidden = command != nil
		case flag.Group != nil && flag.Group.Key == settingsGroup:
			flag.Hidden = !serve && (flag.Name != "database" || command == nil || !command.Leaf())
		}
	}
}

// whereHelpIs adds to a command line that lacks something (`expected "<account>"`) where
// what belongs there is told.
func whereHelpIs(err error) error {
	parse, ok := errors.AsType[*kong.ParseError](err)
	if !ok || !strings.HasPrefix(err.Error(), "expected ") || parse.Context == nil || parse.Context.Selected() == nil {
		return err
	}
	var path []string
	for node := parse.Context.Selected(); node != nil; node = node.Parent {
		path = append(path, node.Name)
	}
	slices.Reverse(path)
	return fmt.Errorf("%w: `%s --help` tells what it takes", err, strings.Join(path, " "))
}

// printHelp shows a command with its own flags, or the commands below it, a line
// each.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	selected := ctx.Selected()
	hideFlags(ctx.Model.Node, selected)
	options.NoExpandSubcommands = true
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil || selected != nil && selected.Name == "serve" {
		return err
	}
	_, err := fmt.Fprintln(ctx.Stdout, "\nEach command takes all settings; `tollgate help settings` lists them.")
	return err
}

type helpCommand struct {
	Topic []string `arg:"" optional:"" help:"A command, or settings."`
}

// Run shows what a command takes, or the settings.
func (c *helpCommand) Run(p *process) error {
	if len(c.Topic) == 1 && c.Topic[0] == "settings" {
		return p.printSettings()
	}
	parser, err := p.parser(new(commandLine))
	if err != nil {
		return err
	}
	node := parser.Model.Node
	for _, word := range c.Topic {
		if node = childOf(node, word); node == nil {
			return usageError{fmt.Errorf("there is no command %q: `tollgate help` lists them", strings.Join(c.Topic, " "))}
		}
	}
	_, err = parser.Parse(append(slices.Clone(c.Topic), "--help")) // which ends the process
	return err
}

// printSettings lists all settings, whatever --help of serve leaves out for space.
func (p *process) printSettings() error {
	var out strings.Builder
	out.WriteString("Each setting is a flag, a variable of the environment, or a key of the YAML file\n" +
		"that --config or TOLLGATE_CONFIG names, in that order of precedence.\n")
	for _, s := range app.AllSettings() {
		fmt.Fprintf(&out, "\n%s  (--%s, %s)\n    %s", s.Key, s.Flag(), s.Env(), s.Help)
		if s.Default != "" {
			fmt.Fprintf(&out, " (default: %s)", s.Default)
		}
		out.WriteString("\n")
	}
	_, err := p.stdout.Write([]byte(out.String()))
	return err
}

// versionFlag prints the version instead of running a command.
type versionFlag bool

// BeforeReset prints the version, before it is asked for a command.
func (versionFlag) BeforeReset(k *kong.Kong, p *process) error {
	if _, err := fmt.Fprintln(p.stdout, readBuildInfo()); err != nil {
		return err
	}
	k.Exit(exitDone)
	return nil
}

// IgnoreDefault keeps the flag from being taken for given.
func (versionFlag) IgnoreDefault() {}
