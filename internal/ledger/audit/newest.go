package audit

import (
	"fmt"
	"slices"

	"tollgate/internal/ledger/books"
	"tollgate/internal/money"
)

// newest are the sums of the newest day of a key or of a model.
type newest struct {
	day int64
	sum dayFigures
}

// at returns the sums of a day, if none is newer.
func (n *newest) at(day int64) *dayFigures {
	if day < n.day {
		return &dayFigures{}
	}
	if day > n.day {
		*n = newest{day: day}
	}
	return &n.sum
}

// compareNewest reports figures of today, or of a day to come, that no row has: a row that
// was reset would let the day's limits begin again. Rows of the days before may be closed.
func (b *Books) compareNewest() {
	for id, k := range b.keys {
		n := k.newest
		if n.day < b.today || !k.there || n.day == k.day || k.otherDays[n.day] != nil || n.sum.cost == 0 && n.sum.held == 0 {
			continue
		}
		b.Differ(Difference{Account: k.account, Key: id, What: "what the key has spent and holds today is gone",
			Recorded: fmt.Sprintf("day %d", k.day), Computed: fmt.Sprintf("day %d: %s spent, %s held", n.day, n.sum.cost, n.sum.held)})
	}
	for id, a := range b.accounts {
		for model, m := range a.models {
			b.compareNewestModel(Difference{Account: id, Model: model}, m)
		}
	}
}

func (b *Books) compareNewestModel(d Difference, m *modelSums) {
	n := m.newest
	if n.day >= b.today && n.day != m.day && m.otherDays[n.day] == nil && n.sum.requests > 0 {
		d.What, d.Computed = "the usage of today is gone", fmt.Sprintf("day %d: %d requests", n.day, n.sum.requests)
		b.Differ(d)
	}
	n = m.newestFree
	if n.day >= b.today && (!m.quota || n.day != m.freeDay) && m.otherDays[n.day] == nil && n.sum.places > 0 {
		d.What, d.Computed = "the places of a free quota that are used today are gone", fmt.Sprintf("day %d: %d", n.day, n.sum.places)
		b.Differ(d)
	}
}

// overKey names a sum of usage above holds.
type overKey struct{ account, key, line string }

// overSums is such a sum, and what receipts make it.
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
		b.Checked("sums above holds", 1)
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

// compareOver reports sums above holds that are not those of the receipts. Where receipts
// have been deleted the sum may be larger.
func (b *Books) compareOver() {
	for k, s := range b.over {
		a := b.accounts[k.account]
		if s.recorded == s.computed || s.recorded > s.computed && a != nil && a.folded > 0 {
			continue
		}
		b.Differ(Difference{Account: k.account, Key: k.key, What: "usage above holds is not the sum of the receipts: " + k.line,
			Recorded: s.recorded.String(), Computed: s.computed.String()})
	}
}

// partRows is how many numbers of an account's log are a part of the log by key.
const partRows = 128

// readParts reads which parts of their account's log keys have receipts in.
func (b *Books) readParts() error {
	return b.each(func(scan scanner) error {
		var key string
		var part int64
		if err := scan(&key, &part); err != nil {
			return err
		}
		if k := b.keys[key]; k != nil {
			k.parts = append(k.parts, part)
		}
		b.Checked("parts of keys' logs", 1)
		return nil
	}, `SELECT key, part FROM ledger_key_part ORDER BY key, part`)
}

// checkPart reports a receipt that the log of its key does not lead to.
func (b *Books) checkPart(a *accountSums, k *keySums, id, key string, seq int64) {
	part := seq / partRows
	if !a.there || !k.there || seq > a.parted || k.known && k.part == part {
		return
	}
	k.known, k.part = true, part
	if _, ok := slices.BinarySearch(k.parts, part); !ok {
		b.Differ(Difference{Account: k.account, Key: key, Request: id, What: "the log of a key does not lead to its request",
			Recorded: "nothing", Computed: fmt.Sprintf("part %d", part)})
	}
}

// Movement is a credit or a take-back.
type Movement struct {
	ID, Account, Note string
	Amount, Balance   money.Amount // Balance is the account's after it
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

// BilledReceipt is the receipt of a chat request that was billed.
type BilledReceipt struct {
	Request, Account, Key, Model, Endpoint string
	Revision                               int64
	Factor                                 money.Factor
	Tokens                                 books.Tokens
	Cost, Over                             money.Amount
}

// BilledReceipts has fn called with the receipt of each chat request that was billed.
func (b *Books) BilledReceipts(fn func(BilledReceipt)) { b.billed = append(b.billed, fn) }
