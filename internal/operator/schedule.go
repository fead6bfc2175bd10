package operator

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"tollgate/internal/alert"
	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/loop"
	"tollgate/internal/mail"
	"tollgate/internal/store"
)

// ScheduleTx schedules a catalog; see catalog.ScheduleTx. If base is not zero, it must be the current
// revision, or ScheduleTx returns ErrApplied.
func ScheduleTx(tx *store.Tx, by Actor, doc *catalog.Document, base int64, s catalog.Schedule) (catalog.ScheduledChange, error) {
	c, err := catalog.ScheduleTx(tx, doc, s)
	if err != nil {
		return c, err
	}
	if base != 0 && c.Base != base {
		return c, ErrApplied
	}
	return c, writeLogTx(tx, by, LogRow{Act: CatalogSchedule, Object: c.ID, After: Details{"at": c.AtMS / 1000, "changes": c.Changes,
		"note": c.Note, "tell_customers": c.Announced}})
}

// CancelChangeTx cancels a scheduled change of the catalog. It returns a *fault.Error if the change has
// ended.
func CancelChangeTx(tx *store.Tx, by Actor, id string) (catalog.ScheduledChange, error) {
	c, err := catalog.LockChangeTx(tx, id)
	if err != nil {
		return c, err
	}
	if c.State != catalog.ChangePending {
		return c, fault.New(fault.InvalidRequest, "This change is %s, so it cannot be cancelled.", c.State)
	}
	if err := c.EndTx(tx, catalog.ChangeCancelled, 0, ""); err != nil {
		return c, err
	}
	if err := writeLogTx(tx, by, LogRow{Act: CatalogCancel, Object: id, Before: Details{"at": c.AtMS / 1000}}); err != nil {
		return c, err
	}
	return catalog.ScheduledChangeTx(tx, id)
}

// SchedulerOptions configure a Scheduler. DB and Providers are required.
type SchedulerOptions struct {
	DB        *store.DB
	Providers map[string]catalog.Provider
	// Mails writes alerts about failed changes to the addresses Readers, and mails about announced prices
	// with links below PublicURL. If nil, there are no mails.
	Mails     *mail.Mailer
	Readers   []string
	PublicURL string
	// Alert sends the alerts about failed changes to alert_url. If nil, there are none.
	Alert func(alert.Alert)
	// Log receives applied and failed changes. If nil, nothing is logged.
	Log      *slog.Logger
	Registry prometheus.Registerer // may be nil
}

// Scheduler applies scheduled changes of the catalog. Each node has one. A transaction that locks the
// catalog applies a change and marks it as applied, so a change is applied once, also after a crash.
type Scheduler struct {
	SchedulerOptions

	ended *prometheus.CounterVec
}

// schedulePeriod is the time between two looks for due changes on an idle node.
const schedulePeriod = time.Second

// NewScheduler returns the scheduler of a node.
func NewScheduler(o SchedulerOptions) *Scheduler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Alert == nil {
		o.Alert = func(alert.Alert) {}
	}
	s := &Scheduler{o, promauto.With(o.Registry).NewCounterVec(prometheus.CounterOpts{
		Name: "tollgate_catalog_changes_total",
		Help: "Scheduled changes of the catalog that this node ended at their time, by state: applied or failed.",
	}, []string{"state"})}
	for _, state := range []catalog.ChangeState{catalog.ChangeApplied, catalog.ChangeFailed} { // a rate needs an initial zero
		s.ended.WithLabelValues(state.String())
	}
	return s
}

// mailPeriod is the time between two looks for changes to mail about.
const mailPeriod = 10 * time.Second

// Run applies changes and mails announced prices until ctx ends.
func (s *Scheduler) Run(ctx context.Context) {
	loops := []loop.Loop{{Room: "operator", Does: "apply scheduled changes of the catalog", Log: s.Log, Period: schedulePeriod,
		Step: s.ApplyDue}}
	if s.Mails.On() {
		loops = append(loops, loop.Loop{Room: "operator", Does: "mail announced prices", Log: s.Log, Period: mailPeriod, Step: s.MailPrices},
			loop.Loop{Room: "operator", Does: "mail withdrawn prices", Log: s.Log, Period: mailPeriod, Step: s.MailWithdrawals})
	}
	loop.Run(ctx, loops...)
}

// ApplyDue applies the changes whose time has come, the earliest first. A change that does not fit the
// current catalog is marked as failed, and an alert is mailed.
func (s *Scheduler) ApplyDue(ctx context.Context) error {
	for {
		due, err := store.Read(ctx, s.DB, catalog.DueChangeTx)
		if err != nil || due == "" {
			return err
		}
		c, err := store.Write(ctx, s.DB, func(tx *store.Tx) (catalog.ScheduledChange, error) { return s.applyTx(tx, due) })
		if err != nil {
			return fmt.Errorf("change %s: %w", due, err)
		}
		s.record(c)
	}
}

// applyTx ends a pending change. It returns an empty change if another node has ended the change.
func (s *Scheduler) applyTx(tx *store.Tx, id string) (ended catalog.ScheduledChange, err error) {
	c, err := catalog.LockChangeTx(tx, id)
	if err != nil || c.State != catalog.ChangePending {
		return catalog.ScheduledChange{}, err
	}
	doc, reason, err := c.MergeTx(tx, s.Providers)
	if err != nil {
		return ended, err
	}
	if reason != "" {
		if err := c.EndTx(tx, catalog.ChangeFailed, 0, reason); err != nil {
			return ended, err
		}
		c.State, c.Reason = catalog.ChangeFailed, reason
		return c, s.alertTx(tx, c)
	}
	authors, err := LastActorsTx(tx, CatalogSchedule, []string{id})
	if err != nil {
		return ended, err
	}
	before, err := catalog.HeadTx(tx)
	if err != nil {
		return ended, err
	}
	applied, err := catalog.ApplyTx(tx, doc)
	if err != nil {
		return ended, err
	}
	if applied.Revision != before {
		if err := writeLogTx(tx, authors[id], LogRow{Act: CatalogApply, Object: strconv.FormatInt(applied.Revision, 10),
			Before: Details{"revision": before},
			After:  Details{"revision": applied.Revision, "changes": applied.Changes, "scheduled": id}}); err != nil {
			return ended, err
		}
	}
	c.State, c.Revision = catalog.ChangeApplied, applied.Revision
	return c, c.EndTx(tx, catalog.ChangeApplied, applied.Revision, "")
}

// alertTx mails the operators that a change failed.
func (s *Scheduler) alertTx(tx *store.Tx, c catalog.ScheduledChange) error {
	for _, address := range s.Readers {
		if err := s.Mails.EnqueueTx(tx, mail.Letter{Kind: mail.ChangeFailed, Subject: strings.ToLower(address), Cause: c.ID, To: address,
			Values: map[string]string{"time": mail.Time(c.AtMS), "reason": c.Reason, "changes": strings.Join(c.Changes, "\n")}}); err != nil {
			return err
		}
	}
	return nil
}

// record logs and counts a change that this node has ended.
func (s *Scheduler) record(c catalog.ScheduledChange) {
	switch c.State {
	case catalog.ChangeApplied:
		s.Log.Info("catalog: applied a scheduled change", "change", c.ID, "revision", c.Revision)
	case catalog.ChangeFailed:
		s.Log.Error("catalog: a scheduled change does not fit the current catalog, so nothing was changed", "change", c.ID, "reason", c.Reason)
		s.Alert(alert.Alert{Change: c.ID, State: alert.ChangeFailed, Cause: c.Reason, At: c.AtMS / 1000, Mailed: true})
	default: // another node has ended the change
		return
	}
	s.ended.WithLabelValues(c.State.String()).Inc()
}
