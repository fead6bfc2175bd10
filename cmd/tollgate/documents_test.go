package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// shownCommand is a call of the program in a line of a document, up to where its shell
// goes on with something else.
var shownCommand = regexp.MustCompile(`(?:^|[ (])tollgate( [^()>|;#]*)`)

// TestDocumentsShowCommandsThatThereAre: what the documents beside the guides, which are
// run, show at a prompt is taken by the parser of the command line.
func TestDocumentsShowCommandsThatThereAre(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	found := 0
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			prompt, isCommand := strings.CutPrefix(strings.TrimSpace(line), "$ ")
			if !isCommand {
				continue
			}
			for _, call := range shownCommand.FindAllStringSubmatch(prompt, -1) {
				found++
				if err := taken(t, shellWords(t, call[1])); err != nil {
					t.Errorf("%s: %s: %v", path, strings.TrimSpace(call[0]), err)
				}
			}
		}
	}
	if found < 30 {
		t.Errorf("%d commands were found in %d documents: are they written otherwise now?", found, len(paths))
	}
	for _, wrong := range []string{"account list --colour", "nothing", "line drain", "codes create five"} {
		if taken(t, shellWords(t, wrong)) == nil {
			t.Errorf("%q is taken: the test sees nothing", wrong)
		}
	}
}

// shellWords is what a shell makes of arguments; variables are empty there.
func shellWords(t *testing.T, args string) []string {
	t.Helper()
	out, err := exec.Command("bash", "--norc", "-fc", `printf '%s\0' `+args).Output()
	if err != nil {
		t.Fatalf("bash does not read %q: %v", args, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// taken tells why the parser does not take a command, which is not run.
func taken(t *testing.T, args []string) error {
	t.Helper()
	p := &process{ctx: t.Context(), stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard, flags: newSettingFlags(),
		now: time.Now}
	var commands commandLine
	parser, err := p.parser(&commands)
	if err != nil {
		t.Fatal(err)
	}
	if args, err = settled(parser.Model.Node, args); err == nil {
		_, err = parser.Parse(args)
	}
	return err
}
