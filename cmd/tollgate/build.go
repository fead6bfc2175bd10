package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// buildInfo identifies the binary.
type buildInfo struct {
	Version string // a release or "devel"
	Commit  string // or "unknown"
	Go      string
}

// readBuildInfo reads the build information of the Go toolchain.
func readBuildInfo() buildInfo {
	b := buildInfo{Version: "devel", Commit: "unknown", Go: runtime.Version()}
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

// String returns the output of `tollgate version`.
func (b buildInfo) String() string {
	return fmt.Sprintf("tollgate %s (commit %s, %s)", b.Version, b.Commit, b.Go)
}
