package audit

import (
	"fmt"
	"slices"

	"tollgate/internal/ledger/books"
	"tollgate/internal/ledger/measure"
	"tollgate/internal/money"
)

// overKey identifies a sum of usage above holds.
type overKey struct{ account, key, line string }

// overSums has the stored sum of usage above holds, and the same sum over the receipts.
type overSums struct{ recorded, computed money.Amount }

func (b *Books) readOver() error {
	b.over = map[overKey]*overSums{}
	where, args := b.Where("account")
	return b.each(func(scan scanner) error {
		var k overKey
		var s overSums
		if err := scan(&k.account, &k.key, &k.line, &s.recorded); err != nil {
			return err
		}
		b.over[k] = &s
		b.Count("sums above holds", 1)
		return nil
	}, `SELECT account, key, line, over_nano FROM ledger_over WHERE `+where, args...)
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

// segmentRows is the number of movements in a segment of an account's log.
const segmentRows = 128

// readSegments reads the recorded segments of each key.
func (b *Books) readSegments() error {
	where, args := b.Where("k.account")
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
	}, `SELECT p.key, p.part FROM ledger_key k JOIN ledger_key_part p ON p.key = k.id WHERE `+where+` ORDER BY p.key, p.part`, args...)
}

// checkSegment reports a receipt outside the recorded segments of its key.
func (b *Books) checkSegment(a *accountSums, k *keySums, id, key string, seq int64) {
	segment := seq / segmentRows
	if !a.exists || !k.exists || k.segmentKnown && k.segment == segment {
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
	ID, Account, Kind, Note string
	Amount, Balance         money.Amount // Balance is the balance after the movement
	CreatedMS               int64
}

// IsTrial reports whether m is a trial credit.
func (m Movement) IsTrial() bool { return m.Kind == books.EntryTrial }

// Movements calls fn with each credit and take-back of the range, in the order of their ids.
func (b *Books) Movements(fn func(Movement)) error {
	where, args := b.Where("account")
	return b.each(func(scan scanner) error {
		var m Movement
		if err := scan(&m.ID, &m.Account, &m.Kind, &m.Note, &m.Amount, &m.Balance, &m.CreatedMS); err != nil {
			return err
		}
		fn(m)
		return nil
	}, `SELECT id, account, kind, note, amount_nano, balance_nano, created_ms FROM ledger_entry WHERE `+where+` ORDER BY id`, args...)
}

// BilledReceipt is the receipt of a billed request without a job.
type BilledReceipt struct {
	Request, Account, Key, Model, Endpoint string
	Revision                               int64
	Factor                                 money.Factor
	Tokens                                 books.Tokens
	Quantity                               measure.Quantity
	Cost, Over                             money.Amount
}

// BilledReceipts registers fn for the receipt of each billed request without a job.
func (b *Books) BilledReceipts(fn func(BilledReceipt)) { b.billed = append(b.billed, fn) }
