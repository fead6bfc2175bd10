//go:build !unix

package http1

// canCheck is whether isReady can tell an open connection from a closed one. Without it, the standard
// transport sends all requests.
const canCheck = false

// isReady reports whether an idle connection is open and nothing has arrived on it.
func (c *conn) isReady() bool { return false }
