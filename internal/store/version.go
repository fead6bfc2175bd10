package store

// Version is one state of a SQLite database. If a connection reads an equal Version later, neither
// another connection nor this one has written since; SQLite counts this connection's changed rows.
// The zero Version equals no state.
type Version struct {
	conn    int64 // number of this process's write connection
	changes int64 // rows changed on that connection, including rolled-back transactions
	others  int64 // changes when another connection commits
}

// Same reports whether v and w are the same state.
func (v Version) Same(w Version) bool { return v == w && v != (Version{}) }

// Version adds statements that store the version at this place of the batch. On PostgreSQL there
// may be other nodes, so it adds no statement and v stays unchanged.
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
