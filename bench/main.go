// Command bench owns the measurements for BENCHMARKS.md. It compares the ledger with a minimal
// spike that only groups commits, and the gateway with the direct upstream and a plain Go reverse
// proxy. It also measures jobs on the sandbox, the audit, usage queries and console pages. It prints
// Markdown.
//
// Invariants:
//   - Compared targets take turns in one run on one machine, and each figure is the median of the
//     rounds.
//   - A target measured for CPU time has its own process, or is the only work of this process.
//   - -max compares results only with those of the reverse proxy in the same run. No test runs the
//     benchmarks.
//
// Usage, under scripts/postgres so that TOLLGATE_TEST_POSTGRES is set:
//
//	go run ./bench                    everything
//	go run ./bench -only ledger
//	go run ./bench -only nodes
//	go run ./bench -only snapshot
//	go run ./bench -only chat -cases throughput,stream -rounds 3 -seconds 4
//	go run ./bench -only chat -starts 6 -rounds 5 -against FORMER_TOLLGATE
//	go run ./bench -only chat -max throughput=1.9,large@PostgreSQL=4 -json chat.json -picture chat.svg
//	go run ./bench -only jobs
//	go run ./bench -only audit -receipts 10000000
//	go run ./bench -only usage -receipts 10000000 -charges 2000000
//	go run ./bench -only pages -receipts 1000000
//	go run ./bench -only aging -receipts 300000 -accounts 1000
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"
)

// options are the values of the flags.
type options struct {
	only     string
	cases    []string
	accounts []int
	nodes    []int
	delays   []int // of commits, in ms
	rounds   int
	starts   int           // of each gateway, for the chat cases
	span     time.Duration // of one measurement
	callers  int
	receipts int
	charges  int
	postgres string // address of a server; if empty, only SQLite
	folder   string // for databases and binaries
	against  string // another build of the gateway, if any
	json     string // file for the figures of the chat cases, if any
	picture  string // file for a picture of these figures, if any
	limits   []limit
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("bench: ")
	if len(os.Args) > 1 {
		switch os.Args[1] { // roles of child processes
		case "upstream":
			log.Fatal(runUpstream())
		case "proxy":
			log.Fatal(runProxy(os.Args[2]))
		}
	}
	var o options
	cases := flag.String("cases", strings.Join(defaultCases(), ","), "chat cases to measure")
	flag.StringVar(&o.only, "only", "", "ledger, nodes, snapshot, chat, jobs, audit, usage, pages or aging; empty: all")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds per measurement; the median is printed")
	flag.IntVar(&o.starts, "starts", 1, "starts of each gateway in the chat cases; all rounds run after each start")
	accounts := flag.String("accounts", "1,1000", "numbers of accounts of the ledger to measure")
	nodes := flag.String("nodes", "1,3,6", "numbers of nodes to measure; the first must be 1")
	delays := flag.String("delays", "0,5,50,100", "delays of a commit in ms for the measurement of nodes")
	seconds := flag.Float64("seconds", 4, "seconds of one measurement")
	profile := flag.String("profile", "", "file for a CPU profile of this program, which runs the ledger")
	flag.StringVar(&o.against, "against", "", "another build of the gateway to measure beside this one, on SQLite")
	limits := flag.String("max", "", "highest CPU of chat cases, times ReverseProxy, as in throughput=1.4,large@PostgreSQL=1.9; exit 1 above")
	flag.StringVar(&o.json, "json", "", "file for the figures of the chat cases as JSON")
	flag.StringVar(&o.picture, "picture", "", "file for a picture of them (SVG)")
	flag.IntVar(&o.callers, "callers", 64, "concurrent callers of the ledger; with several nodes, in all and of each")
	flag.IntVar(&o.receipts, "receipts", 1_000_000, "receipts in the database for audit, usage, pages and aging")
	flag.IntVar(&o.charges, "charges", 1_000_000, "number of archived charges")
	flag.Parse()
	o.cases = strings.Split(*cases, ",")
	o.accounts, o.nodes, o.delays = numbers("accounts", *accounts, 1), numbers("nodes", *nodes, 1), numbers("delays", *delays, 0)
	var err error
	if o.limits, err = parseLimits(*limits); err != nil {
		log.Fatal(err)
	}
	o.span = time.Duration(*seconds * float64(time.Second))
	o.postgres = os.Getenv("TOLLGATE_TEST_POSTGRES")
	stop, err := startProfile(*profile)
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(run(o), stop()); err != nil {
		log.Fatal(err)
	}
}

// numbers returns the numbers of a flag's list. None is below least.
func numbers(name, list string, least int) (all []int) {
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < least {
			log.Fatalf("-%s: %q is not a number from %d", name, text, least)
		}
		all = append(all, n)
	}
	return all
}

// engines returns the databases to measure.
func (o options) engines() []string {
	if o.postgres == "" {
		return []string{"SQLite"}
	}
	return []string{"SQLite", "PostgreSQL"}
}

// onEngines calls measure for each database until one fails.
func (o options) onEngines(measure func(engine string) error) error {
	for _, engine := range o.engines() {
		if err := measure(engine); err != nil {
			return fmt.Errorf("%s: %w", engine, err)
		}
	}
	return nil
}

// startProfile starts a CPU profile in the file name, unless name is empty. stop ends the profile.
func startProfile(name string) (stop func() error, err error) {
	if name == "" {
		return func() error { return nil }, nil
	}
	file, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
}

func run(o options) error {
	if o.postgres == "" {
		log.Print("TOLLGATE_TEST_POSTGRES is not set: PostgreSQL is NOT measured; use `make bench`")
	}
	var err error
	if o.folder, err = filepath.Abs("build/bench"); err != nil {
		return err
	}
	if err := os.MkdirAll(o.folder, 0o755); err != nil {
		return err
	}
	fmt.Printf("%s, %d CPUs, %s\n\n", processor(), runtime.NumCPU(), runtime.Version())
	for _, part := range []struct {
		name string
		run  func(options) error
	}{{"ledger", benchLedger}, {"nodes", benchNodes}, {"snapshot", benchSnapshot}, {"chat", benchChat}, {"jobs", benchJobs},
		{"audit", benchAudit}, {"usage", benchUsage}, {"pages", benchPages}, {"aging", benchAging}} {
		if o.only != "" && o.only != part.name {
			continue
		}
		if err := part.run(o); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

// processor returns the name of the machine's processor, if known.
func processor() string {
	raw, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(raw)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
