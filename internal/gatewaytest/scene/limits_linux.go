package soak

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const (
	memory      = 512 << 20
	descriptors = 400
)

// limited returns a command that runs the binary with limits on descriptors and memory. The memory
// limit is a control group, or GOMEMLIMIT if the test may not create a group. how describes the
// memory limit.
func limited(t *testing.T, binary string, settings map[string]string) (command, how string) {
	script := fmt.Sprintf("#!/bin/sh\nulimit -n %d\n", descriptors)
	if group := newGroup(t); group != "" {
		script += fmt.Sprintf("echo $$ > %s/cgroup.procs\n", group)
		how = "a control group of 512 MiB"
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
func newGroup(t *testing.T) string {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	_, path, ok := strings.Cut(string(own), "0::")
	if !ok {
		return ""
	}
	path, _, _ = strings.Cut(path, "\n")
	group := filepath.Join("/sys/fs/cgroup", path, fmt.Sprintf("tollgate-soak-%d", os.Getpid()))
	if os.Mkdir(group, 0o755) != nil {
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

// usage returns the peak memory of a process in bytes, and its open descriptors.
func usage(t *testing.T, pid int) (peak int64, open int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatalf("the gateway has ended: %v", err)
	}
	_, rest, ok := strings.Cut(string(status), "VmHWM:")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 2 || fields[1] != "kB" {
		t.Fatalf("no VmHWM in %s", status)
	}
	kib, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10, len(files)
}
