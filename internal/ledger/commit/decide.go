package commit

import (
	"fmt"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/books"
	"tollgate/internal/ledger/rows"
	"tollgate/internal/money"
)

// decision is the answer to one operation. It is valid once the batch is committed.
type decision struct {
	hold    *books.HoldRow // of an admitted request
	err     error
	ended   bool // this batch ended the hold
	charged bool
	hookRan bool // the statements of the job's hook are in the batch, or err is the hook's error
	over    money.Amount
}

// batch is one try of a batch: its books and its decisions.
type batch struct {
	*rows.Books
	decisions map[*Op]decision
	wait      string // an account already locked by this batch, unless the account is missing
}

// need returns the rows that operations need.
func need(ops []*Op) (n rows.Need) {
	for _, o := range ops {
		switch o.kind {
		case opAdmit:
			n.Admissions = append(n.Admissions, &o.admission)
		case opEnd: // its hold is in memory
			n.Accounts, n.Keys = append(n.Accounts, o.account), append(n.Keys, o.key)
		case opSweep, opJob:
			n.Accounts, n.Keys, n.Holds = append(n.Accounts, o.account), append(n.Keys, o.key), append(n.Holds, o.holdID)
		case opProgress, opRefused:
			if o.account != "" {
				n.Accounts = append(n.Accounts, o.account)
			}
		}
		switch {
		case o.admitHook != nil:
			n.Hooks = append(n.Hooks, o.admitHook)
		case o.endHook != nil:
			n.Hooks = append(n.Hooks, o.endHook)
		}
	}
	return n
}

// decide decides the operations whose accounts are locked by this batch. The others have no decision.
func (b *batch) decide(ops []*Op, epoch string) {
	b.decisions = make(map[*Op]decision, len(ops))
	for _, o := range ops {
		if !b.passes(o) {
			b.decisions[o] = b.decideOne(o, epoch)
		}
	}
}

func (b *batch) decideOne(o *Op, epoch string) decision {
	switch o.kind {
	case opAdmit:
		if o.state.Load() == opAbandoned {
			return decision{err: Unavailable(fmt.Errorf("the caller gave up before the admission"))}
		}
		if o.admitHook != nil {
			return b.admitJob(o, epoch)
		}
		hold, err := b.Admit(o.admission, epoch)
		return decision{hold: hold, err: err}
	case opEnd:
		if o.epoch != epoch {
			return decision{err: fmt.Errorf("%w: the epoch of its hold has ended", ErrNotSettled)}
		}
		end := o.end
		if end.Outcome == books.Billed && !end.Streamed && o.state.Load() == opAbandoned {
			// The caller has returned ErrUnknown, and the client's connection was cut. This batch
			// is not committed yet, so the request can end without a charge.
			end.Outcome, end.Cost, end.Status, end.Code = books.Failed, 0, 503, string(fault.ServiceUnavailable)
		}
		// The row is known from the admission: while this epoch lives, only this node ends the
		// hold, once. If the hold had a receipt already, the receipt's primary key would refuse the
		// batch.
		b.Holds[o.holdID] = o.hold.Row
		receipt, ended := b.End(o.holdID, end, o.attempts)
		if !ended {
			return decision{err: fmt.Errorf("%w: %w", ErrNotSettled, books.ErrDamaged)}
		}
		return decision{ended: true, charged: end.Outcome == books.Billed, over: receipt.Over}
	case opSweep:
		if err := b.CheckHold(o.holdID); err != nil {
			return decision{err: err}
		}
		receipt, ended := b.Sweep(o.holdID)
		return decision{ended: ended, charged: ended && receipt.End.Outcome == books.Billed, over: receipt.Over}
	case opJob:
		return b.endJob(o)
	case opProgress:
		o.hold.queued.Store(false) // so that later progress is queued again
		b.Progress[o.hold.Row.ID] = *o.hold.progress.Load()
	case opRefused:
		b.recordRefusal(o.refusal)
	}
	return decision{}
}

// passes reports whether the batch passes over an operation, because another transaction has locked
// the account. A missing account looks the same; a batch finds out by waiting for the account.
//
// Several nodes commit on PostgreSQL, and a lock lasts until its COMMIT is on the standby. If each
// batch waited for all of its accounts, then one account with traffic on every node would let all
// nodes commit in turn. So a batch passes over accounts locked by another transaction, and the next
// batch tries their operations again. A batch waits for at most one account, before it locks any
// other. So batches of different nodes cannot deadlock on accounts.
func (b *batch) passes(o *Op) bool {
	switch {
	case !b.LockFree, o.account == "", o.account == b.wait, b.Accounts[o.account] != nil:
		return false
	case o.kind == opAdmit && o.state.Load() == opAbandoned:
		return false // refused without a look at the account
	}
	return true
}

// recordRefusal adds the receipt of a refused request. The receipt counts in no total, and the
// account's row need not exist.
func (b *batch) recordRefusal(r Refusal) {
	receipt := books.ReceiptRow{
		Hold: books.HoldRow{
			ID: r.Request, Account: r.Account, Key: r.Key, Model: r.Model, Endpoint: r.Endpoint,
			Day: books.DayOf(b.NowMS), CreatedMS: r.Received.UnixMilli(),
		},
		End:      books.End{Outcome: books.Refused, Status: r.Status, Code: r.Code, Duration: r.Duration},
		Attempts: "[]", StandsFor: max(1, r.standsFor), EndedMS: b.NowMS,
	}
	if acct := b.Accounts[r.Account]; acct != nil {
		receipt.Seq, receipt.Balance = acct.Seq, acct.Balance
	}
	b.Receipts = append(b.Receipts, receipt)
}
