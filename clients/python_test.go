package clients

import (
	"encoding/json"
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

// pythonClients installs the official Python clients in build/python once, and returns the path of
// that Python.
var pythonClients = sync.OnceValues(func() (string, error) {
	environment, err := filepath.Abs("../build/python")
	if err != nil {
		return "", err
	}
	python := filepath.Join(environment, "bin", "python")
	return python, install("python", []string{"python3", "-m", "venv", environment},
		[]string{python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
			"--require-hashes", "--requirement", "requirements.txt"})
})
