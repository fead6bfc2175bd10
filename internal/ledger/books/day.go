package books

import (
	"time"

	"tollgate/internal/money"
	"tollgate/internal/store/id"
)

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

// LimitKey identifies the sums of a subject on a day. A subject is a key with a daily budget, or a
// free model of an account (FreeSubject).
type LimitKey struct {
	Subject string
	Day     int64
}

// FreeSubject returns the subject of an account's free quota of a model. No id of a key has a slash.
func FreeSubject(account, model string) string { return account + "/" + BoundedText(model) }

// LimitRow has the sums of a subject on a day.
type LimitRow struct {
	Spent money.Amount // the charges of a key
	Used  int64        // the requests of a free quota
}

// Limit returns the sums of a subject on a day, with the batch's changes.
func (b *Books) Limit(k LimitKey) LimitRow {
	read, added := b.Limits[k], b.LimitAdds[k]
	return LimitRow{Spent: money.Plus(read.Spent, added.Spent), Used: money.Plus(read.Used, added.Used)}
}

// addLimit changes the sums of a subject on a day.
func (b *Books) addLimit(k LimitKey, change LimitRow) {
	a := b.LimitAdds[k]
	b.LimitAdds[k] = LimitRow{Spent: money.Plus(a.Spent, change.Spent), Used: a.Used + change.Used}
}

// HeldKey identifies a sum of open holds of an account. The empty key means all keys.
type HeldKey struct {
	Key string
	Day int64 // of the admission, or EveryDay
}

// EveryDay is the day of sums over all days.
const EveryDay = -1

// HeldSums are the sums of an account's open holds.
type HeldSums map[HeldKey]money.Amount

// Add adds the holds of a key on a day to their sums. A negative amount removes holds.
func (s HeldSums) Add(key string, day int64, amount money.Amount) {
	for _, k := range [...]HeldKey{{"", EveryDay}, {key, EveryDay}, {key, day}} {
		if s[k] = money.Plus(s[k], amount); s[k] == 0 {
			delete(s, k)
		}
	}
}

// AddHeld adds holds to the sums of their account.
func (b *Books) AddHeld(account, key string, day int64, amount money.Amount) {
	if b.Held[account] == nil {
		b.Held[account] = HeldSums{}
	}
	b.Held[account].Add(key, day, amount)
}

// rewind corrects the hits of a key that are in the future because the clock was set back. It sets
// their times to now, which never shortens a window.
func (b *Books) rewind(key *KeyRow) {
	key.LastHitMS = b.NowMS
	b.RewoundKeys = append(b.RewoundKeys, key.ID)
	for k, at := range b.Hits {
		if k.Key == key.ID {
			b.Hits[k] = min(at, b.NowMS)
		}
	}
}
