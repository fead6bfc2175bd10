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

// counting is a hold in which the provider counts tokens: in its answer to a
// submission and in those to the polls.
func counting(submission, poll string) func(context.Context, string) error {
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

// TestAttemptsAreCounted: what a provider has counted for an attempt stands with
// it, in the job's trace and in the request log, also where the job was refunded
// after the provider had accepted it.
func TestAttemptsAreCounted(t *testing.T) {
	t.Parallel()
	const google, openai = `{"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":1290}}`, `{"error":{"message":"x"},` +
		`"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":4000}}`
	failed := says(failure(fault.RenderFailed, upstream.NextLine))
	for name, test := range map[string]struct {
		first, second *generator
		want          []upstream.TokenCounts
	}{
		"submission": {&generator{hold: counting(openai, "")}, &generator{},
			[]upstream.TokenCounts{{Prompt: 10, Cached: 4, Completion: 4000}}},
		"poll": {&generator{hold: counting("{}", google)}, &generator{},
			[]upstream.TokenCounts{{Prompt: 8, Completion: 1290}}},
		"refused": {&generator{hold: counting(openai, ""),
			submit: refuses(0, failure(fault.UpstreamError, upstream.NextLine))}, &generator{},
			[]upstream.TokenCounts{{Prompt: 10, Cached: 4, Completion: 4000}, {}}},
		"failed after acceptance": {&generator{hold: counting("{}", google), poll: failed}, &generator{},
			[]upstream.TokenCounts{{Prompt: 8, Completion: 1290}, {}}},
		"failed on both": {&generator{hold: counting("{}", google), poll: failed},
			&generator{hold: counting("", openai), poll: failed}, []upstream.TokenCounts{{Prompt: 8, Completion: 1290},
				{Prompt: 10, Cached: 4, Completion: 4000}}},
		"no word, or none of sense": {&generator{hold: counting(`{"usage":{"input_tokens":-1,"output_tokens":"x"}}`, `[`), poll: failed},
			&generator{}, []upstream.TokenCounts{{}, {}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.EachURL(t, func(t *testing.T, url string) {
				h := newHouse(t, url, map[string]chatcall.Adapter{
					"first":  &generator{hold: test.first.hold, submit: test.first.submit, poll: test.first.poll},
					"second": &generator{hold: test.second.hold, submit: test.second.submit, poll: test.second.poll},
				})
				n := h.still()
				id := h.submit(n, h.submission(n, "easel-1", 1))
				h.finish(n, id, upstream.KindImage)
				v, _, err := h.view(id)
				if err != nil {
					t.Fatal(err)
				}
				var logged []row.TracedAttempt
				err = h.db.View(t.Context(), func(tx *store.Tx) error {
					page, err := requestlog.ListTx(tx, requestlog.Selection{Limit: 1})
					if err != nil || len(page.Receipts) != 1 || page.Receipts[0].ID != v.Request {
						return fmt.Errorf("receipts %+v, %w", page.Receipts, err)
					}
					return json.Unmarshal(page.Receipts[0].Attempts, &logged)
				})
				if err != nil {
					t.Fatal(err)
				}
				for _, attempts := range [][]row.TracedAttempt{v.Attempts, logged} {
					if len(attempts) != len(test.want) {
						t.Fatalf("attempts %+v; want %+v", attempts, test.want)
					}
					for i, a := range attempts {
						if a.TokenCounts != test.want[i] {
							t.Errorf("attempt %d %+v; want %+v", i, a, test.want[i])
						}
					}
				}
			})
		})
	}
}

// TestMarginsOfJobs: what a job was charged counts for the line that made it, and
// what the providers took for each of its attempts for theirs.
func TestMarginsOfJobs(t *testing.T) {
	t.Parallel()
	takes := func(usd string) func(context.Context, string) error {
		return counting(`{"usage":{"output_tokens":1,"cost":`+usd+`}}`, "{}")
	}
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHouse(t, url, map[string]chatcall.Adapter{
			"first":  &generator{hold: takes("0.25"), poll: says(failure(fault.RenderFailed, upstream.NextLine))},
			"second": &generator{hold: takes("0.5")},
		})
		n := h.still()
		id := h.submit(n, h.submission(n, "easel-1", 1))
		h.finish(n, id, upstream.KindImage)
		v, _, err := h.view(id)
		if err != nil || v.Cost == 0 {
			t.Fatal(v.Cost, err)
		}
		quarter, half := money.USD/4, money.USD/2
		lost, left := -quarter, v.Cost-half
		want := map[string][]line.Margin{
			"first":  {{Model: "easel-1", LineCost: &quarter, Margin: &lost}},
			"second": {{Model: "easel-1", Settled: 1, Charged: v.Cost, LineCost: &half, Margin: &left}},
		}
		for _, s := range n.lines.Statuses() {
			if len(s.Margins) != len(want[s.Line]) || len(s.Margins) > 0 && !reflect.DeepEqual(s.Margins, want[s.Line]) {
				t.Errorf("%s has %+v, want %+v", s.Line, s.Margins, want[s.Line])
			}
		}
	})
}
