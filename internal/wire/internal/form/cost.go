package form

import (
	"math"
	"strconv"

	"tollgate/internal/wire/rawjson"
)

// maxCost is the largest accepted cost of an answer in dollars.
const maxCost = 1e6

// ReadCost reads the provider's own cost from a usage object, in nano-dollars: `cost` in dollars
// (OpenRouter), its total (Perplexity), or ticks of 10^-10 dollars (xAI). If the provider used the
// operator's own key of another vendor, that vendor's bill is added.
func ReadCost(usage []byte) (nano int64, ok bool) {
	var report rawjson.Index
	report.Read(usage)
	return readCost(&report)
}

func readCost(usage *rawjson.Index) (nano int64, ok bool) {
	if ticks, ok := rawjson.Integer(usage.Field("cost_in_usd_ticks")); ok && ticks >= 0 {
		return min(ticks/10, maxCost*1e9), true
	}
	cost := usage.Field("cost")
	if len(cost) > 0 && cost[0] == '{' {
		cost = rawjson.Field(cost, "total_cost")
	}
	dollars, ok := readDollars(cost)
	if !ok {
		return 0, false
	}
	if own, _ := rawjson.Boolean(usage.Field("is_byok")); own {
		more, _ := readDollars(rawjson.Field(usage.Field("cost_details"), "upstream_inference_cost"))
		dollars += more
	}
	return int64(math.Round(dollars * 1e9)), true
}

// readDollars reads a number of at least 0.
func readDollars(raw []byte) (float64, bool) {
	if len(raw) == 0 || raw[0] < '0' || raw[0] > '9' {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	return min(f, maxCost), err == nil
}
