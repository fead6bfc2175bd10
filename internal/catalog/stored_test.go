package catalog

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"tollgate/internal/catalog/vault"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// installationKeys returns a key of the installation made of one repeated letter.
func installationKeys(t *testing.T, letter string) vault.KeyRing {
	t.Helper()
	keys, err := vault.ParseKeys(base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, vault.KeyBytes))))
	if err != nil {
		t.Fatalf("ParseKeys: %v", err)
	}
	return keys
}

// storedKeyNode is a node with the line `stored`, whose key is in the database.
type storedKeyNode struct {
	t *testing.T
	*Watcher

	log testLog
}

func newStoredKeyNode(t *testing.T, db *store.DB, keys vault.KeyRing) storedKeyNode {
	t.Helper()
	log := newTestLog()
	n := storedKeyNode{t, NewWatcher(WatcherOptions{DB: db, Providers: testProviders(), Keys: keys,
		Lookup: environment(map[string]string{"OTHER_KEY": "sk-other"}), Log: log.logger()}), log}
	n.poll()
	return n
}

func (n storedKeyNode) poll() {
	n.t.Helper()
	if err := n.Refresh(n.t.Context()); err != nil {
		n.t.Fatalf("Refresh: %v", err)
	}
}

// want polls and compares the key of the line `stored`. If value is empty, reason must be part of the
// line's reason to be out of service. The line `other` must always be in service.
func (n storedKeyNode) want(value, reason string) {
	n.t.Helper()
	n.poll()
	for _, l := range n.Current().AllLines() {
		switch got := l.UnusableReason; {
		case l.ID == "other" && got != "":
			n.t.Errorf("line other is out of service: %s", got)
		case l.ID == "stored" && value == "" && (got == "" || !strings.Contains(got, reason)):
			n.t.Errorf("line stored is out of service for %q, want a reason with %q", got, reason)
		case l.ID == "stored" && value != "" && (got != "" || l.Keys()[0].Value() != value):
			n.t.Errorf("line stored has the reason %q and keys %v, want the newest value", got, l.Keys())
		}
	}
}

// TestNodesFollowStoredSecrets checks on two nodes that a stored, replaced and deleted secret takes
// effect with the next poll, without a new revision. A node without the right key of the installation
// names the secret, keeps the values that it read earlier, and serves its other lines.
func TestNodesFollowStoredSecrets(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		text := strings.Replace(string(example(t)), "${EXAMPLE_API_KEY}", "${secret:stored}", 1)
		doc := mustParse(t, strings.Replace(text, "id: main", "id: stored", 1))
		doc.Lines[0].Headers = nil
		other := *doc
		line := doc.Lines[0]
		line.ID, line.APIKey = "other", "${OTHER_KEY}"
		other.Lines = append([]LineSpec{line}, doc.Lines...)
		apply(t, db, &other)

		keys, wrong := installationKeys(t, "k"), installationKeys(t, "w")
		change := func(act func(tx *store.Tx) error) { t.Helper(); storetest.Update(t, db, act) }
		a, b := newStoredKeyNode(t, db, keys), newStoredKeyNode(t, db, keys)
		a.want("", "the secret stored is not stored")
		change(func(tx *store.Tx) error { return keys.StoreTx(tx, "stored", "sk-first") })
		a.want("sk-first", "")
		b.want("sk-first", "")
		change(func(tx *store.Tx) error { return keys.StoreTx(tx, "stored", "sk-second") })
		a.want("sk-second", "")
		b.want("sk-second", "")
		if a.Current().Revision != 1 {
			t.Errorf("revision %d, want 1", a.Current().Revision)
		}

		newStoredKeyNode(t, db, wrong).want("", "the secret stored cannot be decrypted on this node")
		newStoredKeyNode(t, db, vault.KeyRing{}).want("", "set secret_key_file")
		change(func(tx *store.Tx) error { return wrong.StoreTx(tx, "stored", "sk-third") })
		a.want("sk-second", "") // until this node has the new key
		if log := a.log.drain(); !strings.Contains(log, "the secret stored cannot be decrypted") || strings.Contains(log, "sk-") {
			t.Errorf("the log is %s, want the name of the secret and no value", log)
		}
		change(func(tx *store.Tx) error { return vault.DeleteTx(tx, "stored") })
		a.want("", "the secret stored is not stored")
		b.want("", "the secret stored is not stored")
	})
}

// TestStoredSecretIsAReference checks the references of lines to stored secrets, and that a document
// keeps them.
func TestStoredSecretIsAReference(t *testing.T) {
	t.Parallel()
	text := strings.Replace(string(example(t)), "${EXAMPLE_API_KEY}", `"${secret:a.B-9_x}"`, 1)
	doc := mustParse(t, text)
	if again := mustParse(t, string(doc.YAML())); !Equal(doc, again) {
		t.Errorf("printed and parsed again:\n%s\nwant the same document", again.YAML())
	}
	if lines := doc.LinesWithSecret("a.B-9_x"); len(lines) != 1 || lines[0] != "main" {
		t.Errorf("LinesWithSecret = %v, want main", lines)
	}
	for _, reference := range []string{"${secret:}", "${secret:a b}", "${secret:-a}", "${secret:a/b}", "${secret:a${b}}", "secret:a",
		"${Secret:a}"} {
		_, _, err := Parse([]byte(strings.Replace(text, "${secret:a.B-9_x}", reference, 1)), testProviders())
		if faults := (Faults)(nil); !errors.As(err, &faults) || !strings.Contains(faults[0].Path, "api_key") {
			t.Errorf("api_key %s: error %v, want a fault", reference, err)
		}
	}
}
