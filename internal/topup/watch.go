package topup

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"tollgate/internal/mail"
	"tollgate/internal/store"
)

// metrics are the tollgate_topup_* metrics.
type metrics struct {
	problems *prometheus.GaugeVec
	due      prometheus.Gauge
}

// newMetrics creates the metrics and registers them. registry may be nil.
func newMetrics(registry prometheus.Registerer) metrics {
	with := promauto.With(registry)
	return metrics{
		problems: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tollgate_topup_problems",
			Help: "Open problems of payments by kind, on all nodes, every minute.",
		}, []string{"kind"}),
		due: with.NewGauge(prometheus.GaugeOpts{
			Name: "tollgate_topup_dispute_due_timestamp_seconds",
			Help: "When the payment provider needs the next answer to a dispute; 0 if it needs none.",
		}),
	}
}

// watchPeriod is the time between two looks at the problems.
const watchPeriod = time.Minute

// openProblems are the open problems of payments.
type openProblems struct {
	counts   map[problemKind]int64
	nextDue  int64 // the earliest DueMS; zero if no dispute is due
	unmailed int64
}

func openProblemsTx(tx *store.Tx) (o openProblems, err error) {
	o.counts = map[problemKind]int64{}
	err = tx.Each(func(row store.Row) error {
		var kind problemKind
		var count, due, unmailed int64
		err := row.Scan(&kind, &count, &due, &unmailed)
		o.counts[kind] = count
		o.unmailed += unmailed
		if due > 0 && (o.nextDue == 0 || due < o.nextDue) {
			o.nextDue = due
		}
		return err
	}, `SELECT kind, COUNT(*), COALESCE(MIN(NULLIF(due_ms, 0)), 0), SUM(1 - mailed) FROM topup_problem WHERE closed_ms = 0 GROUP BY kind`)
	if err != nil {
		return o, fmt.Errorf("count the problems of payments: %w", err)
	}
	return o, nil
}

// Watch updates the metrics of open problems, and mails the operators about new ones.
func (t *Topups) Watch(ctx context.Context) error {
	o, err := store.Read(ctx, t.DB, openProblemsTx)
	if err != nil {
		return err
	}
	for _, kind := range problemKinds() {
		t.metrics.problems.WithLabelValues(string(kind)).Set(float64(o.counts[kind]))
	}
	t.metrics.due.Set(float64(o.nextDue / 1000))
	if o.unmailed == 0 || !t.Mails.On() || len(t.AlertMail) == 0 {
		return nil
	}
	return t.DB.Update(ctx, t.mailProblemsTx)
}

// mailProblemsTx writes a mail to each operator about the newest unmailed problem, with the number of
// unmailed problems.
func (t *Topups) mailProblemsTx(tx *store.Tx) error {
	if err := tx.Serialize("tollgate problems of payments"); err != nil {
		return err
	}
	list, err := store.Collect(tx, scanProblem, `SELECT `+problemColumns+` FROM topup_problem WHERE closed_ms = 0 AND mailed = 0
		ORDER BY id DESC`)
	if err != nil {
		return fmt.Errorf("list the problems without a mail: %w", err)
	}
	if len(list) == 0 { // another node was faster
		return nil
	}
	newest, due := list[0], "–"
	for _, p := range list {
		if p.DueMS > 0 {
			due = mail.Time(p.DueMS)
		}
	}
	for _, address := range t.AlertMail {
		if err := t.Mails.EnqueueTx(tx, mail.Letter{Kind: mail.PaymentProblem, Subject: strings.ToLower(address),
			Cause: fmt.Sprint(newest.ID, " ", newest.LastMS), To: address, Link: strings.TrimRight(t.PublicURL, "/") + "/console/operator/top-ups",
			Values: map[string]string{"problem": newest.Detail, "provider": t.Info(newest.Provider).Title, "payment": newest.Object,
				"count": strconv.Itoa(len(list)), "due": due}}); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(`UPDATE topup_problem SET mailed = 1 WHERE closed_ms = 0 AND mailed = 0`); err != nil {
		return fmt.Errorf("record the mail about problems: %w", err)
	}
	return nil
}
