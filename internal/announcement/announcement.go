// Package announcement owns the operators' announcements to customers, and their dismissals by users.
//
// Each node keeps the planned and active announcements in memory, so a console page without an active
// announcement costs no query.
//
// Invariants: an announcement is plain text. A user sees an announcement only while it is active, and not
// after dismissing it. The dismissals of an announcement or a user are deleted with it.
package announcement

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tollgate/internal/fault"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// The levels of announcements. A level decides only how an announcement looks.
const (
	Info    = "info"
	Warning = "warning"
)

// The states of announcements.
const (
	Planned = "planned"
	Active  = "active"
	Ended   = "ended"
)

// Draft has the fields of an announcement under an operator's control.
type Draft struct {
	Title   string
	Text    string // may have several lines; may be empty
	Level   string
	FromMS  int64 // database clock, Unix milliseconds; 0 means the time at which the draft is stored
	UntilMS int64 // 0 for no end
}

// Announcement is a message to all customers.
type Announcement struct {
	Draft

	ID        string // ann_…
	CreatedMS int64
}

// State returns the state at a time.
func (d Draft) State(nowMS int64) string {
	switch {
	case d.UntilMS != 0 && d.UntilMS <= nowMS:
		return Ended
	case d.FromMS > nowMS:
		return Planned
	}
	return Active
}

// Bounds of announcements. Texts are counted in characters.
const (
	maxTitle = 100
	maxText  = 1000
	maxOpen  = 10 // planned and active announcements
)

// minute is a minute in milliseconds. The start of an announcement that begins now is rounded down to a whole
// minute, because the forms of the console have no seconds.
const minute = int64(time.Minute / time.Millisecond)

// clean returns the draft with its texts trimmed and CRLF replaced by LF. A draft without a start begins now.
func (d Draft) clean(nowMS int64) Draft {
	if d.FromMS == 0 {
		d.FromMS = nowMS - nowMS%minute
	}
	d.Title = strings.TrimSpace(d.Title)
	d.Text = strings.TrimSpace(strings.ReplaceAll(d.Text, "\r\n", "\n"))
	return d
}

// check returns the faults of a draft.
func (d Draft) check() error {
	var faults []error
	if !isText(d.Title) || d.Title == "" || utf8.RuneCountInString(d.Title) > maxTitle {
		faults = append(faults, fault.At(fault.InvalidRequest, "title", "title must be one line of 1 to %d characters.", maxTitle))
	}
	if !isText(strings.ReplaceAll(d.Text, "\n", "")) || utf8.RuneCountInString(d.Text) > maxText {
		faults = append(faults, fault.At(fault.InvalidRequest, "text", "text must have at most %d characters.", maxText))
	}
	if d.Level != Info && d.Level != Warning {
		faults = append(faults, fault.At(fault.InvalidRequest, "level", "level must be %s or %s.", Info, Warning))
	}
	if d.UntilMS != 0 && d.UntilMS <= d.FromMS {
		faults = append(faults, fault.At(fault.InvalidRequest, "until", "until must be after the announcement begins."))
	}
	return errors.Join(faults...)
}

func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl) }

// SQL statements.
const (
	columns    = `id, title, text, level, from_ms, until_ms, created_ms`
	notEnded   = `(until_ms = 0 OR until_ms > $1)`
	selectOpen = `SELECT ` + columns + ` FROM announcement WHERE ` + notEnded + ` ORDER BY from_ms DESC, id DESC`
	selectPage = `SELECT ` + columns + ` FROM announcement WHERE $1 = '' OR id < $1 ORDER BY id DESC LIMIT $2`
	selectOne  = `SELECT ` + columns + ` FROM announcement WHERE id = $1`
	countOpen  = `SELECT COUNT(*) FROM announcement WHERE ` + notEnded + ` AND id <> $2`
	insertOne  = `INSERT INTO announcement (` + columns + `) VALUES ($1, $2, $3, $4, $5, $6, $7)`
	updateOne  = `UPDATE announcement SET title = $2, text = $3, level = $4, from_ms = $5, until_ms = $6 WHERE id = $1`
	deleteOne  = `DELETE FROM announcement WHERE id = $1`
	dismiss    = `INSERT INTO announcement_dismissal (member, announcement) SELECT $1, id FROM announcement WHERE id = $2
		ON CONFLICT (member, announcement) DO NOTHING`
	selectDismissed = `SELECT announcement FROM announcement_dismissal WHERE member = $1`
	forgetOne       = `DELETE FROM announcement_dismissal WHERE announcement = $1`
	forgetUser      = `DELETE FROM announcement_dismissal WHERE member = $1`
)

func scan(row store.Row) (a Announcement, err error) {
	err = row.Scan(&a.ID, &a.Title, &a.Text, &a.Level, &a.FromMS, &a.UntilMS, &a.CreatedMS)
	return a, err
}

// CreateTx stores an announcement. The errors about the draft are of the type *fault.Error, joined.
func CreateTx(tx *store.Tx, d Draft) (Announcement, error) {
	now, err := tx.NowMS()
	if err != nil {
		return Announcement{}, err
	}
	a := Announcement{Draft: d.clean(now), ID: id.At("ann_", time.UnixMilli(now)), CreatedMS: now}
	err = a.check()
	if err == nil && a.State(now) == Ended {
		err = fault.At(fault.InvalidRequest, "until", "until must be in the future.")
	}
	if err == nil {
		err = a.checkOpenTx(tx, now)
	}
	if err != nil {
		return a, err
	}
	if _, err := tx.Exec(insertOne, a.ID, a.Title, a.Text, a.Level, a.FromMS, a.UntilMS, a.CreatedMS); err != nil {
		return a, fmt.Errorf("insert announcement: %w", err)
	}
	return a, nil
}

// checkOpenTx returns an error if maxOpen other announcements are planned or active, unless a has ended.
func (a Announcement) checkOpenTx(tx *store.Tx, nowMS int64) error {
	if a.State(nowMS) == Ended {
		return nil
	}
	open := 0
	if err := tx.QueryRow(countOpen, nowMS, a.ID).Scan(&open); err != nil {
		return fmt.Errorf("count announcements: %w", err)
	}
	if open >= maxOpen {
		return fault.New(fault.InvalidRequest, "There are %d announcements that have not ended. End or delete one of them first.", open)
	}
	return nil
}

// GetTx returns an announcement. The error for an unknown id is a 404.
func GetTx(tx *store.Tx, announcement string) (Announcement, error) {
	a, err := scan(tx.QueryRow(selectOne, announcement))
	if errors.Is(err, sql.ErrNoRows) {
		return a, fault.New(fault.NotFound, "There is no such announcement.")
	}
	if err != nil {
		return a, fmt.Errorf("read announcement: %w", err)
	}
	return a, nil
}

// lockTx is GetTx with a row lock until the transaction ends.
func lockTx(tx *store.Tx, announcement string) (Announcement, error) {
	if err := tx.Lock("announcement", "id", announcement); err != nil {
		return Announcement{}, err
	}
	return GetTx(tx, announcement)
}

// ListTx returns up to limit announcements, newest first, and reports whether there are more. If after is not
// empty, the list begins after the announcement with this id.
func ListTx(tx *store.Tx, after string, limit int) (list []Announcement, more bool, err error) {
	if list, err = store.Collect(tx, scan, selectPage, after, limit+1); err != nil {
		return nil, false, fmt.Errorf("list announcements: %w", err)
	}
	if len(list) > limit {
		return list[:limit], true, nil
	}
	return list, false, nil
}

// ChangeTx changes an announcement: change edits the current draft. Users who have dismissed the announcement do not
// see it again. The errors are those of change and of CreateTx, but the end may be in the past.
func ChangeTx(tx *store.Tx, announcement string, change func(*Draft) error) (before, after Announcement, err error) {
	if before, err = lockTx(tx, announcement); err != nil {
		return before, after, err
	}
	after = before
	if err := change(&after.Draft); err != nil {
		return before, after, err
	}
	now, err := tx.NowMS()
	if err != nil {
		return before, after, err
	}
	after.Draft = after.clean(now)
	if err := after.check(); err != nil {
		return before, after, err
	}
	if err := after.checkOpenTx(tx, now); err != nil {
		return before, after, err
	}
	return before, after, after.saveTx(tx)
}

// EndTx ends an announcement now. It is a no-op if the announcement has ended.
func EndTx(tx *store.Tx, announcement string) (before, after Announcement, err error) {
	if before, err = lockTx(tx, announcement); err != nil {
		return before, before, err
	}
	now, err := tx.NowMS()
	if err != nil || before.State(now) == Ended {
		return before, before, err
	}
	after = before
	after.UntilMS = now
	return before, after, after.saveTx(tx)
}

func (a Announcement) saveTx(tx *store.Tx) error {
	if _, err := tx.Exec(updateOne, a.ID, a.Title, a.Text, a.Level, a.FromMS, a.UntilMS); err != nil {
		return fmt.Errorf("change announcement: %w", err)
	}
	return nil
}

// DeleteTx deletes an announcement and its dismissals. It returns the deleted announcement.
func DeleteTx(tx *store.Tx, announcement string) (Announcement, error) {
	a, err := lockTx(tx, announcement)
	if err != nil {
		return a, err
	}
	for _, statement := range []string{deleteOne, forgetOne} {
		if _, err := tx.Exec(statement, announcement); err != nil {
			return a, fmt.Errorf("delete announcement: %w", err)
		}
	}
	return a, nil
}

// DismissTx hides an announcement from a user. It is a no-op if the user has dismissed the announcement, or if
// the announcement does not exist.
func DismissTx(tx *store.Tx, user, announcement string) error {
	if _, err := tx.Exec(dismiss, user, announcement); err != nil {
		return fmt.Errorf("dismiss announcement: %w", err)
	}
	return nil
}

// DismissedTx returns the ids of a user's dismissed announcements.
func DismissedTx(tx *store.Tx, user string) ([]string, error) {
	all, err := store.Column[string](tx, selectDismissed, user)
	if err != nil {
		return nil, fmt.Errorf("read dismissed announcements: %w", err)
	}
	return all, nil
}

// ForgetUserTx deletes the dismissals of a user.
func ForgetUserTx(tx *store.Tx, user string) error {
	if _, err := tx.Exec(forgetUser, user); err != nil {
		return fmt.Errorf("delete dismissals of announcements: %w", err)
	}
	return nil
}
