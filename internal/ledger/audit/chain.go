package audit

import (
	"fmt"
	"maps"
	"slices"

	"tollgate/internal/money"
	"tollgate/internal/store"
)

// Chain proves the running balances of an account without sorting the movements. A movement leads
// from one state to the next: from its number less one and the balance before it, to its number and
// the balance after it. The first movement begins at number 0 and balance 0, and the last one ends
// at the account's row. Each state in between is the end of one movement and the beginning of the
// next, so the marks of all ends plus the mark of the first state equal the marks of all beginnings
// plus the mark of the last state. Numbers only grow, so only a complete chain adds up. Marks are
// added modulo 2^64.
type Chain struct {
	movements    int64
	begun, ended uint64
}

// Move adds a movement with its number, the balance after it and its amount.
func (c *Chain) Move(seq int64, balance, delta money.Amount) {
	c.movements++
	c.begun += mark(seq-1, balance-delta)
	c.ended += mark(seq, balance)
}

// Moved reports whether the chain has a movement.
func (c *Chain) Moved() bool { return c.movements > 0 }

// whole reports whether the movements lead from nothing to an account's newest number and balance.
func (c *Chain) whole(seq int64, balance money.Amount) bool {
	return c.movements == seq && c.ended+mark(0, 0) == c.begun+mark(seq, balance)
}

// join adds the movements of another chain.
func (c *Chain) join(o Chain) {
	c.movements += o.movements
	c.begun += o.begun
	c.ended += o.ended
}

// Folded describes the receipts of one account that are being deleted: the chain of their movements,
// and their kept charges.
type Folded struct {
	Chain
	Charges []Charge
}

var writeChains = store.Insert("ledger_folded_chain",
	"account text, receipts bigint, begun bigint, ended bigint, kept bigint, kept_mark bigint",
	`ON CONFLICT (account) DO UPDATE SET receipts = excluded.receipts, begun = excluded.begun, ended = excluded.ended,
		kept = excluded.kept, kept_mark = excluded.kept_mark`)

// RecordFoldedTx adds receipts to the stored checksums of their accounts. In the same transaction, the
// receipts must be deleted or begin to count as deleted (Unfolded).
func RecordFoldedTx(tx *store.Tx, folded map[string]*Folded) error {
	accounts := slices.Sorted(maps.Keys(folded))
	if err := tx.Lock("ledger_folded_chain", "account", accounts...); err != nil {
		return err
	}
	stored, err := chainsTx(tx, tx.In("account", 1), store.List(accounts))
	if err != nil {
		return fmt.Errorf("read the checksums of deleted receipts: %w", err)
	}
	rows := writeChains.Make(len(accounts))
	for _, account := range accounts {
		sum, added := stored[account], folded[account]
		sum.join(added.Chain)
		sum.kept = money.Plus(sum.kept, int64(len(added.Charges)))
		for i := range added.Charges {
			sum.keptMark += added.Charges[i].mark(account)
		}
		rows = append(rows, account, sum.movements, int64(sum.begun), int64(sum.ended), sum.kept, int64(sum.keptMark))
	}
	b := tx.Batch()
	b.Rows(writeChains, rows)
	return tx.Run(b)
}

// storedChain is the chain of an account's deleted receipts, with the number and the mark of their
// kept charges.
type storedChain struct {
	Chain
	kept     int64
	keptMark uint64
}

// chainsTx returns the stored chains matching a condition.
func chainsTx(tx *store.Tx, condition string, args ...any) (map[string]storedChain, error) {
	stored := map[string]storedChain{}
	err := tx.Each(func(row store.Row) error {
		var account string
		var begun, ended, mark int64
		var c storedChain
		err := row.Scan(&account, &c.movements, &begun, &ended, &c.kept, &mark)
		c.begun, c.ended, c.keptMark = uint64(begun), uint64(ended), uint64(mark)
		stored[account] = c
		return err
	}, `SELECT account, receipts, begun, ended, kept, kept_mark FROM ledger_folded_chain WHERE `+condition, args...)
	return stored, err
}

// mark hashes a state to 64 bits (the finalizer of SplitMix64, twice).
func mark(seq int64, balance money.Amount) uint64 {
	return mix(mix(uint64(seq)+0x9e3779b97f4a7c15) ^ uint64(balance))
}

func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
