package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// defaultWidth is the assumed width of a terminal of unknown size.
const defaultWidth = 80

// terminalWidth returns the columns of a terminal, or 0 if w is not a terminal.
func terminalWidth(w any) int {
	file, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return cmp.Or(width, defaultWidth)
}

// canAsk reports whether standard input and standard error are terminals.
func (p *process) canAsk() bool { return terminalWidth(p.stdin) > 0 && terminalWidth(p.stderr) > 0 }

// ask asks a yes-or-no question and reports whether the answer is yes. Any other answer, or
// a signal, means no.
func (p *process) ask(question string) bool {
	answer, err := p.prompt(question+" [y/N] ", func(in *os.File) (string, error) { return bufio.NewReader(in).ReadString('\n') })
	answer = strings.ToLower(strings.TrimSpace(answer))
	return err == nil && (answer == "y" || answer == "yes")
}

var errSignal = errors.New("a signal ended the command before the question was answered")

// prompt asks a question and returns the result of read. A signal ends the wait and restores
// the state of the terminal.
func (p *process) prompt(question string, read func(in *os.File) (string, error)) (string, error) {
	in := p.stdin.(*os.File)
	state, err := term.GetState(int(in.Fd()))
	if err != nil {
		return "", err
	}
	_, _ = fmt.Fprint(p.stderr, question)
	type line struct {
		text string
		err  error
	}
	lines := make(chan line, 1)
	go func() { // after a signal this ends with the process, because a read of a terminal cannot be canceled
		text, err := read(in)
		lines <- line{text, err}
	}()
	select {
	case l := <-lines:
		return l.text, l.err
	case <-p.ctx.Done():
		_ = term.Restore(int(in.Fd()), state)
		_, _ = fmt.Fprintln(p.stderr)
		return "", errSignal
	}
}

// promptHidden asks a question and does not show the answer.
func (p *process) promptHidden(question string) (string, error) {
	return p.prompt(question, func(in *os.File) (string, error) {
		text, err := term.ReadPassword(int(in.Fd()))
		if errors.Is(err, io.EOF) { // means an empty line
			err = nil
		}
		_, _ = fmt.Fprintln(p.stderr) // the terminal did not show the typed line break
		return string(text), err
	})
}

// maxInput bounds a line of standard input that is not a terminal, in bytes.
const maxInput = 4096

// orInput returns text, or a line of standard input if text is "-". On a terminal it asks
// for the line and does not show the answer.
func (p *process) orInput(text, what string) (string, error) {
	if text != "-" {
		return text, nil
	}
	if p.canAsk() {
		return p.promptHidden(fmt.Sprintf("Type %s (not shown): ", what))
	}
	line, err := bufio.NewReader(io.LimitReader(p.stdin, maxInput)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read %s from standard input: %w", what, err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// password returns text, or a line of standard input if text is "-". On a terminal the
// password is typed twice.
func (p *process) password(text string) (string, error) {
	password, err := p.orInput(text, "the password")
	if err != nil || text != "-" || !p.canAsk() {
		return password, err
	}
	repeated, err := p.promptHidden("Type it again: ")
	if err == nil && repeated != password {
		err = errors.New("the two passwords differ: run the command again")
	}
	return password, err
}
