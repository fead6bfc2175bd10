package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/store"
)

// tokenFile is the name of the file next to a SQLite database with the operator's token from a
// first start (docs/operator.md, First start).
const tokenFile = "admin-token"

// nextToDatabase returns the path of a file next to a SQLite database. It returns "" for PostgreSQL: nodes
// that share a database do not share a folder, and each would create its own file.
func nextToDatabase(s *Settings, file string) string {
	path, sqlite := strings.CutPrefix(s.Database, "sqlite:")
	if !sqlite {
		return ""
	}
	return filepath.Join(filepath.Dir(path), file)
}

// withTokenFile returns the settings with the token of the file next to the database, as if
// admin_token_file named the file. It returns the settings unchanged if they have a token or if
// there is no such file.
func withTokenFile(s *Settings) (*Settings, error) {
	path := nextToDatabase(s, tokenFile)
	if s.AdminToken != "" || path == "" {
		return s, nil
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	with := *s
	text, err := readSecretFile(path)
	if err == nil {
		with.AdminToken, err = readToken(text)
	}
	if err != nil {
		return nil, &SettingError{"admin_token_file", fmt.Errorf(
			"the operator's token in %s cannot be used: %w. Put a token of your choice into the file, or set admin_token", path, err)}
	}
	with.AdminTokenFile = path
	return &with, nil
}

// createToken writes a new operator's token to the file next to the database and accepts it. It is
// a no-op if there is a token or the database has accounts: later starts change nothing.
func (r *rooms) createToken(ctx context.Context) error {
	path := nextToDatabase(r.settings, tokenFile)
	if r.settings.AdminToken != "" || path == "" {
		return nil
	}
	used := false
	if err := r.db.View(ctx, func(tx *store.Tx) error {
		accounts, _, err := account.ListTx(tx, "", 1)
		used = len(accounts) > 0
		return err
	}); err != nil || used {
		return err
	}
	if err := writeSecretFile(path, rand.Text()); err != nil {
		return &SettingError{"admin_token", fmt.Errorf("is not set, and no file can be written for a new one: %w", err)}
	}
	s, err := withTokenFile(r.settings)
	if err != nil {
		return err
	}
	r.settings, r.createdToken = s, true
	r.token.Replace(s.AdminToken)
	return nil
}

// writeSecretFile writes a text to a new file readable only by its owner.
func writeSecretFile(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return ExplainPermission(err)
	}
	_, err = file.WriteString(text + "\n")
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(err, os.Remove(path)) // the next start must not read half of the text
	}
	return nil
}
