package line_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"tollgate/internal/catalog"
	"tollgate/internal/line"
	"tollgate/internal/money"
	"tollgate/internal/wire"
)

// TestImplausibleCosts checks that a reported cost counts as unknown if it is above a dollar and
// above a hundred times the answer's price. Each implausible cost is counted; only the first is
// logged.
func TestImplausibleCosts(t *testing.T) {
	t.Parallel()
	registry, log := prometheus.NewRegistry(), &bytes.Buffer{}
	ln := spec("a")
	ln.Costs = catalog.Costs{Models: map[string]catalog.Cost{"dear": {Rates: &catalog.Rates{Input: 100 * money.Price(money.USD)}}}}
	model := func(id string, price money.Price) catalog.Model {
		ln.Models[id] = "vendor-" + id
		return catalog.Model{ID: id, Kind: catalog.KindChat, ContextWindow: 1_000_000, MaxOutputTokens: 1000,
			Price: catalog.ChatPrice{Rates: catalog.Rates{Input: price, Output: price}}}
	}
	doc := &catalog.Document{Models: []catalog.Model{model("swift", money.Price(money.USD)), model("gift", 0), model("dear", 0)}}
	doc.Lines = []catalog.LineSpec{ln}
	s := catalog.NewSnapshot(1, doc,
		map[string]catalog.Provider{"fake": {Kinds: []catalog.Kind{catalog.KindChat}, Forms: []wire.Form{wire.FormChat}}},
		func(string) (string, bool) { return "", false })
	l := line.New(line.Options{Open: (&provider{}).open, Registry: registry, Catalog: catalog.NewStaticWatcher(s),
		Log: slog.New(slog.NewTextHandler(log, nil))})
	const tokens = 50_000 // worth 0.05 dollars of swift, and 5 dollars at the line's cost of dear
	for _, c := range []struct {
		name, model string
		prompt      int64
		reported    money.Amount
		plausible   bool
	}{
		{"the price", "swift", tokens, money.USD / 20, true},
		{"twenty times the price", "swift", tokens, money.USD, true},
		{"a hundred times the price", "swift", tokens, 5 * money.USD, true},
		{"above a hundred times the price", "swift", tokens, 6 * money.USD, false},
		{"micro-dollars", "swift", tokens, 50_000 * money.USD, false},
		{"nano-dollars", "swift", tokens, 1_000_000 * money.USD, false},
		{"huge counts and a huge cost", "swift", 1 << 62, 1_000_000 * money.USD, false},
		{"a free model that costs a dollar", "gift", tokens, money.USD, true},
		{"a free model that costs two dollars", "gift", tokens, 2 * money.USD, false},
		{"a free model with a line cost", "dear", tokens, 400 * money.USD, true},
		{"a free model with a line cost, in another unit", "dear", tokens, 50_000 * money.USD, false},
		{"no tokens", "swift", 0, 3 * money.USD, false},
	} {
		r := request(s)
		r.Model, _ = s.Model(c.model)
		var got *money.Amount
		_, err := l.Try(t.Context(), r, func(_ context.Context, attempt *line.Attempt) error {
			got = attempt.CostOf(s, r.Model, wire.Usage{Prompt: c.prompt, CostNano: int64(c.reported), HasCost: true}, catalog.Pricing{Factor: 1})
			return nil
		})
		if err != nil || (got != nil) != c.plausible || got != nil && *got != c.reported {
			t.Errorf("%s: CostOf = %v, error %v; want the reported cost: %t", c.name, got, err, c.plausible)
		}
	}
	if n := strings.Count(log.String(), "cannot be true"); n != 1 {
		t.Errorf("%d warnings, want 1: %s", n, log)
	}
	if l.PlausibleCost("a", "swift", 3*money.USD, money.USD/100) || !l.PlausibleCost("a", "swift", 3*money.USD, money.USD/10) {
		t.Error("PlausibleCost is wrong for a cost of 3 USD and a value of 1 or 10 cents")
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "tollgate_line_implausible_cost_total" {
			if n := f.GetMetric()[0].GetCounter().GetValue(); n != 8 {
				t.Errorf("%v implausible costs are counted, want 8", n)
			}
			return
		}
	}
	t.Error("the metric tollgate_line_implausible_cost_total is missing")
}
