package books

import (
	"time"

	"tollgate/internal/money"
	"tollgate/internal/store/id"
)

// The rows of keys, free quotas and usage have the figures of one day. If the clock's day differs
// from the row's, at midnight or after a jump ahead or back, the row changes day: its figures are
// stored aside, and the stored figures of the new day are taken back. So each day has its own exact
// figures, however often the clock passes over it. A row on the right day costs nothing; a change
// of day costs the batch one more read.

// KeyDay names the figures of a key on a day.
type KeyDay struct {
	Key string
	Day int64
}

// DaySums is a batch's addition to the stored figures of a day.
type DaySums struct {
	Spent, Held money.Amount // of a key
	Used        int64        // of a free quota
	Create      bool         // they are put aside now; else they have been, or were none
}

// Days are the figures of days other than the rows'.
type Days struct {
	Keys map[KeyDay]DaySums   // read: of today
	Free map[UsageKey]DaySums // read: of today

	// The batch's writes.
	KeyAdds, KeyDeletes   map[KeyDay]DaySums
	FreeAdds, FreeDeletes map[UsageKey]DaySums
	Usage                 []string // accounts whose usage changes to today
}

func newDays() Days {
	return Days{
		Keys: map[KeyDay]DaySums{}, KeyAdds: map[KeyDay]DaySums{}, KeyDeletes: map[KeyDay]DaySums{},
		Free: map[UsageKey]DaySums{}, FreeAdds: map[UsageKey]DaySums{}, FreeDeletes: map[UsageKey]DaySums{},
	}
}

// DayOf returns the UTC day of a time in Unix milliseconds.
func DayOf(ms int64) int64 { return ms / (24 * time.Hour).Milliseconds() }

// FoldBelow returns the request id below which receipts are deleted: ids sort by creation time. The
// day's own figures are proved by its receipts, so today's stay; the hour is for requests created
// before midnight and admitted after it.
func FoldBelow(nowMS int64, retention time.Duration) string {
	midnight := time.Duration(DayOf(nowMS)) * 24 * time.Hour
	cutoff := min(nowMS-retention.Milliseconds(), (midnight - time.Hour).Milliseconds())
	return id.At("req_", time.UnixMilli(cutoff))
}

// spentOn returns a key's spent and held sums on a day that was read.
func (b *Books) spentOn(key *KeyRow, day int64) (spent, held money.Amount) {
	if key.Day == day {
		return key.DaySpent, key.DayHeld
	}
	k := KeyDay{key.ID, day}
	read, left := b.Days.Keys[k], b.Days.KeyAdds[k]
	return money.Plus(read.Spent, left.Spent), money.Plus(read.Held, left.Held)
}

// rollKey moves a key's row to a day that was read.
func (b *Books) rollKey(key *KeyRow, day int64) {
	if key.Day == day {
		return
	}
	spent, held := b.spentOn(key, day)
	if key.DaySpent != 0 || key.DayHeld != 0 {
		b.addKeyDay(KeyDay{key.ID, key.Day}, key.DaySpent, key.DayHeld, true)
	}
	removeStored(KeyDay{key.ID, day}, b.Days.Keys, b.Days.KeyAdds, b.Days.KeyDeletes)
	key.Day, key.DaySpent, key.DayHeld = day, spent, held
}

// leave adds to the stored figures of a key's day.
func (b *Books) addKeyDay(k KeyDay, spent, held money.Amount, whole bool) {
	a := b.Days.KeyAdds[k]
	b.Days.KeyAdds[k] = DaySums{Spent: money.Plus(a.Spent, spent), Held: money.Plus(a.Held, held), Create: a.Create || whole}
}

// take takes stored figures back.
func removeStored[K comparable](k K, read, left, taken map[K]DaySums) {
	if _, ok := read[k]; ok {
		taken[k] = DaySums{}
	}
	delete(read, k)
	delete(left, k)
}

// usedOn returns the used places of a free quota on a day that was read.
func (b *Books) usedOn(k ModelKey, day int64) int64 {
	if free := b.Free[k]; free != nil && free.Day == day {
		return free.Used
	}
	at := UsageKey{k.Account, k.Model, day}
	return money.Plus(b.Days.Free[at].Used, b.Days.FreeAdds[at].Used)
}

// rollFree moves a free quota's row to a day that was read.
func (b *Books) rollFree(k ModelKey, day int64) *FreeRow {
	free := b.Free[k]
	if free == nil {
		free = &FreeRow{Day: day}
		b.Free[k] = free
	}
	if free.Day == day {
		return free
	}
	used := b.usedOn(k, day)
	if free.Used != 0 {
		b.addFreeDay(k, free.Day, free.Used, true)
	}
	removeStored(UsageKey{k.Account, k.Model, day}, b.Days.Free, b.Days.FreeAdds, b.Days.FreeDeletes)
	free.Day, free.Used = day, used
	return free
}

func (b *Books) addFreeDay(k ModelKey, day, used int64, whole bool) {
	at := UsageKey{k.Account, k.Model, day}
	a := b.Days.FreeAdds[at]
	b.Days.FreeAdds[at] = DaySums{Used: a.Used + used, Create: a.Create || whole}
}

// returnFree gives a place of a day's free quota back.
func (b *Books) returnFree(k ModelKey, day int64) {
	free := b.Free[k]
	switch {
	case free == nil:
	case free.Day != day:
		b.addFreeDay(k, day, -1, false)
	case free.Used > 0:
		free.Used--
		free.Dirty = true
	}
}

// rollUsage marks the account's usage for the change to today; SQL does the work.
func (b *Books) rollUsage(acct *AccountRow) {
	if today := DayOf(b.NowMS); acct.Day != today {
		acct.Day = today
		b.Days.Usage = append(b.Days.Usage, acct.ID)
	}
}

// rewind handles a key last used later than now: the clock has gone back since, so each of its
// future hits happened at some time up to now, and counts as made now. That never shortens a
// window, and the window ends a minute from now.
func (b *Books) rewind(key *KeyRow) {
	key.LastUsedMS, key.Dirty = b.NowMS, true
	b.RewoundKeys = append(b.RewoundKeys, key.ID)
	for k, at := range b.Hits {
		if k.Key == key.ID {
			b.Hits[k] = min(at, b.NowMS)
		}
	}
}
