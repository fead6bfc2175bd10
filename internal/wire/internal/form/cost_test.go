package form

import "testing"

func TestReadCost(t *testing.T) {
	t.Parallel()
	for usage, want := range map[string]int64{ // -1 means no cost
		`{}`:                            -1,
		`{"cost":0}`:                    0,
		`{"cost":0.00014}`:              140_000,
		`{"cost":1.45e-7}`:              145,
		`{"cost":12.345678901}`:         12_345_678_901,
		`{"cost":-1}`:                   -1,
		`{"cost":"0.5"}`:                -1,
		`{"cost":null,"is_byok":true}`:  -1,
		`{"cost":1e300}`:                1_000_000_000_000_000,
		`{"cost_in_usd_ticks":158500}`:  15_850,
		`{"cost":{"total_cost":0.006}}`: 6_000_000,
		`{"cost":{"currency":"USD"}}`:   -1,
		`{"cost":0.001,"is_byok":true}`: 1_000_000,
		`{"cost":0.001,"is_byok":true,"cost_details":{"upstream_inference_cost":0.02}}`:  21_000_000,
		`{"cost":0.001,"is_byok":false,"cost_details":{"upstream_inference_cost":0.02}}`: 1_000_000,
	} {
		got, ok := ReadCost([]byte(usage))
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%s: %d, want %d", usage, got, want)
		}
	}
}
