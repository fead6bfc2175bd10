// Package topup owns the customers' payments: top-ups, the credit that they buy, and the credit that
// refunds and disputes take back. Each payment provider has a subfolder.
//
// Invariants, even after `kill -9` at any time:
//   - The row of a top-up is committed before the customer is sent to the provider.
//   - Account, amount, currency, rate and credit come from the row, never from a message or a browser.
//   - The transaction that marks a top-up as paid also writes its credit. The provider's id of the
//     payment is the reference of the credit, so a payment is credited at most once, forever.
//   - Money moves only because of a result of PaymentProvider.Query. A message of the provider only
//     names the top-up to ask about.
//   - The credit taken back from a paid top-up is Topup.TakenAt of its active refunds and disputes.
//
// Functions with the suffix Tx join the caller's transaction. They lock the row of the top-up before the
// rows of the account and of the ledger.
package topup

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tollgate/internal/loop"
	"tollgate/internal/mail"
	"tollgate/internal/store"
	"tollgate/internal/webhook"
)

// Options configure Topups. DB, Terms, Providers and PublicURL are required.
type Options struct {
	DB    *store.DB
	Terms Terms
	// Providers take the payments, in the order of the customers' choice.
	Providers []PaymentProvider
	// PublicURL is the base address of the console. Providers send customers back to the console.
	PublicURL string
	// DisableOnDispute disables the account of a disputed payment.
	DisableOnDispute bool
	// Webhooks announces balances that fall below their level when credit is taken back. If nil, nothing is
	// announced.
	Webhooks *webhook.Webhooks
	// Mails writes receipts, and mails about refunds and disputes. If nil, no mail is written.
	Mails *mail.Mailer
	// Settled, if not nil, is called in the transaction of each settlement.
	Settled func(tx *store.Tx, s PaymentSettlement) error
	// ForgetAccount, if not nil, makes this node's key cache forget a disabled account.
	ForgetAccount func(account string)
	// AlertMail has the addresses of operators who get a mail about new problems.
	AlertMail []string
	// Registry gets the metrics. It may be nil.
	Registry prometheus.Registerer
	// Log receives failures. If nil, nothing is logged.
	Log *slog.Logger
}

// Topups takes payments. It is safe for concurrent use. A nil Topups is a shop without payments: only its Info
// and SavesCards may be called.
type Topups struct {
	Options
	metrics metrics

	forgedMS atomic.Int64 // time of the last log line about a forged message
}

// New returns the top-ups of a shop. Call Run to ask the providers about open payments.
func New(o Options) *Topups {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Topups{Options: o, metrics: newMetrics(o.Registry)}
}

// ErrOff reports that the provider of a payment is not configured, or is configured in the other mode (test
// or live).
var ErrOff = errors.New("the payment provider is not configured")

// provider returns a configured provider.
func (t *Topups) provider(name string) (PaymentProvider, error) {
	if t != nil {
		if i := slices.IndexFunc(t.Providers, func(p PaymentProvider) bool { return p.Info().Name == name }); i >= 0 {
			return t.Providers[i], nil
		}
	}
	return nil, ErrOff
}

// Infos describes the configured providers.
func (t *Topups) Infos() (all []ProviderInfo) {
	for _, p := range t.Providers {
		all = append(all, p.Info())
	}
	return all
}

// Info describes a provider. If the provider is not configured, the result has only the name.
func (t *Topups) Info(name string) ProviderInfo {
	p, err := t.provider(name)
	if err != nil {
		return ProviderInfo{Name: name, Title: name}
	}
	return p.Info()
}

// sweepPeriod is the time between two calls of Sweep, and of BeginAutomatic.
const sweepPeriod = 15 * time.Second

// Run sweeps, begins automatic top-ups and watches problems until ctx ends.
func (t *Topups) Run(ctx context.Context) {
	loop.Run(ctx, loop.Loop{Room: "topup", Does: "ask the payment providers", Log: t.Log, Period: sweepPeriod, Step: t.Sweep},
		loop.Loop{Room: "topup", Does: "begin automatic top-ups", Log: t.Log, Period: sweepPeriod, Step: t.BeginAutomatic},
		loop.Loop{Room: "topup", Does: "look for problems of payments", Log: t.Log, Period: watchPeriod, Step: t.Watch})
}
