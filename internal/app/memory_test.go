package app

import (
	"io/fs"
	"math"
	"testing"
)

func TestGroupMemory(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"none":     {nil, 0},
		"no bound": {map[string]string{"/proc/self/cgroup": "0::/a\n", "/sys/fs/cgroup/a/memory.max": "max\n"}, 0},
		"own": {map[string]string{"/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/a/b/memory.max": "512\n",
			"/sys/fs/cgroup/a/memory.max": "max\n"}, 512},
		"around": {map[string]string{"/proc/self/cgroup": "1:x:/y\n0::/a/b\n", "/sys/fs/cgroup/a/b/memory.max": "512\n",
			"/sys/fs/cgroup/a/memory.max": "256\n"}, 256},
		"container": {map[string]string{"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "1024\n"}, 1024},
		"strange":   {map[string]string{"/proc/self/cgroup": "0::/../..\n", "/sys/fs/cgroup/memory.max": "-5\n"}, 0},
	} {
		got := groupMemory(func(p string) ([]byte, error) {
			if text, ok := c.files[p]; ok {
				return []byte(text), nil
			}
			return nil, fs.ErrNotExist
		})
		if got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestSmallestMemory checks that the operator's limit bounds the budgets without a control group.
func TestSmallestMemory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ group, limit, want int64 }{
		{0, math.MaxInt64, 0}, {512, math.MaxInt64, 512}, {0, 460, 460}, {512, 460, 460}, {256, 460, 256},
	} {
		if got := smallest(c.group, c.limit); got != c.want {
			t.Errorf("a group of %d and a limit of %d: %d, want %d", c.group, c.limit, got, c.want)
		}
	}
}

// TestBallastSize checks that the ballast is at most an eighth of a small memory, so that budgets
// and garbage have the rest.
func TestBallastSize(t *testing.T) {
	t.Parallel()
	for memory, want := range map[int64]int64{0: 30 << 20, 64 << 20: 8 << 20, 512 << 20: 30 << 20, 8 << 30: 30 << 20} {
		if got := ballastSize(memory); got != want {
			t.Errorf("%d bytes of memory: %d, want %d", memory, got, want)
		}
	}
}
