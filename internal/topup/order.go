package topup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/fault"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// Limits of top-ups.
const (
	// lifetime is how long the customer can pay an order. Stripe allows 30 minutes to 24 hours.
	lifetime = 2 * time.Hour
	// shortest is the shortest time for the customer to pay. Stripe refuses a page that ends earlier.
	shortest = 30 * time.Minute
	// maxOpen bounds the open top-ups of an account.
	maxOpen = 20
)

// NewOrder is a customer's choice.
type NewOrder struct {
	Account  string
	Provider string // Info.Name
	Method   string // Method.Name, or empty
	Minor    int64  // in the smallest unit of the terms' currency
	SaveCard bool   // for automatic top-ups
}

// CreateTx writes the row of a new top-up. The caller commits it and then calls Begin. Errors that the
// customer can correct are *fault.Errors at provider or amount.
func (t *Topups) CreateTx(tx *store.Tx, o NewOrder) (Topup, error) {
	info, err := t.choice(o)
	if err != nil {
		return Topup{}, err
	}
	if o.Minor < t.Terms.Minimum || o.Minor > t.Terms.Maximum {
		return Topup{}, fault.At(fault.InvalidRequest, "amount", "The amount must be from %s to %s.",
			t.Terms.Currency.Decimal(t.Terms.Minimum), t.Terms.Currency.Text(t.Terms.Maximum))
	}
	quote, err := t.Terms.Quote(o.Minor)
	if err != nil {
		return Topup{}, err
	}
	owner, err := account.LockTx(tx, o.Account)
	if err != nil {
		return Topup{}, err
	}
	if owner.Money.Disabled {
		return Topup{}, fault.At(fault.InvalidRequest, "amount", "Your account is disabled, so you cannot add credit. Ask the operator.")
	}
	var open int64
	err = tx.QueryRow(`SELECT COUNT(*) FROM topup WHERE account = $1 AND state IN ('created', 'pending')`, o.Account).Scan(&open)
	if err != nil {
		return Topup{}, fmt.Errorf("count top-ups: %w", err)
	}
	if open >= maxOpen {
		return Topup{}, fault.At(fault.InvalidRequest, "amount",
			"You have %d unpaid top-ups. Pay one of them, or wait until they expire, at most %s.", open, lifetime)
	}
	now, err := tx.NowMS()
	if err != nil {
		return Topup{}, err
	}
	saved, _, err := AutomaticTx(tx, o.Account)
	if err != nil {
		return Topup{}, err
	}
	row := Topup{ID: id.At(IDPrefix, time.UnixMilli(now)), Account: o.Account, Provider: info.Name, Method: o.Method, Live: info.Live,
		State: Created, Currency: t.Terms.Currency, Minor: quote.Minor, Rate: t.Terms.Rate, Bonus: quote.Bonus, Credit: quote.Credit,
		CreatedMS: now, ExpiresMS: now + lifetime.Milliseconds(), checkMS: now + firstCheck.Milliseconds(),
		SavesCard: o.SaveCard && saved.Card.ID == ""}
	return row, insertTx(tx, row)
}

// choice validates the provider and method of an order, and returns the provider.
func (t *Topups) choice(o NewOrder) (ProviderInfo, error) {
	p, err := t.provider(o.Provider)
	if err != nil {
		return ProviderInfo{}, fault.At(fault.InvalidRequest, "provider", "Choose one of the ways to pay.")
	}
	info := p.Info()
	if len(info.Methods) == 0 && o.Method != "" ||
		len(info.Methods) > 0 && !slices.ContainsFunc(info.Methods, func(m PayMethod) bool { return m.Name == o.Method }) {
		return ProviderInfo{}, fault.At(fault.InvalidRequest, "provider", "Choose one of the ways to pay.")
	}
	if o.SaveCard && (!info.SavesCards || t.Terms.Automatic == 0) {
		return ProviderInfo{}, fault.At(fault.InvalidRequest, "save", "Cards cannot be saved with this way to pay.")
	}
	return info, nil
}

// Begin creates the payment of a committed top-up at its provider and saves the address of the provider's
// page. For an automatic top-up, Begin charges the saved card. It may be repeated, and is a no-op if the
// top-up has an address or is no longer open. If the provider does not answer, the error wraps ErrNoAnswer,
// and Sweep repeats the call.
func (t *Topups) Begin(ctx context.Context, topup string) error {
	var row Topup
	var email string
	var now int64
	err := t.DB.View(ctx, func(tx *store.Tx) (err error) {
		if row, err = GetTx(tx, topup); err != nil {
			return err
		}
		if now, err = tx.NowMS(); err != nil {
			return err
		}
		owner, err := account.GetTx(tx, row.Account)
		email = owner.Email
		return err
	})
	if err != nil || !row.IsOpen() || row.Address != "" || row.IsAutomatic() && row.Session != "" {
		return err
	}
	p, err := t.provider(row.Provider)
	switch {
	case err != nil:
		return err
	case p.Info().Live != row.Live:
		return ErrOff
	}
	checkout, err := t.checkout(ctx, p, row, email, now)
	switch {
	case errors.Is(err, ErrRefused):
		t.Log.Error("topup: the payment provider refuses a payment", "provider", row.Provider, "topup", row.ID, "error", err)
	case err != nil:
		return fmt.Errorf("%w: begin a payment at %s: %w", ErrNoAnswer, row.Provider, err)
	}
	return t.DB.Update(ctx, func(tx *store.Tx) error { return t.beginTx(tx, topup, checkout, err) })
}

// checkout asks the provider for a payment page, or charges the saved card.
func (t *Topups) checkout(ctx context.Context, p PaymentProvider, row Topup, email string, nowMS int64) (Checkout, error) {
	if row.IsAutomatic() {
		cards, ok := p.(CardProvider)
		if !ok {
			return Checkout{}, fmt.Errorf("%w: it has no saved cards", ErrRefused)
		}
		session, err := cards.Charge(ctx, row, nowMS > row.ExpiresMS)
		return Checkout{Session: session}, err
	}
	base := strings.TrimRight(t.PublicURL, "/")
	return p.Begin(ctx, Order{Topup: row, Email: email, ReturnURL: base + "/console/billing/top-ups/" + row.ID + "?done=back",
		NotifyURL: base + p.Info().Path})
}

// ErrNoAnswer reports that a payment provider did not answer clearly. The call will be repeated.
var ErrNoAnswer = errors.New("the payment provider did not answer")

// beginTx saves the result of Begin, unless the top-up was paid or ended meanwhile. refusal is the provider's
// refusal, or nil.
func (t *Topups) beginTx(tx *store.Tx, topup string, checkout Checkout, refusal error) error {
	row, found, err := lockTx(tx, topup)
	if err != nil || !found || !row.IsOpen() {
		return err
	}
	if refusal != nil {
		return t.refuseTx(tx, row, refusal)
	}
	row.State, row.Session, row.Address = Pending, checkout.Session, checkout.Address
	return saveTx(tx, row)
}

// refuseTx ends a refused top-up, and reports the refusal to the operators, once for each cause. If the call came
// too late, after an outage, the top-up expires without a report.
func (t *Topups) refuseTx(tx *store.Tx, row Topup, refusal error) error {
	now, err := tx.NowMS()
	if err != nil {
		return err
	}
	end := row.ExpiresMS
	if !row.IsAutomatic() {
		end -= shortest.Milliseconds()
	}
	if now > end {
		row.State = Expired
		return saveTx(tx, row)
	}
	row.State = Failed
	if row.IsAutomatic() {
		if err := t.pauseTx(tx, row.Account, PauseDeclined, row.ID); err != nil {
			return err
		}
	}
	if err := saveTx(tx, row); err != nil {
		return err
	}
	object := row.Provider
	if e, ok := errors.AsType[*RefusalError](refusal); ok && e.Code != "" {
		object = e.Code
	}
	return reportTx(tx, Problem{Provider: row.Provider, Kind: problemOrder, Object: object, Topup: row.ID, Account: row.Account,
		Detail: "the payment could not be started: " + refusal.Error()})
}
