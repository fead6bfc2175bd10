package line

import (
	"reflect"
	"testing"

	"tollgate/internal/catalog"
	"tollgate/internal/money"
)

// TestMargins checks the margin of several settlements, and that keep deletes margins of removed
// models only.
func TestMargins(t *testing.T) {
	t.Parallel()
	const usd = money.USD
	for name, test := range map[string]struct {
		settlements []Settlement
		want        Margin
	}{
		"no cost": {[]Settlement{{Answered: true}}, Margin{Settled: 1}},
		"within the hold": {[]Settlement{{Answered: true, Cost: usd, Held: usd}},
			Margin{Settled: 1, Charged: usd}},
		"above the hold": {[]Settlement{{Answered: true, Cost: 3 * usd, Held: usd}, {Answered: true, Cost: usd, Held: 2 * usd}},
			Margin{Settled: 2, Charged: 2 * usd, OverHolds: 1, Over: 2 * usd}},
		"a known line cost": {[]Settlement{{Answered: true, Cost: 3 * usd, Held: 9 * usd, LineCost: ptr(2 * usd)}},
			Margin{Settled: 1, Charged: 3 * usd, LineCost: ptr(2 * usd), Margin: ptr(usd)}},
		"one known and one unknown line cost": {[]Settlement{{Answered: true, Cost: usd, Held: usd},
			{Answered: true, Cost: 4 * usd, Held: 2 * usd, LineCost: ptr(3 * usd)}},
			Margin{Settled: 2, Charged: 3 * usd, OverHolds: 1, Over: 2 * usd, LineCost: ptr(3 * usd), Margin: ptr(-usd)}},
		"a failed attempt": {[]Settlement{{LineCost: ptr(usd)}}, Margin{LineCost: ptr(usd), Margin: ptr(-usd)}},
		"beyond the bounds": {[]Settlement{
			{Answered: true, Cost: 1 << 62, LineCost: ptr(money.Amount(1 << 62))},
			{Answered: true, Cost: 1 << 62, LineCost: ptr(money.Amount(1 << 62))}},
			Margin{Settled: 2, OverHolds: 2, Over: money.Max, LineCost: ptr(money.Max), Margin: ptr(-money.Max)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all margins
			for _, s := range test.settlements {
				all.add(s.margin("swift-1"))
			}
			test.want.Model = "swift-1"
			if got := all.all(); !reflect.DeepEqual(got, []Margin{test.want}) {
				t.Errorf("%+v\nwant %+v", got, test.want)
			}
			all.keep(&catalog.Line{LineSpec: catalog.LineSpec{Models: map[string]string{"swift-1": "x"}}})
			if got := all.all(); len(got) != 1 {
				t.Errorf("margins after keep of the model: %+v, want one", got)
			}
			all.keep(&catalog.Line{})
			if got := all.all(); len(got) != 0 {
				t.Errorf("margins after removal of the model: %+v, want none", got)
			}
		})
	}
}

// TestMarginsAreJoined checks that Join adds up the margins of all nodes by model.
func TestMarginsAreJoined(t *testing.T) {
	t.Parallel()
	report := func(epoch string, margins ...Margin) Report {
		return Report{Epoch: epoch, Statuses: []Status{{Line: "main", Margins: margins}}}
	}
	got := Join([]Report{
		report("a", Margin{Model: "y", Settled: 1, Charged: 5, LineCost: ptr(money.Amount(3)), Margin: ptr(money.Amount(2))}),
		report("b"),
		report("c", Margin{Model: "x", Settled: 2, OverHolds: 1, Over: 7},
			Margin{Model: "y", Settled: 2, Charged: 1, LineCost: ptr(money.Amount(4)), Margin: ptr(money.Amount(-3))}),
	})
	want := []Margin{{Model: "x", Settled: 2, OverHolds: 1, Over: 7},
		{Model: "y", Settled: 3, Charged: 6, LineCost: ptr(money.Amount(7)), Margin: ptr(money.Amount(-1))}}
	if len(got) != 1 || !reflect.DeepEqual(got[0].Margins, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}
