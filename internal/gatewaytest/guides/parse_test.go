package guides

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// guide is what a document asks its reader to do, in order.
type guide struct {
	path     string   // as messages name it
	needs    []string // programs beside bash and curl
	packages []string // sets of packages that it installs
	steps    []step
	exempt   []exemption
}

// step is a file that is written or a command that is run.
type step struct {
	line   int    // of the document
	file   string // the file's name; empty: a command
	text   string // the file's content, or the command
	hidden bool   // a reader does not see the command; its output matters for a json block alone
	goesOn bool   // the command goes on while later ones run; its output is waited for
	typed  string // a line that its reader types when the command asks for what is not shown; empty: nothing
	exit   int    // the code that the command ends with
	want   []string
	json   string // the output wanted, as JSON in any layout; empty: want counts
}

// stand is a text of the document in whose place another is run: what a reader puts in,
// since it differs from one to the next.
type stand struct {
	text string
	by   string // an expansion of the shell, or anyText: it stands in what is printed alone
}

// exemption is a block that is not run.
type exemption struct {
	line   int
	reason string
}

var (
	fence   = regexp.MustCompile("^(\\s*)(```+)\\s*(.*)$")
	comment = regexp.MustCompile(`(?s)^(run|not run|with|types|exit|needs|packages|goes on)(?:: *(.*))?$`)

	variable = regexp.MustCompile(`^\$([A-Z_]+)$`)
	function = regexp.MustCompile(`^\$\([a-z_]+\)$`)
)

// parser reads a document line by line.
type parser struct {
	guide
	lines []string
	at    int // index of the next line
	with  []stand

	// What comments say of the next block.
	exemptFor string
	types     string
	exit      int
	goesOn    bool
}

// parse reads a guide. Every block has to be one that is run or one that says why it is
// not, and every comment one of those that the package comment names: what is misspelt
// would be left out in silence.
func parse(path, text string) (guide, error) {
	p := &parser{guide: guide{path: path}, lines: strings.Split(text, "\n")}
	for p.at < len(p.lines) {
		line := p.lines[p.at]
		p.at++
		var err error
		if found := fence.FindStringSubmatch(line); found != nil {
			err = p.block(found[1], found[2], found[3])
		} else if _, inside, ok := strings.Cut(line, "<!--"); ok {
			err = p.comment(inside)
		}
		if err != nil {
			return guide{}, err
		}
	}
	return p.guide, nil
}

// fault is an error at a line.
func (p *parser) fault(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", p.path, line, fmt.Sprintf(format, args...))
}

// comment reads a comment whose first line is given without its beginning.
func (p *parser) comment(first string) error {
	start, text := p.at, first
	for !strings.Contains(text, "-->") {
		if p.at == len(p.lines) {
			return p.fault(start, "the comment has no end")
		}
		text += "\n" + p.lines[p.at]
		p.at++
	}
	text, _, _ = strings.Cut(text, "-->")
	found := comment.FindStringSubmatch(strings.TrimSpace(text))
	if found == nil {
		return p.fault(start, "a comment is one of run, not run, with, types, exit, needs, packages, goes on: %q", strings.TrimSpace(text))
	}
	switch value := strings.TrimSpace(found[2]); found[1] {
	case "run":
		p.steps = append(p.steps, step{line: start, text: value, hidden: true})
	case "not run":
		if value == "" {
			return p.fault(start, "say why the block is not run")
		}
		p.exemptFor = value
	case "with":
		for _, word := range strings.Fields(value) {
			at := strings.LastIndex(word, "=")
			by := variable.ReplaceAllString(word[at+1:], "$${$1}")
			if at < 1 || by == word[at+1:] && by != anyText && !function.MatchString(by) {
				return p.fault(start, "with wants TEXT=$VARIABLE, TEXT=$(FUNCTION) or TEXT=%s: %q", anyText, word)
			}
			p.with = append(p.with, stand{word[:at], by})
		}
	case "types":
		if value == "" {
			return p.fault(start, "types wants a line")
		}
		p.types = value
	case "exit":
		code, err := strconv.Atoi(value)
		if err != nil {
			return p.fault(start, "exit wants a code: %v", err)
		}
		p.exit = code
	case "needs":
		p.needs = append(p.needs, strings.Fields(value)...)
	case "packages":
		p.packages = append(p.packages, strings.Fields(value)...)
	case "goes on":
		p.goesOn = true
	}
	return nil
}

// block reads a fenced block, whose first line is read.
func (p *parser) block(indent, ticks, info string) error {
	start := p.at
	var lines []string
	for {
		if p.at == len(p.lines) {
			return p.fault(start, "the block has no end")
		}
		line := strings.TrimPrefix(p.lines[p.at], indent)
		p.at++
		if strings.TrimSpace(line) == ticks {
			break
		}
		lines = append(lines, line)
	}
	defer func() { p.exemptFor, p.types, p.exit, p.goesOn = "", "", 0, false }()
	words := strings.Fields(info)
	switch {
	case p.exemptFor != "":
		p.exempt = append(p.exempt, exemption{start, p.exemptFor})
		for i, line := range lines {
			if command, ok := strings.CutPrefix(line, "$ "); ok && words[0] == "console" {
				if why := differsAtTerminal(command); why != "" {
					return p.fault(start+1+i, "%s: %s", why, command)
				}
			}
		}
		return nil
	case len(words) == 1 && words[0] == "console":
		return p.console(start, lines)
	case len(words) == 1 && words[0] == "json":
		return p.answer(start, lines)
	case len(words) == 2:
		if !filepath.IsLocal(words[1]) {
			return p.fault(start, "%s is not in the guide's folder", words[1])
		}
		p.steps = append(p.steps, step{line: start, file: words[1], text: strings.Join(lines, "\n") + "\n"})
		p.fillIn(start, words[1])
		return nil
	}
	return p.fault(start, "a block is console, json behind a command without output, or has a file's name, or says why it is not run: %q",
		info)
}

// console reads commands and their outputs.
func (p *parser) console(start int, lines []string) error {
	first := len(p.steps)
	inCommand := false
	for i, line := range lines {
		last := len(p.steps) - 1
		further, marked := strings.CutPrefix(line, "> ")
		switch command, ok := strings.CutPrefix(line, "$ "); {
		case ok:
			p.steps = append(p.steps, step{line: start + 1 + i, text: command})
			inCommand = true
		case last < first:
			return p.fault(start+1+i, "output before a command")
		case inCommand && (marked || line == ">"):
			p.steps[last].text += "\n" + strings.TrimPrefix(further, ">")
		case inCommand && strings.HasSuffix(p.steps[last].text, "\\"):
			p.steps[last].text += "\n" + line
		default:
			inCommand = false
			p.steps[last].want = append(p.steps[last].want, line)
		}
	}
	last := len(p.steps) - 1
	if last < first {
		return p.fault(start, "a console block without a command")
	}
	p.steps[first].typed, p.steps[last].exit = p.types, p.exit
	for i := first; i <= last; i++ {
		text := p.steps[i].text
		if why := differsAtTerminal(text); why != "" {
			return p.fault(p.steps[i].line, "%s: %s", why, text)
		}
		p.steps[i].text = p.run(text)
		p.steps[i].want = p.printed(p.steps[i].want)
		p.steps[i].goesOn = i == last && p.goesOn || strings.HasSuffix(text, " &")
	}
	return nil
}

// differsAtTerminal tells what of a command is taken otherwise where a reader types it than
// in the tests' shell: history, in double quotes too, and comments, which zsh does not know.
func differsAtTerminal(command string) string {
	quote, before := rune(0), ' '
	text := []rune(command)
	for i := 0; i < len(text); i++ {
		r, next := text[i], ' '
		if i+1 < len(text) {
			next = text[i+1]
		}
		switch {
		case r == '\\' && quote != '\'':
			i++
			r = 'x'
		case r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case r == '!' && quote != '\'' && !strings.ContainsRune("${[", before) && !strings.ContainsRune(" \t\n=(", next):
			return "a terminal takes what follows ! for its history: put it into single quotes"
		case r == '#' && quote == 0 && strings.ContainsRune(" \t\n", before):
			return "not every shell takes a comment at a terminal: say it in the text"
		}
		before = r
	}
	return ""
}

// answer reads the JSON that the command before it prints.
func (p *parser) answer(start int, lines []string) error {
	last := len(p.steps) - 1
	if last < 0 || p.steps[last].file != "" || p.steps[last].want != nil || p.steps[last].json != "" {
		return p.fault(start, "a json block stands behind a command whose output is not shown")
	}
	p.steps[last].json = strings.Join(p.printed(lines), "\n")
	return nil
}

// run is a command as it is run.
func (p *parser) run(command string) string {
	for _, s := range p.with {
		if s.by == anyText {
			continue
		}
		parts := strings.Split(command, s.text)
		command = parts[0]
		for _, part := range parts[1:] {
			value := s.by
			if openQuote(command) == '\'' {
				value = `'"` + value + `"'`
			}
			command += value + part
		}
	}
	return command
}

// openQuote is the quote that is open at the end of the beginning of a command, or 0.
func openQuote(command string) rune {
	quote, escaped := rune(0), false
	for _, r := range command {
		switch {
		case escaped:
			escaped = false
		case r == '\\' && quote != '\'':
			escaped = true
		case r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		}
	}
	return quote
}

// printed are lines of an output as they are looked for. What differs may be of another
// width than what is shown, so that the gap between it and its column's neighbour is.
func (p *parser) printed(lines []string) []string {
	for i := range lines {
		for _, s := range p.with {
			text := regexp.QuoteMeta(s.text)
			if s.by == anyText {
				text = "(?: {2,})?" + text + "(?: {2,})?"
			}
			lines[i] = regexp.MustCompile(text).ReplaceAllLiteralString(lines[i], anyText)
		}
	}
	return lines
}

// fillIn adds the step that puts into a file what stands there by another text.
func (p *parser) fillIn(line int, file string) {
	text, edits := p.steps[len(p.steps)-1].text, ""
	for _, s := range p.with {
		if s.by != anyText && strings.Contains(text, s.text) {
			edits += fmt.Sprintf(` -e "s|%s|%s|g"`, regexp.QuoteMeta(s.text), s.by)
		}
	}
	if edits != "" {
		p.steps = append(p.steps, step{line: line, text: "sed -E -i" + edits + " " + file, hidden: true})
	}
}
