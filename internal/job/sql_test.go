package job

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/job/row"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
	"tollgate/internal/upstream/chatcall"
)

// fillTables inserts 10,000 queued, 2,000 running and 2,000 ended jobs of 100 accounts and two models.
func (c *cluster) fillTables() {
	c.t.Helper()
	const chunk = 2000
	const numbers = ` WITH RECURSIVE n (i) AS (SELECT CAST($1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < $2) `
	for from := int64(1); from <= 12000; from += chunk {
		c.update(`INSERT INTO job_run (id, model, account, state, turn, queued_ms, wake_ms, started_ms, epoch, fence, line, revision, number, `+
			`ticket, submitted_ms, results, files, trace)`+
			numbers+`SELECT 'job_' || CAST(i + 100000 AS TEXT), CASE WHEN i % 10 = 0 THEN 'reel-1' ELSE 'easel-1' END, `+
			`'acct_' || CAST(i % 100 AS TEXT),
			CASE WHEN i > 10000 THEN 2 ELSE 0 END, i / 100, i, 0, 0, CASE WHEN i > 10000 THEN 'node_' || CAST(i % 3 AS TEXT) ELSE '' END, 0, `+
			`'', 0, 0, '', 0, '', '', '' FROM n`, from, from+chunk-1)
	}
	c.update(`INSERT INTO job (id, request, account, key, kind, model, endpoint, revision, plan, prompt, params, materials, callback, `+
		`once_key, fingerprint,
			held_nano, cost_nano, status, code, line, trace, body, created_ms, started_ms, ended_ms)`+
		numbers+`SELECT 'job_' || CAST(i AS TEXT), 'req_' || CAST(i AS TEXT), 'acct_' || CAST(i % 100 AS TEXT), '', 'image', `+
		`CASE WHEN i % 10 = 0 THEN 'reel-1' ELSE 'easel-1' END, '', 1, '', '', '', '', '',
			'key-' || CAST(i AS TEXT), '', 0, 0, CASE WHEN i % 5 = 0 THEN 'failed' ELSE 'succeeded' END, '', '', '', '', i, i, i FROM n`, 1,
		chunk)
	c.update(`ANALYZE`)
}

// TestIndexes checks that no statement reads a whole table or sorts a whole queue of 10,000 jobs.
func TestIndexes(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c := newCluster(t, url, map[string]chatcall.Adapter{})
		c.fillTables()
		c.updateTx(func(tx *store.Tx) error {
			for name, s := range map[string]struct {
				text string
				args []any
			}{
				"submit": {insertRun, []any{"job_x", "easel-1", "acct_7", int64(1), ""}},
				// a key has one or two records
				"once":          {strings.Replace(selectOnce, "ORDER BY id DESC LIMIT 1", "", 1), []any{"acct_7", "key-7"}},
				"ahead":         {countAhead, []any{"easel-1", int64(2), "job_1"}},
				"start":         {selectQueue, []any{"easel-1", int64(1), int64(50), "job_1", queuePage}},
				"models":        {nextQueuedModel, []any{""}},
				"no line":       {modelQueue, []any{"easel-1", maxStarts}},
				"epochs":        {nextEpoch, []any{"node_1"}},
				"of an epoch":   {jobsOfEpoch, []any{"node_1", maxTakeOvers}},
				"overdue":       {overdueJobs, []any{int64(5), maxStarts}},
				"measure":       {measureQueues, []any{maxMeasured}},
				"accounts":      {nextQueuedAccount, []any{"easel-1", "acct_5"}},
				"of an account": {accountQueue, []any{"easel-1", "acct_5", 32}},
				"past":          {pastRecords, []any{int64(100), maxDeleted}},
				"pace":          {recentTimes, []any{"easel-1", maxSamples}},
				"record and run": {`SELECT ` + row.RecordColumns + `, ` + row.RunColumns + ` FROM job j JOIN job_run r ON r.id = j.id WHERE j.id = $1`,
					[]any{"job_7"}},
			} {
				plan := storetest.Plan(t, tx, s.text, s.args...)
				for _, step := range plan {
					if slices.ContainsFunc(strings.Split(step, "\n"), readsAll) {
						t.Errorf("the plan of %s reads or sorts everything: %s", name, strings.Join(plan, "\n"))
					}
				}
			}
			return nil
		})
		eachFilter(func(f Filter) { // a transaction for all filters would exceed its time limit
			c.updateTx(func(tx *store.Tx) error {
				if err := tx.ByIndex(); err != nil {
					return err
				}
				for _, s := range f.sources() {
					storetest.WalksIndex(t, tx, fmt.Sprintf("list %+v", f), s.text, s.args...)
				}
				return nil
			})
		})
		c.update(`UPDATE job_run SET turn = turn + 1 WHERE state = 0 AND turn = 0`)
		n := c.idleNode()
		id := c.submit(n, c.submission(n, "easel-1", 1))
		if _, p := c.read(id); p.Turn != 1 {
			t.Errorf("the new job has turn %d, want 1", p.Turn)
		}
		if s := c.poll(n, "image", id); *s.Position > 200 { // the jobs with the same turn
			t.Errorf("the new job has position %d, want at most 200", *s.Position)
		}
	})
}

// eachFilter calls fn with each state of a job and all combinations of up to three other fields.
func eachFilter(fn func(f Filter)) {
	for _, status := range []string{"", "queued", "processing", "succeeded", "failed"} {
		for i := range uint(128) {
			if bits.OnesCount(i) > 3 {
				continue
			}
			f := Filter{Status: status, Limit: 50}
			for bit, set := range []func(){
				func() { f.Account = "acct_7" }, func() { f.Model = "easel-1" }, func() { f.Line = "first" }, func() { f.After = "job_1000" },
				func() { f.Key = "key_7" }, func() { f.Code = "upstream_error" }, func() { f.SinceMS, f.UntilMS = 1, 1<<40 },
			} {
				if i>>bit&1 == 1 {
					set()
				}
			}
			fn(f)
		}
	}
}

// readsAll reports whether a line of a query plan reads a whole table or sorts.
func readsAll(line string) bool {
	for _, word := range []string{"Seq Scan on job", "Sort", "SCAN job", "TEMP B-TREE", "SCAN j", "SCAN r"} {
		if strings.Contains(line, word) {
			// SQLite reads the first entry of a covering index.
			return !strings.Contains(line, "Index")
		}
	}
	return false
}
