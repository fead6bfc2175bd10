package health

// maxReporters bounds the accounts in a block. Further accounts may try the line again.
const maxReporters = 1000

// reporters is the set of accounts with requests that failed on a line or part. A block applies
// only to these accounts, however many there are, until a probe has the same failure.
type reporters struct {
	confirmed bool
	accounts  map[string]bool
}

// reportedBy returns the reporters of an account's failure. An empty account means the gateway
// itself, which confirms the failure.
func reportedBy(account string) (r reporters) {
	r.add(account)
	return r
}

// add adds an account.
func (r *reporters) add(account string) {
	switch {
	case r.confirmed:
	case account == "":
		r.confirm()
	case len(r.accounts) < maxReporters:
		if r.accounts == nil {
			r.accounts = map[string]bool{}
		}
		r.accounts[account] = true
	}
}

// join adds the reporters of another block.
func (r *reporters) join(other reporters) {
	if other.confirmed {
		r.confirm()
	}
	for account := range other.accounts {
		r.add(account)
	}
}

// confirm records that a probe had the same failure.
func (r *reporters) confirm() { *r = reporters{confirmed: true} }

// exempt reports whether an account may still use the line or part.
func (r *reporters) exempt(account string) bool {
	return !r.confirmed && account != "" && !r.accounts[account]
}
