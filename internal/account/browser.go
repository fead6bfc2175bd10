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

// MarkLasts is how long a browser that has signed in is known by its mark.
const MarkLasts = 365 * 24 * time.Hour

// MaxMarks is how many marks of a browser are looked at: one for each user who
// has signed in there.
const MaxMarks = 20

// MarkBrowserTx returns a mark for a browser in which a user has just signed in.
// The browser sends the mark with later sign-ins, so that its attempts count by
// themselves (Entrance.Password). A mark is good for one user, until MarkLasts is
// over or the password changes, and opens nothing. The mark is signed with the
// user's password hash, so that every node can read it and no table holds it.
func MarkBrowserTx(tx *store.Tx, user string) (string, error) {
	now, err := tx.NowMS()
	if err != nil {
		return "", err
	}
	var hash string
	if err := tx.QueryRow(`SELECT password FROM account_user WHERE id = $1`, user).Scan(&hash); err != nil {
		return "", fmt.Errorf("read a user's password: %w", err)
	}
	browser, at := newToken(), strconv.FormatInt(now, 10)
	return strings.Join([]string{browser, at, signMark(hash, user, browser, at)}, "."), nil
}

// MarkName is a short name for a user's mark, so that a browser keeps one for each
// user and shows nobody whose it is.
func MarkName(user string) string { return hashText("browser " + user)[:12] }

// signMark returns the signature of a mark.
func signMark(passwordHash, user, browser, atMS string) string {
	mac := hmac.New(sha256.New, []byte("browser "+passwordHash))
	fmt.Fprintf(mac, "%s.%s.%s", user, browser, atMS)
	return hex.EncodeToString(mac.Sum(nil))
}

// knownBrowser returns the browser that one of the marks names for the user with an
// email; empty if none does.
func (e *Entrance) knownBrowser(ctx context.Context, email string, marks []string) (browser string, err error) {
	if len(marks) == 0 {
		return "", nil
	}
	err = e.db.View(ctx, func(tx *store.Tx) error {
		browser = ""
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		var user, hash string
		err = tx.QueryRow(`SELECT id, password FROM account_user WHERE email = $1`, email).Scan(&user, &hash)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read user: %w", err)
		}
		for _, mark := range marks[:min(len(marks), MaxMarks)] {
			if named := readMark(mark, hash, user, now); named != "" {
				browser = named
			}
		}
		return nil
	})
	return browser, err
}

// readMark returns the browser that a mark names; empty if the mark is not good.
func readMark(mark, passwordHash, user string, nowMS int64) string {
	browser, rest, _ := strings.Cut(mark, ".")
	at, signature, ok := strings.Cut(rest, ".")
	ms, err := strconv.ParseInt(at, 10, 64)
	if !ok || err != nil || len(browser) != tokenLength || passwordHash == "" || nowMS-ms >= MarkLasts.Milliseconds() ||
		!hmac.Equal([]byte(signature), []byte(signMark(passwordHash, user, browser, at))) {
		return ""
	}
	return browser
}
