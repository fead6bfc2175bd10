package app

import (
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"

	"tollgate/internal/api"
)

// memoryLimitEnv is the variable for the operator's own limit.
const memoryLimitEnv = "GOMEMLIMIT"

const (
	// maxBallast is the largest ballast in bytes.
	maxBallast = 30 << 20
	// garbagePercent is the growth of the heap, with ballast and stacks, after which garbage is collected. A
	// small heap grows by 15 MiB, which fits into a processor's caches; a heap with thousands of streams
	// is not doubled by garbage.
	garbagePercent = 50
)

// garbageEnv is the variable for the operator's own percentage.
const garbageEnv = "GOGC"

// boundMemory sets the percentage of garbage collection, and limits the runtime to four fifths of the
// memory of the process's control group. Values in the environment take precedence. boundMemory returns
// the memory of the group, or the runtime's limit from the environment if it is smaller, or 0 if both
// are unlimited.
func boundMemory(lookup func(string) (string, bool)) int64 {
	if set, _ := lookup(garbageEnv); set == "" {
		debug.SetGCPercent(garbagePercent)
	}
	limit := groupMemory(os.ReadFile)
	if set, _ := lookup(memoryLimitEnv); set != "" {
		return smallest(limit, debug.SetMemoryLimit(-1))
	}
	if limit > 0 {
		// Nothing of the ballast is resident, but the runtime counts it.
		debug.SetMemoryLimit(limit/5*4 + ballastSize(limit))
	}
	return limit
}

// ballastSize returns the ballast of a process with this much memory; 0 means unlimited. The
// runtime collects garbage whenever the heap has grown by garbagePercent. A gateway's heap is small, so
// under load the runtime would collect almost all the time. The runtime counts the ballast as heap,
// although untouched memory takes none of the machine's memory, so collections become rarer.
func ballastSize(memory int64) int64 {
	if memory == 0 {
		return maxBallast
	}
	return min(maxBallast, memory/8)
}

// smallest returns the smaller of a group's limit, where 0 means unlimited, and the runtime's
// limit, where math.MaxInt64 means unlimited.
func smallest(group, limit int64) int64 {
	if limit == math.MaxInt64 || group > 0 && group < limit {
		return group
	}
	return limit
}

// groupMemory returns the smallest memory.max of the process's control group and the groups around
// it, or 0 without such a limit.
func groupMemory(read func(string) ([]byte, error)) int64 {
	const root = "/sys/fs/cgroup"
	group := "/"
	if own, err := read("/proc/self/cgroup"); err == nil {
		for line := range strings.Lines(string(own)) {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
				group = path.Clean("/" + rest)
			}
		}
	}
	limit := int64(0)
	for ; ; group = path.Dir(group) {
		if text, err := read(path.Join(root, group, "memory.max")); err == nil {
			n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // "max" is not a number
			if err == nil && n > 0 && (limit == 0 || n < limit) {
				limit = n
			}
		}
		if group == "/" {
			return limit
		}
	}
}

// answerMemory returns the budget for answers on a node with this much memory, where 0 means
// unlimited: a sixth of the memory, but at least one and at most four of the largest answers.
func answerMemory(s *Settings, memory int64) int64 {
	if memory == 0 {
		return 4 * s.MaxAnswer
	}
	return min(max(memory/6, s.MaxAnswer+1), 4*s.MaxAnswer)
}

// bodyMemory returns the budget for request bodies and reference files on a node with this much
// memory: a fifth of the memory, but at least one of the largest files. If memory is unlimited, it
// returns 0, which means the default of package api.
func bodyMemory(memory int64) int64 {
	if memory == 0 {
		return 0
	}
	return max(memory/5, api.LargestReference+1)
}
