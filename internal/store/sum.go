package store

import (
	"strconv"
	"strings"
)

// MaxSum is where counters end: it is money.Max. A counter adds figures that clients
// and providers report, so without an end it could leave its column's range, and every
// later transaction that adds to it would fail. Nine counters at MaxSum fit in an int64.
const MaxSum int64 = 1_000_000_000_000_000_000

// Plus returns the SQL of a + b that ends at MaxSum. The columns a and b are
// integers, and b is at most MaxSum.
func Plus(a, b string) string {
	limit := strconv.FormatInt(MaxSum, 10)
	return "CASE WHEN " + a + " > " + limit + " - " + b + " THEN " + limit + " ELSE " + a + " + " + b + " END"
}

// Add returns the SQL of an ON CONFLICT clause's SET: the named columns of the
// table grow by what the new row has, and end at MaxSum.
func Add(table string, columns ...string) string {
	sets := make([]string, len(columns))
	for i, column := range columns {
		sets[i] = column + " = " + Plus(table+"."+column, "excluded."+column)
	}
	return strings.Join(sets, ", ")
}

// half splits an integer for Sum: neither half of so many rows as a table can have
// overflows when it is added up.
const half = "1000000000"

// Sum returns the SQL of SUM over an integer expression that ends at MaxSum, and is 0
// without rows. SUM itself fails on SQLite, and casting it back fails on PostgreSQL, if
// it leaves the range.
func Sum(of string) string {
	high, low := "COALESCE(SUM("+of+" / "+half+"), 0)", "COALESCE(SUM("+of+" % "+half+"), 0)"
	return "CAST(CASE WHEN " + high + " + " + low + " / " + half + " >= " + half + " THEN " + strconv.FormatInt(MaxSum, 10) +
		" ELSE " + high + " * " + half + " + " + low + " END AS BIGINT)"
}
