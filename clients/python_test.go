package clients

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// TestPython starts two gateways, one for chat and one for images and videos, and runs the tests in
// python with the official Python clients and LangChain. `make test` runs it if Python 3.11 is
// installed and scripts/packages could download the clients; otherwise `make test` fails at its
// end.
func TestPython(t *testing.T) {
	if os.Getenv("TOLLGATE_TEST_PYTHON") != "yes" {
		t.Log("the official Python clients were NOT tried; `make python` tries them")
		return
	}
	python, err := pythonClients()
	if err != nil {
		t.Fatal(err)
	}
	setUp, err := json.Marshal(map[string]string{
		"url": start(t).url, "media": startMedia(t).url, "admin_token": adminToken,
	})
	if err != nil {
		t.Fatal(err)
	}
	run := exec.Command(python, "-m", "pytest", "-p", "no:cacheprovider", "--durations=5", "--quiet")
	run.Dir = "python"
	run.Env = append(os.Environ(), "TOLLGATE_TEST="+string(setUp), "LANGSMITH_TRACING=false", "PYTHONDONTWRITEBYTECODE=1")
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// pythonClients installs the official Python clients once, and returns the path of their Python.
var pythonClients = sync.OnceValues(func() (string, error) { return pythonSet("python") })

// pythonSet installs a set of Python packages, unless it is installed, and returns the path of its
// Python.
func pythonSet(set string) (string, error) {
	if err := packageSet(set); err != nil {
		return "", err
	}
	return filepath.Abs(filepath.Join("../build/packages", set, "venv/bin/python"))
}

// packageSet installs a set of packages, unless it is installed.
func packageSet(set string) error {
	if out, err := exec.Command("../scripts/packages", set).CombinedOutput(); err != nil {
		return fmt.Errorf("installing the packages of clients/%s: %w\n%s", set, err, out)
	}
	return nil
}
