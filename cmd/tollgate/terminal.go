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

// unknownWidth is what a terminal has that does not say.
const unknownWidth = 80

// terminalWidth is how many columns a terminal has; 0: it is none.
func terminalWidth(w any) int {
	file, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return cmp.Or(width, unknownWidth)
}

// canAsk tells whether a person sees a question and can answer it.
func (p *process) canAsk() bool { return terminalWidth(p.stdin) > 0 && terminalWidth(p.stderr) > 0 }

// ask asks a person; anything but yes is no, and so is a signal.
func (p *process) ask(question string) bool {
	answer, err := p.typed(question+" [y/N] ", func(in *os.File) (string, error) { return bufio.NewReader(in).ReadString('\n') })
	answer = strings.ToLower(strings.TrimSpace(answer))
	return err == nil && (answer == "y" || answer == "yes")
}

// errSignal is the end of a question to a person.
var errSignal = errors.New("ended by a signal before it was answered")

// typed is what a person types in answer to a question, as read reads it. A signal ends
// the wait, and leaves the terminal as it was.
func (p *process) typed(question string, read func(in *os.File) (string, error)) (string, error) {
	in := p.stdin.(*os.File)
	before, err := term.GetState(int(in.Fd()))
	if err != nil {
		return "", err
	}
	_, _ = fmt.Fprint(p.stderr, question) // who does not see it says nothing
	type line struct {
		text string
		err  error
	}
	lines := make(chan line, 1)
	go func() { // ends with the process, which a signal ends: nothing else can end a read of a terminal
		text, err := read(in)
		lines <- line{text, err}
	}()
	select {
	case l := <-lines:
		return l.text, l.err
	case <-p.ctx.Done():
		_ = term.Restore(int(in.Fd()), before)
		_, _ = fmt.Fprintln(p.stderr)
		return "", errSignal
	}
}

// unseen is what a person types in answer to a question without its being shown.
func (p *process) unseen(question string) (string, error) {
	return p.typed(question, func(in *os.File) (string, error) {
		text, err := term.ReadPassword(int(in.Fd()))
		if errors.Is(err, io.EOF) { // as good as an empty line
			err = nil
		}
		_, _ = fmt.Fprintln(p.stderr) // the line's end was not shown either
		return string(text), err
	})
}

// longestInput bounds a line of standard input that is no terminal.
const longestInput = 4096

// orInput returns a text, or in place of a - what a line of standard input says. A person is
// asked for it, and it is not shown.
func (p *process) orInput(text, what string) (string, error) {
	if text != "-" {
		return text, nil
	}
	if p.canAsk() {
		return p.unseen(fmt.Sprintf("Type %s, which is not shown: ", what))
	}
	line, err := bufio.NewReader(io.LimitReader(p.stdin, longestInput)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read %s from standard input: %w", what, err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// password returns a password of the command line, - being the next line of standard
// input; a person types it twice.
func (p *process) password(text string) (string, error) {
	password, err := p.orInput(text, "the password")
	if err != nil || text != "-" || !p.canAsk() {
		return password, err
	}
	again, err := p.unseen("Type it once more: ")
	if err == nil && again != password {
		err = errors.New("the password was typed in two ways: run the command again")
	}
	return password, err
}
