package faultproxy

import "strings"

// Step is a step of a transaction that may write: a statement before the server gets it, or the answer to
// a COMMIT before the node gets it.
type Step struct {
	// Transaction has the statements since BEGIN, with the statements of this step.
	Transaction []string
	Commit      bool // the step is a COMMIT
	Answered    bool // the server has committed
}

// Touches reports whether a statement of the transaction contains the name of a table.
func (s Step) Touches(table string) bool {
	for _, text := range s.Transaction {
		for _, word := range strings.FieldsFunc(text, isNoName) {
			if word == table {
				return true
			}
		}
	}
	return false
}

// isNoName reports whether a character is not part of the name of a table.
func isNoName(r rune) bool {
	return r != '_' && (r < 'a' || r > 'z') && (r < '0' || r > '9') && (r < 'A' || r > 'Z')
}

// Watch makes the proxy call do at each step. If do returns false, the proxy resets the connection: the
// server does not get the statement, or the node does not get the answer. Steps of several connections may
// happen at the same time.
func (p *Proxy) Watch(do func(Step) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watch = do
}

// takeStep calls the function of Watch. It returns false if the connection is reset.
func (l *link) takeStep(s Step) bool {
	l.proxy.mu.Lock()
	do := l.proxy.watch
	l.proxy.mu.Unlock()
	if do == nil || do(s) {
		return true
	}
	l.end(true)
	return false
}
