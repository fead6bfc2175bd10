package store

import "time"

// Size returns how many bytes the database takes where it is stored, without its
// write-ahead log.
func (tx *Tx) Size() (bytes int64, err error) {
	text := `SELECT c.page_count * s.page_size FROM pragma_page_count() c, pragma_page_size() s`
	if tx.Dialect() == PostgreSQL {
		text = `SELECT pg_database_size(current_database())`
	}
	err = tx.QueryRow(text).Scan(&bytes)
	return bytes, err
}

// LastCommit returns how long the last COMMIT of an Update took here; 0: there was
// none yet.
func (db *DB) LastCommit() time.Duration { return time.Duration(db.lastCommit.Load()) }

// noteCommit keeps how long a commit took, of which clock.begin has the beginning.
func (db *DB) noteCommit(began time.Duration) {
	db.lastCommit.Store(int64(max(1, db.clock.begin()-began)))
}
