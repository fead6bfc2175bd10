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
	for _, found := range candidates(k.Model.Node, c.Words) {
		if _, err := fmt.Fprintf(p.stdout, "%s\t%s\n", found.word, found.means); err != nil {
			return err
		}
	}
	return nil
}

// candidate is a word that may follow, and what it means.
type candidate struct{ word, means string }

// candidates returns the commands, or flags, that begin with the last word.
func candidates(root *kong.Node, words []string) (found []candidate) {
	if len(words) == 0 {
		words = []string{""}
	}
	hideFlags(root, childOf(root, "serve")) // shows all
	last, before := words[len(words)-1], words[:len(words)-1]
	node, value := root, false // value: the next word is that of a flag
	for _, word := range before {
		switch {
		case value:
			value = false
		case strings.HasPrefix(word, "-"):
			flag := flagOf(node, word)
			value = flag != nil && !flag.IsBool() && !strings.Contains(word, "=")
		default:
			if child := childOf(node, word); child != nil {
				node = child
			}
		}
	}
	if value {
		return nil
	}
	if strings.HasPrefix(last, "-") {
		hideFlags(root, node)
		for _, flag := range flagsOf(node) {
			found = append(found, candidate{"--" + flag.Name, flag.Help})
		}
	} else {
		for _, child := range node.Children {
			if !child.Hidden {
				found = append(found, candidate{child.Name, child.Help})
			}
		}
		found = append(found, wordsOf(node)...)
	}
	return slices.DeleteFunc(found, func(c candidate) bool { return !strings.HasPrefix(c.word, last) })
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
