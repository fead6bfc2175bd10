//go:build !unix

package door

// descriptors is how many files and connections this process may have open.
func descriptors() uint64 { return unknownDescriptors }
