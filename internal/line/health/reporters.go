package health

// maxReporters bounds the accounts that a hold remembers. Accounts beyond it may
// try the line again.
const maxReporters = 1000

// reporters are the accounts whose requests have met what is held against a line
// or a part of it. A hold is for these accounts only, however many there are, until
// a probe has met the same failure.
type reporters struct {
	confirmed bool
	accounts  map[string]bool
}

// reportedBy returns the reporters of a failure that an account has met. An empty
// account stands for the gateway itself, which confirms the failure.
func reportedBy(account string) (r reporters) {
	r.add(account)
	return r
}

// add records that an account has met the failure too.
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

// join adds the reporters of another hold.
func (r *reporters) join(other reporters) {
	if other.confirmed {
		r.confirm()
	}
	for account := range other.accounts {
		r.add(account)
	}
}

// confirm records that a probe has met the failure.
func (r *reporters) confirm() { *r = reporters{confirmed: true} }

// exempt reports whether an account may still use what is held.
func (r *reporters) exempt(account string) bool {
	return !r.confirmed && account != "" && !r.accounts[account]
}
