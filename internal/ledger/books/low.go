package books

import "tollgate/internal/money"

// Low is a drop of a balance below the level that its account has set. It is
// told once a drop: a credit that brings the balance above the level arms it
// again (interface.md, States and transitions).
type Low struct {
	Account        string
	Balance, Level money.Amount
}

// Level is below which balance an account wants to hear of it.
type Level struct {
	Set, Armed bool
	Amount     money.Amount
}

// Drops tells whether a change of the balance is a drop that is to be told, and
// disarms the level then.
func (l *Level) Drops(before, after money.Amount) bool {
	if !l.Set || !l.Armed || after >= before || after >= l.Amount {
		return false
	}
	l.Armed = false
	return true
}

// Rises arms the level when a credit brings the balance above it; true: it was
// not armed.
func (l *Level) Rises(before, after money.Amount) bool {
	if !l.Set || l.Armed || after <= before || after <= l.Amount {
		return false
	}
	l.Armed = true
	return true
}
