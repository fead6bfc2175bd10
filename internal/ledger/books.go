package ledger

import (
	"strings"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/money"
)

// books are the rows that one batch works on, read under lock, and what the
// batch does to them. All decisions about money are made here, by pure
// functions: rows, an operation and the time in; changed rows and an answer
// out. The same code decides on both engines.
type books struct {
	nowMS    int64
	accounts map[string]*accountRow
	keys     map[string]*keyRow
	holds    map[string]*holdRow // open holds that an operation may end
	free     map[modelKey]*freeRow
	hits     map[hitKey]int64 // when a numbered hit was, in ms
	days     days             // figures of other days than the rows'

	// What the batch writes, in the order of the decisions.
	newHolds  []*holdRow
	goneHolds []string
	progress  []*Hold
	receipts  []receiptRow
	newHits   []hitKey
	rewound   []string         // keys whose hits lie in the future
	oldHits   map[string]int64 // per key: hits up to this number are out of every window
	usage     map[usageKey]*Totals
	riders    []Rider
	lows      []Low
	decisions map[*op]decision
}

type accountRow struct {
	id                   string
	balance, held, floor money.Amount
	disabled             bool
	seq                  int64
	day                  int64 // the day that its usage is on
	low                  lowRow
	dirty                bool
}

type keyRow struct {
	id, account        string
	version            int64
	disabled           bool
	rpm                int64        // -1: no limit
	dailyBudget, limit money.Amount // -1: no limit
	spent, held        money.Amount
	day                int64 // the day that daySpent and dayHeld are of
	daySpent, dayHeld  money.Amount
	hits, lastUsedMS   int64
	dirty              bool
}

type holdRow struct {
	id, epoch, account, key, model, endpoint string
	job                                      string // '' for chat
	day, revision                            int64
	free                                     bool
	amount                                   money.Amount
	createdMS                                int64
	cost                                     money.Amount // produced so far
	tokens                                   Tokens
	line                                     string
}

type freeRow struct {
	day, used int64
	dirty     bool
}

type receiptRow struct {
	hold      holdRow
	seq       int64
	end       End
	attempt   string // JSON
	cost      money.Amount
	over      money.Amount
	balance   money.Amount
	standsFor int64
	endedMS   int64
}

type modelKey struct{ account, model string }

type usageKey struct {
	account, model string
	day            int64
}

type hitKey struct {
	key string
	n   int64
}

// window is how long an admitted request counts against a key's rpm.
const window = time.Minute

// dayOf returns the UTC day of a time in Unix milliseconds.
func dayOf(ms int64) int64 { return ms / (24 * time.Hour).Milliseconds() }

// newBooks returns empty books.
func newBooks() *books {
	return &books{
		accounts: map[string]*accountRow{},
		keys:     map[string]*keyRow{},
		holds:    map[string]*holdRow{},
		free:     map[modelKey]*freeRow{},
		hits:     map[hitKey]int64{},
		oldHits:  map[string]int64{},
		usage:    map[usageKey]*Totals{},
		days:     newDays(),
	}
}

// admit decides one admission in the order of the specification (interface.md,
// Codes by category): disabled in the meantime, key changed, rate, free quota,
// daily budget, total limit, balance. A refusal changes nothing.
func (b *books) admit(a Admission, epoch string) (*holdRow, error) {
	acct, key := b.accounts[a.Account], b.keys[a.Key]
	if acct == nil || key == nil || key.account != acct.id || acct.disabled || key.disabled {
		return nil, fault.New(fault.InvalidAPIKey,
			"This API key is disabled or no longer exists, or its account is disabled. Use another key, or ask the operator.")
	}
	if key.version != a.KeyVersion {
		return nil, ErrKeyChanged
	}
	if key.lastUsedMS > b.nowMS {
		b.rewind(key)
	}
	day := dayOf(b.nowMS)
	daySpent, dayHeld := b.spentOn(key, day)
	hit := key.hits + 1
	if err := b.checkRate(key, hit); err != nil {
		return nil, err
	}
	if a.FreeDaily > 0 && b.usedOn(modelKey{a.Account, a.Model}, day) >= a.FreeDaily {
		return nil, refuseFreeQuota(a)
	}
	if a.Amount < 0 || a.Amount > money.Max {
		return nil, refuseQuota("The highest possible cost of this request is too large to hold. %s.", capital(cheaper(a)))
	}
	switch {
	case key.dailyBudget >= 0 && daySpent+dayHeld+a.Amount > key.dailyBudget:
		return nil, refuseQuota(
			"This key's daily budget of %s USD does not cover the request's highest possible cost of %s USD today (%s USD spent, "+
				"%s USD held by running requests). Wait until 00:00 UTC, raise the budget, or %s.",
			key.dailyBudget, a.Amount, daySpent, dayHeld, cheaper(a))
	case key.limit >= 0 && key.spent+key.held+a.Amount > key.limit:
		return nil, refuseQuota(
			"This key's total limit of %s USD does not cover the request's highest possible cost of %s USD (%s USD spent, "+
				"%s USD held by running requests). Raise the limit, use another key, or %s.",
			key.limit, a.Amount, key.spent, key.held, cheaper(a))
	case acct.balance-acct.held-a.Amount < acct.floor:
		return nil, refuseQuota(
			"The balance does not cover the request's highest possible cost of %s USD (balance %s USD, %s USD held by running requests). Top up, "+
				"wait for running requests to end, or %s.",
			a.Amount, acct.balance, acct.held, cheaper(a))
	}

	hold := &holdRow{
		id: a.Request, epoch: epoch, account: a.Account, key: a.Key, model: a.Model, endpoint: a.Endpoint,
		day: day, revision: a.Revision, free: a.FreeDaily > 0, amount: a.Amount, createdMS: a.Received.UnixMilli(),
	}
	acct.held += a.Amount
	acct.dirty = true
	key.held += a.Amount
	b.turnKey(key, day)
	key.dayHeld += a.Amount
	key.lastUsedMS = b.nowMS
	key.dirty = true
	if key.rpm >= 0 {
		key.hits = hit
		b.hits[hitKey{key.id, hit}] = b.nowMS
		b.newHits = append(b.newHits, hitKey{key.id, hit})
		if old := hit - key.rpm; old > 0 { // it passed, so that hit and all before it left the window
			b.oldHits[key.id] = old
		}
	}
	if hold.free {
		free := b.turnFree(modelKey{a.Account, a.Model}, day)
		free.used++
		free.dirty = true
	}
	b.newHolds = append(b.newHolds, hold)
	return hold, nil
}

// checkRate passes hit number n when hit n - rpm is absent or has left the
// window: an exact sliding window for one look-up. No hit lies in the future:
// see rewind.
func (b *books) checkRate(key *keyRow, n int64) error {
	if key.rpm < 0 {
		return nil
	}
	if key.rpm == 0 {
		return fault.New(fault.RateLimitExceeded, "This key may send no requests. Raise its requests-per-minute limit, or use another key.")
	}
	at, counted := b.hits[hitKey{key.id, n - key.rpm}]
	if !counted || b.nowMS-at >= window.Milliseconds() {
		return nil
	}
	return fault.New(fault.RateLimitExceeded,
		"This key may send %d requests in 60 seconds, and has sent them. The next one may come in %d seconds; send fewer, "+
			"or raise the key's requests-per-minute limit.",
		key.rpm, (window.Milliseconds()-(b.nowMS-at)+999)/1000)
}

// cheaper says how the holds of an endpoint's requests get smaller.
func cheaper(a Admission) string {
	switch {
	case strings.HasPrefix(a.Endpoint, "/v1/images/"):
		return "ask for fewer images or a smaller resolution"
	case strings.HasPrefix(a.Endpoint, "/v1/videos/"):
		return "ask for a shorter clip or a smaller resolution"
	case a.Endpoint == "/v1/responses":
		return "lower max_output_tokens"
	}
	return "lower max_tokens"
}

// capital begins a sentence.
func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

func refuseFreeQuota(a Admission) error {
	e := fault.New(fault.RateLimitExceeded,
		"The free daily quota of %d requests for model %q is used up for this account. It starts again at 00:00 UTC.", a.FreeDaily, a.Model)
	e.NoRetry = true
	return e
}

func refuseQuota(format string, args ...any) error {
	e := fault.New(fault.InsufficientQuota, format, args...)
	e.NoRetry = true
	return e
}

// end ends the request of a hold: the hold is given back, a billed end is
// charged, and the receipt is written. False: the hold is not open any more,
// and nothing changes. The charge is the end's cost, never more than the hold.
func (b *books) end(id string, end End, attempts string) (receiptRow, bool) {
	hold := b.holds[id]
	if hold == nil {
		return receiptRow{}, false
	}
	delete(b.holds, id)
	acct, key := b.accounts[hold.account], b.keys[hold.key]
	if acct == nil || key == nil {
		return receiptRow{}, false
	}
	var cost, over money.Amount
	if end.Outcome == Billed {
		cost = min(max(end.Cost, 0), hold.amount)
		over = max(end.Cost, 0) - cost
	} else {
		end.Tokens = Tokens{} // what is not charged is in no total
	}
	acct.held -= hold.amount
	before := acct.balance
	acct.balance -= cost
	if acct.low.drops(before, acct.balance) {
		b.lows = append(b.lows, Low{Account: acct.id, Balance: acct.balance, Level: acct.low.level})
	}
	acct.seq++
	acct.dirty = true
	key.held -= hold.amount
	key.spent += cost
	if key.day == hold.day {
		key.dayHeld -= hold.amount
		key.daySpent += cost
	} else {
		b.leave(keyDay{key.id, hold.day}, cost, -hold.amount, false)
	}
	key.dirty = true
	if hold.free && end.Outcome == Failed {
		b.giveBack(modelKey{hold.account, hold.model}, hold.day)
	}
	b.turnUsage(acct)
	receipt := receiptRow{
		hold: *hold, seq: acct.seq, end: end, attempt: attempts,
		cost: cost, over: over, balance: acct.balance, standsFor: 1, endedMS: b.nowMS,
	}
	b.goneHolds = append(b.goneHolds, id)
	b.receipts = append(b.receipts, receipt)
	b.count(receipt)
	return receipt, true
}

// broken tells why an open hold cannot be ended; nil: it can be, or is not open.
func (b *books) broken(id string) error {
	hold := b.holds[id]
	switch {
	case hold == nil:
		return nil
	case b.accounts[hold.account] == nil || b.keys[hold.key] == nil:
		return errDamaged
	case !hold.plausible():
		return errImplausible
	}
	return nil
}

// mostTokens is more than any hold's stream has counted. A total that took a
// larger number might take no other any more.
const mostTokens = 1 << 42

// plausible tells whether an admission or a stream can have written the hold's
// figures.
func (h *holdRow) plausible() bool {
	money := h.amount >= 0 && h.amount <= money.Max && h.cost >= 0 && h.cost <= money.Max
	for _, n := range []int64{h.tokens.Prompt, h.tokens.Cached, h.tokens.Completion} {
		if n < 0 || n > mostTokens {
			return false
		}
	}
	return money
}

// sweep ends the request of a dead node's hold: what it had produced is
// charged, and without that it is given back (interface.md, Billing rules 4
// and 6).
func (b *books) sweep(id string) (receiptRow, bool) {
	hold := b.holds[id]
	if hold == nil {
		return receiptRow{}, false
	}
	end := End{
		Outcome: Failed, Status: 503, Code: string(fault.ServiceUnavailable), Line: hold.line,
		Duration: time.Duration(max(0, b.nowMS-hold.createdMS)) * time.Millisecond,
	}
	if hold.cost > 0 || hold.tokens != (Tokens{}) {
		// A stream that broke off, whose client saw the status of its beginning.
		end.Outcome, end.Status, end.Cost, end.Tokens = Billed, 200, hold.cost, hold.tokens
	}
	return b.end(id, end, "[]")
}

// refused writes the receipt of a request that was refused. It belongs to no
// total; the account's row need not exist.
func (b *books) refused(r Refusal) {
	receipt := receiptRow{
		hold: holdRow{
			id: r.Request, account: r.Account, key: r.Key, model: r.Model, endpoint: r.Endpoint,
			day: dayOf(b.nowMS), createdMS: r.Received.UnixMilli(),
		},
		end:     End{Outcome: Refused, Status: r.Status, Code: r.Code, Duration: r.Duration},
		attempt: "[]", standsFor: max(1, r.standsFor), endedMS: b.nowMS,
	}
	if acct := b.accounts[r.Account]; acct != nil {
		receipt.seq, receipt.balance = acct.seq, acct.balance
	}
	b.receipts = append(b.receipts, receipt)
}

// count adds an ended request to its account's totals. Requests count once
// they have ended, so that the totals are the sums of the receipts.
func (b *books) count(r receiptRow) {
	k := usageKey{r.hold.account, r.hold.model, r.hold.day}
	if b.usage[k] == nil {
		b.usage[k] = &Totals{}
	}
	b.usage[k].count(r.end.Outcome, r.cost, r.end.Tokens)
}
