package ledger

import (
	"slices"

	"tollgate/internal/ledger/books"
	"tollgate/internal/store"
)

// knownRows are rows of accounts and keys as the committer's last batch on SQLite
// has left them. They stand in the books unchanged while the database is at that
// batch's version, and need not be read again then: reading them would take a
// fifth of a batch's time. Whoever else writes, be it one row of another table,
// has the next batch read all of its rows again.
type knownRows struct {
	version  store.Version
	accounts map[string]books.AccountRow
	keys     map[string]books.KeyRow
}

// maxKnownRows bounds the rows of a kind that are known: some 5 MB.
const maxKnownRows = 10_000

// at returns what is known of a database at a version: everything or nothing.
func (k knownRows) at(version store.Version) knownRows {
	if !k.version.Same(version) {
		return knownRows{}
	}
	return k
}

// keep takes what a committed batch has written. What it has read and left as it
// was is not worth keeping: that is rows of refused requests.
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

// unknownAccounts takes the rows of those accounts that are known into the batch
// and returns the others.
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
