package ledger

import (
	"slices"

	"tollgate/internal/ledger/books"
	"tollgate/internal/store"
)

// rowCache caches the rows of accounts and keys as written by the committer's last batch. Only
// SQLite uses the cache, because reads take a fifth of a batch's time there. The rows are valid
// while the database has the version of that batch: any other write, even to another table, empties
// the cache.
type rowCache struct {
	version  store.Version // of the database after the last batch
	accounts map[string]books.AccountRow
	keys     map[string]books.KeyRow
}

// maxCachedRows bounds the cached accounts, and also the cached keys. A full cache takes about 5
// MB.
const maxCachedRows = 10_000

// at returns the cached rows if they are valid at version, or an empty cache.
func (c rowCache) at(version store.Version) rowCache {
	if !c.version.Same(version) {
		return rowCache{}
	}
	return c
}

// store caches the rows that a committed batch wrote. Rows that were only read belong to refused
// requests and are not cached.
func (c *rowCache) store(b *batch) {
	if b.version == (store.Version{}) {
		return // PostgreSQL has no versions
	}
	*c = b.cached
	c.version = b.version
	if c.accounts == nil || len(c.accounts)+len(b.Accounts) > maxCachedRows || len(c.keys)+len(b.Keys) > maxCachedRows {
		c.accounts, c.keys = map[string]books.AccountRow{}, map[string]books.KeyRow{}
	}
	for id, row := range b.Accounts {
		if row.Dirty {
			row := *row
			row.Dirty = false
			c.accounts[id] = row
		}
	}
	for id, row := range b.Keys {
		if row.Dirty {
			row := *row
			row.Dirty = false
			c.keys[id] = row
		}
	}
}

// uncachedAccounts copies the cached accounts into the batch and returns the ids of the others.
func (b *batch) uncachedAccounts(ids []string) []string {
	return slices.DeleteFunc(ids, func(id string) bool {
		row, known := b.cached.accounts[id]
		if known {
			b.Accounts[id] = &row
		}
		return known
	})
}

// uncachedKeys is uncachedAccounts for keys.
func (b *batch) uncachedKeys(ids []string) []string {
	return slices.DeleteFunc(ids, func(id string) bool {
		row, known := b.cached.keys[id]
		if known {
			b.Keys[id] = &row
		}
		return known
	})
}
