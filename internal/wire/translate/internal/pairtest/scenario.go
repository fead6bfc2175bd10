package pairtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// Scenario is a file of testdata: what is given and what came of it, by name.
type Scenario struct {
	// Comment says which form the client speaks and what its line knows.
	Comment string
	// Given are the parts, without white space around them.
	Given map[string]string
}

// Chat tells whether the client speaks chat completions; else it is messages.
func (s Scenario) Chat() bool { return strings.HasPrefix(s.Comment, "chat") }

// Scenarios plays each file of a pattern. Open begins one and returns what its
// parts come to, one at a time; false: the part is given. Update writes them anew.
func Scenarios(t *testing.T, pattern string, update bool, open func(t *testing.T, s Scenario) func(part string) (now string, made bool)) {
	t.Helper()
	for _, file := range files(t, pattern) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := Scenario{Comment: string(archive.Comment), Given: map[string]string{}}
			for _, p := range archive.Files {
				s.Given[p.Name] = strings.TrimSpace(string(p.Data))
			}
			play := open(t, s)
			for i, p := range archive.Files {
				now, made := play(p.Name)
				if !made {
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

// Seeds adds the parts of that name of each file of a pattern.
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

// files are those of a pattern; there has to be one.
func files(t testing.TB, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(files), err)
	}
	return files
}
