package audit

import (
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// Chain proves the running balances of an account without sorting the movements. A movement leads
// from one state to the next: from its number less one and the balance before it, to its number and
// the balance after it. The first movement begins at number 0 and balance 0, and the last one ends
// at the account's row. Each state between is the end of one movement and the beginning of the
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

// RecordTx adds movements that are being deleted to the stored chain.
func (c *Chain) RecordTx(tx *store.Tx, account string) error {
	if c.movements == 0 {
		return nil
	}
	if err := tx.Lock("ledger_folded_chain", "account", account); err != nil {
		return err
	}
	noted, err := chainsTx(tx, account)
	if err != nil {
		return err
	}
	sum := noted[account]
	sum.join(*c)
	_, err = tx.Exec(`INSERT INTO ledger_folded_chain (account, receipts, begun, ended) VALUES ($1, $2, $3, $4)
		ON CONFLICT (account) DO UPDATE SET receipts = excluded.receipts, begun = excluded.begun, ended = excluded.ended`,
		account, sum.movements, int64(sum.begun), int64(sum.ended))
	return err
}

// chainsTx returns the stored chains of an account, or of all accounts if account is "".
func chainsTx(tx *store.Tx, account string) (map[string]Chain, error) {
	rows, err := tx.Query(`SELECT account, receipts, begun, ended FROM ledger_folded_chain WHERE account = $1 OR $1 = ''`, account)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	noted := map[string]Chain{}
	for rows.Next() {
		var of string
		var begun, ended int64
		var c Chain
		if err := rows.Scan(&of, &c.movements, &begun, &ended); err != nil {
			return nil, err
		}
		c.begun, c.ended = uint64(begun), uint64(ended)
		noted[of] = c
	}
	return noted, rows.Err()
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
