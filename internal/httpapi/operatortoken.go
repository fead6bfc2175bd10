package httpapi

import "sync/atomic"

// OperatorToken is the operator's token, which may be replaced while the process
// serves. nil, and an empty one, is none: nobody has it. It is safe for concurrent
// use, and printing it does not show it.
type OperatorToken struct{ value atomic.Pointer[string] }

// NewOperatorToken holds a token; empty: there is none.
func NewOperatorToken(value string) *OperatorToken {
	t := &OperatorToken{}
	t.Replace(value)
	return t
}

// Replace lets another token in, and the one before no more.
func (t *OperatorToken) Replace(value string) { t.value.Store(&value) }

// Value is the token; empty: there is none.
func (t *OperatorToken) Value() string {
	if t == nil {
		return ""
	}
	return *t.value.Load()
}

// IsSet tells whether there is one.
func (t *OperatorToken) IsSet() bool { return t.Value() != "" }

// Is tells whether a text is the token. Nothing is, where there is none.
func (t *OperatorToken) Is(text string) bool { return t.IsSet() && SameSecret(text, t.Value()) }
