package clients

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// TestNode starts two gateways, one for chat and one for images and videos, creates keys, and runs
// the tests in node with the official Node clients. If Node is missing, `make test` reports it and
// sets TOLLGATE_TEST_NODE=absent.
func TestNode(t *testing.T) {
	if os.Getenv("TOLLGATE_TEST_NODE") == "absent" {
		t.Log("Node is not installed: the official Node clients were NOT tried")
		return
	}
	g := start(t)
	account := g.account(t, "10")
	media := startMedia(t)
	mediaAccount := media.account(t, "10")
	setUp, err := json.Marshal(map[string]any{
		"media": map[string]string{"url": media.url + "/v1", "key": media.key(t, mediaAccount, nil),
			"waiting": media.key(t, mediaAccount, map[string]any{"wait_for_pictures": true})},
		"url":         g.url + "/v1",
		"native":      g.url + "/native",
		"base":        g.url,
		"key":         g.key(t, account, nil),
		"poor":        g.key(t, g.account(t, "0"), nil),
		"hasty":       g.key(t, account, map[string]any{"rpm": 1}),
		"hastyNative": g.key(t, account, map[string]any{"rpm": 1}),
		"other":       g.key(t, account, map[string]any{"allowed_models": []string{"ponder-1"}}),
	})
	if err != nil {
		t.Fatal(err)
	}
	run := exec.Command("node", "--test")
	run.Dir, run.Env = nodeTests(t), append(os.Environ(), "TOLLGATE_TEST="+string(setUp))
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// nodeTests returns a folder with the tests in node and the official Node clients.
func nodeTests(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS("node")); err != nil {
		t.Fatal(err)
	}
	linkNodeClients(t, folder)
	return folder
}

// linkNodeClients installs the official Node clients, unless they are installed, and links them into a
// folder.
func linkNodeClients(t *testing.T, folder string) {
	t.Helper()
	if err := nodeClients(); err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Abs("../build/packages/node/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(folder, "node_modules")); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
}

var nodeClients = sync.OnceValue(func() error { return packageSet("node") })
