//go:build unix

package door

import "syscall"

// descriptors is how many files and connections this process may have open.
func descriptors() uint64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return unknownDescriptors
	}
	return uint64(l.Cur)
}
