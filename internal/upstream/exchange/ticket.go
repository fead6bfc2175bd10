package exchange

import "strings"

// maxTicket is the maximum length of a provider's task ID, in bytes.
const maxTicket = 200

// IsTicket reports whether a provider's task ID is safe as one path segment of an address: letters,
// digits, `-`, `_`, `.` and `:`, but not only dots.
func IsTicket(id string) bool { return len(id) <= maxTicket && IsSafe(id, "-_.:") }

// IsSafe reports whether text has only letters, digits and marks, and not only dots.
func IsSafe(text, marks string) bool {
	for _, c := range []byte(text) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte(marks, c) >= 0:
		default:
			return false
		}
	}
	return strings.Trim(text, ".") != ""
}
