//go:build !unix

package http1

// canCheck reports whether isReady can distinguish an open connection from a closed one. If false, the
// standard transport sends all requests.
const canCheck = false

// isReady reports whether an idle connection is open and nothing has arrived on it.
func (c *conn) isReady() bool { return false }
