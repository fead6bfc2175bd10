package form

import (
	"math"
	"strconv"

	"tollgate/internal/wire/rawjson"
)

// maxCost bounds what a provider may say that an answer costs, in dollars.
const maxCost = 1e6

// ReadCost reads from a usage object what the provider itself takes, in
// nano-dollars: `cost` in dollars (OpenRouter), or the total in it (Perplexity),
// or ticks of which a dollar has 10^10 (xAI). Where a key of the operator's own
// was used there, its vendor's bill comes on top.
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

// readDollars reads a number that is not negative.
func readDollars(raw []byte) (float64, bool) {
	if len(raw) == 0 || raw[0] < '0' || raw[0] > '9' {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	return min(f, maxCost), err == nil
}
