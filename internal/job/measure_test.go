package job

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"tollgate/internal/store/storetest"
	"tollgate/internal/upstream/chatcall"
)

// TestMeasure checks the length and the oldest job of each queue. A model has the metrics until the model
// is removed from the catalog and has no jobs.
func TestMeasure(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c := newCluster(t, url, map[string]chatcall.Adapter{})
		registry := prometheus.NewRegistry()
		c.edit = func(o *Options) { o.Registry = registry }
		n := c.idleNode()
		n.step(n.jobs.Measure)
		checkQueue := func(model string, length float64, oldest time.Duration) {
			t.Helper()
			m := n.jobs.metrics
			if got := testutil.ToFloat64(m.queued.WithLabelValues(model)); got != length {
				t.Errorf("%v queued jobs of %s, want %v", got, model, length)
			}
			got := testutil.ToFloat64(m.oldest.WithLabelValues(model))
			if got < oldest.Seconds() || got > oldest.Seconds()+60 {
				t.Errorf("the oldest job of %s has waited %v s, want about %v", model, got, oldest)
			}
		}
		checkSeries := func(want int) {
			t.Helper()
			got, err := testutil.GatherAndCount(registry, "tollgate_job_queued", "tollgate_job_oldest_queued_seconds")
			if err != nil || got != want {
				t.Errorf("%d series, want %d: %v", got, want, err)
			}
		}
		checkQueue("easel-1", 0, 0)
		checkSeries(4)
		for range 3 {
			c.submit(n, c.submission(n, "easel-1", 1))
		}
		old := c.submit(n, c.submission(n, "reel-1", 1))
		c.update(`UPDATE job_run SET queued_ms = queued_ms - 3600000 WHERE id = '` + old + `'`)
		n.step(n.jobs.Measure)
		checkQueue("easel-1", 3, 0)
		checkQueue("reel-1", 1, time.Hour)
		c.apply("models: [{id: chat-1, kind: chat, context_window: 1000, max_output_tokens: 100, price: {input: 1, output: 1}}]")
		n.step(n.watcher.Refresh)
		n.step(n.jobs.Measure)
		checkQueue("reel-1", 1, time.Hour) // the model still has jobs
		c.update(`DELETE FROM job_run`)
		n.step(n.jobs.Measure)
		checkSeries(0)
	})
}
