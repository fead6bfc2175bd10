package books

import "tollgate/internal/money"

// Low is a drop of a balance below its account's level. It is announced once for each drop: a
// credit that brings the balance above the level arms it again (interface.md, States and
// transitions).
type Low struct {
	Account        string
	Balance, Level money.Amount
}

// Level is the balance below which an account wants an announcement.
type Level struct {
	Set, Armed bool
	Amount     money.Amount
}

// Drops reports whether a change of the balance is a drop to announce, and disarms the level then.
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
