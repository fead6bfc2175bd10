package access

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
)

// WithAdvice says why nothing can listen at the address of a setting, and what helps.
func WithAdvice(key, address string, err error) error {
	var why syscall.Errno
	if !errors.As(err, &why) {
		return err
	}
	host, _, _ := net.SplitHostPort(address)
	flag := "--" + strings.ReplaceAll(key, "_", "-")
	switch why {
	case syscall.EADDRINUSE:
		return fmt.Errorf("another program listens at %s (%w): stop it, or choose another address with %s", address, why, flag)
	case syscall.EADDRNOTAVAIL:
		return fmt.Errorf("this machine has no address %s (%w): choose one that it has with %s", host, why, flag)
	case syscall.EACCES:
		return fmt.Errorf("this user may not listen at %s (%w): choose a port from 1024 on with %s", address, why, flag)
	}
	return err
}
