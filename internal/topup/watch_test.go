package topup_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"tollgate/internal/gatewaytest/fakepayment"
	"tollgate/internal/topup"
)

// metric returns the value of a gauge, or the sum of its values.
func metric(t *testing.T, registry prometheus.Gatherer, name string) (sum float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

func (s *shop) watch() {
	s.t.Helper()
	if err := s.Watch(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// TestWatchDispute checks that the operators get one mail about a dispute, with the end of the time for an
// answer, and that the metrics show both.
func TestWatchDispute(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{AlertMail: []string{"ops@example.com"}}, func(t *testing.T, s *shop) {
		registry := prometheus.NewRegistry()
		o := s.Options
		o.Registry = registry
		s.Topups = topup.New(o)
		_, session := s.paid(1000)
		s.watch()
		s.wantMails()
		due := s.clock.Now().Add(fakepayment.DisputeTime)
		dispute := s.stripe.Dispute(session, "needs_response")
		s.watch()
		s.watch()
		s.wantMails("payment_problem ops@example.com")
		s.wantWords("payment_problem", "the customer's bank disputes the payment", "New problems: 1",
			"Answer a dispute by: "+due.UTC().Format("2006-01-02 15:04 UTC"), "https://shop.example/console/operator/top-ups")
		if got := metric(t, registry, "tollgate_topup_dispute_due_timestamp_seconds"); got != float64(due.Unix()) {
			t.Errorf("the dispute is due at %v, want %v", got, due.Unix())
		}
		if got := testutil.CollectAndCount(registry, "tollgate_topup_problems"); got != 16 {
			t.Errorf("%d kinds of problems have a metric, want 16", got)
		}
		s.stripe.EndDispute(dispute, "won")
		s.watch()
		if got := metric(t, registry, "tollgate_topup_dispute_due_timestamp_seconds"); got != 0 {
			t.Errorf("a decided dispute is due at %v", got)
		}
		if got := metric(t, registry, "tollgate_topup_problems"); got != 1 {
			t.Errorf("%v problems are open until an operator closes the dispute, want 1", got)
		}
	})
}

// TestWatchSilence checks that a provider without an answer is a problem when a payment has waited for an hour,
// that its next answer closes the problem, and that the next silence opens it again.
func TestWatchSilence(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{AlertMail: []string{"ops@example.com"}}, func(t *testing.T, s *shop) {
		s.begin(1000)
		sweepDown := func(wait time.Duration) {
			t.Helper()
			s.clock.Advance(wait)
			s.stripe.SetDown(http.StatusInternalServerError)
			if err := s.Sweep(t.Context()); err == nil {
				t.Error("a sweep of a silent provider succeeds")
			}
			s.stripe.SetDown(0)
			s.watch()
		}
		sweepDown(30 * time.Minute)
		s.wantProblems()
		sweepDown(35 * time.Minute)
		s.wantProblems("unanswered")
		s.wantMails("payment_problem ops@example.com")
		s.clock.Advance(20 * time.Minute)
		s.sweepOK()
		s.wantProblems()
		sweepDown(20 * time.Minute)
		s.wantProblems("unanswered")
		s.wantMails("payment_problem ops@example.com", "payment_problem ops@example.com")
	})
}
