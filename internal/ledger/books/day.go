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
	Spent, Held money.Amount // of a key: its charges and its open holds
	Used        int64        // of a free quota: its requests
}

// limit returns the sums of a subject on a day, with the batch's changes.
func (b *Books) limit(k LimitKey) LimitRow {
	read, added := b.Limits[k], b.LimitAdds[k]
	return LimitRow{
		Spent: money.Plus(read.Spent, added.Spent), Held: money.Plus(read.Held, added.Held), Used: money.Plus(read.Used, added.Used),
	}
}

// addLimit changes the sums of a subject on a day.
func (b *Books) addLimit(k LimitKey, change LimitRow) {
	a := b.LimitAdds[k]
	b.LimitAdds[k] = LimitRow{Spent: money.Plus(a.Spent, change.Spent), Held: a.Held + change.Held, Used: a.Used + change.Used}
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
