package account

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tollgate/internal/store"
)

// MarkLifetime is the lifetime of a browser's mark.
const MarkLifetime = 365 * 24 * time.Hour

// MaxMarks bounds the marks read from a browser, which has one mark for each of its users.
const MaxMarks = 20

// MarkBrowserTx returns a mark for a browser after a user signed in. The browser sends the mark
// with later sign-ins, so that its attempts have their own limit (SignIns.Password). A mark is
// valid for one user, for MarkLifetime or until the password changes, and grants no access. The
// mark is signed with a key in the user's row, so that every node can check it without a table.
func MarkBrowserTx(tx *store.Tx, user string) (string, error) {
	now, err := tx.NowMS()
	if err != nil {
		return "", err
	}
	key, err := markKeyTx(tx, user)
	if err != nil {
		return "", err
	}
	browser, createdMS := newToken(), strconv.FormatInt(now, 10)
	return strings.Join([]string{browser, createdMS, signMark(key, user, browser, createdMS)}, "."), nil
}

// markKeyTx returns the key that signs the marks of a user.
func markKeyTx(tx *store.Tx, user string) (key string, err error) {
	if err := tx.QueryRow(`SELECT mark_key FROM account_user WHERE id = $1`, user).Scan(&key); err != nil {
		return "", fmt.Errorf("read the key of a user's marks: %w", err)
	}
	return key, nil
}

// MarkName returns a short name for a user's mark. A browser has one mark for each user, and the
// name does not reveal the user.
func MarkName(user string) string { return hashText("browser " + user)[:12] }

// signMark returns the signature of a mark.
func signMark(key, user, browser, createdMS string) string {
	mac := hmac.New(sha256.New, []byte("browser "+key))
	fmt.Fprintf(mac, "%s.%s.%s", user, browser, createdMS)
	return hex.EncodeToString(mac.Sum(nil))
}

// markedBrowser returns the browser in the last valid mark for the user with email, or "".
func (s *SignIns) markedBrowser(ctx context.Context, email string, marks []string) (browser string, err error) {
	if len(marks) == 0 {
		return "", nil
	}
	err = s.db.View(ctx, func(tx *store.Tx) error {
		browser = ""
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		var user, key string
		err = tx.QueryRow(`SELECT id, mark_key FROM account_user WHERE email = $1`, email).Scan(&user, &key)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read user: %w", err)
		}
		for _, mark := range marks[:min(len(marks), MaxMarks)] {
			if name := readMark(mark, key, user, now); name != "" {
				browser = name
			}
		}
		return nil
	})
	return browser, err
}

// KnowsBrowserTx reports whether one of a browser's marks is valid for a user, so that the user has
// signed in with this browser since the last change of the password.
func KnowsBrowserTx(tx *store.Tx, user string, marks []string) (bool, error) {
	now, err := tx.NowMS()
	if err != nil {
		return false, err
	}
	key, err := markKeyTx(tx, user)
	if err != nil {
		return false, err
	}
	for _, mark := range marks[:min(len(marks), MaxMarks)] {
		if readMark(mark, key, user, now) != "" {
			return true, nil
		}
	}
	return false, nil
}

// readMark returns the browser in a mark, or "" if the mark is invalid.
func readMark(mark, key, user string, nowMS int64) string {
	browser, rest, _ := strings.Cut(mark, ".")
	createdMS, signature, ok := strings.Cut(rest, ".")
	ms, err := strconv.ParseInt(createdMS, 10, 64)
	if !ok || err != nil || len(browser) != tokenLength || key == "" || nowMS-ms >= MarkLifetime.Milliseconds() ||
		!hmac.Equal([]byte(signature), []byte(signMark(key, user, browser, createdMS))) {
		return ""
	}
	return browser
}
