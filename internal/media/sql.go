package media

import (
	"database/sql"
	"errors"

	"tollgate/internal/store"
)

// The states of a file. A result is pending, stored, public and gone; a reference is kept, adopted
// and gone.
const (
	statePending = "pending" // the name of a result without a stored file
	stateStored  = "stored"  // a complete result, not served yet
	statePublic  = "public"  // a result served to anyone with its link
	stateKept    = "kept"    // a reference of a job before its submission
	stateAdopted = "adopted" // a reference of a job; providers can fetch it
	stateGone    = "gone"    // may be deleted from at_ms on; the row is deleted last
)

const (
	insertText = `INSERT INTO media_file (name, job, state, type, size, at_ms) VALUES ($1, $2, $3, $4, $5, $6)`

	findText = `SELECT state, type, size, at_ms FROM media_file WHERE name = $1`

	// resetText changes a stored result back to a reserved name, before another Put replaces the
	// file.
	resetText = `UPDATE media_file SET state = 'pending', type = '', size = 0 WHERE name = $1 AND state = 'stored'`

	// storeText records that a result is complete.
	storeText = `UPDATE media_file SET state = 'stored', type = $1, size = $2, at_ms = $3
		WHERE name = $4 AND state IN ('pending', 'stored')`

	renewText = `UPDATE media_file SET at_ms = $1 WHERE job = $2 AND state IN ('pending', 'stored')`

	storedText = `SELECT name, type, size FROM media_file WHERE job = $1 AND state = 'stored' ORDER BY name`

	publishText = `UPDATE media_file SET state = 'public', at_ms = $1 WHERE name = $2 AND job = $3 AND state = 'stored'`

	adoptText = `UPDATE media_file SET state = 'adopted', at_ms = $1 WHERE job = $2 AND state = 'kept'`

	discardText = `UPDATE media_file SET state = 'gone', at_ms = $1 WHERE job = $2 AND state = 'kept'`

	loseText = `UPDATE media_file SET state = 'gone', at_ms = $1 WHERE name = $2 AND state = 'kept'`

	dropText = `UPDATE media_file SET state = 'gone', at_ms = $1
		WHERE job = $2 AND state IN ('pending', 'stored', 'kept', 'adopted')`

	dueText = `SELECT EXISTS (SELECT 1 FROM media_file WHERE state = $1 AND at_ms <= $2)`

	// expireText gives up a chunk of the files that entered a state before a given time.
	expireText = `UPDATE media_file SET state = 'gone', at_ms = $1 WHERE state = $2 AND name IN (
		SELECT name FROM media_file WHERE state = $3 AND at_ms <= $4 ORDER BY at_ms LIMIT $5)`

	rewindText = `UPDATE media_file SET at_ms = $1 WHERE state = $2 AND at_ms > $3`

	claimText = `SELECT name FROM media_file WHERE state = 'gone' AND at_ms <= $1 ORDER BY at_ms LIMIT $2`

	deferText = `UPDATE media_file SET at_ms = $1 WHERE state = 'gone' AND `

	deleteText = `DELETE FROM media_file WHERE state = 'gone' AND `
)

// record is a file's row.
type record struct {
	state string
	file  File
	atMS  int64
}

// recordTx reads a file's row. It returns nil if there is no row.
func recordTx(tx *store.Tx, name string) (*record, error) {
	r := &record{file: File{Name: name}}
	err := tx.QueryRow(findText, name).Scan(&r.state, &r.file.Type, &r.file.Size, &r.atMS)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return r, err
}
