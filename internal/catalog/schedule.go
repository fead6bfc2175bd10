package catalog

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tollgate/internal/fault"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// ChangeState is the state of a scheduled change.
type ChangeState int64

// The states of scheduled changes. Only ChangePending can become another state.
const (
	ChangePending ChangeState = iota
	ChangeApplied
	ChangeFailed // it does not fit the catalog of its time, so nothing was changed
	ChangeCancelled
)

// String returns the state's name in the operator API.
func (s ChangeState) String() string {
	return []string{"pending", "applied", "failed", "cancelled"}[s]
}

// Schedule is when and how a catalog is to be applied.
type Schedule struct {
	AtMS      int64  // database clock, Unix milliseconds
	Note      string // for operators
	Announced bool   // customers see the new prices before
}

// ScheduledChange is a change of the catalog at a time.
type ScheduledChange struct {
	Schedule

	ID        string // chg_…
	Base      int64  // the revision of the comparison
	Changes   []string
	State     ChangeState
	Revision  int64  // the current revision after the apply; 0 before
	Reason    string // why the change failed
	CreatedMS int64
	EndedMS   int64 // 0 while pending
}

// Bounds of scheduled changes.
const (
	maxPending = 50
	maxAhead   = 366 * 24 * time.Hour
	maxNote    = 500 // characters
)

// errNoChange reports an unknown scheduled change.
var errNoChange = fault.New(fault.NotFound, "There is no such scheduled change of the catalog.")

// SQL statements. Each change of a row raises a number in the row that nodes poll.
const (
	changeColumns = `id, base, changes, note, at_ms, state, revision, reason, announced, created_ms, ended_ms`
	selectChange  = `SELECT ` + changeColumns + ` FROM catalog_change WHERE id = $1`
	selectChanges = `SELECT ` + changeColumns + ` FROM catalog_change WHERE id < $1 ORDER BY id DESC LIMIT $2`
	selectPending = `SELECT ` + changeColumns + ` FROM catalog_change WHERE state = 0 ORDER BY at_ms, id`
	selectDue     = `SELECT id FROM catalog_change WHERE state = 0 AND at_ms <= $1 ORDER BY at_ms, id LIMIT 1`
	// selectFailed selects the changes that failed after $1. It omits a change if an operator has since
	// applied the current revision or scheduled another change.
	selectFailed = `SELECT ` + changeColumns + ` FROM catalog_change c WHERE state = 2 AND ended_ms > $1
		AND NOT EXISTS (SELECT 1 FROM catalog_change WHERE created_ms > c.ended_ms)
		AND ended_ms >= COALESCE((SELECT r.applied_ms FROM catalog_revision r JOIN catalog_head h ON h.revision = r.revision
			WHERE r.revision NOT IN (SELECT revision FROM catalog_change WHERE state = 1)), 0) ORDER BY id`
	selectNext   = `SELECT document FROM catalog_change WHERE id = $1`
	insertChange = `INSERT INTO catalog_change (id, base, document, changes, note, at_ms, state, revision, reason, announced,
		mailed_to, mailed, created_ms, ended_ms) VALUES ($1, $2, $3, $4, $5, $6, 0, 0, '', $7, '', $8, $9, 0)`
	endChange    = `UPDATE catalog_change SET state = $2, revision = $3, reason = $4, ended_ms = $5 WHERE id = $1 AND state = 0`
	raiseChanges = `UPDATE catalog_head SET changes = changes + 1 WHERE id = 'current'`
)

// ScheduleTx schedules a document from Parse. Until the scheduled time, other models and lines of the
// catalog may change. The error is a *fault.Error if the time is not within the next year, the note is
// invalid, there is no catalog, there are too many pending changes, the document changes nothing, or
// another pending change changes the same model or line.
func ScheduleTx(tx *store.Tx, doc *Document, s Schedule) (ScheduledChange, error) {
	if err := lockHeadTx(tx); err != nil {
		return ScheduledChange{}, err
	}
	now, err := tx.NowMS()
	if err != nil {
		return ScheduledChange{}, fmt.Errorf("read the clock: %w", err)
	}
	if err := s.check(now); err != nil {
		return ScheduledChange{}, err
	}
	base, revision, err := CurrentTx(tx)
	if errors.Is(err, ErrNoRevision) {
		return ScheduledChange{}, fault.New(fault.InvalidRequest, "There is no catalog yet. Apply one now; later changes can be scheduled.")
	}
	if err != nil {
		return ScheduledChange{}, err
	}
	c := ScheduledChange{Schedule: s, ID: id.At("chg_", time.UnixMilli(now)), Base: revision, Changes: Changes(base, doc), CreatedMS: now}
	if len(c.Changes) == 0 {
		return ScheduledChange{}, fault.New(fault.InvalidRequest, "The catalog has all of this already, so there is nothing to schedule.")
	}
	if err := checkPendingTx(tx, differing(base, doc)); err != nil {
		return ScheduledChange{}, err
	}
	changes, err := json.Marshal(c.Changes)
	if err != nil {
		return ScheduledChange{}, fmt.Errorf("write the changes: %w", err)
	}
	if _, err := tx.Exec(insertChange, c.ID, revision, string(doc.canonical()), string(changes), s.Note, s.AtMS, store.Bool(s.Announced),
		store.Bool(!s.Announced), now); err != nil {
		return ScheduledChange{}, fmt.Errorf("schedule a change of the catalog: %w", err)
	}
	return c, raiseChangesTx(tx)
}

func (s Schedule) check(nowMS int64) error {
	switch {
	case s.AtMS <= nowMS:
		return fault.At(fault.InvalidRequest, "at", "at must be in the future.")
	case s.AtMS > nowMS+maxAhead.Milliseconds():
		return fault.At(fault.InvalidRequest, "at", "at must be within a year from now.")
	case !utf8.ValidString(s.Note) || strings.ContainsFunc(s.Note, unicode.IsControl) || utf8.RuneCountInString(s.Note) > maxNote:
		return fault.At(fault.InvalidRequest, "note", "note must be one line of at most %d characters.", maxNote)
	}
	return nil
}

// checkPendingTx returns an error if there are too many pending changes, or if one of them changes the
// same models or lines, because the later change would then fail.
func checkPendingTx(tx *store.Tx, names []string) error {
	pending, err := PendingChangesTx(tx)
	if err != nil {
		return err
	}
	if len(pending) >= maxPending {
		return fault.New(fault.InvalidRequest, "There are %d scheduled changes already. Cancel some first.", len(pending))
	}
	for _, c := range pending {
		base, next, err := c.DocumentsTx(tx)
		if err != nil {
			return err
		}
		for _, name := range differing(base, next) {
			if slices.Contains(names, name) {
				return fault.New(fault.InvalidRequest, "The change %s, scheduled for %s, changes %s too. Cancel it first, or wait for it.",
					c.ID, time.UnixMilli(c.AtMS).UTC().Format(time.RFC3339), name)
			}
		}
	}
	return nil
}

func lockHeadTx(tx *store.Tx) error {
	if err := tx.Lock("catalog_head", "id", "current"); err != nil {
		return fmt.Errorf("lock the catalog: %w", err)
	}
	return nil
}

func raiseChangesTx(tx *store.Tx) error {
	if _, err := tx.Exec(raiseChanges); err != nil {
		return fmt.Errorf("announce a scheduled change to the nodes: %w", err)
	}
	return nil
}

// DueChangeTx returns the ID of the first pending change whose time has come, or an empty ID.
func DueChangeTx(tx *store.Tx) (due string, err error) {
	now, err := tx.NowMS()
	if err != nil {
		return "", fmt.Errorf("read the clock: %w", err)
	}
	err = tx.QueryRow(selectDue, now).Scan(&due)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look for scheduled changes of the catalog: %w", err)
	}
	return due, nil
}

// LockChangeTx locks the catalog and returns a scheduled change, or a *fault.Error.
func LockChangeTx(tx *store.Tx, id string) (ScheduledChange, error) {
	if err := lockHeadTx(tx); err != nil {
		return ScheduledChange{}, err
	}
	return ScheduledChangeTx(tx, id)
}

// errNewer reports a document that a newer version of the program has stored.
var errNewer = errors.New("a newer version of tollgate has stored parts of the catalog that this version does not know")

// MergeTx returns the current catalog with a pending change applied. If the change no longer fits the
// current catalog, doc is nil and unfit says why.
func (c ScheduledChange) MergeTx(tx *store.Tx, providers map[string]Provider) (doc *Document, unfit string, err error) {
	var docs [3]*Document // base, next, current
	for i, read := range []func() (string, error){
		func() (string, error) { return documentTx(tx, c.Base) },
		func() (string, error) { return c.nextTx(tx) },
		func() (string, error) {
			head, err := HeadTx(tx)
			if err != nil {
				return "", err
			}
			return documentTx(tx, head)
		},
	} {
		raw, err := read()
		if err != nil {
			return nil, "", err
		}
		doc, leftOut, err := load([]byte(raw))
		if err != nil {
			return nil, "", err
		}
		if len(leftOut) > 0 {
			return nil, "", fmt.Errorf("apply the change %s: %w", c.ID, errNewer)
		}
		docs[i] = doc
	}
	doc, err = Merge(docs[0], docs[1], docs[2])
	if err == nil {
		doc, _, err = Parse(doc.YAML(), providers)
	}
	var conflict *conflictError
	var faults Faults
	switch {
	case errors.As(err, &conflict):
		return nil, conflict.Error(), nil
	case errors.As(err, &faults):
		return nil, "the catalog would not be valid: " + faults[0].String(), nil
	}
	return doc, "", err
}

// EndTx ends a pending change locked by LockChangeTx. revision is the current revision after an apply,
// and reason says why the change failed. After a cancellation, WithdrawnTx returns the accounts with
// mails about the change.
func (c ScheduledChange) EndTx(tx *store.Tx, state ChangeState, revision int64, reason string) error {
	now, err := tx.NowMS()
	if err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	if _, err := tx.Exec(endChange, c.ID, int64(state), revision, reason, now); err != nil {
		return fmt.Errorf("end the change %s: %w", c.ID, err)
	}
	if state != ChangeCancelled {
		if _, err := tx.Exec(forgetMailed, c.ID); err != nil {
			return fmt.Errorf("end the mails about the change %s: %w", c.ID, err)
		}
	}
	return raiseChangesTx(tx)
}

// DocumentsTx returns the document of the base and the document of the change.
func (c ScheduledChange) DocumentsTx(tx *store.Tx) (base, next *Document, err error) {
	if base, err = RevisionTx(tx, c.Base); err != nil {
		return nil, nil, err
	}
	raw, err := c.nextTx(tx)
	if err != nil {
		return nil, nil, err
	}
	if next, _, err = load([]byte(raw)); err != nil {
		return nil, nil, fmt.Errorf("read the change %s: %w", c.ID, err)
	}
	return base, next, nil
}

func (c ScheduledChange) nextTx(tx *store.Tx) (raw string, err error) {
	if err := tx.QueryRow(selectNext, c.ID).Scan(&raw); err != nil {
		return "", fmt.Errorf("read the change %s: %w", c.ID, err)
	}
	return raw, nil
}

func scanChange(row store.Row) (c ScheduledChange, err error) {
	var changes string
	err = row.Scan(&c.ID, &c.Base, &changes, &c.Note, &c.AtMS, &c.State, &c.Revision, &c.Reason, &c.Announced, &c.CreatedMS, &c.EndedMS)
	if err == nil {
		err = json.Unmarshal([]byte(changes), &c.Changes)
	}
	return c, err
}

// ScheduledChangeTx returns a scheduled change, or a *fault.Error.
func ScheduledChangeTx(tx *store.Tx, id string) (ScheduledChange, error) {
	c, err := scanChange(tx.QueryRow(selectChange, id))
	if errors.Is(err, sql.ErrNoRows) {
		return c, errNoChange
	}
	if err != nil {
		return c, fmt.Errorf("read the change %s: %w", id, err)
	}
	return c, nil
}

// PendingChangesTx returns the pending changes by time.
func PendingChangesTx(tx *store.Tx) ([]ScheduledChange, error) {
	return changesTx(tx, selectPending)
}

// failureAge is how long operators are told about a failed change.
const failureAge = 7 * 24 * time.Hour

// FailedChangesTx returns the changes that failed in the last week, unless an operator has changed the
// catalog or scheduled another change since.
func FailedChangesTx(tx *store.Tx) ([]ScheduledChange, error) {
	now, err := tx.NowMS()
	if err != nil {
		return nil, fmt.Errorf("read the clock: %w", err)
	}
	return changesTx(tx, selectFailed, now-failureAge.Milliseconds())
}

// ScheduledChangesTx returns up to limit changes in all states, newest first, and reports whether there
// are more. If before is not empty, it begins below that change.
func ScheduledChangesTx(tx *store.Tx, before string, limit int) ([]ScheduledChange, bool, error) {
	if before == "" {
		before = "chg_zzz" // after all IDs
	}
	all, err := changesTx(tx, selectChanges, before, limit+1)
	if len(all) > limit {
		return all[:limit], true, err
	}
	return all, false, err
}

func changesTx(tx *store.Tx, text string, args ...any) ([]ScheduledChange, error) {
	all, err := store.Collect(tx, scanChange, text, args...)
	if err != nil {
		return nil, fmt.Errorf("read the scheduled changes of the catalog: %w", err)
	}
	return all, nil
}
