// Package build owns what this binary says of its own making.
//
// Invariants: it reads what the Go toolchain noted in the binary, and nothing else.
package build

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Build is what this binary is made of.
type Build struct {
	Version string // a release, or "devel"
	Commit  string // the revision it was built from; "unknown" without one
	Go      string
}

// Read reads what the Go toolchain noted in the binary.
func Read() Build {
	b := Build{Version: "devel", Commit: "unknown", Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		if v := info.Main.Version; v != "" && v != "(devel)" {
			b.Version = v
		}
		dirty := ""
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				b.Commit = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				dirty = ", modified"
			}
		}
		b.Commit += dirty
	}
	return b
}

// String returns the line that `tollgate version` prints.
func (b Build) String() string {
	return fmt.Sprintf("tollgate %s (commit %s, %s)", b.Version, b.Commit, b.Go)
}
