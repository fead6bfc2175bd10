package ledger

import (
	"slices"

	"tollgate/internal/ledger/books"
	"tollgate/internal/store"
)

// rowCache caches the rows of accounts and keys as the committer's last batch left them. It is used
// on SQLite, where the reads are a fifth of a batch's time. The rows are valid while the database
// is at that batch's version: any other write, even to another table, empties the cache.
type rowCache struct {
	version  store.Version
	accounts map[string]books.AccountRow
	keys     map[string]books.KeyRow
}

// maxCachedRows bounds the cached accounts and keys, each: about 5 MB.
const maxCachedRows = 10_000

// at returns the cached rows if they are valid at version, or an empty cache.
func (k rowCache) at(version store.Version) rowCache {
	if !k.version.Same(version) {
		return rowCache{}
	}
	return k
}

// store caches the rows that a committed batch wrote. Rows that were only read belong to refused
// requests and are not cached.
func (k *rowCache) store(b *batch) {
	if b.version == (store.Version{}) {
		return // on PostgreSQL
	}
	*k = b.cached
	k.version = b.version
	if k.accounts == nil || len(k.accounts)+len(b.Accounts) > maxCachedRows || len(k.keys)+len(b.Keys) > maxCachedRows {
		k.accounts, k.keys = map[string]books.AccountRow{}, map[string]books.KeyRow{}
	}
	for id, row := range b.Accounts {
		if row.Dirty {
			row := *row
			row.Dirty = false
			k.accounts[id] = row
		}
	}
	for id, row := range b.Keys {
		if row.Dirty {
			row := *row
			row.Dirty = false
			k.keys[id] = row
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
