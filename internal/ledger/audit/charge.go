package audit

import (
	"fmt"
	"hash/fnv"

	"tollgate/internal/ledger/books"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// Charge is a charge whose receipt is deleted. Request and Job are packed ids.
type Charge struct {
	Seq             int64
	Model           string
	Amount, Balance money.Amount
	EndedMS         int64
	Request, Job    []byte
}

// mark hashes a kept charge to 64 bits.
func (k *Charge) mark(account string) uint64 {
	x := mark(k.Seq, k.Balance)
	x = mix(x ^ uint64(k.Amount))
	x = mix(x ^ uint64(k.EndedMS))
	h := fnv.New64a()
	for _, text := range [...][]byte{k.Request, k.Job, []byte(k.Model), []byte(account)} {
		_, _ = h.Write([]byte{byte(len(text)), 0}) // never fails
		_, _ = h.Write(text)
	}
	return mix(x ^ h.Sum64())
}

// RecordChargesTx records the kept charges of an account. Call RecordTx for their receipts first.
func RecordChargesTx(tx *store.Tx, account string, charges []Charge) error {
	var noted int64
	if err := tx.QueryRow(`SELECT kept_mark FROM ledger_folded_chain WHERE account = $1`, account).Scan(&noted); err != nil {
		return fmt.Errorf("read the mark of kept charges: %w", err)
	}
	sum := uint64(noted)
	for i := range charges {
		sum += charges[i].mark(account)
	}
	_, err := tx.Exec(`UPDATE ledger_folded_chain SET kept = `+store.Plus("kept", "$1")+`, kept_mark = $2 WHERE account = $3`,
		len(charges), int64(sum), account)
	return err
}

// chargeSums are the sums of an account's kept charges and the recorded sums.
type chargeSums struct {
	rows, recorded     int64
	mark, recordedMark uint64
	amount, months     money.Amount // by the rows, and by the entries of the months
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
		var k Charge
		if err := scan(&account, &model, &k.Seq, &k.Amount, &k.Balance, &k.EndedMS, &k.Request, &k.Job); err != nil {
			return err
		}
		name, ok := words[account]
		if k.Model = words[model]; !ok || k.Model == "" {
			b.Report(Difference{Account: name, What: "a kept charge names an account or a model that is not there", Recorded: fmt.Sprint(k.Seq)})
		}
		if k.Amount <= 0 || outside(k.Balance) {
			b.Report(Difference{Account: name, What: "a kept charge is not positive, or its balance is out of range", Recorded: k.Amount.String()})
		}
		kept := &b.account(name, "a kept charge").kept
		kept.rows++
		kept.amount = money.Plus(kept.amount, k.Amount)
		kept.mark += k.mark(name)
		b.Count("kept charges", 1)
		return nil
	}, `SELECT account, model, seq, amount_nano, balance_nano, ended_ms, request, job FROM ledger_charge`)
}

// compareCharges compares an account's kept charges with the recorded sums.
func (b *Books) compareCharges(id string, a *accountSums) {
	k := &a.kept
	b.compareMoney(Difference{Account: id, What: "the kept charges are not the sum recorded for their months"}, k.months, k.amount)
	if k.rows != k.recorded || k.mark != k.recordedMark {
		b.Report(Difference{Account: id, What: "the kept charges are not those that were kept: one is missing, was changed or was added",
			Recorded: fmt.Sprint(k.rows), Computed: fmt.Sprint(k.recorded)})
	}
}

// checkKeptSum describes the fault of a movement's sum of kept charges, or returns "".
func checkKeptSum(kind string, amount, kept money.Amount) string {
	if kept < 0 || kept > 0 && (kind != books.EntryCharges || kept > -amount) {
		return "a movement has an impossible sum of kept charges"
	}
	return ""
}
