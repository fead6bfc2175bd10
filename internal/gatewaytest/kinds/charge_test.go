package kinds

import (
	"fmt"
	"maps"
	"testing"

	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
)

// priced is a model with a price, and requests for it. Their charges differ only by the vendor's report.
type priced struct {
	id      string
	model   map[string]any // without its id
	unit    string         // price_unit
	each    money.Amount   // price of a unit
	path    string
	body    string // of a request, with %q for the model
	results string // members of each answer
	bound   int64
	charges []charge
}

// charge is an answer's report and the right charge for it.
type charge struct {
	reported string // members of the answer
	count    int64
	source   string
}

// scenario returns a scenario that compares each charge with the table, and the line's gateway counts with the
// number of charges from unusable reports.
func (p priced) scenario(t *testing.T) scene.Scenario {
	v := newVendor(t, func(n int, _ string) (int, string) { return 200, "{" + p.results + p.charges[n-1].reported + "}" })
	model := maps.Clone(p.model)
	model["id"] = p.id
	return scenario("charges of "+p.id, model, func(t *testing.T, g *scene.Gateway) {
		c := newClient(t, g)
		wrong := int64(0)
		for _, want := range p.charges {
			a := c.Post(p.path, fmt.Sprintf(p.body, p.id))
			r := receiptOf(t, g, c.Account, a.ID())
			count := r.Prompt
			switch p.unit {
			case "thousand_searches":
				count = r.Searches
			case "thousand_requests":
				count = 1
			}
			if cost := money.Amount(want.count) * p.each; a.Status != 200 || r.Cost != cost || count != want.count ||
				r.Source != want.source || r.Held != money.Amount(p.bound)*p.each || r.Endpoint != p.path || r.PriceUnit != p.unit {
				t.Errorf("%s: got %d, %+v, want a charge of %s for %d by %s", want.reported, a.Status, r, cost, want.count, want.source)
			}
			if want.source == "gateway" && p.unit != "thousand_requests" {
				wrong++
			}
		}
		var lines struct {
			Data []struct {
				ID     string `json:"id"`
				Counts int64  `json:"gateway_counts"`
			}
		}
		g.Process.Admin("GET", "/lines", nil, &lines)
		for _, l := range lines.Data {
			if l.ID == p.id && l.Counts != wrong {
				t.Errorf("gateway_counts: got %d, want %d", l.Counts, wrong)
			}
		}
	}, scene.ChatLine(p.id, v.URL, nil, p.id))
}
