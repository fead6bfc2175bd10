package topup

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"tollgate/internal/store"
)

// Reconciliation compares the payments of a provider with the top-ups.
type Reconciliation struct {
	Payments    int // paid at the provider
	Topups      int // paid here
	Differences []Mismatch
}

// Mismatch is a payment that differs between the provider and the top-ups.
type Mismatch struct {
	Topup, Payment string // empty if unknown
	What           string
	Here, There    string // amounts or states; empty if there is nothing
}

// clockMargin is a bound on the difference between the clocks of the database and of a provider.
const clockMargin = time.Hour

// Reconcile compares the payments that customers began at a provider since a time, in Unix milliseconds,
// with the top-ups. It changes nothing. The error is ErrOff for a provider that is not configured.
func (t *Topups) Reconcile(ctx context.Context, provider string, sinceMS int64) (r Reconciliation, err error) {
	p, err := t.provider(provider)
	if err != nil {
		return r, err
	}
	before, err := store.Read(ctx, t.DB, (*store.Tx).NowMS)
	if err != nil {
		return r, err
	}
	listed, err := p.List(ctx, sinceMS-clockMargin.Milliseconds())
	if err != nil {
		return r, fmt.Errorf("list the payments at %s: %w", provider, err)
	}
	// A top-up can have several pages at the provider; at most one of them is paid.
	there := map[string]ProviderPayment{}
	for _, payment := range listed {
		if payment.State == Succeeded || there[payment.Topup].State == "" {
			there[payment.Topup] = payment
		}
	}
	err = t.DB.View(ctx, func(tx *store.Tx) error {
		here, err := beganTx(tx, ListFilter{Provider: provider, SinceMS: sinceMS}, p.Info().Live)
		if err != nil {
			return err
		}
		for id := range there {
			if _, ok := here[id]; ok {
				continue
			}
			row, found, err := readTx(tx, id) // begun before sinceMS
			if err != nil {
				return err
			}
			if found && row.Provider == provider {
				here[id] = row
			}
		}
		r = compare(here, there, before)
		return nil
	})
	return r, err
}

// beganTx returns the top-ups of a mode (test or live) by their ids.
func beganTx(tx *store.Tx, f ListFilter, live bool) (map[string]Topup, error) {
	f.Limit = 500
	rows := map[string]Topup{}
	for {
		list, more, err := ListTx(tx, f)
		if err != nil {
			return nil, err
		}
		for _, row := range list {
			if row.Live == live {
				rows[row.ID] = row
			}
		}
		if !more {
			return rows, nil
		}
		f.After = list[len(list)-1].ID
	}
}

// compare returns the differences, by the ids of the top-ups. Payments credited after beforeMS are not
// compared, because the provider's list may be older.
func compare(here map[string]Topup, there map[string]ProviderPayment, beforeMS int64) (r Reconciliation) {
	report := func(d Mismatch) { r.Differences = append(r.Differences, d) }
	for id, p := range there {
		if p.State != Succeeded {
			continue
		}
		r.Payments++
		row, found := here[id]
		switch {
		case !found:
			report(Mismatch{id, p.ID, "paid at the provider, but there is no such top-up", "", p.text()})
		case !row.IsPaid():
			report(Mismatch{id, p.ID, "paid at the provider, but not credited", string(row.State), p.text()})
		case row.Payment != p.ID:
			report(Mismatch{id, p.ID, "the payment has another id", row.Payment, p.ID})
		case row.Currency.Code != p.Currency || row.Minor != p.Amount || row.Total != p.Total:
			report(Mismatch{id, p.ID, "the amounts differ", row.text(), p.text()})
		}
	}
	for id, row := range here {
		if !row.IsPaid() {
			continue
		}
		r.Topups++
		switch p, found := there[id]; {
		case row.PaidMS >= beforeMS || found && p.State == Succeeded:
		case found:
			report(Mismatch{id, row.Payment, "credited, but not paid at the provider", row.text(), string(p.State)})
		default:
			report(Mismatch{id, row.Payment, "credited, but the provider does not list the payment", row.text(), ""})
		}
	}
	slices.SortFunc(r.Differences, func(a, b Mismatch) int { return cmp.Compare(a.Topup, b.Topup) })
	return r
}

// text returns the amount, without and with tax.
func (t Topup) text() string { return paidText(t.Currency, t.Minor, t.Total) }

func (p ProviderPayment) text() string {
	c, err := CurrencyOf(p.Currency)
	if err != nil {
		return fmt.Sprintf("%d %s", p.Amount, p.Currency)
	}
	return paidText(c, p.Amount, p.Total)
}

func paidText(c Currency, minor, total int64) string {
	if total == minor {
		return c.Text(minor)
	}
	return c.Text(minor) + " (" + c.Decimal(total) + " with tax)"
}
