package fault

import "strconv"

// Bytes writes a number of bytes as people read it in a message: in the largest
// binary unit that it is a whole number of.
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
