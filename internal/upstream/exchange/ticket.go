package exchange

// maxTicket is the maximum length of a provider's task ID, in bytes.
const maxTicket = 200

// Ticket reports whether a provider's task ID is safe as one path segment of an address: letters,
// digits, `-`, `_`, `.` and `:`, but not `.` or `..`.
func Ticket(id string) bool {
	if id == "" || len(id) > maxTicket || id == "." || id == ".." {
		return false
	}
	for _, c := range []byte(id) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '-', c == '_', c == '.', c == ':':
		default:
			return false
		}
	}
	return true
}
