package job

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/job/row"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/line"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
)

// withUsage adds provider answers with token counts to submissions and polls.
func withUsage(submission, poll string) func(context.Context, string) error {
	return func(ctx context.Context, step string) error {
		switch step {
		case "submit":
			upstream.Spend(ctx, []byte(submission))
		case "poll":
			upstream.Spend(ctx, []byte(poll))
		}
		return nil
	}
}

// TestUsageOfAttempts checks that a job's trace and the request log have the provider's counts for
// each attempt, including those of refunded jobs.
func TestUsageOfAttempts(t *testing.T) {
	t.Parallel()
	const google, openai = `{"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":1290}}`, `{"error":{"message":"x"},` +
		`"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":4000}}`
	failed := failPoll(failure(fault.RenderFailed, upstream.NextLine))
	for name, test := range map[string]struct {
		first, second *generator
		want          []upstream.TokenCounts
	}{
		"submission": {&generator{before: withUsage(openai, "")}, &generator{},
			[]upstream.TokenCounts{{Prompt: 10, Cached: 4, Completion: 4000}}},
		"poll": {&generator{before: withUsage("{}", google)}, &generator{},
			[]upstream.TokenCounts{{Prompt: 8, Completion: 1290}}},
		"submission rejected": {&generator{before: withUsage(openai, ""),
			submit: failSubmit(0, failure(fault.UpstreamError, upstream.NextLine))}, &generator{},
			[]upstream.TokenCounts{{Prompt: 10, Cached: 4, Completion: 4000}, {}}},
		"failed after acceptance": {&generator{before: withUsage("{}", google), poll: failed}, &generator{},
			[]upstream.TokenCounts{{Prompt: 8, Completion: 1290}, {}}},
		"failed on both lines": {&generator{before: withUsage("{}", google), poll: failed},
			&generator{before: withUsage("", openai), poll: failed}, []upstream.TokenCounts{{Prompt: 8, Completion: 1290},
				{Prompt: 10, Cached: 4, Completion: 4000}}},
		"no valid counts": {&generator{before: withUsage(`{"usage":{"input_tokens":-1,"output_tokens":"x"}}`, `[`), poll: failed},
			&generator{}, []upstream.TokenCounts{{}, {}}},
	} {
		eachURL(t, name, func(t *testing.T, url string) {
			c := newCluster(t, url, map[string]chatcall.Adapter{
				"first":  &generator{before: test.first.before, submit: test.first.submit, poll: test.first.poll},
				"second": &generator{before: test.second.before, submit: test.second.submit, poll: test.second.poll},
			})
			n := c.idleNode()
			id := c.submit(n, c.submission(n, "easel-1", 1))
			c.finish(n, id, upstream.KindImage)
			v := c.view(id)
			var logged []row.TracedAttempt
			c.viewTx(func(tx *store.Tx) error {
				page, err := requestlog.ListTx(tx, requestlog.Selection{Limit: 1})
				if err != nil || len(page.Receipts) != 1 || page.Receipts[0].ID != v.Request {
					return fmt.Errorf("receipts %+v, %w", page.Receipts, err)
				}
				return json.Unmarshal(page.Receipts[0].Attempts, &logged)
			})
			for _, attempts := range [][]row.TracedAttempt{v.Attempts, logged} {
				if len(attempts) != len(test.want) {
					t.Fatalf("attempts %+v, want counts %+v", attempts, test.want)
				}
				for i, a := range attempts {
					if a.TokenCounts != test.want[i] {
						t.Errorf("attempt %d has the counts %+v, want %+v", i, a.TokenCounts, test.want[i])
					}
				}
			}
		})
	}
}

// TestJobMargins checks that a job's charge counts for its last line, and the cost of each attempt for
// the attempt's line.
func TestJobMargins(t *testing.T) {
	t.Parallel()
	costs := func(usd string) func(context.Context, string) error {
		return withUsage(`{"usage":{"output_tokens":1,"cost":`+usd+`}}`, "{}")
	}
	storetest.EachURL(t, func(t *testing.T, url string) {
		c := newCluster(t, url, map[string]chatcall.Adapter{
			"first":  &generator{before: costs("0.25"), poll: failPoll(failure(fault.RenderFailed, upstream.NextLine))},
			"second": &generator{before: costs("0.5")},
		})
		n := c.idleNode()
		id := c.submit(n, c.submission(n, "easel-1", 1))
		c.finish(n, id, upstream.KindImage)
		v := c.view(id)
		if v.Cost == 0 {
			t.Fatal("the job was not charged")
		}
		quarter, half := money.USD/4, money.USD/2
		loss, profit := -quarter, v.Cost-half
		want := map[string][]line.Margin{
			"first":  {{Model: "easel-1", LineCost: &quarter, Margin: &loss}},
			"second": {{Model: "easel-1", Settled: 1, Charged: v.Cost, LineCost: &half, Margin: &profit}},
		}
		for _, s := range n.lines.Statuses() {
			if len(s.Margins) != len(want[s.Line]) || len(s.Margins) > 0 && !reflect.DeepEqual(s.Margins, want[s.Line]) {
				t.Errorf("line %s has the margins %+v, want %+v", s.Line, s.Margins, want[s.Line])
			}
		}
	})
}
