// Package rows owns the rows of a batch in the database: it reads the rows for the decisions, and
// writes the changes.
//
// Invariants: the lock of an account's row covers all rows of the account, so the accounts are read
// first. Cached rows are used only while the database is unchanged.
package rows

import (
	"tollgate/internal/ledger/books"
	"tollgate/internal/store"
)

// Books are the books of one try of a batch, with their rows in the database. Call Begin, Read and
// Write in this order, in one transaction, and Cache.Store after its commit.
type Books struct {
	books.Books
	// LockFree makes Read lock and read only accounts without a lock of another transaction. If false,
	// Read locks no account.
	LockFree bool
	// Write also writes Progress, the output so far of running streams by hold, and calls Hooks.
	Progress map[string]books.Progress
	Hooks    []Hook

	cache         *Cache
	cached        rowCache      // valid rows of the cache
	before, after store.Version // of the database: when the batch began, and after its writes
	newSeries     []int64
	newSegments   segmentCache
}

// Hook adds another room's statements to the transaction of a batch, so that both are committed or
// neither. If a batch is not committed, it is tried again: each try begins with Read, and Read must
// discard the results of earlier tries. The methods must not block.
type Hook interface {
	// Read adds the statements before a decision. The account's row is already locked, or another node
	// has locked it and the batch passes over the operation, without a decision. Use QueryLocked for
	// rows that the lock of the account does not cover.
	Read(q *store.Batch)
	// Write adds the statements of the decision.
	Write(q *store.Batch, nowMS int64)
}

// Need lists the rows that the operations of a batch need.
type Need struct {
	Admissions     []*books.Admission
	Accounts, Keys []string // of other operations
	Holds          []string
	Hooks          []Hook
}

// Cache saves the next batch from reading and inserting some rows again. The zero value is empty.
type Cache struct {
	rows     rowCache
	series   seriesCache
	segments segmentCache
}

// NewBooks returns empty books for a batch. The books use the cache.
func (c *Cache) NewBooks() *Books {
	return &Books{Books: books.New(), Progress: map[string]books.Progress{}, cache: c}
}

// Store caches the rows of a committed batch.
func (c *Cache) Store(b *Books) {
	c.series.add(b.newSeries)
	c.segments.add(b.newSegments)
	c.rows.store(b)
}

// Begin adds statements to read the time and the version of the database. Without Begin, Read uses
// no cached rows.
func (b *Books) Begin(q *store.Batch) {
	q.Version(&b.before)
	q.Now(&b.NowMS)
}
