// Package guides runs what the README, the guides and the references in docs tell their readers
// to do, word by word: each guide in a shell, an empty folder and a network of its own.
// How guides are written for it stands in CONTRIBUTING.md (Write a guide).
package guides

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/scene"
)

const (
	// folder is where the guides are, and index what names them all.
	folder = "../../../docs/guides"
	index  = "../../../docs/README.md"

	// envAbsent names the variable with the programs and the sets of packages that this
	// machine has not, which `make test` says and sets.
	envAbsent = "TOLLGATE_TEST_ABSENT"

	// notRun is how many blocks are not run. Each tells its reason; one more is a decision.
	notRun = 15

	longest     = 200 // lines of a guide
	commandTime = time.Minute
)

// further documents are run as the guides are.
var further = []string{"../../../README.md", "../../../docs/clients.md", "../../../docs/import.md", "../../../docs/interface.md",
	"../../../docs/operator.md"}

// held are the documents with blocks that are not run here, and what holds these to the code.
var held = map[string]string{
	"error-reference.md": "made from the tables by internal/fault, and compared with them",
	"failover.md":        "needs a cluster: `make patroni`",
	"money.md":           "its catalog is read, and every number of it computed, by internal/archtest",
}

// TestGuides runs every guide, and the further documents.
func TestGuides(t *testing.T) {
	r := runner{scene.Binary(t), namespaces(), commandTime}
	exempt := 0
	for _, path := range append(guides(t), further...) {
		name := strings.TrimSuffix(filepath.Base(path), ".md")
		text := read(t, path)
		shown := strings.TrimPrefix(path, "../../../")
		g, err := parse(shown, text)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, e := range g.exempt {
			t.Logf("%s:%d is not run: %s", g.path, e.line, e.reason)
		}
		exempt += len(g.exempt)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !equipped(t, g) {
				return
			}
			if err := r.run(t, g.path, text); err != nil {
				t.Fatal(err)
			}
		})
	}
	if exempt != notRun {
		t.Errorf("%d blocks are not run, and %d are known: change notRun only for what no machine of ours can do", exempt, notRun)
	}
}

// runner runs guides.
type runner struct {
	binary   string // of tollgate
	own      isolation
	patience time.Duration // see shell
}

// run does what a guide says up to the first step that does not go as it says.
func (r runner) run(t testing.TB, path, text string) error {
	t.Helper()
	var env []string
	if r.own.flags == 0 {
		var port string
		text, port = rewritePorts(t, text)
		env = append(env, "TOLLGATE_LISTEN=127.0.0.1:"+port)
	}
	g, err := parse(path, text)
	if err != nil {
		return err
	}
	s := openShell(t, r, append(env, installing(t, g.packages)...)...)
	for _, st := range g.steps {
		if err := s.do(path, st); err != nil {
			return err
		}
	}
	return nil
}

// equipped tells whether what a guide needs is here. What is missing fails the test,
// unless `make test` has said that it is.
func equipped(t *testing.T, g guide) bool {
	t.Helper()
	absent := strings.Fields(os.Getenv(envAbsent))
	for _, program := range append([]string{"curl"}, g.needs...) { // curl is in nearly every guide
		if slices.Contains(absent, program) {
			t.Logf("%s is not installed: the guide was NOT run", program)
			return false
		}
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("the guide needs %s: install it, or run the tests with `make test`, which says what is not there (%s)", program, envAbsent)
		}
	}
	for _, set := range g.packages {
		if slices.Contains(absent, packagesFolder+set) {
			t.Logf("the packages of %s are not here: the guide was NOT run; after `scripts/packages %s` it is", set, set)
			return false
		}
		if _, err := os.Stat(filepath.Join(packages(t, set), "ready")); err != nil {
			t.Fatalf("the guide needs the packages of %s: `scripts/packages %s` downloads them (%v)", set, set, err)
		}
	}
	return true
}

// TestIndexNamesEveryGuide: who looks for a guide finds it, and none is longer than one
// reads at a time.
func TestIndexNamesEveryGuide(t *testing.T) {
	t.Parallel()
	names := read(t, index)
	for _, path := range guides(t) {
		if name := filepath.Base(path); !strings.Contains(names, "(guides/"+name+")") {
			t.Errorf("docs/README.md has no link to guides/%s", name)
		}
		if n := strings.Count(read(t, path), "\n"); n > longest {
			t.Errorf("%s has %d lines; at most %d", path, n, longest)
		}
	}
}

// TestEveryBlockIsHeld: no document beside the guides has a block that nothing runs.
func TestEveryBlockIsHeld(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../../docs/*.md")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	for _, path := range paths {
		name, blocks := filepath.Base(path), strings.Contains(read(t, path), "\n```")
		if run := slices.Contains(further, path) || held[name] != ""; blocks != run {
			t.Errorf("docs/%s: it has blocks: %t; it is run or held: %t", name, blocks, run)
		}
	}
}

// guides are the paths of all guides.
func guides(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.md"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no guides in %s: %v", folder, err)
	}
	return paths
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
