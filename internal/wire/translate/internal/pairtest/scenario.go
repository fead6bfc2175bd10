package pairtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// Scenario is a file of testdata.
type Scenario struct {
	// Comment describes the client's form and the line.
	Comment string
	// Parts are the parts by name, trimmed.
	Parts map[string]string
}

// Chat reports whether the client uses chat completions, and not messages.
func (s Scenario) Chat() bool { return strings.HasPrefix(s.Comment, "chat") }

// Scenarios tests each file of a pattern. The function returned by open returns the result for a
// part, or false if the part is an input. update rewrites the results.
func Scenarios(t *testing.T, pattern string, update bool, open func(*testing.T, Scenario) func(part string) (now string, ok bool)) {
	t.Helper()
	for _, file := range files(t, pattern) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := Scenario{Comment: string(archive.Comment), Parts: map[string]string{}}
			for _, p := range archive.Files {
				s.Parts[p.Name] = strings.TrimSpace(string(p.Data))
			}
			play := open(t, s)
			for i, p := range archive.Files {
				now, ok := play(p.Name)
				if !ok {
					continue
				}
				now = strings.TrimSpace(now) + "\n"
				if now != string(p.Data) && !update {
					t.Errorf("%s\n%s\nwant\n%s", p.Name, now, p.Data)
				}
				archive.Files[i].Data = []byte(now)
			}
			if update {
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// Seeds adds the parts called name of each file of a pattern to the seeds of f.
func Seeds(f *testing.F, pattern, name string) {
	f.Helper()
	for _, file := range files(f, pattern) {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, p := range archive.Files {
			if p.Name == name {
				f.Add(append(p.Data, '\n'))
			}
		}
	}
}

// files returns the files of a pattern, at least one.
func files(t testing.TB, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(files), err)
	}
	return files
}
