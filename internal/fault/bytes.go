package fault

import "strconv"

// Bytes formats n bytes for a message, in the largest binary unit that divides n.
func Bytes(n int64) string {
	unit := "bytes"
	for _, larger := range []string{"KiB", "MiB", "GiB"} {
		if n == 0 || n%1024 != 0 {
			break
		}
		n, unit = n/1024, larger
	}
	return strconv.FormatInt(n, 10) + " " + unit
}
