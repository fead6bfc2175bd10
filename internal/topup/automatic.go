package topup

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// Pause is the reason why the automatic top-ups of an account are paused.
type Pause string

// The reasons of a pause.
const (
	PauseDeclined       Pause = "declined"       // the card was declined
	PauseAuthentication Pause = "authentication" // the bank wants the customer to confirm a payment
	PauseDispute        Pause = "dispute"        // a payment of the account is disputed
	PauseCurrency       Pause = "currency"       // the operator has changed the currency or the limits
	PauseUnavailable    Pause = "unavailable"    // the shop charges no saved cards
	PauseMode           Pause = "mode"           // the card was saved in the other mode (test or live)
)

// IsByShop reports whether the shop's settings cause the pause. Such a pause ends with its cause. Other
// pauses end when the customer switches automatic top-ups on again.
func (p Pause) IsByShop() bool { return p == PauseUnavailable || p == PauseMode }

// shopPause returns why the shop cannot charge the card of a: a Pause for the customer and a text for
// operators. Both are empty if the shop can charge the card.
func (t *Topups) shopPause(a Automatic) (p Pause, cause string) {
	info := t.Info(a.Provider)
	switch {
	case t.Terms.Automatic == 0:
		return PauseUnavailable, "topup_automatic_maximum is not set"
	case !info.SavesCards:
		return PauseUnavailable, info.Title + " charges no saved cards with your settings, for example with stripe_tax"
	case info.Live != a.Live:
		return PauseMode, "the cards were saved in the other mode of " + info.Title + " (test or live)"
	}
	return "", ""
}

// isOutdated reports whether a customer's settings violate the present terms.
func (t *Topups) isOutdated(a Automatic) bool {
	return a.Currency != t.Terms.Currency.Code || a.Minor < t.Terms.Minimum || a.Minor > t.Terms.Maximum || a.Monthly > t.Terms.Automatic
}

// PauseOf returns why no automatic top-up of an account begins, or an empty Pause.
func (t *Topups) PauseOf(a Automatic) Pause {
	p, _ := t.shopPause(a)
	switch {
	case p != "":
		return p
	case a.Pause != "" && !a.Pause.IsByShop():
		return a.Pause
	case a.On && t.isOutdated(a):
		return PauseCurrency
	}
	return ""
}

// Automatic is the saved card of an account, with the customer's settings for automatic top-ups.
type Automatic struct {
	Account  string
	Provider string
	Live     bool
	Card     Card
	On       bool
	Level    money.Amount // a balance below it begins a top-up
	Currency string       // of Minor and Monthly
	Minor    int64        // the amount of a top-up
	Monthly  int64        // the maximum for a calendar month (UTC)
	Pause    Pause        // empty unless paused
}

const automaticColumns = `account, provider, live, customer, card, brand, last_digits, switched_on, level_nano, currency, minor,
	monthly_minor, pause`

func scanAutomatic(row store.Row) (a Automatic, err error) {
	var live, on int64
	err = row.Scan(&a.Account, &a.Provider, &live, &a.Card.Customer, &a.Card.ID, &a.Card.Brand, &a.Card.Last, &on, &a.Level, &a.Currency,
		&a.Minor, &a.Monthly, &a.Pause)
	a.Live, a.On = live != 0, on != 0
	return a, err
}

// AutomaticTx returns the saved card of an account. found is false if the account has none.
func AutomaticTx(tx *store.Tx, account string) (a Automatic, found bool, err error) {
	a, err = scanAutomatic(tx.QueryRow(`SELECT `+automaticColumns+` FROM topup_automatic WHERE account = $1`, account))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Automatic{}, false, nil
	case err != nil:
		return Automatic{}, false, fmt.Errorf("read a saved card: %w", err)
	}
	return a, true, nil
}

// saveCardTx saves the card of a paid top-up, unless the account has one. Automatic top-ups stay off until
// the customer switches them on.
func saveCardTx(tx *store.Tx, t Topup, c Card) error {
	if c.ID == "" {
		return nil
	}
	_, err := tx.Exec(`INSERT INTO topup_automatic (`+automaticColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, 0, 0, $8, 0, 0, '')
		ON CONFLICT (account) DO NOTHING`,
		t.Account, t.Provider, store.Bool(t.Live), c.Customer, c.ID, c.Brand, c.Last, t.Currency.Code)
	if err != nil {
		return fmt.Errorf("save a card: %w", err)
	}
	return nil
}

// pauseTx pauses the automatic top-ups of an account. It mails the users, unless automatic top-ups are off
// or paused already. cause makes the mail unique: the top-up's id or the time. An empty reason is a no-op.
func (t *Topups) pauseTx(tx *store.Tx, account string, reason Pause, cause string) error {
	if reason == "" {
		return nil
	}
	a, _, err := AutomaticTx(tx, account)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(`UPDATE topup_automatic SET pause = $1 WHERE account = $2`, string(reason), account); err != nil {
		return fmt.Errorf("pause automatic top-ups: %w", err)
	}
	if !a.On || a.Pause != "" {
		return nil
	}
	return t.mailPauseTx(tx, account, string(reason)+" "+cause)
}

// SavesCards reports whether customers can save a card for automatic top-ups. A nil Topups saves none.
func (t *Topups) SavesCards() bool {
	return t != nil && t.Terms.Automatic > 0 && slices.ContainsFunc(t.Infos(), func(i ProviderInfo) bool { return i.SavesCards })
}

// AutomaticSettings are a customer's settings for automatic top-ups, in the currency of the terms.
type AutomaticSettings struct {
	Level          money.Amount
	Minor, Monthly int64
}

// SwitchOnTx switches the automatic top-ups of an account on, or changes them, and ends a pause. Errors that
// the customer can correct are *fault.Errors at level, amount or monthly.
func (t *Topups) SwitchOnTx(tx *store.Tx, account string, s AutomaticSettings) error {
	terms := t.Terms
	switch {
	case s.Level <= 0 || s.Level > money.Max:
		return fault.At(fault.InvalidRequest, "level", "The level must be above 0.")
	case s.Minor < terms.Minimum || s.Minor > terms.Maximum:
		return fault.At(fault.InvalidRequest, "amount", "The amount must be from %s to %s.", terms.Currency.Decimal(terms.Minimum),
			terms.Currency.Text(terms.Maximum))
	case s.Monthly < s.Minor || s.Monthly > terms.Automatic:
		return fault.At(fault.InvalidRequest, "monthly", "The monthly maximum must be at least the amount, and at most %s.",
			terms.Currency.Text(terms.Automatic))
	}
	a, found, err := AutomaticTx(tx, account)
	if err != nil {
		return err
	}
	if !found {
		return fault.New(fault.InvalidRequest, "There is no saved card. Save one with a top-up first.")
	}
	if p, _ := t.shopPause(a); p != "" {
		return fault.New(fault.InvalidRequest, "The saved card cannot be charged. Remove it, and save another one with a top-up.")
	}
	_, err = tx.Exec(`UPDATE topup_automatic SET switched_on = 1, pause = '', level_nano = $1, currency = $2, minor = $3, monthly_minor = $4
		WHERE account = $5`, int64(s.Level), terms.Currency.Code, s.Minor, s.Monthly, account)
	if err != nil {
		return fmt.Errorf("switch automatic top-ups on: %w", err)
	}
	return nil
}

// SwitchOffTx switches the automatic top-ups of an account off. The card stays saved. A top-up without a
// charge ends. If only the answer to the charge was lost, the charge is still found and credited.
func SwitchOffTx(tx *store.Tx, account string) error {
	_, err := tx.Exec(`UPDATE topup SET expires_ms = created_ms WHERE account = $1 AND card <> '' AND state = 'created'`, account)
	if err != nil {
		return fmt.Errorf("end automatic top-ups: %w", err)
	}
	if _, err := tx.Exec(`UPDATE topup_automatic SET switched_on = 0, pause = '' WHERE account = $1`, account); err != nil {
		return fmt.Errorf("switch automatic top-ups off: %w", err)
	}
	return nil
}

// RemoveCard switches automatic top-ups off, removes the saved card at its provider, and then deletes its
// row. If the provider does not answer, the error wraps ErrNoAnswer, and the call may be repeated.
func (t *Topups) RemoveCard(ctx context.Context, account string) error {
	a, err := store.Write(ctx, t.DB, func(tx *store.Tx) (Automatic, error) {
		if err := SwitchOffTx(tx, account); err != nil {
			return Automatic{}, err
		}
		a, _, err := AutomaticTx(tx, account)
		return a, err
	})
	if err != nil || a.Card.ID == "" {
		return err
	}
	p, _ := t.provider(a.Provider) // without it, only the row is deleted
	if cards, ok := p.(CardProvider); ok && p.Info().Live == a.Live {
		if err := cards.Forget(ctx, a.Card); err != nil {
			return fmt.Errorf("%w: remove a card at %s: %w", ErrNoAnswer, a.Provider, err)
		}
	}
	return t.DB.Update(ctx, func(tx *store.Tx) error {
		if _, err := tx.Exec(`DELETE FROM topup_automatic WHERE account = $1 AND card = $2`, account, a.Card.ID); err != nil {
			return fmt.Errorf("remove a card: %w", err)
		}
		return nil
	})
}

// automaticRows bounds the accounts of a page.
const automaticRows = 200

// BeginAutomatic begins the automatic top-ups that are due. Several nodes may call it at once, because it
// locks the row of an account while it decides.
func (t *Topups) BeginAutomatic(ctx context.Context) error {
	var failures []error
	for after := ""; ; {
		list, low, err := t.lowAccounts(ctx, after)
		if err != nil {
			return err
		}
		for _, a := range low {
			if err := t.beginAutomatic(ctx, a.Account); err != nil {
				if failures = append(failures, err); len(failures) == sweepTries {
					return errors.Join(failures...)
				}
			}
		}
		if len(list) < automaticRows {
			return errors.Join(failures...)
		}
		after = list[len(list)-1].Account
	}
}

// lowAccounts returns in list a page of the accounts with automatic top-ups, by name and behind the account
// after. low has the accounts of the page with a low balance.
func (t *Topups) lowAccounts(ctx context.Context, after string) (list, low []Automatic, err error) {
	err = t.DB.View(ctx, func(tx *store.Tx) (err error) {
		low = nil
		list, err = store.Collect(tx, scanAutomatic, `SELECT `+automaticColumns+` FROM topup_automatic
			WHERE switched_on = 1 AND pause IN ('', $3, $4) AND account > $1 ORDER BY account LIMIT $2`, after, automaticRows,
			string(PauseUnavailable), string(PauseMode))
		if err != nil {
			return fmt.Errorf("list automatic top-ups: %w", err)
		}
		var names []string
		for _, a := range list {
			names = append(names, a.Account)
		}
		states, err := ledger.AccountsTx(tx, names)
		if err != nil {
			return err
		}
		for _, a := range list {
			paused, _ := t.shopPause(a)
			if states[a.Account].Balance < a.Level && !states[a.Account].Disabled && (paused == "" || paused != a.Pause) {
				low = append(low, a)
			}
		}
		return nil
	})
	return list, low, err
}

// beginAutomatic writes the row of an automatic top-up, commits it, charges the card, and books the result.
// After a crash, Sweep continues with the row.
func (t *Topups) beginAutomatic(ctx context.Context, account string) error {
	topup, err := store.Write(ctx, t.DB, func(tx *store.Tx) (string, error) { return t.automaticTx(tx, account) })
	if err != nil || topup == "" {
		return err
	}
	if err := t.Begin(ctx, topup); err != nil {
		return err
	}
	return t.Sync(ctx, topup, "")
}

// automaticTx writes the row of an automatic top-up, if one is due, and returns its id.
func (t *Topups) automaticTx(tx *store.Tx, name string) (string, error) {
	if _, err := account.LockTx(tx, name); err != nil {
		return "", err
	}
	a, found, err := AutomaticTx(tx, name)
	if err != nil || !found || !a.On || a.Pause != "" && !a.Pause.IsByShop() {
		return "", err
	}
	now, err := tx.NowMS()
	if err != nil {
		return "", err
	}
	if p, cause := t.shopPause(a); p != "" {
		return "", t.pauseByShopTx(tx, a, p, cause, now)
	}
	if t.isOutdated(a) {
		return "", t.pauseTx(tx, name, PauseCurrency, strconv.FormatInt(now, 10))
	}
	if a.Pause != "" {
		if _, err := tx.Exec(`UPDATE topup_automatic SET pause = '' WHERE account = $1`, name); err != nil {
			return "", fmt.Errorf("end the pause of automatic top-ups: %w", err)
		}
	}
	// The balance is read after the state of the top-ups: a top-up that was paid between the two reads must
	// not count as closed without its credit.
	isFree, err := isFreeTx(tx, a, now)
	if err != nil || !isFree {
		return "", err
	}
	states, err := ledger.AccountsTx(tx, []string{name})
	if err != nil || states[name].Disabled || states[name].Balance >= a.Level {
		return "", err
	}
	quote, err := t.Terms.Quote(a.Minor)
	if err != nil {
		return "", err
	}
	row := Topup{ID: id.At(IDPrefix, time.UnixMilli(now)), Account: name, Provider: a.Provider, Live: a.Live, State: Created,
		Currency: t.Terms.Currency, Minor: quote.Minor, Rate: t.Terms.Rate, Bonus: quote.Bonus, Credit: quote.Credit, CreatedMS: now,
		ExpiresMS: now + lifetime.Milliseconds(), checkMS: now + firstCheck.Milliseconds(), Customer: a.Card.Customer, Card: a.Card.ID}
	return row.ID, insertTx(tx, row)
}

// pauseByShopTx pauses the automatic top-ups of an account because of the shop's settings, and reports the cause to the
// operators.
func (t *Topups) pauseByShopTx(tx *store.Tx, a Automatic, p Pause, cause string, nowMS int64) error {
	if err := t.pauseTx(tx, a.Account, p, strconv.FormatInt(nowMS, 10)); err != nil {
		return err
	}
	var accounts int64
	err := tx.QueryRow(`SELECT COUNT(*) FROM topup_automatic WHERE switched_on = 1 AND provider = $1 AND live = $2`, a.Provider,
		store.Bool(a.Live)).Scan(&accounts)
	if err != nil {
		return fmt.Errorf("count automatic top-ups: %w", err)
	}
	return reportTx(tx, Problem{Provider: a.Provider, Kind: problemAutomatic, Object: string(p), Account: a.Account,
		Detail: fmt.Sprintf("no automatic top-up begins, because %s; accounts that have switched them on: %d", cause, accounts)})
}

// isFreeTx reports whether another automatic top-up may begin: none is unpaid, and the monthly maximum
// allows one more.
func isFreeTx(tx *store.Tx, a Automatic, nowMS int64) (bool, error) {
	at := time.UnixMilli(nowMS).UTC()
	month := time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	var open, sum int64
	err := tx.QueryRow(`SELECT COALESCE(SUM(CASE WHEN state IN ('created', 'pending') THEN 1 ELSE 0 END), 0),
		COALESCE(SUM(CASE WHEN created_ms >= $2 THEN minor ELSE 0 END), 0)
		FROM topup WHERE account = $1 AND card <> '' AND live = $3 AND state NOT IN ('failed', 'expired')`, a.Account, month,
		store.Bool(a.Live)).Scan(&open, &sum)
	if err != nil {
		return false, fmt.Errorf("sum automatic top-ups: %w", err)
	}
	return open == 0 && sum+a.Minor <= a.Monthly, nil
}
