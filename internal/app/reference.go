package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// lineLookup returns lookup for references in the catalog, without the variables and files of this service's own
// settings. Otherwise an operator who edits the catalog could send the operator's token to an address of a
// line, and act as an owner with it.
func (s *Settings) lineLookup(lookup func(string) (string, bool)) func(string) (string, bool) {
	own := variables()
	return func(name string) (string, bool) {
		path, isFile := strings.CutPrefix(name, "file:")
		switch {
		case isFile:
			return "it belongs to this service", s.ownsFile(path)
		case slices.Contains(own, name):
			return "", false
		}
		return lookup(name)
	}
}

// ownsFile reports whether a file has settings or secrets of this service, under any name, or is in /proc.
func (s *Settings) ownsFile(path string) bool {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if absolute, err := filepath.Abs(path); err == nil && strings.HasPrefix(absolute, "/proc/") {
		return true // such as the variables of this process
	}
	info, err := os.Stat(path)
	return err == nil && slices.ContainsFunc(append(s.ownFiles, nextToDatabase(s, tokenFile), nextToDatabase(s, secretKeyFile),
		strings.TrimPrefix(s.Database, "sqlite:")), func(own string) bool {
		other, err := os.Stat(own)
		return err == nil && os.SameFile(info, other)
	})
}
