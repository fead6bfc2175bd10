package exchange

// maxTicket is the longest name of a task that is taken from a provider.
const maxTicket = 200

// Ticket tells whether what a provider calls a task can be one segment of an
// address: letters, digits, `-`, `_`, `.` and `:`, and no way out of a path.
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
