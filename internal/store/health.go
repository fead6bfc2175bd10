package store

import "time"

// Size returns the size of the stored database in bytes, without its write-ahead log.
func (tx *Tx) Size() (bytes int64, err error) {
	text := `SELECT c.page_count * s.page_size FROM pragma_page_count() c, pragma_page_size() s`
	if tx.Dialect() == PostgreSQL {
		text = `SELECT pg_database_size(current_database())`
	}
	err = tx.QueryRow(text).Scan(&bytes)
	return bytes, err
}

// LastCommit returns the duration of the last COMMIT of an Update in this process, or 0 before the
// first.
func (db *DB) LastCommit() time.Duration { return time.Duration(db.lastCommit.Load()) }

// recordCommit stores the duration of a commit that began at the monotonic time start.
func (db *DB) recordCommit(start time.Duration) {
	db.lastCommit.Store(int64(max(1, db.clock.begin()-start)))
}
