package scene

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Limited returns a command that runs the binary with limits on descriptors and memory, in bytes. The
// memory limit is a control group, or GOMEMLIMIT in settings if the test may not create a group. how
// describes the memory limit.
func Limited(t testing.TB, binary string, settings map[string]string, memory, descriptors int) (command, how string) {
	t.Helper()
	script := fmt.Sprintf("#!/bin/sh\nulimit -n %d\n", descriptors)
	if group := newGroup(t, memory); group != "" {
		script += fmt.Sprintf("echo $$ > %s/cgroup.procs\n", group)
		how = fmt.Sprintf("a control group of %d MiB", memory>>20)
	} else {
		settings["GOMEMLIMIT"] = strconv.Itoa(memory / 5 * 4) // the gateway sets the same value in a group
		how = "GOMEMLIMIT, without a control group"
	}
	command = filepath.Join(t.TempDir(), "limited")
	if err := os.WriteFile(command, []byte(script+"exec "+binary+" \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return command, how
}

// newGroup creates a control group with the memory limit and returns its folder. It returns the empty
// string if the test has no permission, or if the machine lacks version 2 of control groups.
func newGroup(t testing.TB, memory int) string {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	_, path, ok := strings.Cut(string(own), "0::")
	if !ok {
		return ""
	}
	path, _, _ = strings.Cut(path, "\n")
	group, err := os.MkdirTemp(filepath.Join("/sys/fs/cgroup", path), "tollgate-test-")
	if err != nil {
		return ""
	}
	t.Cleanup(func() { _ = os.Remove(group) }) // works because the group's process has ended
	// Only in a real group, the kernel creates this file.
	if has, err := os.ReadFile(filepath.Join(group, "cgroup.controllers")); err != nil || !strings.Contains(string(has), "memory") {
		return ""
	}
	if os.WriteFile(filepath.Join(group, "memory.max"), []byte(strconv.Itoa(memory)), 0o600) != nil {
		return ""
	}
	return group
}

// Peak returns the peak memory of the process in bytes.
func (p *Process) Peak() int64 {
	p.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid()))
	if err != nil {
		p.t.Fatalf("the gateway has ended: %v", err)
	}
	_, rest, ok := strings.Cut(string(status), "VmHWM:")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 2 || fields[1] != "kB" {
		p.t.Fatalf("no VmHWM in %s", status)
	}
	kib, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return kib << 10
}

// Descriptors returns the targets of the open descriptors of the process.
func (p *Process) Descriptors() (targets []string) {
	p.t.Helper()
	folder := fmt.Sprintf("/proc/%d/fd", p.Pid())
	files, err := os.ReadDir(folder)
	if err != nil {
		p.t.Fatalf("the gateway has ended: %v", err)
	}
	for _, f := range files {
		target, err := os.Readlink(filepath.Join(folder, f.Name()))
		if err != nil {
			continue // closed meanwhile
		}
		targets = append(targets, target)
	}
	return targets
}
