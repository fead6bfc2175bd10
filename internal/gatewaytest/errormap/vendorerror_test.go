package errormap

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"tollgate/internal/gatewaytest/scene"
)

// vendorError is a provider's error body with the expected result.
type vendorError struct {
	name, body     string
	want           want
	param, message string // of the client's error, if the client gets the provider's message
}

// namedWants returns the expected results by their names in testdata. The results "refused" and
// "elsewhere" have parameters, so readWant parses them.
func namedWants() map[string]want {
	return map[string]want{
		"failed": outOfOrder(), "busy": busy(), "timed out": timedOut(), "credential refused": unavailable(cred),
		"model missing": unavailable(pair), "stopped": stopped(), "withheld": withheld(),
	}
}

// readErrors reads a file of testdata. The file's first lines explain the format.
func readErrors(t testing.TB, file string) []vendorError {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	key := scene.Credential
	archive := txtar.Parse([]byte(strings.NewReplacer("$CREDENTIAL", key, "$MASKED", key[:4]+"****"+key[len(key)-4:]).Replace(string(text))))
	var all []vendorError
	for _, section := range archive.Files {
		s := vendorError{name: section.Name}
		members := map[string]*string{"param": &s.param, "message": &s.message, "want": new(string)}
		rest := strings.TrimSpace(string(section.Data))
		for !strings.HasPrefix(rest, "{") {
			line, after, _ := strings.Cut(rest, "\n")
			name, value, ok := strings.Cut(line, ": ")
			if !ok || members[name] == nil {
				t.Fatalf("%s: %s: %q is neither a body nor a known member", file, s.name, line)
			}
			*members[name], rest = value, after
		}
		s.body = rest
		s.want = readWant(t, file, *members["want"])
		all = append(all, s)
	}
	return all
}

func readWant(t testing.TB, file, text string) want {
	t.Helper()
	if w, ok := namedWants()[text]; ok {
		return w
	}
	var status int
	var kind, code string
	_, err := fmt.Sscanf(text, "elsewhere %d %s", &status, &kind)
	elsewhere := err == nil
	if !elsewhere {
		_, err = fmt.Sscanf(text, "refused %d %s", &status, &kind)
	}
	if err != nil {
		t.Fatalf("%s: want %q: %v", file, text, err)
	}
	words := strings.SplitN(text, " ", 4) // a code may contain spaces
	if len(words) == 4 {
		code = words[3]
	}
	w := refused(status, code, kind)
	w.final = !elsewhere
	return w
}
