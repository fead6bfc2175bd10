package catalog

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"tollgate/internal/store"
)

// ErrNoRevision reports a revision that is not in the database, or a database without any catalog.
var ErrNoRevision = errors.New("no such catalog revision")

// ApplyResult is the result of an apply or of a preview.
type ApplyResult struct {
	Revision int64    `json:"revision"` // the current revision afterwards
	Changes  []string `json:"changes"`  // never nil; see Changes
}

// Revision is one entry of the catalog's history.
type Revision struct {
	Number    int64    `json:"revision"`
	AppliedMS int64    `json:"applied_ms"` // database clock, Unix milliseconds
	Changes   []string `json:"changes"`    // from the revision before
}

// SQL statements, one table each.
const (
	selectHead     = `SELECT revision, secrets, changes FROM catalog_head WHERE id = 'current'`
	updateHead     = `UPDATE catalog_head SET revision = $1 WHERE id = 'current'`
	selectDocument = `SELECT document FROM catalog_revision WHERE revision = $1`
	selectHistory  = `SELECT revision, applied_ms, changes FROM catalog_revision WHERE revision < $1 ORDER BY revision DESC LIMIT $2`
	insertRevision = `INSERT INTO catalog_revision (revision, document, changes, applied_ms) VALUES ($1, $2, $3, $4)`
)

// ApplyTx makes a document the current catalog and returns the new revision. Concurrent calls get
// different revisions. If the document equals the current document, ApplyTx changes nothing.
// Documents come from Parse; ApplyTx does not validate them again.
func ApplyTx(tx *store.Tx, doc *Document) (ApplyResult, error) {
	if err := tx.Lock("catalog_head", "id", "current"); err != nil {
		return ApplyResult{}, fmt.Errorf("lock the catalog: %w", err)
	}
	result, equal, err := compareTx(tx, doc)
	if err != nil || equal {
		return result, err
	}
	result.Revision++
	changes, err := json.Marshal(result.Changes)
	if err != nil {
		return ApplyResult{}, fmt.Errorf("write the changes: %w", err)
	}
	now, err := tx.NowMS()
	if err != nil {
		return ApplyResult{}, fmt.Errorf("read the clock: %w", err)
	}
	if _, err := tx.Exec(insertRevision, result.Revision, string(doc.canonical()), string(changes), now); err != nil {
		return ApplyResult{}, fmt.Errorf("store revision %d: %w", result.Revision, err)
	}
	if err := recordLinesTx(tx, doc); err != nil {
		return ApplyResult{}, err
	}
	if err := recordModelsTx(tx, doc, now); err != nil {
		return ApplyResult{}, err
	}
	if _, err := tx.Exec(updateHead, result.Revision); err != nil {
		return ApplyResult{}, fmt.Errorf("make revision %d current: %w", result.Revision, err)
	}
	return result, nil
}

// ApplyFirstTx is ApplyTx for a database without a catalog. If the database has a catalog,
// ApplyFirstTx changes nothing and returns false. If several nodes start at once, only one call
// applies its document.
func ApplyFirstTx(tx *store.Tx, doc *Document) (ApplyResult, bool, error) {
	if err := tx.Lock("catalog_head", "id", "current"); err != nil {
		return ApplyResult{}, false, fmt.Errorf("lock the catalog: %w", err)
	}
	head, err := HeadTx(tx)
	if err != nil || head > 0 {
		return ApplyResult{Revision: head, Changes: []string{}}, false, err
	}
	result, err := ApplyTx(tx, doc)
	return result, err == nil, err
}

// PreviewTx returns the changes that ApplyTx would make. Revision is the current revision.
func PreviewTx(tx *store.Tx, doc *Document) (ApplyResult, error) {
	result, _, err := compareTx(tx, doc)
	return result, err
}

// compareTx compares a document with the current document and reports whether they are equal.
func compareTx(tx *store.Tx, doc *Document) (result ApplyResult, equal bool, err error) {
	head, err := HeadTx(tx)
	if err != nil {
		return ApplyResult{}, false, err
	}
	if head == 0 {
		return ApplyResult{Changes: Changes(nil, doc)}, false, nil
	}
	raw, err := documentTx(tx, head)
	if err != nil {
		return ApplyResult{}, false, err
	}
	if raw == string(doc.canonical()) {
		return ApplyResult{Revision: head, Changes: []string{}}, true, nil
	}
	current, _, err := load([]byte(raw))
	if err != nil { // an unreadable document must not prevent its replacement
		return ApplyResult{Revision: head, Changes: []string{fmt.Sprintf("replaces revision %d, which this version cannot read", head)}}, false,
			nil
	}
	return ApplyResult{Revision: head, Changes: Changes(current, doc)}, false, nil
}

// HeadTx returns the number of the current revision, 0 before the first apply.
func HeadTx(tx *store.Tx) (int64, error) {
	h, err := headTx(tx)
	return h.revision, err
}

// head has the numbers of the current revision, of the last change of a stored secret, and of the last
// change of a scheduled change.
type head struct{ revision, secrets, changes int64 }

func headTx(tx *store.Tx) (h head, err error) {
	if err := tx.QueryRow(selectHead).Scan(&h.revision, &h.secrets, &h.changes); err != nil {
		return head{}, fmt.Errorf("read the current catalog revision: %w", err)
	}
	return h, nil
}

// CurrentTx returns the current document and its revision, or ErrNoRevision.
func CurrentTx(tx *store.Tx) (*Document, int64, error) {
	head, err := HeadTx(tx)
	if err != nil {
		return nil, 0, err
	}
	doc, err := RevisionTx(tx, head)
	return doc, head, err
}

// RevisionTx returns the document of a revision, or ErrNoRevision. Parts stored by a newer version
// and unknown to this version are left out.
func RevisionTx(tx *store.Tx, revision int64) (*Document, error) {
	raw, err := documentTx(tx, revision)
	if err != nil {
		return nil, err
	}
	doc, _, err := load([]byte(raw))
	if err != nil {
		return nil, fmt.Errorf("read catalog revision %d: %w", revision, err)
	}
	return doc, nil
}

func documentTx(tx *store.Tx, revision int64) (string, error) {
	var raw string
	err := tx.QueryRow(selectDocument, revision).Scan(&raw)
	if errors.Is(err, sql.ErrNoRows) {
		return "", ErrNoRevision
	}
	if err != nil {
		return "", fmt.Errorf("read catalog revision %d: %w", revision, err)
	}
	return raw, nil
}

// HistoryTx returns up to limit revisions below before, newest first, and reports whether there are
// more. If before is 0, it starts with the newest revision.
func HistoryTx(tx *store.Tx, before int64, limit int) ([]Revision, bool, error) {
	if before <= 0 {
		before = 1 << 62
	}
	revisions := []Revision{}
	err := tx.Each(func(row store.Row) error {
		var r Revision
		var changes string
		if err := row.Scan(&r.Number, &r.AppliedMS, &changes); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(changes), &r.Changes); err != nil {
			return fmt.Errorf("the changes of revision %d: %w", r.Number, err)
		}
		revisions = append(revisions, r)
		return nil
	}, selectHistory, before, limit+1)
	if err != nil {
		return nil, false, fmt.Errorf("read the catalog's history: %w", err)
	}
	if len(revisions) > limit {
		return revisions[:limit], true, nil
	}
	return revisions, false, nil
}
