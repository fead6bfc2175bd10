package app

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
)

// explainListen adds advice to an error of listening on the address of a setting.
func explainListen(key, address string, err error) error {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return err
	}
	host, _, _ := net.SplitHostPort(address)
	flag := "--" + strings.ReplaceAll(key, "_", "-")
	switch errno {
	case syscall.EADDRINUSE:
		return fmt.Errorf("another program listens at %s (%w): stop it, or choose another address with %s", address, errno, flag)
	case syscall.EADDRNOTAVAIL:
		return fmt.Errorf("this machine has no address %s (%w): choose one that it has with %s", host, errno, flag)
	case syscall.EACCES:
		return fmt.Errorf("this user may not listen at %s (%w): choose a port from 1024 on with %s", address, errno, flag)
	}
	return err
}
