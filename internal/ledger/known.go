package ledger

import (
	"slices"

	"tollgate/internal/ledger/books"
	"tollgate/internal/store"
)

// knownRows caches rows of accounts and keys as left by the committer's last batch on SQLite. They
// are valid while the database is at that batch's version, and save the reads, a fifth of a batch's
// time. Any other write, even to another table, makes the next batch read all of its rows again.
type knownRows struct {
	version  store.Version
	accounts map[string]books.AccountRow
	keys     map[string]books.KeyRow
}

// maxKnownRows bounds the cached rows of a kind: some 5 MB.
const maxKnownRows = 10_000

// at returns the cached rows if they are valid at version, or an empty cache.
func (k knownRows) at(version store.Version) knownRows {
	if !k.version.Same(version) {
		return knownRows{}
	}
	return k
}

// keep caches the rows written by a committed batch. Rows only read are not worth caching: they
// belong to refused requests.
func (k *knownRows) keep(b *batch) {
	if b.version == (store.Version{}) {
		return // PostgreSQL
	}
	*k = b.known
	k.version = b.version
	if k.accounts == nil || len(k.accounts)+len(b.Accounts) > maxKnownRows || len(k.keys)+len(b.Keys) > maxKnownRows {
		k.accounts, k.keys = map[string]books.AccountRow{}, map[string]books.KeyRow{}
	}
	for id, row := range b.Accounts {
		if row.Dirty {
			kept := *row
			kept.Dirty = false
			k.accounts[id] = kept
		}
	}
	for id, row := range b.Keys {
		if row.Dirty {
			kept := *row
			kept.Dirty = false
			k.keys[id] = kept
		}
	}
}

// unknownAccounts copies the cached accounts into the batch and returns the ids of the others.
func (b *batch) unknownAccounts(ids []string) []string {
	return slices.DeleteFunc(ids, func(id string) bool {
		row, known := b.known.accounts[id]
		if known {
			b.Accounts[id] = &row
		}
		return known
	})
}

// unknownKeys is unknownAccounts for keys.
func (b *batch) unknownKeys(ids []string) []string {
	return slices.DeleteFunc(ids, func(id string) bool {
		row, known := b.known.keys[id]
		if known {
			b.Keys[id] = &row
		}
		return known
	})
}
