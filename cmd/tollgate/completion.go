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

// The scripts ask `tollgate complete` for what may stand in place of the last word,
// so that commands and flags are known in one place. Where it knows nothing the
// shell completes names of files.
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
  local -a found
  local line
  for line in "${(@f)$("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] && found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  if (( $#found )); then _describe tollgate found; else _files; fi
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

// Run prints the script of a shell.
func (c *completionCommand) Run(p *process) error {
	script := map[string]string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}[c.Shell]
	_, err := fmt.Fprint(p.stdout, script)
	return err
}

type completeCommand struct {
	Words []string `arg:"" optional:"" help:"The words so far, the last of which is to be completed."`
}

// Run prints what may stand in place of the last word, a line each: the word, a tab
// and what it means.
func (c *completeCommand) Run(p *process, k *kong.Kong) error {
	at := placeOf(k.Model.Node, c.Words)
	found := at.candidates(k.Model.Node)
	if at.takes != "" {
		found = append(found, p.ids(at)...)
	}
	for _, one := range found {
		if _, err := fmt.Fprintf(p.stdout, "%s\t%s\n", one.word, one.means); err != nil {
			return err
		}
	}
	return nil
}

// candidate is a word that may follow, and what it means.
type candidate struct{ word, means string }

// place is where a word is to be completed.
type place struct {
	last  string     // what there is of the word
	node  *kong.Node // the command
	value bool       // the word is the value of a flag
	takes string     // the name of the argument that the word is; empty: none, or a flag
	flags map[string]string
}

// placeOf returns where the last word stands.
func placeOf(root *kong.Node, words []string) place {
	if len(words) == 0 {
		words = []string{""}
	}
	hideFlags(root, childOf(root, "serve")) // shows all
	at := place{last: words[len(words)-1], node: root, flags: map[string]string{}}
	flag, arguments := "", 0
	for _, word := range words[:len(words)-1] {
		switch {
		case flag != "":
			at.flags[flag], flag = word, ""
		case strings.HasPrefix(word, "-"):
			name, value, given := strings.Cut(strings.TrimLeft(word, "-"), "=")
			if given {
				at.flags[name] = value
			} else if known := flagOf(at.node, word); known != nil && !known.IsBool() {
				flag = name
			}
		default:
			if child := childOf(at.node, word); child != nil {
				at.node = child
			} else {
				arguments++
			}
		}
	}
	at.value = flag != ""
	if !at.value && !strings.HasPrefix(at.last, "-") && arguments < len(at.node.Positional) {
		at.takes = at.node.Positional[arguments].Name
	}
	return at
}

// candidates returns the commands, flags and fixed words that begin with the word.
func (at place) candidates(root *kong.Node) (found []candidate) {
	switch {
	case at.value:
		return nil
	case strings.HasPrefix(at.last, "-"):
		hideFlags(root, at.node)
		for _, flag := range flagsOf(at.node) {
			found = append(found, candidate{"--" + flag.Name, flag.Help})
		}
	default:
		for _, child := range at.node.Children {
			if !child.Hidden {
				found = append(found, candidate{child.Name, child.Help})
			}
		}
		found = append(found, wordsOf(at.node)...)
	}
	return at.beginning(found)
}

// beginning returns the candidates that begin with the word.
func (at place) beginning(found []candidate) []candidate {
	return slices.DeleteFunc(found, func(c candidate) bool { return !strings.HasPrefix(c.word, at.last) })
}

// wordsOf are the words that an argument of a command may be.
func wordsOf(node *kong.Node) (found []candidate) {
	for _, argument := range node.Positional {
		if argument.Enum != "" {
			for _, word := range argument.EnumSlice() {
				found = append(found, candidate{word, argument.Help})
			}
		}
	}
	return found
}

// flagOf returns the flag of a word; nil: there is none.
func flagOf(node *kong.Node, word string) *kong.Flag {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	for _, flag := range flagsOf(node) {
		if flag.Name == name {
			return flag
		}
	}
	return nil
}

// flagsOf returns the flags that a command takes.
func flagsOf(node *kong.Node) (flags []*kong.Flag) {
	for _, group := range node.AllFlags(true) {
		flags = append(flags, group...)
	}
	return flags
}
