package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLimits checks that -max names each case above its limit and each case without a figure.
func TestLimits(t *testing.T) {
	all := []figures{
		{Case: "throughput", Target: "tollgate, SQLite", Times: 1.5}, {Case: "throughput", Target: "tollgate, PostgreSQL", Times: 1.7},
		{Case: "large", Target: "tollgate, SQLite", Times: 1.2},
	}
	for text, want := range map[string][]string{
		"":                                        nil,
		"throughput=1.5,throughput@PostgreSQL=2":  nil,
		"throughput=1.4,large=1.6":                {"throughput, tollgate, SQLite: 1.50 times ReverseProxy, more than 1.40"},
		"throughput@PostgreSQL=1.6,large=1.1":     {"PostgreSQL: 1.70 times", "large, tollgate, SQLite: 1.20 times"},
		"speech=1,throughput@SQLite=1.6,paced=3.": {"speech, tollgate, SQLite was not measured", "paced, tollgate, SQLite was not measured"},
	} {
		limits, err := parseLimits(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		err = checkLimits(limits, all)
		if (err == nil) != (want == nil) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		for _, words := range want {
			if err != nil && !strings.Contains(err.Error(), words) {
				t.Errorf("%q: %v, want %q", text, err, words)
			}
		}
	}
	for _, text := range []string{"throughput", "throughput=", "throughput=x", "throughput=0", "=1,,"} {
		if _, err := parseLimits(text); err == nil {
			t.Errorf("-max %q is accepted", text)
		}
	}
}

// TestPicture checks that the picture has a bar for each case and database, and none for other targets.
func TestPicture(t *testing.T) {
	name := filepath.Join(t.TempDir(), "bench.svg")
	if err := writePicture(name, []figures{
		{Case: "large", Target: "direct"}, {Case: "large", Target: reverseProxy, Times: 1},
		{Case: "large", Target: "tollgate, SQLite", Times: 2}, {Case: "large", Target: "tollgate, PostgreSQL", Times: 4},
	}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, bar := range []string{
		`width="215" height="14" fill="#0969da"`, `width="430" height="14" fill="#8250df"`, ">large<", ">2.00<", ">4.00<",
	} {
		if !strings.Contains(string(text), bar) {
			t.Errorf("no %s in\n%s", bar, text)
		}
	}
	if n := strings.Count(string(text), "<rect"); n != 4 {
		t.Errorf("%d rectangles, want 2 bars and 2 of the legend", n)
	}
}

// TestCPUWithChildren checks that the CPU time of a program's processes includes this process.
func TestCPUWithChildren(t *testing.T) {
	self, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatalf("%v: the benchmark needs /proc", err)
	}
	sum := 0
	for i := range 200_000_000 {
		sum += i
	}
	if d, err := cpuOfProgram(strings.TrimSpace(string(self))); err != nil || d <= 0 {
		t.Errorf("%v, %v; want some time (%d)", d, err, sum)
	}
}
