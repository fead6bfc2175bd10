package app

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"tollgate/internal/catalog/vault"
	"tollgate/internal/store"
)

// secretKeyFile is the name of the file next to a SQLite database with the key that encrypts the
// secrets of lines.
const secretKeyFile = "secret-key"

// withSecretKey returns the settings with the key of the file next to the database, as if
// secret_key_file named the file. It returns the settings unchanged if they have a key or if there is
// no such file.
func withSecretKey(s *Settings) (*Settings, error) {
	path := nextToDatabase(s, secretKeyFile)
	if !s.SecretKeys.Empty() || path == "" {
		return s, nil
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	with := *s
	text, err := readSecretFile(path)
	if err == nil {
		with.SecretKeys, err = vault.ParseKeys(text)
	}
	if err != nil {
		return nil, &SettingError{"secret_key_file", fmt.Errorf("the key in %s cannot be used: %w. "+
			"Restore the file from a backup, or set secret_key", path, err)}
	}
	return &with, nil
}

// createSecretKey writes a new key to the file next to the database. It is a no-op if there is a key
// or if the database has secrets, because a new key would not decrypt them.
func (r *rooms) createSecretKey(ctx context.Context) error {
	path := nextToDatabase(r.settings, secretKeyFile)
	if !r.settings.SecretKeys.Empty() || path == "" {
		return nil
	}
	stored, err := store.Read(ctx, r.db, r.settings.SecretKeys.ListTx)
	if err != nil || len(stored) > 0 { // the watcher logs the secrets without a key
		return err
	}
	raw := make([]byte, vault.KeyBytes)
	_, _ = rand.Read(raw) // never fails
	if err := writeSecretFile(path, base64.StdEncoding.EncodeToString(raw)); err != nil {
		r.log.Warn("no file can be written for a new secret_key, so keys of providers cannot be stored in the database", "error", err)
		return nil
	}
	with, err := withSecretKey(r.settings)
	if err == nil {
		r.settings = with
	}
	return err
}
