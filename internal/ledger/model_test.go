package ledger

import (
	"slices"

	"tollgate/internal/ledger/measure"
)

// modelBooks are the books in maps and plain arithmetic, for TestBooksAgreeWithAModel. They know no
// SQL and share no code with the ledger: every sum is added up again from the requests and payments.
// Money is in nano-dollars, and times are in Unix milliseconds.
type modelBooks struct {
	accounts map[string]*modelAccount
	keys     map[string]*modelKey
	open     map[string]modelRequest // by id
	ended    []modelEnd
	payments map[string]modelPayment // by reference
}

type modelAccount struct {
	balance, floor int64
	factor         int64 // of prices, in millionths; 0 means no factor
	disabled       bool
	moves          []modelMove
}

type modelKey struct {
	account                      string
	version                      int64
	disabled, closed             bool
	rpm, dailyBudget, totalLimit int64   // -1 means no limit
	hits                         []int64 // the times of the last rpm admissions
}

type modelRequest struct {
	id, account, key, model, job string
	node                         string // whose death ends the request; "" for a job
	version, day                 int64
	units, freeDaily             int64 // units of one nano-dollar each, at most
	factor, amount               int64 // from the admission
	progress                     modelUse
}

// modelUse is the usage of an answer.
type modelUse struct {
	units, prompt, completion int64
	quantity                  measure.Quantity
}

type modelEnd struct {
	modelRequest
	outcome                Outcome
	charged, over, balance int64
	use                    modelUse
}

// modelMove is a credit, a take-back or a charge.
type modelMove struct {
	amount, balance    int64
	request, reference string
}

type modelPayment struct {
	account         string
	amount, balance int64
}

const modelDay, modelWindow = 24 * 60 * 60 * 1000, 60 * 1000

// admit decides a request and returns the reason of a refusal, or "".
func (m *modelBooks) admit(now int64, r modelRequest) string {
	account, key := m.accounts[r.account], m.keys[r.key]
	switch {
	case account.disabled, key.disabled, key.closed:
		return "disabled"
	case r.version != key.version:
		return "changed"
	}
	if key.rpm >= 0 {
		key.forgetFutureHits(now)
	}
	if n := int64(len(key.hits)); key.rpm == 0 || key.rpm > 0 && n >= key.rpm && now-key.hits[n-key.rpm] < modelWindow {
		return "rate"
	}
	r.day, r.factor = now/modelDay, account.factor
	r.amount = scaled(r.units, r.factor, 999_999)
	switch {
	case r.freeDaily > 0 && m.freeUsed(r.account, r.model, r.day) >= r.freeDaily:
		return "free quota"
	case key.dailyBudget >= 0 && m.spent(r.key, r.day)+m.held("", r.key, r.day)+r.amount > key.dailyBudget:
		return "daily budget"
	case key.totalLimit >= 0 && m.spent(r.key, -1)+m.held("", r.key, -1)+r.amount > key.totalLimit:
		return "total limit"
	case account.balance-m.held(r.account, "", -1)-r.amount < account.floor:
		return "balance"
	}
	if key.rpm > 0 {
		key.hits = append(key.hits, now)
		key.hits = key.hits[max(0, int64(len(key.hits))-key.rpm):]
	}
	m.open[r.id] = r
	return ""
}

// scaled returns n times a factor in millionths, after adding a number of millionths.
func scaled(n, factor, add int64) int64 {
	if factor == 0 {
		return n
	}
	return (n*factor + add) / 1_000_000
}

// forgetFutureHits makes the admissions of a key that are in the future admissions of now, after
// the clock was set back.
func (k *modelKey) forgetFutureHits(now int64) {
	for i := range k.hits {
		k.hits[i] = min(k.hits[i], now)
	}
}

// end ends an open request. It returns false if the request is not open.
func (m *modelBooks) end(id string, outcome Outcome, use modelUse) bool {
	r, ok := m.open[id]
	if !ok {
		return false
	}
	delete(m.open, id)
	if outcome != Billed {
		use = modelUse{}
	}
	cost := scaled(use.units, r.factor, 500_000)
	charged := min(cost, r.amount) // never more than the hold
	account := m.accounts[r.account]
	account.balance -= charged
	if charged > 0 {
		account.moves = append(account.moves, modelMove{-charged, account.balance, id, ""})
	}
	m.ended = append(m.ended, modelEnd{r, outcome, charged, cost - charged, account.balance, use})
	return true
}

// sweep ends the chat requests of dead nodes: it charges the progress of streams, and fails the rest.
func (m *modelBooks) sweep(isDead func(node string) bool) {
	var ids []string
	for id, r := range m.open {
		if r.job == "" && isDead(r.node) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		use, outcome := m.open[id].progress, Failed
		if use != (modelUse{}) {
			outcome = Billed
		}
		m.end(id, outcome, use)
	}
}

// pay moves money and returns the new balance. A payment with the reference of an earlier one
// returns the earlier balance, or "conflict" if the two differ.
func (m *modelBooks) pay(account string, amount int64, reference string) (balance int64, verdict string) {
	if p, ok := m.payments[reference]; ok && reference != "" {
		if p.account != account || p.amount != amount {
			return 0, "conflict"
		}
		return p.balance, "repeated"
	}
	a := m.accounts[account]
	a.balance += amount
	a.moves = append(a.moves, modelMove{amount, a.balance, "", reference})
	m.payments[reference] = modelPayment{account, amount, a.balance}
	return a.balance, ""
}

// held adds up the open requests of an account, or of a key, on a day. A day of -1 means all days.
func (m *modelBooks) held(account, key string, day int64) (sum int64) {
	for _, r := range m.open {
		if (r.account == account || r.key == key) && (day < 0 || r.day == day) {
			sum += r.amount
		}
	}
	return sum
}

// spent adds up the charges of a key on a day. A day of -1 means all days.
func (m *modelBooks) spent(key string, day int64) (sum int64) {
	for _, e := range m.ended {
		if e.key == key && (day < 0 || e.day == day) {
			sum += e.charged
		}
	}
	return sum
}

// freeUsed counts the requests of an account that use its free quota of a model on a day. A failed
// request uses none.
func (m *modelBooks) freeUsed(account, model string, day int64) (n int64) {
	count := func(r modelRequest) {
		if r.account == account && r.model == model && r.day == day && r.freeDaily > 0 {
			n++
		}
	}
	for _, r := range m.open {
		count(r)
	}
	for _, e := range m.ended {
		if e.outcome != Failed {
			count(e.modelRequest)
		}
	}
	return n
}
