package topup

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"tollgate/internal/ledger"
	"tollgate/internal/mail"
	"tollgate/internal/money"
)

// decision is the result of decide.
type decision struct {
	topup     Topup
	changed   bool       // topup differs from the row
	reversals []Reversal // new or changed refunds and disputes
	moves     []ledger.Payment
	disputed  bool // there is a new dispute
	mails     []paymentMail
	problem   problemKind
	detail    string // about the problem
	card      Card   // to save, if it has an id
	pause     Pause  // pauses automatic top-ups, if not empty
}

// decide compares a top-up and its reversals with the provider's payment, and returns the changes. newID
// returns an identifier with a prefix. decide is a pure function apart from newID.
func decide(t Topup, reversals []Reversal, p ProviderPayment, nowMS int64, newID func(prefix string) string) decision {
	d := decision{topup: t}
	if p.State != Missing && p.Topup != t.ID {
		d.problem, d.detail = problemOtherTopup, fmt.Sprintf("the payment names the top-up %q", p.Topup)
		return d
	}
	if p.Session != "" && t.Session == "" {
		d.topup.Session, d.changed = p.Session, true
	}
	switch {
	case p.State == Succeeded && !t.IsPaid():
		if d.problem, d.detail = mismatch(t, p); d.problem != "" {
			return d
		}
		d.pay(p, nowMS)
	case p.State == Succeeded && p.ID != t.Payment:
		d.problem, d.detail = problemSecondPayment, "the payment "+p.ID+" was not credited, because the top-up was credited for "+t.Payment
		return d
	case t.IsPaid() && p.State != Succeeded:
		d.problem, d.detail = problemUnpaid, "the provider reports the state "+string(p.State)+", but the top-up was credited"
		return d
	case !t.IsPaid():
		d.follow(p, nowMS)
	}
	if p.HasRefund && d.topup.IsPaid() && activeMinor(reversals) == 0 {
		d.problem, d.detail = problemRefunded, "the provider paid something back; record the refund here, so that its credit is taken back"
	}
	if d.topup.IsPaid() {
		d.applyReversals(slices.Clone(reversals), p, nowMS, newID)
	}
	d.changed = d.changed || d.topup != t
	return d
}

// mismatch returns why a payment must not be credited. kind is empty if the payment fits the top-up.
func mismatch(t Topup, p ProviderPayment) (kind problemKind, detail string) {
	switch {
	case p.Live != t.Live:
		return problemMode, "the payment and the top-up are not both in test mode, or not both in live mode"
	case p.Currency != t.Currency.Code:
		return problemCurrency, fmt.Sprintf("the payment is in %s, the top-up in %s", p.Currency, t.Currency.Code)
	case p.Amount != t.Minor || p.Total < p.Amount:
		return problemAmount, fmt.Sprintf("paid was %s, the top-up is for %s", t.Currency.Text(p.Amount), t.Currency.Text(t.Minor))
	case p.Method != "" && p.Method != t.Method:
		return problemMethod, fmt.Sprintf("the payment was made by %q, the top-up is by %q", p.Method, t.Method)
	case p.HasRefund:
		return problemRefunded, "the provider paid back a part of the payment or all of it before the credit"
	case p.ID == "":
		return problemAmount, "the payment has no id"
	}
	return "", ""
}

// pay marks the top-up as paid and credits it.
func (d *decision) pay(p ProviderPayment, nowMS int64) {
	t := &d.topup
	t.State, t.Payment, t.Total, t.PaidMS = Paid, p.ID, p.Total, nowMS
	t.Session, t.Address = p.Session, ""
	if t.SavesCard {
		d.card = p.Card
	}
	d.moves = append(d.moves, ledger.Payment{Amount: t.Credit, Note: creditNote + t.ID, Reference: t.Reference(), Paid: true})
	d.mails = append(d.mails, paymentMail{kind: mail.PaymentReceipt, cause: t.ID, minor: t.Total, credit: t.Credit})
}

// missingGrace is how long after the end of an order the payment may still appear at the provider.
const missingGrace = time.Hour

// follow changes the state of an unpaid top-up.
func (d *decision) follow(p ProviderPayment, nowMS int64) {
	t := &d.topup
	switch {
	case p.State == Unsuccessful && t.IsOpen():
		t.State, t.Address = Failed, ""
		if t.IsAutomatic() {
			d.pause = cmp.Or(p.Pause, PauseDeclined)
		}
	case p.State == Lapsed && t.IsOpen(), p.State == Missing && t.IsOpen() && nowMS > t.ExpiresMS+missingGrace.Milliseconds():
		t.State, t.Address = Expired, ""
	case p.State == Open && t.State == Created:
		t.State = Pending
	}
}

// applyReversals updates the refunds and disputes of a paid top-up from the provider's payment. When a
// reversal becomes active or inactive, TakenAt of the active reversals changes; credit moves by the
// difference.
func (d *decision) applyReversals(reversals []Reversal, p ProviderPayment, nowMS int64, newID func(prefix string) string) {
	active := func() (minor int64) {
		for _, c := range reversals {
			if c.Active {
				minor += c.Minor
			}
		}
		return minor
	}
	set := func(i int, isActive bool) {
		if before := active(); reversals[i].Active != isActive {
			reversals[i].Active = isActive
			d.move(&reversals[i], d.topup.TakenAt(active())-d.topup.TakenAt(before))
		}
	}
	for _, r := range p.Refunds {
		i := slices.IndexFunc(reversals, func(c Reversal) bool {
			return c.Kind == Refund && (c.Object == r.ID || c.Object == "" && c.ID == r.Key)
		})
		if i < 0 {
			reversals = append(reversals, Reversal{ID: newID("refund_"), Topup: d.topup.ID, Account: d.topup.Account, Kind: Refund, Minor: r.Minor,
				CreatedMS: nowMS})
			i = len(reversals) - 1
		}
		before := reversals[i]
		reversals[i].Object, reversals[i].Requested = r.ID, false
		set(i, !r.Failed)
		d.keep(before, reversals[i])
	}
	for _, q := range p.Disputes {
		i := slices.IndexFunc(reversals, func(c Reversal) bool { return c.Kind == Dispute && c.Object == q.ID })
		if i < 0 {
			reversals = append(reversals, Reversal{ID: newID("dispute_"), Topup: d.topup.ID, Account: d.topup.Account, Kind: Dispute, Minor: q.Minor,
				CreatedMS: nowMS})
			i = len(reversals) - 1
			d.disputed = d.disputed || q.Open || q.Taken
		}
		before := reversals[i]
		reversals[i].Object = q.ID
		set(i, q.Taken)
		d.keep(before, reversals[i])
	}
	d.topup.State = stateOf(d.topup, reversals)
}

// keep adds after to the reversals to save, unless it equals before, the saved row.
func (d *decision) keep(before, after Reversal) {
	if before != after {
		d.reversals = append(d.reversals, after)
		d.report(before, after)
		d.changed = true
	}
}

// move adds a movement of credit for c. A positive taken takes credit back; a negative one gives it back.
func (d *decision) move(c *Reversal, taken money.Amount) {
	c.Taken += taken
	if taken == 0 {
		return
	}
	d.moves = append(d.moves, ledger.Payment{Amount: -taken, Note: string(c.Kind) + noteOf + d.topup.ID, Reference: c.reference(d.topup),
		Paid: true})
	c.Moves++
}

// stateOf returns the state of a paid top-up.
func stateOf(t Topup, reversals []Reversal) TopupState {
	refunded := int64(0)
	for _, c := range reversals {
		switch {
		case !c.Active:
		case c.Kind == Dispute:
			return Disputed
		default:
			refunded += c.Minor
		}
	}
	switch {
	case refunded >= t.Total:
		return Refunded
	case refunded > 0:
		return PartlyRefunded
	}
	return Paid
}

// Bounds of the time between two questions to the provider about a top-up.
const (
	firstCheck  = 20 * time.Second    // first and shortest interval of an open top-up
	openCheck   = 15 * time.Minute    // longest interval of an open top-up
	paidCheck   = 12 * time.Hour      // shortest interval of a closed top-up
	longestWait = 14 * 24 * time.Hour // longest interval of a closed top-up
	// lastCheck is the age of a top-up after which the provider is not asked any more. Banks dispute within
	// 120 days, and a delayed payment takes some days.
	lastCheck = 180 * 24 * time.Hour
)

// nextCheck returns the time of the next question about a top-up in Unix milliseconds, or 0 for never. The
// intervals grow with the age of the top-up. requested is true if a refund waits for the provider.
func nextCheck(t Topup, requested bool, nowMS int64) int64 {
	since, low, high, share := t.CreatedMS, firstCheck, openCheck, int64(4)
	switch {
	case requested:
		high = firstCheck
	case t.IsPaid():
		since, low, high, share = t.PaidMS, paidCheck, longestWait, 2
	case !t.IsOpen():
		low, high = paidCheck, longestWait
	}
	age := max(0, nowMS-since)
	if age > lastCheck.Milliseconds() && !requested {
		return 0
	}
	return nowMS + min(max(age/share, low.Milliseconds()), high.Milliseconds())
}
