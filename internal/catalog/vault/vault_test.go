package vault

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

const secretValue = "sk-of-the-provider-0123456789"

// keysOf returns keys for tests, each made of one repeated byte.
func keysOf(t *testing.T, bytes ...byte) KeyRing {
	t.Helper()
	var words []string
	for _, b := range bytes {
		words = append(words, base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(rune(b)), KeyBytes))))
	}
	keys, err := ParseKeys(strings.Join(words, "\n"))
	if err != nil {
		t.Fatalf("ParseKeys of %d keys: %v", len(bytes), err)
	}
	return keys
}

// TestParseKeysRejectsOtherTexts checks the errors, without the text.
func TestParseKeysRejectsOtherTexts(t *testing.T) {
	t.Parallel()
	short := base64.StdEncoding.EncodeToString([]byte("a short key"))
	for _, text := range []string{"", "  \n", "hunter2hunter2", short, strings.Repeat("A", 44) + "=", strings.Repeat("a", KeyBytes),
		strings.Repeat(base64.StdEncoding.EncodeToString(make([]byte, KeyBytes))+" ", maxKeys+1)} {
		_, err := ParseKeys(text)
		if err == nil {
			t.Errorf("ParseKeys(%q) succeeds, want an error", text)
			continue
		}
		for word := range strings.FieldsSeq(text) {
			if strings.Contains(err.Error(), word) {
				t.Errorf("ParseKeys(%q): error %v shows the text", text, err)
			}
		}
	}
}

// TestSecretsOpenOnlyUnderTheirNameAndKey checks that another name, another key and changed bytes give
// a reason with the name of the secret, and that two ciphertexts of one value differ.
func TestSecretsOpenOnlyUnderTheirNameAndKey(t *testing.T) {
	t.Parallel()
	keys := keysOf(t, 'a')
	sealed := keys.seal("main", secretValue)
	if value, reason := keys.open("main", sealed); value != secretValue || reason != "" {
		t.Errorf("open = %q, %q, want the value", value, reason)
	}
	if value, reason := keysOf(t, 'b', 'a').open("main", sealed); value != secretValue || reason != "" {
		t.Errorf("open with the key in second place = %q, %q, want the value", value, reason)
	}
	if again := keys.seal("main", secretValue); again == sealed || strings.Contains(sealed, secretValue) {
		t.Errorf("seal twice = %q and %q, want different texts without the value", sealed, again)
	}
	flipped := []byte(sealed)
	flipped[len(flipped)-5] ^= 1
	for name, open := range map[string]func() (string, string){
		"another name":  func() (string, string) { return keys.open("other", sealed) },
		"another key":   func() (string, string) { return keysOf(t, 'b').open("main", sealed) },
		"no key":        func() (string, string) { return KeyRing{}.open("main", sealed) },
		"changed bytes": func() (string, string) { return keys.open("main", string(flipped)) },
		"no ciphertext": func() (string, string) { return keys.open("main", sealed[:9]) },
		"an empty row":  func() (string, string) { return keys.open("main", "") },
	} {
		value, reason := open()
		if value != "" || !strings.Contains(reason, "main") && !strings.Contains(reason, "other") {
			t.Errorf("%s: open = %q, %q, want a reason with the name", name, value, reason)
		}
	}
	if text := fmt.Sprintf("%v %+v", keys, keys); strings.Contains(text, strings.Repeat("97 97 ", 4)) || strings.Contains(text, "aaaa") {
		t.Errorf("a printed key is %s, want no key", text)
	}
}

// TestStoreListReplaceDeleteRotate runs the life of secrets on both databases.
func TestStoreListReplaceDeleteRotate(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		first, both := keysOf(t, 'a'), keysOf(t, 'b', 'a')
		storetest.Update(t, db, func(tx *store.Tx) error {
			return errors.Join(first.StoreTx(tx, "main", "old"), first.StoreTx(tx, "main", secretValue+"\n"), first.StoreTx(tx, "spare", "x"))
		})
		want := func(keys KeyRing, name, value string) {
			t.Helper()
			values, err := store.Read(t.Context(), db, keys.LoadTx)
			if err != nil {
				t.Fatalf("LoadTx: %v", err)
			}
			if got, ok := values.Lookup(name); got != value && (value != "" || ok) {
				t.Errorf("Lookup(%s) = %q, %t, want %q", name, got, ok, value)
			}
		}
		want(first, "main", secretValue)
		want(first, "spare", "x")
		want(keysOf(t, 'c'), "main", "")
		storetest.View(t, db, func(tx *store.Tx) error {
			all, err := first.ListTx(tx)
			if len(all) != 2 || all[0].Name != "main" || all[0].ChangedMS == 0 || all[0].Problem != "" {
				t.Errorf("ListTx = %+v, want main and spare without problems", all)
			}
			if text := fmt.Sprintf("%+v", all); strings.Contains(text, secretValue) {
				t.Errorf("ListTx shows a value: %s", text)
			}
			return err
		})
		storetest.Update(t, db, func(tx *store.Tx) error {
			names, err := both.RotateTx(tx)
			if !slices.Equal(names, []string{"main", "spare"}) {
				t.Errorf("RotateTx = %v, want both names", names)
			}
			return err
		})
		want(keysOf(t, 'b'), "main", secretValue)
		want(first, "main", "")
		if err := db.Update(t.Context(), func(tx *store.Tx) error {
			_, err := keysOf(t, 'd').RotateTx(tx)
			return err
		}); err == nil || !strings.Contains(err.Error(), "main") {
			t.Errorf("RotateTx without the key: error %v, want one with the name", err)
		}
		storetest.Update(t, db, func(tx *store.Tx) error { return DeleteTx(tx, "main") })
		want(both, "main", "")
		if err := db.Update(t.Context(), func(tx *store.Tx) error { return DeleteTx(tx, "main") }); fault.Of(err).Code != fault.NotFound {
			t.Errorf("DeleteTx twice: error %v, want not found", err)
		}
	})
}

// TestStoreRejectsHostileValues checks that bad names and values, and a missing key, are refused and
// store nothing.
func TestStoreRejectsHostileValues(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		keys := keysOf(t, 'a')
		for _, c := range []struct {
			name, value string
			keys        KeyRing
		}{
			{"main", "sk-1\r\nX-Evil: 1", keys}, {"main", "sk-1\nsk-2", keys}, {"main", "sk\x00", keys}, {"main", "\xff", keys},
			{"main", " \n ", keys},
			{"main", strings.Repeat("a", maxValue+1), keys}, {"", "x", keys}, {"a b", "x", keys}, {"a}${b", "x", keys}, {"../a", "x", keys},
			{strings.Repeat("a", 65), "x", keys}, {"main", "x", KeyRing{}},
		} {
			err := db.Update(t.Context(), func(tx *store.Tx) error { return c.keys.StoreTx(tx, c.name, c.value) })
			shown := len(c.value) > 2 && strings.Contains(err.Error(), c.value)
			if got := fault.Of(err); got.Code != fault.InvalidRequest || shown {
				t.Errorf("StoreTx(%q, %q): error %v, want an invalid request without the value", c.name, c.value, err)
			}
		}
		storetest.View(t, db, func(tx *store.Tx) error {
			all, err := keys.ListTx(tx)
			if len(all) != 0 {
				t.Errorf("ListTx = %+v, want none", all)
			}
			return err
		})
	})
}
