package show

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tollgate/internal/console/ui"
	"tollgate/internal/money"
)

// Value formats a JSON value of the operators' log for people. name is the name of the value; it reveals
// whether a number is an amount or a time.
func Value(name string, value any) string {
	switch v := value.(type) {
	case nil:
		return "none"
	case string:
		if v == "" {
			return "none"
		}
		return v
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case float64:
		switch {
		case strings.HasSuffix(name, "_usd") || name == "usd":
			return formatUSD(v)
		case name == "expires" && v > 0:
			return ui.UTC(int64(v) * 1000).String()
		}
	case []any:
		all := make([]string, len(v))
		for i, element := range v {
			all[i] = Value("", element)
		}
		if len(all) == 0 {
			return "none"
		}
		return strings.Join(all, ", ")
	case map[string]any:
		var all []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			all = append(all, key+" "+Value("", v[key]))
		}
		if len(all) == 0 {
			return "none"
		}
		return strings.Join(all, ", ")
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(raw)
}

// formatUSD formats an amount in US dollars with all digits.
func formatUSD(v float64) string {
	text := strconv.FormatFloat(v, 'f', -1, 64)
	if amount, err := money.Parse(text); err == nil {
		return ui.ExactUSD(amount)
	}
	return text + " USD"
}
