package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// median returns the median of one figure of all measurements.
func median[T any, F cmp.Ordered](all []T, figure func(T) F) F {
	values := make([]F, len(all))
	for i, m := range all {
		values[i] = figure(m)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// percentile returns the given percentile of sorted, with share from 0 to 1.
func percentile(sorted []time.Duration, share float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(float64(len(sorted))*share))]
}

// millis formats d in milliseconds.
func millis(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 2, 64)
}

// table is a Markdown table. The first column is aligned left, the others right.
type table struct {
	header []string
	rows   [][]string
}

func newTable(header ...string) *table { return &table{header: header} }

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) print() {
	fmt.Println("| " + strings.Join(t.header, " | ") + " |")
	fmt.Println("|---" + strings.Repeat("|---:", len(t.header)-1) + "|")
	for _, row := range t.rows {
		fmt.Println("| " + strings.Join(row, " | ") + " |")
	}
	fmt.Println()
}

// tick is the kernel's unit of process times, 100 a second on Linux.
const tick = 10 * time.Millisecond

// cpu returns the user and system time of a process.
func cpu(pid int) (time.Duration, error) {
	_, times, err := processTimes(strconv.Itoa(pid))
	if err != nil {
		return 0, err
	}
	return times[0] + times[1], nil
}

// cpuOfProgram returns the user and system time of all processes of a program, with those of their
// children that have ended.
func cpuOfProgram(name string) (sum time.Duration, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		program, times, err := processTimes(entry.Name())
		if err != nil || program != name { // it may have ended
			continue
		}
		for _, d := range times {
			sum += d
		}
	}
	return sum, nil
}

// processTimes returns the name of a process's program, its user and system time, and those of its
// ended children.
func processTimes(pid string) (program string, times [4]time.Duration, err error) {
	raw, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return "", times, err
	}
	// The second field is the name in parentheses; it may contain spaces.
	head, rest, _ := strings.Cut(string(raw), ") ")
	_, program, _ = strings.Cut(head, "(")
	fields := strings.Fields(rest)
	if len(fields) < 15 {
		return "", times, fmt.Errorf("process %s: unknown format of stat", pid)
	}
	for i := range times {
		n, err := strconv.ParseInt(fields[11+i], 10, 64)
		if err != nil {
			return "", times, err
		}
		times[i] = time.Duration(n) * tick
	}
	return program, times, nil
}

// memory returns a memory figure of a process in MiB: VmRSS, the current resident size, or VmHWM,
// the maximum.
func memory(pid int, figure string) (float64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		if value, ok := strings.CutPrefix(line, figure+":"); ok {
			kb, err := strconv.ParseFloat(strings.Fields(value)[0], 64)
			return kb / 1024, err
		}
	}
	return 0, fmt.Errorf("process %d: no %s", pid, figure)
}
