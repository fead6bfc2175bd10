// Package warning owns the warnings to customers: low balances, nearly used budgets of keys, and
// failing receivers of webhooks. The users of the account get them as mails.
//
// Invariants:
//   - Requests do nothing for warnings. A loop compares the tables once a minute, and only if mail is on.
//   - One transaction writes a warning and records it, under one lock over all nodes. So each user
//     gets one mail about a cause, with any number of nodes and even if a node dies.
package warning

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/ledger"
	"tollgate/internal/loop"
	"tollgate/internal/mail"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
	"tollgate/internal/webhook"
)

// Options configure Warnings. DB, Mails and PublicURL are required.
type Options struct {
	DB        *store.DB
	Mails     *mail.Mailer
	PublicURL string // base address of the console, for links
	// LowBalance is the level of accounts without their own level. Zero means no warning for those
	// accounts.
	LowBalance money.Amount
	// Log receives failures. If nil, nothing is logged.
	Log *slog.Logger
}

// Warnings finds and writes warnings. It is safe for concurrent use.
type Warnings struct{ opts Options }

// New returns Warnings; call Run to write them.
func New(o Options) *Warnings {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.PublicURL = strings.TrimRight(o.PublicURL, "/")
	return &Warnings{o}
}

// Bounds of a step.
const (
	period   = time.Minute
	pageSize = 500 // changed accounts or keys in one transaction
	// refusedWithin is the maximum age of a request that was refused because of a used-up budget. It is longer
	// than period, so a slow step misses no refusal.
	refusedWithin = 3 * time.Minute
	// failingFor is how long the oldest event of a failing receiver waits before the warning. With the
	// default delays, three attempts have failed by then.
	failingFor = 10 * time.Minute
)

// warningLock makes steps exclusive over all nodes.
const warningLock = "tollgate warnings"

// Run writes warnings until ctx ends. If mail is off, it returns at once.
func (w *Warnings) Run(ctx context.Context) {
	if !w.opts.Mails.On() {
		return
	}
	loop.Run(ctx, loop.Loop{Room: "warning", Does: "look for low balances and used budgets", Log: w.opts.Log, Period: period, Step: w.Step})
}

// Step compares all balances, budgets and receivers once.
func (w *Warnings) Step(ctx context.Context) error {
	if err := w.balances(ctx); err != nil {
		return err
	}
	for _, daily := range []bool{true, false} {
		if err := w.budgets(ctx, daily); err != nil {
			return err
		}
	}
	return w.receivers(ctx)
}

// eachPage calls read for one page after the other. after is the last entry of the previous page, and read
// returns an empty last on the last page. eachPage reads a page without locks first. If the page has
// something to report, eachPage reads it again under warningLock, with report set.
func (w *Warnings) eachPage(
	ctx context.Context, read func(tx *store.Tx, after string, report bool) (found bool, last string, err error),
) error {
	for after := ""; ; {
		var found bool
		var last string
		err := w.opts.DB.View(ctx, func(tx *store.Tx) (err error) {
			found, last, err = read(tx, after, false)
			return err
		})
		if err == nil && found {
			err = w.opts.DB.Update(ctx, func(tx *store.Tx) error {
				if err := tx.Serialize(warningLock); err != nil {
					return err
				}
				_, last, err = read(tx, after, true)
				return err
			})
		}
		if err != nil || last == "" {
			return err
		}
		after = last
	}
}

func (w *Warnings) balances(ctx context.Context) error {
	return w.eachPage(ctx, func(tx *store.Tx, after string, report bool) (bool, string, error) {
		changes, err := ledger.LevelChangesTx(tx, w.opts.LowBalance, after, pageSize)
		if err != nil || len(changes) == 0 {
			return false, "", err
		}
		last := ""
		if len(changes) == pageSize {
			last = changes[pageSize-1].Account
		}
		if !report {
			return true, last, nil
		}
		for _, c := range changes {
			if !c.IsLow {
				continue
			}
			if err := w.mailTx(tx, c.Account, mail.Letter{Kind: mail.LowBalance, Cause: lowCause(c), Link: w.link("/billing"),
				Values: map[string]string{"balance": mail.USD(c.Balance), "level": mail.USD(c.Level)}}); err != nil {
				return true, "", err
			}
		}
		return true, last, ledger.RecordLevelChangesTx(tx, changes)
	})
}

// lowCause returns the cause of a mail about a low balance. It stays the same until the next credit, so
// there is one mail even if nodes with different levels find the account low and not low in turn.
func lowCause(c ledger.LevelChange) string { return fmt.Sprintf("%d %d", c.Level, c.Credit) }

func (w *Warnings) budgets(ctx context.Context, daily bool) error {
	return w.eachPage(ctx, func(tx *store.Tx, after string, report bool) (bool, string, error) {
		now, err := tx.NowMS()
		if err != nil {
			return false, "", err
		}
		refused, err := ledger.RefusedKeysTx(tx, now-refusedWithin.Milliseconds())
		if err != nil {
			return false, "", err
		}
		uses, last, err := ledger.BudgetUsesTx(tx, ledger.BudgetQuery{NowMS: now, Daily: daily, Refused: refused, After: after, Limit: pageSize})
		if err != nil || len(uses) == 0 || !report {
			return len(uses) > 0, last, err
		}
		for _, u := range uses {
			key, err := account.GetKeyTx(tx, u.Key)
			if err != nil {
				return true, "", err
			}
			if err := w.mailTx(tx, u.Account, mail.Letter{Kind: budgetKind(u), Cause: id.New("use_"), Link: w.link("/keys/" + u.Key),
				Values: map[string]string{"key": cmp.Or(key.Name, key.Hint), "spent": mail.USD(u.Spent), "limit": mail.USD(u.Limit)}}); err != nil {
				return true, "", err
			}
		}
		return true, last, ledger.RecordBudgetUsesTx(tx, now, uses)
	})
}

func budgetKind(u ledger.BudgetUse) mail.LetterKind {
	switch {
	case u.Daily && u.UsedUp:
		return mail.BudgetUsed
	case u.Daily:
		return mail.BudgetNear
	case u.UsedUp:
		return mail.LimitUsed
	}
	return mail.LimitNear
}

func (w *Warnings) receivers(ctx context.Context) error {
	return w.eachPage(ctx, func(tx *store.Tx, _ string, report bool) (bool, string, error) {
		now, err := tx.NowMS()
		if err != nil {
			return false, "", err
		}
		failing, err := webhook.UnreportedTx(tx, now-failingFor.Milliseconds(), pageSize)
		if err != nil || len(failing) == 0 || !report {
			return len(failing) > 0, "", err
		}
		for _, f := range failing {
			if err := w.mailTx(tx, f.Account, mail.Letter{Kind: mail.ReceiverFailing, Cause: id.New("recv_"), Link: w.link("/webhooks"),
				Values: map[string]string{"receiver": f.URL, "since": mail.Time(f.SinceMS)}}); err != nil {
				return true, "", err
			}
		}
		return true, "", webhook.ReportTx(tx, failing)
	})
}

func (w *Warnings) link(path string) string { return w.opts.PublicURL + "/console" + path }

func (w *Warnings) mailTx(tx *store.Tx, owner string, l mail.Letter) error {
	if err := account.MailUsersTx(tx, w.opts.Mails, owner, l); err != nil {
		return fmt.Errorf("write a warning: %w", err)
	}
	return nil
}
