package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"tollgate/internal/app"
)

// needsSubcommand reports whether the command line ends before a required subcommand.
// Then run shows the help instead, with exit code 0.
func needsSubcommand(node *kong.Node, args []string) bool {
	for _, arg := range args {
		if node = childOf(node, arg); node == nil {
			return false
		}
	}
	return !node.Leaf()
}

// childOf returns the subcommand with a name or alias, or nil if it does not exist.
func childOf(node *kong.Node, name string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == name || slices.Contains(child.Aliases, name) {
			return child
		}
	}
	return nil
}

// mainSetting returns the name of the only setting that a command's help shows.
func mainSetting(command *kong.Node) string {
	if command != nil && command.Name == "health" {
		return "listen"
	}
	return "database"
}

// hideFlags hides global flags from the help of a command. Only serve shows all settings;
// other commands show mainSetting. A nil command stands for the list of commands.
func hideFlags(root, command *kong.Node) {
	serve := command != nil && command.Name == "serve"
	for _, flag := range root.Flags {
		switch {
		case flag.Name == "version":
			flag.Hidden = command != nil
		case flag.Group != nil && flag.Group.Key == settingsGroup:
			flag.Hidden = !serve && (flag.Name != mainSetting(command) || command == nil || !command.Leaf())
		}
	}
}

// withHelpHint adds the command's --help to an error about an unknown command or a missing
// argument, such as `expected "<account>"`.
func withHelpHint(err error) error {
	parse, ok := errors.AsType[*kong.ParseError](err)
	if !ok || parse.Context == nil {
		return err
	}
	command := cmp.Or(parse.Context.Selected(), parse.Context.Model.Node)
	word, unexpected := strings.CutPrefix(err.Error(), "unexpected argument ")
	switch {
	case unexpected && !command.Leaf():
		word, _, _ = strings.Cut(word, ",") // kong may suggest another word
		err = fmt.Errorf("unknown command %s", word)
	case !strings.HasPrefix(err.Error(), "expected ") || command.Parent == nil:
		return err
	}
	var path []string
	for node := command; node != nil; node = node.Parent {
		path = append(path, node.Name)
	}
	slices.Reverse(path)
	return fmt.Errorf("%w: see `%s --help`", err, strings.Join(path, " "))
}

// printHelp prints a command with its own flags, or its subcommands, one per line.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	selected := ctx.Selected()
	hideFlags(ctx.Model.Node, selected)
	options.NoExpandSubcommands = true
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil || selected != nil && selected.Name == "serve" {
		return err
	}
	_, err := fmt.Fprintln(ctx.Stdout, "\nEach command accepts all settings. `tollgate help settings` lists them.")
	return err
}

type helpCommand struct {
	Topic []string `arg:"" optional:"" help:"A command, or settings."`
}

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
			return usageError{fmt.Errorf("there is no command %q: see `tollgate help`", strings.Join(c.Topic, " "))}
		}
	}
	_, err = parser.Parse(append(slices.Clone(c.Topic), "--help")) // ends the process
	return err
}

// printSettings prints all settings with their variables and defaults.
func (p *process) printSettings() error {
	var out strings.Builder
	out.WriteString("Each setting is a flag, an environment variable, or a key of the YAML file named by\n" +
		"--config or TOLLGATE_CONFIG, in this order of precedence.\n")
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

// BeforeReset prints the version and exits before the parser reports a missing command.
func (versionFlag) BeforeReset(k *kong.Kong, p *process) error {
	if _, err := fmt.Fprintln(p.stdout, readBuildInfo()); err != nil {
		return err
	}
	k.Exit(exitOK)
	return nil
}

// IgnoreDefault stops kong from running BeforeReset without the flag.
func (versionFlag) IgnoreDefault() {}
