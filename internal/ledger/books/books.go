package books

import (
	"strings"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/measure"
	"tollgate/internal/money"
)

// Books are the rows of one batch, read under lock, and the batch's changes to them.
type Books struct {
	NowMS    int64
	Accounts map[string]*AccountRow
	Keys     map[string]*KeyRow
	Holds    map[string]*HoldRow   // open holds that an operation may end
	Limits   map[LimitKey]LimitRow // of today
	Held     map[string]HeldSums   // by account
	Hits     map[HitKey]int64      // the times of hits, in Unix milliseconds

	// The batch's writes, in the order of the decisions.
	NewHolds    []*HoldRow
	EndedHolds  []string
	Receipts    []ReceiptRow
	NewHits     []HitKey
	RewoundKeys []string         // keys whose hits are in the future
	OldHits     map[string]int64 // by key: all hits up to this number have left the window
	LimitAdds   map[LimitKey]LimitRow
	Lows        []Low
}

// window is how long an admitted request counts against a key's rpm.
const window = time.Minute

// New returns empty books.
func New() Books {
	return Books{
		Accounts:  map[string]*AccountRow{},
		Keys:      map[string]*KeyRow{},
		Holds:     map[string]*HoldRow{},
		Limits:    map[LimitKey]LimitRow{},
		Held:      map[string]HeldSums{},
		Hits:      map[HitKey]int64{},
		OldHits:   map[string]int64{},
		LimitAdds: map[LimitKey]LimitRow{},
	}
}

// Admit decides an admission. It checks in the order of the specification (interface.md, Codes by
// category): disabled, key changed, rate, free quota, daily budget, total limit, balance. A refusal
// changes nothing.
func (b *Books) Admit(a Admission, epoch string) (*HoldRow, error) {
	acct, key := b.Accounts[a.Account], b.Keys[a.Key]
	if acct == nil || key == nil || key.Account != acct.ID || acct.Disabled || key.Disabled {
		return nil, fault.New(fault.InvalidAPIKey, "This API key is disabled or no longer exists, or its account is disabled. "+
			"Use another key, or ask the operator.")
	}
	if key.Version != a.KeyVersion {
		return nil, ErrKeyChanged
	}
	if key.LastHitMS > b.NowMS {
		b.rewind(key)
	}
	day := DayOf(b.NowMS)
	today := LimitKey{a.Key, day}
	held, free := b.Held[a.Account], LimitKey{FreeSubject(a.Account, a.Model), day}
	heldByAll, heldByKey, heldToday := held[HeldKey{"", EveryDay}], held[HeldKey{a.Key, EveryDay}], held[HeldKey{a.Key, day}]
	spentToday := b.Limit(today).Spent
	hit := key.Hits + 1
	if err := b.checkRate(key, hit); err != nil {
		return nil, err
	}
	if a.FreeDaily > 0 && b.Limit(free).Used >= a.FreeDaily {
		return nil, refuseFreeQuota(a)
	}
	if a.Amount < 0 || a.Amount > money.Max {
		return nil, refuseQuota("The highest possible cost of this request is too large to hold. %s.", capitalize(a.advice()))
	}
	switch {
	case key.DailyBudget >= 0 && money.Plus(money.Plus(spentToday, heldToday), a.Amount) > key.DailyBudget:
		return nil, refuseQuota("This key's daily budget of %s USD does not cover the request's highest possible cost of %s USD today "+
			"(%s USD spent, %s USD held by running requests). Wait until 00:00 UTC, raise the budget, or %s.",
			key.DailyBudget, a.Amount, spentToday, heldToday, a.advice())
	case key.Limit >= 0 && money.Plus(money.Plus(key.Spent, heldByKey), a.Amount) > key.Limit:
		return nil, refuseQuota("This key's total limit of %s USD does not cover the request's highest possible cost of %s USD "+
			"(%s USD spent, %s USD held by running requests). Raise the limit, use another key, or %s.",
			key.Limit, a.Amount, key.Spent, heldByKey, a.advice())
	case !acct.covers(heldByAll, a.Amount):
		return nil, refuseQuota("The balance does not cover the request's highest possible cost of %s USD "+
			"(balance %s USD, %s USD held by running requests). Top up, wait for running requests to end, or %s.%s",
			a.Amount, acct.Balance, heldByAll, a.advice(), a.help())
	}

	hold := &HoldRow{
		ID: a.Request, Epoch: epoch, Account: a.Account, Key: a.Key, Model: a.Model, Endpoint: a.Endpoint,
		Day: day, Revision: a.Revision, Free: a.FreeDaily > 0, Amount: a.Amount, Factor: a.Factor,
		CreatedMS: a.Received.UnixMilli(), AdmittedMS: b.NowMS,
	}
	b.AddHeld(acct.ID, key.ID, day, a.Amount)
	if key.RPM >= 0 {
		key.Hits, key.LastHitMS = hit, b.NowMS
		b.Hits[HitKey{key.ID, hit}] = b.NowMS
		b.NewHits = append(b.NewHits, HitKey{key.ID, hit})
		if old := hit - key.RPM; old > 0 { // the request passed, so hit old and all earlier hits have left the window
			b.OldHits[key.ID] = old
		}
	}
	if hold.Free {
		b.addLimit(free, LimitRow{Used: 1})
	}
	b.NewHolds = append(b.NewHolds, hold)
	return hold, nil
}

// covers reports whether the balance covers the open holds and another hold of amount. If a figure is
// out of range, covers returns false.
func (a *AccountRow) covers(held, amount money.Amount) bool {
	left, err := money.Add(a.Balance, -held)
	if err == nil {
		left, err = money.Add(left, -amount)
	}
	return err == nil && left >= a.Floor
}

// checkRate admits hit n if hit n-rpm does not exist or has left the window: an exact sliding
// window with one look-up. No hit is in the future (see rewind).
func (b *Books) checkRate(key *KeyRow, n int64) error {
	if key.RPM < 0 {
		return nil
	}
	if key.RPM == 0 {
		return fault.New(fault.RateLimitExceeded, "This key may send no requests. Raise its requests-per-minute limit, or use another key.")
	}
	at, counted := b.Hits[HitKey{key.ID, n - key.RPM}]
	if !counted || b.NowMS-at >= window.Milliseconds() {
		return nil
	}
	return fault.New(fault.RateLimitExceeded,
		"This key may send %d requests in 60 seconds, and has sent them. The next one may come in %d seconds; "+
			"send fewer, or raise the key's requests-per-minute limit.",
		key.RPM, (window.Milliseconds()-(b.NowMS-at)+999)/1000)
}

// advice returns the last clause of a 402's message.
func (a *Admission) advice() string {
	if a.Advice == "" {
		return "send a smaller request"
	}
	return a.Advice
}

// help returns Help as the end of a message.
func (a *Admission) help() string {
	if a.Help == "" {
		return ""
	}
	return " " + a.Help
}

func capitalize(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

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

// End releases a hold, charges a billed end, and adds the receipt. The charge is the end's cost,
// but never more than the hold. End returns false and writes nothing if the hold is not open, or its
// account or key is missing.
func (b *Books) End(id string, end End, attempts string) (ReceiptRow, bool) {
	hold := b.Holds[id]
	if hold == nil {
		return ReceiptRow{}, false
	}
	delete(b.Holds, id)
	acct, key := b.Accounts[hold.Account], b.Keys[hold.Key]
	if acct == nil || key == nil {
		return ReceiptRow{}, false
	}
	var cost, over money.Amount
	if end.Outcome == Billed {
		cost = min(max(end.Cost, 0), hold.Amount)
		over = min(max(end.Cost, 0)-cost, money.Max)
		end.Tokens, end.Quantity.N = end.Tokens.Bounded(), BoundedCount(end.Quantity.N)
	} else {
		end.Tokens, end.Quantity, end.Source = Tokens{}, measure.Quantity{}, 0 // uncharged requests have no counts
	}
	b.AddHeld(acct.ID, key.ID, hold.Day, -hold.Amount)
	before := acct.Balance
	acct.Balance -= cost
	if acct.Low.Drops(before, acct.Balance) {
		b.Lows = append(b.Lows, Low{Account: acct.ID, Balance: acct.Balance, Level: acct.Low.Amount})
	}
	acct.Seq++
	acct.Dirty = true
	key.Spent = money.Plus(key.Spent, cost)
	if key.DailyBudget >= 0 && cost > 0 {
		b.addLimit(LimitKey{key.ID, hold.Day}, LimitRow{Spent: cost})
	}
	key.LastUsedMS = min(max(key.LastUsedMS, hold.AdmittedMS), b.NowMS) // the clock may have been set back
	key.Dirty = true
	if hold.Free && end.Outcome == Failed {
		b.addLimit(LimitKey{FreeSubject(hold.Account, hold.Model), hold.Day}, LimitRow{Used: -1})
	}
	receipt := ReceiptRow{
		Hold: *hold, Seq: acct.Seq, End: end, Attempts: attempts,
		Cost: cost, Over: over, Balance: acct.Balance, StandsFor: 1, EndedMS: b.NowMS,
	}
	b.EndedHolds = append(b.EndedHolds, id)
	b.Receipts = append(b.Receipts, receipt)
	return receipt, true
}

// CheckHold returns the reason why an open hold cannot be ended, or nil.
func (b *Books) CheckHold(id string) error {
	hold := b.Holds[id]
	switch {
	case hold == nil:
		return nil
	case b.Accounts[hold.Account] == nil || b.Keys[hold.Key] == nil:
		return ErrDamaged
	case !hold.plausible():
		return ErrImplausible
	}
	return nil
}

// plausible reports whether the figures are possible for an admission and a stream.
func (h *HoldRow) plausible() bool {
	amounts := h.Amount >= 0 && h.Amount <= money.Max && h.Cost >= 0 && h.Cost <= money.Max
	for _, n := range []int64{h.Tokens.Prompt, h.Tokens.Cached, h.Tokens.Completion, h.Quantity.N} {
		if n < 0 || n > MaxCount {
			return false
		}
	}
	return amounts
}

// Sweep ends the hold of a dead node: it charges the recorded progress, or releases a hold without
// progress (interface.md, Billing rules 4 and 6).
func (b *Books) Sweep(id string) (ReceiptRow, bool) {
	hold := b.Holds[id]
	if hold == nil {
		return ReceiptRow{}, false
	}
	end := End{
		Outcome: Failed, Status: 503, Code: string(fault.ServiceUnavailable), Line: hold.Line,
		Duration: time.Duration(max(0, b.NowMS-hold.CreatedMS)) * time.Millisecond,
	}
	if hold.Cost > 0 || hold.Tokens != (Tokens{}) || hold.Quantity.N > 0 {
		// The stream broke off after its client had got the status 200.
		end.Outcome, end.Status, end.Source = Billed, 200, SourceProgress
		end.Cost, end.Tokens, end.Quantity = hold.Cost, hold.Tokens, hold.Quantity
	}
	return b.End(id, end, "[]")
}
