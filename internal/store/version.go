package store

// Version is one state of a SQLite database: a connection that reads an equal one
// later knows that nobody has written since, neither on other connections nor on
// this one, of which SQLite counts the changed rows. The zero Version is of no
// state.
type Version struct {
	conn    int64 // which of this process's write connections has read it
	changes int64 // rows changed on that connection, those of other tries among them
	others  int64 // moves when another connection commits
}

// Same tells whether v and w are one state.
func (v Version) Same(w Version) bool { return v == w && v != (Version{}) }

// Version adds statements that store the version at this place of the batch. On
// PostgreSQL, where there may be other nodes, it adds none: v stays as it is.
func (b *Batch) Version(v *Version) {
	if b.db.dialect == PostgreSQL {
		return
	}
	b.Query(func(row Row) error {
		v.conn = b.db.stmts.count
		return row.Scan(&v.changes)
	}, `SELECT total_changes()`)
	b.Query(func(row Row) error { return row.Scan(&v.others) }, `PRAGMA data_version`)
}
