package guides

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// step is a file to write, or a command to run.
type step struct {
	source string // file and line, for errors
	file   string // name of the file; empty for a command
	text   string // content of the file, or the command
	script bool   // the command is from testdata: only a json block checks its output
	want   []string
	json   string
}

// server matches the commands that a reader runs in a separate terminal.
var server = regexp.MustCompile(`^(tollgate|open-webui) serve\b[^>]*$`)

// background reports whether the command continues to run during later steps.
func (st step) background() bool {
	return !st.script && (server.MatchString(st.text) || strings.HasSuffix(st.text, " &"))
}

// section is a part of testdata/NAME.sh. It runs before a line of the document.
type section struct {
	source, title, text string
}

// readScript splits testdata/NAME.sh into sections, and pairs of texts: the first text of a
// pair is replaced by the second one.
func readScript(path, text string) (sections []section, replacements [][2]string) {
	for i, line := range strings.Split(text, "\n") {
		if pair, ok := strings.CutPrefix(line, "#= "); ok {
			from, to, _ := strings.Cut(pair, " ")
			replacements = append(replacements, [2]string{from, to})
		} else if title, ok := strings.CutPrefix(line, "### "); ok {
			sections = append(sections, section{fmt.Sprintf("%s:%d", path, i+1), title, ""})
		} else if len(sections) > 0 {
			sections[len(sections)-1].text += line + "\n"
		}
	}
	return sections, replacements
}

const documentEnd = "(end)" // title of a section to run after the last step

var (
	fence  = regexp.MustCompile("^( *)```(.*)$")
	notRun = regexp.MustCompile(`^\s*<!-- not run: .+ -->$`)
)

// parse returns the steps of a document, and the number of blocks that do not run.
func parse(path, text string, sections []section) (steps []step, skipped int, err error) {
	var (
		lines  []string // of the open block; the first line has the language and name
		indent string
		first  int  // index of the first step of the block
		skip   bool // the block is not run
	)
	for i, line := range append(strings.Split(text, "\n"), documentEnd) {
		source := fmt.Sprintf("%s:%d", path, i+1)
		if len(sections) > 0 && strings.HasPrefix(strings.TrimSpace(line), sections[0].title) {
			steps = append(steps, step{source: sections[0].source, text: sections[0].text, script: true})
			sections = sections[1:]
		}
		switch block := fence.FindStringSubmatch(line); {
		case lines == nil && block != nil:
			lines, indent, first = []string{block[2]}, block[1], len(steps)
		case lines == nil && notRun.MatchString(line):
			skip = true
		case lines == nil && strings.Contains(line, "<!--"):
			err = errors.New("the only comment is <!-- not run: REASON -->")
		case lines == nil:
		case block == nil:
			line = strings.TrimPrefix(line, indent)
			if lines = append(lines, line); lines[0] == "console" {
				steps, err = console(steps, first, line, source)
			}
		default:
			if skip {
				steps = steps[:first]
				skipped++
			} else {
				steps, err = endBlock(steps, first, lines)
			}
			lines, skip = nil, false
		}
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", source, err)
		}
	}
	if lines != nil {
		return nil, 0, fmt.Errorf("%s: the last block has no end", path)
	}
	if len(sections) > 0 {
		return nil, 0, fmt.Errorf("%s: no further line of %s begins with %q", sections[0].source, path, sections[0].title)
	}
	return steps, skipped, nil
}

// console adds a line of a console block to the steps. The block's steps begin at first.
func console(steps []step, first int, line, source string) ([]step, error) {
	if command, ok := strings.CutPrefix(line, "$ "); ok {
		return append(steps, step{source: source, text: command}), differsAtTerminal(command)
	}
	if len(steps) == first {
		return nil, errors.New("output before a command")
	}
	last := &steps[len(steps)-1]
	switch {
	case last.want == nil && (line == ">" || strings.HasPrefix(line, "> ")):
		last.text += "\n" + strings.TrimPrefix(line[1:], " ")
	case last.want == nil && strings.HasSuffix(last.text, "\\"):
		last.text += "\n" + line
	default:
		last.want = append(last.want, line)
	}
	return steps, nil
}

// endBlock adds the rest of a complete block to the steps.
func endBlock(steps []step, first int, lines []string) ([]step, error) {
	last := len(steps) - 1
	text := strings.Join(lines[1:], "\n")
	words := strings.Fields(lines[0])
	switch {
	case lines[0] == "console" && last >= first:
	case lines[0] == "json" && last >= 0 && steps[last].file == "" && steps[last].want == nil && steps[last].json == "":
		steps[last].json = text
	case len(words) == 2 && filepath.IsLocal(words[1]):
		steps = append(steps, step{file: words[1], text: text + "\n"})
	default:
		return nil, errors.New("a block is console with a command, json after a command without output, or LANGUAGE FILE, or it follows " +
			"<!-- not run: REASON -->")
	}
	return steps, nil
}

var (
	literal = regexp.MustCompile(`\\.|'[^']*'`)           // escaped, or in single quotes
	quoted  = regexp.MustCompile(`"[^"]*"`)               // in double quotes
	history = regexp.MustCompile(`(?:^|[^${\[])![^\s=(]`) // history expansion of bash
	remark  = regexp.MustCompile(`(?m)(?:^|\s)#`)         // a comment, which an interactive zsh does not support
)

// differsAtTerminal returns an error if an interactive shell would parse the command differently.
func differsAtTerminal(command string) error {
	command = literal.ReplaceAllString(command, "x")
	if history.MatchString(command) {
		return errors.New("an interactive shell replaces ! by its history: put it into single quotes")
	}
	if remark.MatchString(quoted.ReplaceAllString(command, "x")) {
		return errors.New("some interactive shells have no comments: write the comment as text")
	}
	return nil
}
