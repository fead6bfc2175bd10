//go:build unix

package server

import "syscall"

// descriptors returns how many file descriptors the process may have open.
func descriptors() uint64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return unknownDescriptors
	}
	return uint64(l.Cur)
}
