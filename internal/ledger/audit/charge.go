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

const unknownInCharge = "a kept charge names an account or a model that is not there"

// readCharges reads the kept charges.
func (b *Books) readCharges() error {
	where, args := b.Where("account")
	err := b.each(func(scan scanner) error {
		var account string
		var rows, mark int64
		if err := scan(&account, &rows, &mark); err != nil {
			return err
		}
		kept := &b.account(account, "sums of kept charges").kept
		kept.recorded, kept.recordedMark = rows, uint64(mark)
		return nil
	}, `SELECT account, kept, kept_mark FROM ledger_folded_chain WHERE `+where, args...)
	if err != nil {
		return err
	}
	where, args = b.Where("a.word")
	return b.each(func(scan scanner) error {
		var account string
		var c Charge
		if err := scan(&account, &c.Model, &c.Seq, &c.Amount, &c.Balance, &c.EndedMS, &c.Request, &c.Job); err != nil {
			return err
		}
		if c.Model == "" {
			b.Report(Difference{Account: account, What: unknownInCharge, Recorded: fmt.Sprint(c.Seq)})
		}
		if c.Amount <= 0 || outside(c.Balance) {
			b.Report(Difference{Account: account, What: "a kept charge is not positive, or its balance is out of range",
				Recorded: c.Amount.String()})
		}
		a := b.account(account, "a kept charge")
		a.computedBalance -= c.Amount
		a.charged = money.Plus(a.charged, c.Amount)
		a.kept.rows++
		a.kept.mark += c.mark(account)
		b.Count("kept charges", 1)
		return nil
	}, `SELECT a.word, COALESCE(m.word, ''), c.seq, c.amount_nano, c.balance_nano, c.ended_ms, c.request, c.job
		FROM ledger_word a JOIN ledger_charge c ON c.account = a.id LEFT JOIN ledger_word m ON m.id = c.model WHERE `+where, args...)
}

// compareCharges compares an account's kept charges with the recorded sums.
func (b *Books) compareCharges(id string, a *accountSums) {
	kept := &a.kept
	if kept.rows != kept.recorded || kept.mark != kept.recordedMark {
		b.Report(Difference{Account: id, What: "the kept charges differ from their record: a charge is missing, was changed or was added",
			Recorded: fmt.Sprint(kept.recorded), Computed: fmt.Sprint(kept.rows)})
	}
}
