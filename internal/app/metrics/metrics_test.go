package metrics

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tollgate/internal/money"
	"tollgate/internal/store"
)

func TestEndpointsAreThereFromTheStart(t *testing.T) {
	t.Parallel()
	m := New("test")
	m.Endpoints([]string{"/v1/models"})
	m.Request("/v1/models", 503, time.Second)
	m.Database(func() store.Connections {
		return store.Connections{InUse: 2, Idle: 3, Waits: 4, WaitTime: 1500 * time.Millisecond}
	})
	down := false
	m.Media(func() (time.Time, bool) { return time.Time{}, down })
	if body := scrape(t, m); !strings.Contains(body, "tollgate_media_store_down 0") {
		t.Error("the media store is down before it failed")
	}
	down = true
	body := scrape(t, m)
	for _, line := range []string{`tollgate_requests_total{endpoint="/v1/models",status="200"} 0`, "tollgate_media_store_down 1",
		`tollgate_requests_total{endpoint="/v1/models",status="503"} 1`, `tollgate_request_seconds_count{endpoint="/v1/models"} 1`,
		`tollgate_database_connections{state="in_use"} 2`, `tollgate_database_connections{state="idle"} 3`,
		"tollgate_database_waits_total 4", "tollgate_database_wait_seconds_total 1.5"} {
		if !strings.Contains(body, line) {
			t.Errorf("no %s", line)
		}
	}
}

// scrape returns the text of a scrape.
func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("a scrape is answered %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// TestObservesTheLedger checks the exact figure from the books.
func TestObservesTheLedger(t *testing.T) {
	t.Parallel()
	m := New("test")
	observer := m.Ledger()
	observer.OverHold(money.USD / 4)
	observer.Batch(3, time.Millisecond)
	observer.Admitted(time.Millisecond, true)
	observer.Swept(true)
	observer.Unswept(2)
	observer.Quarantined()
	observer.Unlogged(false)
	m.Spans("dropped")(3)
	body := scrape(t, m)
	for _, line := range []string{"tollgate_charge_over_hold_usd_total 0.25", `tollgate_batch_operations_bucket{le="4"} 1`,
		"tollgate_admission_seconds_count 1", `tollgate_swept_holds_total{charged="true"} 1`,
		"tollgate_unswept_holds 2", "tollgate_damaged_holds_total 1",
		`tollgate_trace_spans_total{outcome="sent"} 0`, `tollgate_trace_spans_total{outcome="dropped"} 3`, "tollgate_batch_seconds_count 1",
		`tollgate_request_log_left_out_total{caller="known"} 0`, `tollgate_request_log_left_out_total{caller="unknown"} 1`} {
		if !strings.Contains(body, line) {
			t.Errorf("no %s", line)
		}
	}
}
