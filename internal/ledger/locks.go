package ledger

// maxPasses bounds how often an operation is passed over before a batch waits for the account. With
// 150 accounts and six nodes, four fifths of the operations are passed over less than three times,
// so few batches wait.
const maxPasses = 8

// passes reports whether the batch passes over an operation, because another transaction has locked
// the account. A missing account looks the same; a batch finds out by waiting for the account.
//
// Several nodes commit on PostgreSQL, and a lock lasts until its COMMIT is on the standby. If each
// batch waited for all of its accounts, then one account with traffic on every node would let all
// nodes commit in turn. So a batch passes over accounts locked by another transaction, and the next
// batch tries their operations again. A batch waits for at most one account, before it locks any
// other. So batches of different nodes cannot deadlock on accounts.
func (b *batch) passes(o *op) bool {
	switch {
	case !b.LockFree, o.account == "", o.account == b.wait, b.Accounts[o.account] != nil:
		return false
	case o.kind == opAdmit && o.state.Load() == opAbandoned:
		return false // refused without a look at the account
	}
	return true
}

// overdue returns the account of the first operation passed over too often, or "".
func overdue(ops []*op) string {
	for _, o := range ops {
		if o.passes >= maxPasses {
			return o.account
		}
	}
	return ""
}
