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

// memoryLimitEnv is the variable by which an operator sets the limit himself.
const memoryLimitEnv = "GOMEMLIMIT"

// maxBallast is the largest ballast, bytes. Twice as much halves what the collector does
// once more, but no longer fits into a processor's caches: where neighbours take much of
// those, that costs more than it saves.
const maxBallast = 8 << 20

// boundMemory gives the runtime four fifths of the memory that the process's
// control group may have, unless the environment sets a limit, and returns
// what the process may have, by the group or by that limit; 0: it has no bound.
func boundMemory(lookup func(string) (string, bool)) int64 {
	most := groupMemory(os.ReadFile)
	if set, _ := lookup(memoryLimitEnv); set != "" {
		return smallest(most, debug.SetMemoryLimit(-1))
	}
	if most > 0 {
		// Nothing of the ballast is resident, but the runtime counts it.
		debug.SetMemoryLimit(most/5*4 + ballastSize(most))
	}
	return most
}

// ballastSize is how much ballast a process takes that may have so much memory,
// 0 being any. The runtime collects garbage whenever the heap has doubled, and a
// gateway's heap is so small that it would do little else under load. Memory that
// is never touched takes none of the machine's, and counts when the runtime
// decides: so much more garbage may lie about, however large the heap is.
func ballastSize(memory int64) int64 {
	if memory == 0 {
		return maxBallast
	}
	return min(maxBallast, memory/16)
}

// smallest is the smaller of what a group may have, 0 being any, and the
// runtime's limit, math.MaxInt64 being none.
func smallest(group, limit int64) int64 {
	if limit == math.MaxInt64 || group > 0 && group < limit {
		return group
	}
	return limit
}

// groupMemory is the smallest memory.max of the process's control group and the
// groups around it; 0: none is set, or there are no such groups.
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
	most := int64(0)
	for ; ; group = path.Dir(group) {
		if text, err := read(path.Join(root, group, "memory.max")); err == nil {
			n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // "max" is no number
			if err == nil && n > 0 && (most == 0 || n < most) {
				most = n
			}
		}
		if group == "/" {
			return most
		}
	}
}

// answerMemory is the budget for answers on a node that may have so much memory,
// 0 being any: a sixth of it, and never less than one answer or more than four.
func answerMemory(s *Settings, memory int64) int64 {
	if memory == 0 {
		return 4 * s.MaxAnswer
	}
	return min(max(memory/6, s.MaxAnswer+1), 4*s.MaxAnswer)
}

// bodyMemory is the budget for request bodies and reference files on a node that
// may have so much memory: a fifth of it, and never less than one of the largest
// files. 0 leaves it to the gateway: memory has no bound.
func bodyMemory(memory int64) int64 {
	if memory == 0 {
		return 0
	}
	return max(memory/5, api.LargestReference+1)
}
