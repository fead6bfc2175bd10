package audit

import (
	"fmt"

	"tollgate/internal/ledger/books"
	"tollgate/internal/money"
	"tollgate/internal/node"
)

// compareHolds checks the figures of each open hold, and that the hold belongs to a living node or to a job.
func (b *Books) compareHolds() error {
	nodes, err := node.MembersTx(b.tx)
	if err != nil {
		return err
	}
	for id, h := range b.holds {
		at := Difference{Account: h.account, Key: h.key, Model: h.model, Request: id}
		if at.What, at.Recorded = h.check(); at.What != "" {
			b.Report(at)
		}
		if h.epoch == books.JobEpoch {
			continue
		}
		at.Recorded = h.epoch
		switch {
		case !nodes.Knows(h.epoch):
			at.What = "an open hold is of a node that is not known"
		case b.isCopy:
			b.Count(copiedHolds, 1)
			continue
		case !nodes.Lives(h.epoch):
			at.What = "an open hold is of a node that is dead; the next sweep ends it"
		case b.noProcess:
			at.What = "an open hold is of a process that was killed; the next start ends it"
		default:
			continue
		}
		b.Report(at)
	}
	return nil
}

func (b *Books) compare() error {
	for id, a := range b.accounts {
		if !a.exists {
			b.Report(Difference{Account: id, What: "an account's row is gone, but " + a.namedBy + " refers to it",
				Computed: a.computedBalance.String()})
			continue
		}
		if err := b.compareAccount(id, a); err != nil {
			return err
		}
	}
	for id, k := range b.keys {
		b.compareKey(id, k)
	}
	return nil
}

func (b *Books) compareAccount(id string, a *accountSums) error {
	at := Difference{Account: id}
	compare := func(what string, recorded, computed money.Amount) {
		at.What = what
		b.compareMoney(at, recorded, computed)
	}
	compare("balance is not credits less charges", a.state.balance, a.computedBalance)
	compare("the charges of the days are not those of the receipts and of the kept charges", a.daysCharged, a.charged)
	b.compareCharges(id, a)
	if outside(a.state.balance) {
		b.Report(Difference{Account: id, What: "a balance is out of range", Recorded: a.state.balance.String()})
	}
	if a.state.floor > 0 {
		b.Report(Difference{Account: id, What: "an account's floor is above zero", Recorded: a.state.floor.String()})
	}
	if a.chain.whole(a.seq, a.state.balance) {
		return nil
	}
	return b.findBreaks(id, a)
}

func (b *Books) compareKey(id string, k *keySums) {
	at := Difference{Account: k.account, Key: id}
	if !k.exists {
		at.What, at.Computed = "a key's row is gone, but "+k.namedBy+" refers to it", k.sumSpent.String()
		b.Report(at)
		return
	}
	if k.otherAccount != "" {
		at.What, at.Recorded, at.Computed = "a key is used by "+k.namedBy+" of another account", k.account, k.otherAccount
		b.Report(at)
	}
	if k.outside {
		return
	}
	if k.closed && !k.disabled {
		b.Report(Difference{Account: k.account, Key: id, What: "a deleted key is not disabled"})
	}
	at.What = "spent is not the sum of the key's charges"
	b.compareMoney(at, k.spent, k.sumSpent)
}

// maxBreaks bounds the listed differences of one account's chain.
const maxBreaks = 10

// findBreaks follows an account's movements in their order and reports breaks of the running
// balance. One number may be missing for each deleted receipt without a kept charge.
func (b *Books) findBreaks(account string, a *accountSums) error {
	gaps, breaks := a.folded-a.kept.rows, 0
	differ := func(request, what string, recorded, computed any) {
		if breaks++; breaks <= maxBreaks {
			b.Report(Difference{Account: account, Request: request, What: what, Recorded: fmt.Sprint(recorded), Computed: fmt.Sprint(computed)})
		}
	}
	var seq int64
	var balance money.Amount
	step := func(request string, next int64, after, delta money.Amount) {
		skipped := next - seq - 1
		switch {
		case skipped < 0:
			differ(request, "a movement's number is not its own", next, seq+1)
		case skipped > gaps:
			differ(request, "movements are missing before this one", next, seq+1)
		case skipped == 0 && after != balance+delta:
			differ(request, "a running balance is not the one before it plus the movement", after, balance+delta)
		}
		gaps -= min(gaps, max(0, skipped))
		seq, balance = next, after
	}
	err := b.each(func(scan scanner) error {
		var request string
		var next int64
		var after, delta money.Amount
		err := scan(&request, &next, &after, &delta)
		step(request, next, after, delta)
		return err
	}, `SELECT id, seq, balance_nano, delta FROM (
			SELECT id, seq, balance_nano, -cost_nano AS delta FROM ledger_receipt WHERE account = $1 AND outcome <> 4
			UNION ALL SELECT id, seq, balance_nano, -cost_nano FROM `+Unfolded+` AND account = $1 AND outcome <> 4
			UNION ALL SELECT id, seq, balance_nano, amount_nano FROM ledger_entry WHERE account = $1
			UNION ALL SELECT '', c.seq, c.balance_nano, -c.amount_nano FROM ledger_charge c JOIN ledger_word w ON w.id = c.account
			WHERE w.word = $1
		) AS moves ORDER BY seq, id`, account)
	if err != nil {
		return err
	}
	// The account's row must be the state after the newest movement.
	missing := a.seq - seq
	switch {
	case missing < 0 || missing > gaps:
		differ("", "the account's newest number is not that of its newest movement", a.seq, seq)
	case missing == 0 && a.state.balance != balance:
		differ("", "the account's balance is not that after its newest movement", a.state.balance, balance)
	}
	if gaps -= min(gaps, max(0, missing)); breaks == 0 && gaps > 0 {
		differ("", "more receipts are recorded as deleted than numbers are missing", a.folded, a.folded-gaps)
	}
	if breaks == 0 {
		differ("", "the running balance does not lead through the deleted receipts", a.seq, a.chain.movements)
	}
	if breaks > maxBreaks {
		b.report.Omitted += int64(breaks - maxBreaks)
	}
	return nil
}
