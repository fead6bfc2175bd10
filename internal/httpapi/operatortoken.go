package httpapi

import "sync/atomic"

// OperatorToken is the operator's token. It may be replaced while the process serves. A nil or
// empty OperatorToken matches no text. It is safe for concurrent use, and printing it does not show
// it.
type OperatorToken struct{ value atomic.Pointer[string] }

// NewOperatorToken returns a token with a value, which may be empty.
func NewOperatorToken(value string) *OperatorToken {
	t := &OperatorToken{}
	t.Replace(value)
	return t
}

// Replace replaces the token.
func (t *OperatorToken) Replace(value string) { t.value.Store(&value) }

// Value returns the token, or "" if it is not set.
func (t *OperatorToken) Value() string {
	if t == nil {
		return ""
	}
	return *t.value.Load()
}

// IsSet reports whether the token is set.
func (t *OperatorToken) IsSet() bool { return t.Value() != "" }

// Is reports whether text is the token. It returns false if the token is not set.
func (t *OperatorToken) Is(text string) bool { return t.IsSet() && SameSecret(text, t.Value()) }
