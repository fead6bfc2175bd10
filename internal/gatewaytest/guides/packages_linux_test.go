package guides

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// packagesFolder is where scripts/packages puts what guides install, a folder a set; with
// a set's name behind it also what stands in envAbsent.
const packagesFolder = "build/packages/"

// packages is the folder of a set.
func packages(t testing.TB, set string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "..", packagesFolder, set))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// installing is what a shell gets so that a guide can install packages of these sets
// without a way out. Its pip is the real one, which takes wheels from a folder; npm cannot
// take packages by their names from anywhere else than a registry, so testdata/npm links
// those that it has installed before.
func installing(t testing.TB, sets []string) []string {
	t.Helper()
	if len(sets) == 0 {
		return nil
	}
	var wheels, modules []string
	for _, set := range sets {
		folder := packages(t, set)
		if _, err := os.Stat(filepath.Join(folder, "wheels")); err == nil {
			wheels = append(wheels, filepath.Join(folder, "wheels"))
		} else {
			modules = append(modules, folder)
		}
	}
	return []string{
		"PIP_NO_INDEX=1", "PIP_FIND_LINKS=" + strings.Join(wheels, " "), "PIP_NO_COMPILE=1", "PIP_DISABLE_PIP_VERSION_CHECK=1",
		"PACKAGES=" + strings.Join(modules, " "),
	}
}
