//go:build unix

package http1

import (
	"errors"
	"syscall"
)

// canCheck reports whether isReady can distinguish an open connection from a closed one.
const canCheck = true

// isReady reports whether an idle connection is open and nothing has arrived on it.
func (c *conn) isReady() bool {
	if c.socket == nil {
		return false
	}
	isOpen := false
	err := c.socket.Read(func(descriptor uintptr) bool {
		var b [1]byte
		_, err := syscall.Read(int(descriptor), b[:])
		isOpen = errors.Is(err, syscall.EAGAIN)
		return true
	})
	return err == nil && isOpen
}
