package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// The scripts call `tollgate complete` with the words of the command line. If there are
// no completions, the shell completes file names. ADR 18 explains why this uses no library.
const (
	bashCompletion = `# bash: source <(tollgate completion bash)
_tollgate() {
  local IFS=$'\n'
  COMPREPLY=($("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
}
complete -o default -F _tollgate tollgate
`
	zshCompletion = `#compdef tollgate
# zsh: source <(tollgate completion zsh), or a file _tollgate in $fpath
_tollgate() {
  local -a candidates
  local line
  for line in "${(@f)$("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] && candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  if (( $#candidates )); then _describe tollgate candidates; else _files; fi
}
if [[ $funcstack[1] == _tollgate ]]; then _tollgate "$@"; else compdef _tollgate tollgate; fi
`
	fishCompletion = `# fish: tollgate completion fish | source
function __tollgate_complete
  set -l words (commandline -opc) (commandline -ct)
  $words[1] complete -- $words[2..-1] 2>/dev/null
end
complete -c tollgate -a '(__tollgate_complete)'
`
)

func (c *completionCommand) Run(p *process) error {
	script := map[string]string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}[c.Shell]
	_, err := fmt.Fprint(p.stdout, script)
	return err
}

type completeCommand struct {
	Words []string `arg:"" optional:"" help:"The words so far. The last one is completed."`
}

// Run prints the completions of the last word. Each line has a word, a tab and a description.
func (c *completeCommand) Run(p *process, k *kong.Kong) error {
	l := parsePartial(k.Model.Node, c.Words)
	candidates := l.candidates(k.Model.Node)
	if l.argument != "" {
		candidates = append(candidates, p.ids(l)...)
	}
	for _, c := range candidates {
		if _, err := fmt.Fprintf(p.stdout, "%s\t%s\n", c.word, c.help); err != nil {
			return err
		}
	}
	return nil
}

// candidate is a possible completion.
type candidate struct{ word, help string }

// partialLine is an unfinished command line.
type partialLine struct {
	last     string     // the beginning of the last word
	node     *kong.Node // the command
	isValue  bool       // the last word is the value of a flag
	argument string     // name of the positional argument at the last word; may be empty
	flags    map[string]string
}

func parsePartial(root *kong.Node, words []string) partialLine {
	if len(words) == 0 {
		words = []string{""}
	}
	hideFlags(root, childOf(root, "serve")) // shows all settings
	l := partialLine{last: words[len(words)-1], node: root, flags: map[string]string{}}
	flag, arguments := "", 0
	for _, word := range words[:len(words)-1] {
		switch {
		case flag != "":
			l.flags[flag], flag = word, ""
		case strings.HasPrefix(word, "-"):
			name, value, hasValue := strings.Cut(strings.TrimLeft(word, "-"), "=")
			if hasValue {
				l.flags[name] = value
			} else if f := flagOf(l.node, word); f != nil && !f.IsBool() {
				flag = name
			}
		default:
			if child := childOf(l.node, word); child != nil {
				l.node = child
			} else {
				arguments++
			}
		}
	}
	l.isValue = flag != ""
	if !l.isValue && !strings.HasPrefix(l.last, "-") && arguments < len(l.node.Positional) {
		l.argument = l.node.Positional[arguments].Name
	}
	return l
}

// candidates returns the matching commands, flags and words of enumerations.
func (l partialLine) candidates(root *kong.Node) (matches []candidate) {
	switch {
	case l.isValue:
		return nil
	case strings.HasPrefix(l.last, "-"):
		hideFlags(root, l.node)
		for _, flag := range flagsOf(l.node) {
			matches = append(matches, candidate{"--" + flag.Name, flag.Help})
		}
	default:
		for _, child := range l.node.Children {
			if !child.Hidden {
				matches = append(matches, candidate{child.Name, child.Help})
			}
		}
		for _, argument := range l.node.Positional {
			if argument.Enum != "" {
				for _, word := range argument.EnumSlice() {
					matches = append(matches, candidate{word, argument.Help})
				}
			}
		}
	}
	return l.matching(matches)
}

// matching returns the candidates that begin with the last word.
func (l partialLine) matching(all []candidate) []candidate {
	return slices.DeleteFunc(all, func(c candidate) bool { return !strings.HasPrefix(c.word, l.last) })
}

// flagOf returns the flag of a word such as --name or --name=value, or nil if the command
// has no such flag.
func flagOf(node *kong.Node, word string) *kong.Flag {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	for _, flag := range flagsOf(node) {
		if flag.Name == name {
			return flag
		}
	}
	return nil
}

// flagsOf returns the flags of a command and its parents.
func flagsOf(node *kong.Node) (flags []*kong.Flag) {
	for _, group := range node.AllFlags(true) {
		flags = append(flags, group...)
	}
	return flags
}
