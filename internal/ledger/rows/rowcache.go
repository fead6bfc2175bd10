package rows

import (
	"slices"

	"tollgate/internal/ledger/books"
	"tollgate/internal/store"
)

// rowCache caches the rows of batches as they are after the last batch. Only SQLite uses the cache,
// because reads take a fifth of a batch's time there. The rows are valid while the database has the
// version of the last batch: any other write, even to another table, empties the cache. A failed batch
// empties the cache too, because each batch begins with a write. Therefore a batch may change the
// cached rows in place.
type rowCache struct {
	version  store.Version // of the database after the last batch
	accounts map[string]*books.AccountRow
	held     map[string]books.HeldSums // of these accounts
	keys     map[string]*books.KeyRow
	limits   map[books.LimitKey]books.LimitRow
}

// maxCachedRows bounds the cached accounts, keys and limits, each. A full cache takes about 10 MB.
const maxCachedRows = 10_000

// at returns the cached rows if they are valid at version, or an empty cache.
func (c rowCache) at(version store.Version) rowCache {
	if !c.version.Same(version) {
		return rowCache{}
	}
	return c
}

// hasCache reports whether Begin has read the time. Only then does Read use cached rows.
func (b *Books) hasCache() bool { return b.NowMS > 0 }

// store caches the rows of a committed batch.
func (c *rowCache) store(b *Books) {
	if b.after == (store.Version{}) {
		return // PostgreSQL has no versions
	}
	*c = b.cached
	c.version = b.after
	if c.accounts == nil || max(len(c.accounts)+len(b.Accounts), len(c.keys)+len(b.Keys), len(c.limits)+len(b.Limits)) > maxCachedRows {
		c.accounts, c.held = map[string]*books.AccountRow{}, map[string]books.HeldSums{}
		c.keys, c.limits = map[string]*books.KeyRow{}, map[books.LimitKey]books.LimitRow{}
	}
	for id, row := range b.Accounts {
		row.Dirty = false
		c.accounts[id], c.held[id] = row, b.Held[id]
	}
	for id, row := range b.Keys {
		row.Dirty = false
		c.keys[id] = row
	}
	for k := range b.LimitAdds {
		if row, known := c.limits[k]; known {
			b.Limits[k] = row
		}
	}
	for k := range b.Limits {
		c.limits[k] = b.Limit(k)
	}
}

// uncachedLimits copies the cached limits of an admission into the batch and returns the subjects of
// the other limits. A limit without a row is zero.
func (b *Books) uncachedLimits(a *books.Admission) []string {
	var subjects []string
	if key, known := b.cached.keys[a.Key]; !known || key.DailyBudget >= 0 {
		subjects = append(subjects, a.Key)
	}
	if a.FreeDaily > 0 {
		subjects = append(subjects, books.FreeSubject(a.Account, a.Model))
	}
	return slices.DeleteFunc(subjects, func(subject string) bool {
		k := books.LimitKey{Subject: subject, Day: books.DayOf(b.NowMS)}
		row, known := b.cached.limits[k]
		b.Limits[k] = row
		return known
	})
}

// uncachedAccounts puts the cached accounts into the batch and returns the ids of the others.
func (b *Books) uncachedAccounts(ids []string) []string {
	return slices.DeleteFunc(ids, func(id string) bool {
		row, known := b.cached.accounts[id]
		if known {
			b.Accounts[id] = row
			if held := b.cached.held[id]; held != nil {
				b.Held[id] = held
			}
		}
		return known
	})
}

// uncachedKeys is uncachedAccounts for keys.
func (b *Books) uncachedKeys(ids []string) []string {
	return slices.DeleteFunc(ids, func(id string) bool {
		row, known := b.cached.keys[id]
		if known {
			b.Keys[id] = row
		}
		return known
	})
}
