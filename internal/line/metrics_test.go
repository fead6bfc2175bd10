package line_test

import (
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"tollgate/internal/catalog"
	"tollgate/internal/line"
	"tollgate/internal/wire"
)

// TestMetricsOfChangedModels checks that a line's new model has series at zero before its first use,
// and that a removed model has no series.
func TestMetricsOfChangedModels(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	snapshotWith := func(revision int64, models ...string) *catalog.Snapshot {
		ln := spec("a")
		doc := &catalog.Document{Models: []catalog.Model{{ID: "swift", Kind: catalog.KindChat}}}
		for _, m := range models {
			doc.Models = append(doc.Models, catalog.Model{ID: m, Kind: catalog.KindChat})
			ln.Models[m] = "vendor-" + m
		}
		doc.Lines = []catalog.LineSpec{ln, spec("b")}
		return catalog.NewSnapshot(revision, doc,
			map[string]catalog.Provider{"fake": {Kinds: []catalog.Kind{catalog.KindChat}, Forms: []wire.Form{wire.FormChat}}},
			func(string) (string, bool) { return "", false })
	}
	s := snapshotWith(1, "old")
	l := line.New(line.Options{Open: (&provider{}).open, Registry: registry, Catalog: catalog.NewStaticWatcher(s)})
	check := func(extra map[string]float64) {
		t.Helper()
		l.Statuses() // applies the newest catalog
		want := map[string]float64{}
		for _, ln := range []string{"a", "b"} {
			maps.Copy(want, map[string]float64{
				"tollgate_line_attempts_total " + ln + " ok": 0, "tollgate_line_in_flight " + ln: 0,
				"tollgate_line_first_byte_seconds " + ln: 0, "tollgate_line_in_service " + ln: 1,
			})
		}
		maps.Copy(want, extra)
		checkMetrics(t, registry, addInitialSeries([]string{"a", "b"}, want))
	}
	check(map[string]float64{"tollgate_line_charged_usd_total a old": 0, "tollgate_line_over_hold_usd_total a old": 0})
	*s = *snapshotWith(2, "new")
	check(map[string]float64{"tollgate_line_charged_usd_total a new": 0, "tollgate_line_over_hold_usd_total a new": 0})
	*s = *snapshotWith(3)
	check(nil)
}
