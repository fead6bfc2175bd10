package mail

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"tollgate/internal/store"
)

// metrics are the tollgate_mail_* metrics. No label has an address or an account.
type metrics struct {
	attempts *prometheus.CounterVec
	ended    *prometheus.CounterVec
	waiting  prometheus.Gauge
	oldest   prometheus.Gauge
}

// newMetrics creates the metrics and registers them. registry may be nil.
func newMetrics(registry prometheus.Registerer) metrics {
	with := promauto.With(registry)
	m := metrics{
		attempts: with.NewCounterVec(prometheus.CounterOpts{
			Name: "tollgate_mail_attempts_total",
			Help: "Attempts to send a mail by outcome: sent, refused (the server refused the mail for good), or failed (tried again).",
		}, []string{"outcome"}),
		ended: with.NewCounterVec(prometheus.CounterOpts{
			Name: "tollgate_mail_ended_total",
			Help: "Mails without further attempts, by state: sent or given_up.",
		}, []string{"state"}),
		waiting: with.NewGauge(prometheus.GaugeOpts{
			Name: "tollgate_mail_waiting",
			Help: "Mails that are not sent yet, on all nodes, counted up to 10,000, every 10 seconds.",
		}),
		oldest: with.NewGauge(prometheus.GaugeOpts{
			Name: "tollgate_mail_oldest_seconds",
			Help: "The age of the oldest mail that is not sent yet; 0 if none waits.",
		}),
	}
	for _, outcome := range []string{"sent", "refused", "failed"} { // a rate needs an initial zero
		m.attempts.WithLabelValues(outcome)
	}
	for _, state := range []int{stateSent, stateGivenUp} {
		m.ended.WithLabelValues(stateName(state))
	}
	return m
}

// count counts an attempt. before is the state of the mail before the attempt.
func (m metrics) count(o outcome, before int, d decision) {
	label := "failed"
	switch {
	case o.sent:
		label = "sent"
	case o.refused:
		label = "refused"
	}
	m.attempts.WithLabelValues(label).Inc()
	if d.state >= stateSent && d.state != before {
		m.ended.WithLabelValues(stateName(d.state)).Inc()
	}
}

// Limits of Measure.
const (
	measureEvery = 10 * time.Second
	maxMeasured  = 10_000 // waiting mails
)

// Waiting is the number of mails that are not sent yet, counted up to 10,000, and the age of the oldest.
type Waiting struct {
	Mails  int64
	Oldest time.Duration
}

// WaitingTx returns the waiting mails of all nodes.
func WaitingTx(tx *store.Tx) (w Waiting, err error) {
	now, err := tx.NowMS()
	if err != nil {
		return w, err
	}
	var oldestMS int64
	err = tx.QueryRow(`SELECT COUNT(*), COALESCE(MIN(created_ms), $1) FROM (SELECT created_ms FROM mail_outbox
		WHERE state < 2 ORDER BY due_ms LIMIT $2) w`, now, maxMeasured).Scan(&w.Mails, &oldestMS)
	if err != nil {
		return w, fmt.Errorf("count the waiting mails: %w", err)
	}
	w.Oldest = max(0, time.Duration(now-oldestMS)*time.Millisecond)
	return w, nil
}

// Measure updates the metrics of waiting mails. It is one step of Run.
func (m *Mailer) Measure(ctx context.Context) error {
	w, err := store.Read(ctx, m.opts.DB, WaitingTx)
	if err != nil {
		return err
	}
	m.metrics.waiting.Set(float64(w.Mails))
	m.metrics.oldest.Set(w.Oldest.Seconds())
	return nil
}
