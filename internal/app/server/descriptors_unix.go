//go:build unix

package server

import "syscall"

// descriptors returns the process's limit of open file descriptors.
func descriptors() uint64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return unknownDescriptors
	}
	return uint64(l.Cur)
}
