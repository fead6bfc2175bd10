package line

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/alert"
	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/line/health"
	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
	"tollgate/internal/store/storetest"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire"
)

// alertReceiver records the alerts that a sender posts.
type alertReceiver struct {
	mu       sync.Mutex
	alerts   []string
	received chan struct{}
}

func (r *alertReceiver) RoundTrip(req *http.Request) (*http.Response, error) {
	var a alert.Alert
	if err := json.NewDecoder(req.Body).Decode(&a); err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.alerts = append(r.alerts, strings.Join(strings.Fields(a.Line+" "+a.Model+" "+a.State), " "))
	r.mu.Unlock()
	r.received <- struct{}{}
	return &http.Response{StatusCode: 204, Body: http.NoBody}, nil
}

// wait returns the next n alerts, in alphabetical order.
func (r *alertReceiver) wait(n int) string {
	for range n {
		<-r.received
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	messages := r.alerts
	r.alerts = nil
	slices.Sort(messages)
	return strings.Join(messages, ", ")
}

// TestReportIsDue checks that a report is due every five seconds, and at once after a change of the
// catalog.
func TestReportIsDue(t *testing.T) {
	t.Parallel()
	var last lastReport
	firstSnapshot, secondSnapshot := new(catalog.Snapshot), new(catalog.Snapshot)
	now := time.UnixMilli(1_800_000_000_000)
	for i, step := range []struct {
		after    time.Duration
		snapshot *catalog.Snapshot
		due      bool
	}{
		{0, nil, true}, {time.Second, firstSnapshot, true}, {time.Second, firstSnapshot, false}, {time.Second, secondSnapshot, true},
		{4 * time.Second, secondSnapshot, false}, {time.Second, secondSnapshot, true}, {time.Second, secondSnapshot, false},
	} {
		now = now.Add(step.after)
		if due := last.due(now, step.snapshot); due != step.due {
			t.Errorf("step %d: due returned %t", i, due)
		}
	}
}

// TestDrainAndResumeReachNodes checks that a drain reaches another node, that a resume clears the
// line's health, and that a node sends one alert for each change.
func TestDrainAndResumeReachNodes(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		doc := &catalog.Document{Models: []catalog.Model{{ID: "swift", Kind: catalog.KindChat}},
			Lines: []catalog.LineSpec{{ID: "a", Provider: "fake", Weight: 1, Enabled: true, Models: map[string]string{"swift": "v"}}}}
		s := catalog.NewSnapshot(1, doc, map[string]catalog.Provider{
			"fake": {Kinds: []catalog.Kind{catalog.KindChat}, Forms: []wire.Form{wire.FormChat}}},
			func(string) (string, bool) { return "", false })
		begin := func() (*Lines, *alertReceiver) {
			self, err := node.Begin(t.Context(), node.Options{DB: db}, id.New("node_"))
			if err != nil {
				t.Fatal(err)
			}
			alerts := &alertReceiver{received: make(chan struct{}, 100)}
			sender := alert.New("http://alerts.test/", alert.Mails{}, slog.New(slog.DiscardHandler), alerts)
			l := New(Options{Open: func(upstream.Target) (chatcall.Adapter, error) { return nil, nil },
				Catalog: catalog.NewStaticWatcher(s), DB: db, Node: self, Alerts: sender})
			go sender.Run(t.Context(), t.Context())
			return l, alerts
		}
		l, alerts := begin()
		otherNode, _ := begin()
		decide := func(f func(*store.Tx, string) error) {
			t.Helper()
			storetest.Update(t, db, func(tx *store.Tx) error { return f(tx, "a") })
			for range 2 { // a second refresh finds no change
				if err := l.Refresh(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := otherNode.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		state := func() Status { return l.Statuses()[0] }
		if got := state().State; got != "in_service" {
			t.Fatalf("state %s, want in_service", got)
		}
		otherNode.Statuses()
		decide(DrainTx)
		if got := state(); got.State != "drained" || otherNode.Statuses()[0].State != "drained" || alerts.wait(1) != "a drained" {
			t.Errorf("status %+v, want drained on both nodes, with one alert", got)
		}
		decide(ResumeTx)
		if got := alerts.wait(1); state().State != "in_service" || got != "a in_service" {
			t.Errorf("after a resume: status %+v, alerts %s; want in_service and one alert", state(), got)
		}

		failure := func(effect upstream.Health) *upstream.Failure {
			return &upstream.Failure{Code: fault.UpstreamUnavailable, Health: effect, Cause: errors.New("it does not work")}
		}
		// The line gets every kind of block, and a drain as well.
		entry := l.table(s).entries[0]
		swift := health.Origin{LinePart: health.LinePart{Model: "swift"}, Generation: entry.stats.Generation()}
		l.announce("a", entry.stats.RecordFailure(time.Now(), swift, failure(upstream.HealthModel)))
		l.announce("a", entry.stats.RecordFailure(time.Now(), swift, failure(upstream.HealthCredential)))
		if got := alerts.wait(2); got != "a credentials_out, a swift model_out" {
			t.Errorf("alerts %q, want credentials_out and model_out", got)
		}
		decide(DrainTx)
		alerts.wait(1)
		decide(ResumeTx)
		if got := alerts.wait(2); state().State != "in_service" || state().ModelsOut != nil || got != "a in_service, a swift in_service" {
			t.Errorf("after a resume: status %+v, alerts %s; want in_service and two alerts", state(), got)
		}

		// Each node's report reaches the others.
		for _, l := range []*Lines{l, otherNode} {
			if err := l.Report(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if reports := view(t, db, ReportsTx); len(reports) != 2 || len(Join(reports)[0].Nodes) != 2 {
			t.Errorf("reports %v, want one of each node", reports)
		}
	})
}
