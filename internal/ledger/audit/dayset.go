package audit

import (
	"fmt"
	"slices"
	"time"

	"tollgate/internal/ledger/books"
	"tollgate/internal/money"
)

// daySet is a set of days in ascending order.
type daySet []int64

func (s *daySet) add(day int64) {
	if n := len(*s); n > 0 && (*s)[n-1] == day {
		return
	}
	if i, found := slices.BinarySearch(*s, day); !found {
		*s = slices.Insert(*s, i, day)
	}
}

// closedDay returns the newest day whose figures may be deleted. The first deleted receipts of a
// day delete its figures, but never those of today. Receipts are deleted in the order of their ids,
// so around midnight a receipt of the day before may still exist.
func (b *Books) closedDay(a *accountSums) int64 {
	if a.folded == 0 {
		return 0
	}
	return min(a.firstDay+1, b.today-1)
}

// compareDaySets reports days with receipts or holds but without a row for their figures. Without
// the row, the limits of the day would begin again.
func (b *Books) compareDaySets() {
	for id, k := range b.keys {
		a := b.accounts[k.account]
		if !k.exists || a == nil {
			continue
		}
		b.compareDaySet(Difference{Account: k.account, Key: id, What: "what the key has spent and holds on a day is gone"}, a, k.days,
			func(day int64) bool { return day == k.day || k.otherDays[day] != nil })
	}
	for id, a := range b.accounts {
		for model, m := range a.models {
			b.compareDaySet(Difference{Account: id, Model: model, What: "the usage of a day is gone"}, a, m.days,
				func(day int64) bool {
					return day == m.day || m.otherDays[day] != nil && m.otherDays[day].recorded.requests > 0
				})
			b.compareDaySet(Difference{Account: id, Model: model, What: "the used places of a free quota are gone on a day"}, a, m.freeDays,
				func(day int64) bool {
					return m.quota && day == m.freeDay || m.otherDays[day] != nil && m.otherDays[day].recorded.places > 0
				})
		}
	}
}

func (b *Books) compareDaySet(d Difference, a *accountSums, days daySet, has func(day int64) bool) {
	for _, day := range days {
		if day > b.closedDay(a) && !has(day) {
			d.Recorded, d.Computed = "nothing", time.UnixMilli(0).UTC().AddDate(0, 0, int(day)).Format(time.DateOnly)
			b.Report(d)
		}
	}
}

// overKey identifies a sum of usage above holds.
type overKey struct{ account, key, line string }

// overSums is a stored sum above holds and the sum of the receipts.
type overSums struct{ recorded, computed money.Amount }

func (b *Books) readOver() error {
	b.over = map[overKey]*overSums{}
	return b.each(func(scan scanner) error {
		var k overKey
		var s overSums
		if err := scan(&k.account, &k.key, &k.line, &s.recorded); err != nil {
			return err
		}
		b.over[k] = &s
		b.Count("sums above holds", 1)
		return nil
	}, `SELECT account, key, line, over_nano FROM ledger_over`)
}

// addOver adds the usage of a receipt above its hold.
func (b *Books) addOver(k overKey, over money.Amount) {
	if over <= 0 {
		return
	}
	if b.over[k] == nil {
		b.over[k] = &overSums{}
	}
	b.over[k].computed = money.Plus(b.over[k].computed, over)
}

// compareOver compares the stored sums above holds with those of the receipts. The stored sum may
// be larger if receipts have been deleted.
func (b *Books) compareOver() {
	for k, s := range b.over {
		a := b.accounts[k.account]
		if s.recorded == s.computed || s.recorded > s.computed && a != nil && a.folded > 0 {
			continue
		}
		b.Report(Difference{Account: k.account, Key: k.key, What: "usage above holds is not the sum of the receipts: " + k.line,
			Recorded: s.recorded.String(), Computed: s.computed.String()})
	}
}

// segmentRows is the size of a segment of an account's log.
const segmentRows = 128

// readSegments reads the recorded segments of each key.
func (b *Books) readSegments() error {
	return b.each(func(scan scanner) error {
		var key string
		var segment int64
		if err := scan(&key, &segment); err != nil {
			return err
		}
		if k := b.keys[key]; k != nil {
			k.segments = append(k.segments, segment)
		}
		b.Count("parts of keys' logs", 1)
		return nil
	}, `SELECT key, part FROM ledger_key_part ORDER BY key, part`)
}

// checkSegment reports a receipt outside the recorded segments of its key.
func (b *Books) checkSegment(a *accountSums, k *keySums, id, key string, seq int64) {
	segment := seq / segmentRows
	if !a.exists || !k.exists || seq > a.indexedSeq || k.segmentKnown && k.segment == segment {
		return
	}
	k.segmentKnown, k.segment = true, segment
	if _, ok := slices.BinarySearch(k.segments, segment); !ok {
		b.Report(Difference{Account: k.account, Key: key, Request: id, What: "the log of a key does not lead to its request",
			Recorded: "nothing", Computed: fmt.Sprintf("part %d", segment)})
	}
}

// Movement is a credit or a take-back.
type Movement struct {
	ID, Account, Note string
	Amount, Balance   money.Amount // Balance is the balance after it
	CreatedMS         int64
}

// Movements calls fn with each credit and take-back, in the order of their ids.
func (b *Books) Movements(fn func(Movement)) error {
	return b.each(func(scan scanner) error {
		var m Movement
		if err := scan(&m.ID, &m.Account, &m.Note, &m.Amount, &m.Balance, &m.CreatedMS); err != nil {
			return err
		}
		fn(m)
		return nil
	}, `SELECT id, account, note, amount_nano, balance_nano, created_ms FROM ledger_entry WHERE kind <> 'charges' ORDER BY id`)
}

// BilledReceipt is the receipt of a billed chat request.
type BilledReceipt struct {
	Request, Account, Key, Model, Endpoint string
	Revision                               int64
	Factor                                 money.Factor
	Tokens                                 books.Tokens
	Cost, Over                             money.Amount
}

// BilledReceipts registers fn for the receipt of each billed chat request.
func (b *Books) BilledReceipts(fn func(BilledReceipt)) { b.billed = append(b.billed, fn) }
