package books

import "tollgate/internal/money"

// Low is a drop of a balance below its account's level. Each drop is announced once: only a credit
// that brings the balance above the level arms the level again (interface.md, States and
// transitions).
type Low struct {
	Account        string
	Balance, Level money.Amount
}

// Level is an account's threshold: a drop of the balance below Amount is announced if the level is
// armed.
type Level struct {
	Set, Armed bool
	Amount     money.Amount
}

// Drops reports whether a change of the balance is a drop to announce. If so, it disarms the level.
func (l *Level) Drops(before, after money.Amount) bool {
	if !l.Set || !l.Armed || after >= before || after >= l.Amount {
		return false
	}
	l.Armed = false
	return true
}

// Rises reports whether a change of the balance must arm the level. If so, it arms the level.
func (l *Level) Rises(before, after money.Amount) bool {
	if !l.Set || l.Armed || after <= before || after <= l.Amount {
		return false
	}
	l.Armed = true
	return true
}
