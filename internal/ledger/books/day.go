package books

import (
	"time"

	"tollgate/internal/money"
	"tollgate/internal/store/id"
)

// The rows of keys, free quotas and usage have the figures of one day. If today is another day,
// after midnight or after a jump of the clock, the row rolls over: its figures are added to the
// stored figures of the old day, and the stored figures of today are moved into the row. So each
// day has exact figures even if the clock goes back and forth. Without a rollover, a batch needs no
// further read; with a rollover, it needs one.

// KeyDay identifies a day of a key.
type KeyDay struct {
	Key string
	Day int64
}

// DaySums are stored figures of a day, or additions to them.
type DaySums struct {
	Spent, Held money.Amount // of a key
	Used        int64        // of a free quota
	Create      bool         // insert a row if none is stored; if false, only a stored row changes
}

// Days are the stored figures of keys and free quotas, and the batch's changes to them.
type Days struct {
	Keys map[KeyDay]DaySums   // of today
	Free map[UsageKey]DaySums // of today

	KeyAdds, KeyDeletes   map[KeyDay]DaySums
	FreeAdds, FreeDeletes map[UsageKey]DaySums
	Usage                 []string // accounts whose usage rolls over to today
}

func newDays() Days {
	return Days{
		Keys: map[KeyDay]DaySums{}, KeyAdds: map[KeyDay]DaySums{}, KeyDeletes: map[KeyDay]DaySums{},
		Free: map[UsageKey]DaySums{}, FreeAdds: map[UsageKey]DaySums{}, FreeDeletes: map[UsageKey]DaySums{},
	}
}

// DayOf returns the UTC day of a time in Unix milliseconds.
func DayOf(ms int64) int64 { return ms / (24 * time.Hour).Milliseconds() }

// FoldBelow returns the request id below which receipts are deleted; ids sort by creation time. The
// receipts of today stay, because they prove today's figures. The receipts of the hour before
// midnight stay too, because a request created before midnight may be admitted after midnight.
func FoldBelow(nowMS int64, retention time.Duration) string {
	midnight := time.Duration(DayOf(nowMS)) * 24 * time.Hour
	cutoff := min(nowMS-retention.Milliseconds(), (midnight - time.Hour).Milliseconds())
	return id.At("req_", time.UnixMilli(cutoff))
}

// spentOn returns a key's spent and held sums of a day. The day must be that of the key's row, or
// its stored figures must have been read.
func (b *Books) spentOn(key *KeyRow, day int64) (spent, held money.Amount) {
	if key.Day == day {
		return key.DaySpent, key.DayHeld
	}
	k := KeyDay{key.ID, day}
	read, added := b.Days.Keys[k], b.Days.KeyAdds[k]
	return money.Plus(read.Spent, added.Spent), money.Plus(read.Held, added.Held)
}

// rollKey rolls a key's row over to a day.
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

// addKeyDay adds to the stored figures of a key's day.
func (b *Books) addKeyDay(k KeyDay, spent, held money.Amount, create bool) {
	a := b.Days.KeyAdds[k]
	b.Days.KeyAdds[k] = DaySums{Spent: money.Plus(a.Spent, spent), Held: money.Plus(a.Held, held), Create: a.Create || create}
}

// removeStored removes stored figures that are moved into a row.
func removeStored[K comparable](k K, read, added, deleted map[K]DaySums) {
	if _, ok := read[k]; ok {
		deleted[k] = DaySums{}
	}
	delete(read, k)
	delete(added, k)
}

// usedOn returns the used places of a free quota on a day. The day must be that of the quota's row,
// or its stored figures must have been read.
func (b *Books) usedOn(k ModelKey, day int64) int64 {
	if free := b.Free[k]; free != nil && free.Day == day {
		return free.Used
	}
	at := UsageKey{k.Account, k.Model, day}
	return money.Plus(b.Days.Free[at].Used, b.Days.FreeAdds[at].Used)
}

// rollFree rolls a free quota's row over to a day.
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

func (b *Books) addFreeDay(k ModelKey, day, used int64, create bool) {
	at := UsageKey{k.Account, k.Model, day}
	a := b.Days.FreeAdds[at]
	b.Days.FreeAdds[at] = DaySums{Used: a.Used + used, Create: a.Create || create}
}

// returnFree gives back a place of a free quota on a day.
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

// rollUsage marks the account's usage for rollover to today; SQL does the work.
func (b *Books) rollUsage(acct *AccountRow) {
	if today := DayOf(b.NowMS); acct.Day != today {
		acct.Day = today
		b.Days.Usage = append(b.Days.Usage, acct.ID)
	}
}

// rewind corrects a key whose last use is in the future because the clock was set back. It sets the
// key's hits in the future to now, which never shortens a window.
func (b *Books) rewind(key *KeyRow) {
	key.LastUsedMS, key.Dirty = b.NowMS, true
	b.RewoundKeys = append(b.RewoundKeys, key.ID)
	for k, at := range b.Hits {
		if k.Key == key.ID {
			b.Hits[k] = min(at, b.NowMS)
		}
	}
}
