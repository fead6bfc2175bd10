package store

import (
	"strconv"
	"strings"
)

// MaxSum is the upper bound of counters: it is money.Max. A counter adds figures reported by
// clients and providers. Without a bound, a counter could leave its column's range, and every later
// addition would fail. Nine counters at MaxSum fit in an int64.
const MaxSum int64 = 1_000_000_000_000_000_000

// Plus returns the SQL of a + b, bounded by MaxSum. The columns a and b are integers, and b is at
// most MaxSum.
func Plus(a, b string) string {
	limit := strconv.FormatInt(MaxSum, 10)
	return "CASE WHEN " + a + " > " + limit + " - " + b + " THEN " + limit + " ELSE " + a + " + " + b + " END"
}

// Add returns the SQL of an ON CONFLICT clause's SET: each named column of the table grows by the
// new row's value, up to MaxSum.
func Add(table string, columns ...string) string {
	sets := make([]string, len(columns))
	for i, column := range columns {
		sets[i] = column + " = " + Plus(table+"."+column, "excluded."+column)
	}
	return strings.Join(sets, ", ")
}

// half splits an integer for Sum, so that the sum of neither half overflows for any possible number
// of rows.
const half = "1000000000"

// Sum returns the SQL of SUM over an integer expression, bounded by MaxSum, and 0 without rows. A
// plain SUM that leaves the range fails on SQLite, and so does its cast to an integer on
// PostgreSQL.
func Sum(expression string) string {
	high, low := "COALESCE(SUM("+expression+" / "+half+"), 0)", "COALESCE(SUM("+expression+" % "+half+"), 0)"
	return "CAST(CASE WHEN " + high + " + " + low + " / " + half + " >= " + half + " THEN " + strconv.FormatInt(MaxSum, 10) +
		" ELSE " + high + " * " + half + " + " + low + " END AS BIGINT)"
}
