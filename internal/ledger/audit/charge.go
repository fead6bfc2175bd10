package audit

import (
	"fmt"
	"hash/fnv"

	"tollgate/internal/money"
)

// Charge is a kept charge: the record of a charge after its receipt was deleted. Request and Job
// are packed ids.
type Charge struct {
	Seq             int64
	Model           string
	Amount, Balance money.Amount
	EndedMS         int64
	Request, Job    []byte
}

// mark hashes a kept charge to 64 bits.
func (c *Charge) mark(account string) uint64 {
	x := mark(c.Seq, c.Balance)
	x = mix(x ^ uint64(c.Amount))
	x = mix(x ^ uint64(c.EndedMS))
	h := fnv.New64a()
	for _, text := range [...][]byte{c.Request, c.Job, []byte(c.Model), []byte(account)} {
		_, _ = h.Write([]byte{byte(len(text)), 0}) // never fails
		_, _ = h.Write(text)
	}
	return mix(x ^ h.Sum64())
}

// chargeSums holds the sums of an account's kept charges, each with the recorded sum beside it.
type chargeSums struct {
	rows, recorded     int64
	mark, recordedMark uint64
}

// readCharges reads the kept charges.
func (b *Books) readCharges() error {
	words := map[int64]string{}
	err := b.each(func(scan scanner) error {
		var n int64
		var word string
		if err := scan(&n, &word); err != nil {
			return err
		}
		words[n] = word
		return nil
	}, `SELECT id, word FROM ledger_word`)
	if err != nil {
		return err
	}
	err = b.each(func(scan scanner) error {
		var account string
		var rows, mark int64
		if err := scan(&account, &rows, &mark); err != nil {
			return err
		}
		kept := &b.account(account, "sums of kept charges").kept
		kept.recorded, kept.recordedMark = rows, uint64(mark)
		return nil
	}, `SELECT account, kept, kept_mark FROM ledger_folded_chain`)
	if err != nil {
		return err
	}
	return b.each(func(scan scanner) error {
		var account, model int64
		var c Charge
		if err := scan(&account, &model, &c.Seq, &c.Amount, &c.Balance, &c.EndedMS, &c.Request, &c.Job); err != nil {
			return err
		}
		name, ok := words[account]
		if c.Model = words[model]; !ok || c.Model == "" {
			b.Report(Difference{Account: name, What: "a kept charge names an account or a model that is not there", Recorded: fmt.Sprint(c.Seq)})
		}
		if c.Amount <= 0 || outside(c.Balance) {
			b.Report(Difference{Account: name, What: "a kept charge is not positive, or its balance is out of range", Recorded: c.Amount.String()})
		}
		a := b.account(name, "a kept charge")
		a.computedBalance -= c.Amount
		a.charged = money.Plus(a.charged, c.Amount)
		a.kept.rows++
		a.kept.mark += c.mark(name)
		b.Count("kept charges", 1)
		return nil
	}, `SELECT account, model, seq, amount_nano, balance_nano, ended_ms, request, job FROM ledger_charge`)
}

// compareCharges compares an account's kept charges with the recorded sums.
func (b *Books) compareCharges(id string, a *accountSums) {
	kept := &a.kept
	if kept.rows != kept.recorded || kept.mark != kept.recordedMark {
		b.Report(Difference{Account: id, What: "the kept charges differ from their record: a charge is missing, was changed or was added",
			Recorded: fmt.Sprint(kept.rows), Computed: fmt.Sprint(kept.recorded)})
	}
}
