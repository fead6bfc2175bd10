package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Sizes of the measurements of jobs.
const (
	jobCallers    = 64
	longQueue     = 10_000
	quickJobs     = 2_000
	receivers     = 1_000
	deadReceivers = 100
	finishWithin  = 5 * time.Minute
)

// jobCatalog has two models. The single slot of parked is busy during the whole run, so its queue
// grows. The results of quick are immediate.
const jobCatalog = `
models:
  - {id: parked, kind: image, price: {64p: 0.01}, ratios: ["1:1"]}
  - {id: quick, kind: image, price: {64p: 0.01}, ratios: ["1:1"]}
lines:
  - {id: parked, provider: sandbox, models: {parked: parked}, max_concurrent: 1, options: {delay: 1h}, timeouts: {total: 2h}}
  - {id: quick, provider: sandbox, models: {quick: quick}}
`

// benchJobs prints how fast the gateway accepts, serves and finishes sandbox jobs while a long
// queue exists, and how fast events reach many receivers when some receivers are dead.
func benchJobs(o options) error {
	gateway, err := buildGateway(o)
	if err != nil {
		return err
	}
	fmt.Printf("### Jobs on the sandbox: %d callers\n\n", jobCallers)
	out := newTable("database", "operation", "per second", "CPU s/1000", "p50 ms", "p99 ms")
	err = o.onEngines(func(engine string) error { return benchJobsOn(o, gateway, engine, out) })
	out.print()
	return err
}

// buildGateway builds the gateway under test.
func buildGateway(o options) (string, error) {
	gateway := filepath.Join(o.folder, "tollgate")
	build := exec.Command("go", "build", "-trimpath", "-o", gateway, "./cmd/tollgate")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the gateway: %w\n%s", err, out)
	}
	return gateway, nil
}

func benchJobsOn(o options, gateway, engine string, out *table) error {
	t, stop, err := startGateway(o, gateway, engine, setup{
		catalog: jobCatalog, env: []string{"TOLLGATE_PRIVATE_NETWORKS=127.0.0.0/8", "TOLLGATE_START_LIMIT=2h"},
	})
	if err != nil {
		return err
	}
	defer stop()
	b := &jobBench{target: t, engine: engine, out: out, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * jobCallers}}}
	parked, err := b.drive("accepted, queue from 0 to 10,000", longQueue, b.submit("parked", ""))
	if err != nil {
		return err
	}
	if _, err := b.drive("accepted, 10,000 and more queued", longQueue/4, b.submit("parked", "")); err != nil {
		return err
	}
	poll := func(ids []string) func(int) (string, error) {
		return func(int) (string, error) { return "", b.poll(ids[rand.IntN(len(ids))], nil) }
	}
	if _, err := b.drive("polls of queued jobs", longQueue, poll(parked[1:])); err != nil {
		return err
	}
	done, err := b.finish()
	if err != nil {
		return err
	}
	if _, err := b.drive("polls of finished jobs", longQueue, poll(done)); err != nil {
		return err
	}
	return b.deliveries()
}

// jobBench measures one gateway.
type jobBench struct {
	target target
	engine string
	out    *table
	client *http.Client
}

// drive makes n calls from all callers, adds a row with their figures and returns their results.
func (b *jobBench) drive(what string, n int, call func(i int) (string, error)) ([]string, error) {
	before, err := cpu(b.target.process.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	var next atomic.Int64
	var failure atomic.Pointer[error]
	times, results := make([][]time.Duration, jobCallers), make([][]string, jobCallers)
	began := time.Now()
	var all sync.WaitGroup
	for c := range jobCallers {
		all.Go(func() {
			for i := int(next.Add(1)); i <= n && failure.Load() == nil; i = int(next.Add(1)) {
				from := time.Now()
				id, err := call(i)
				if err != nil {
					failure.CompareAndSwap(nil, &err)
					return
				}
				times[c] = append(times[c], time.Since(from))
				if id != "" {
					results[c] = append(results[c], id)
				}
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	if err := failure.Load(); err != nil {
		return nil, fmt.Errorf("%s: %w", what, *err)
	}
	after, err := cpu(b.target.process.cmd.Process.Pid)
	sorted := slices.Concat(times...)
	slices.Sort(sorted)
	b.add(what, n, took, after-before, millis(percentile(sorted, 0.5)), millis(percentile(sorted, 0.99)))
	return slices.Concat(results...), err
}

func (b *jobBench) add(what string, n int, took, used time.Duration, p50, p99 string) {
	b.out.add(b.engine, what, fmt.Sprintf("%.0f", float64(n)/took.Seconds()),
		fmt.Sprintf("%.3f", (used*1000/time.Duration(n)).Seconds()), p50, p99)
}

// submit returns a call that submits a job and returns its id.
func (b *jobBench) submit(model, callback string) func(int) (string, error) {
	return func(i int) (string, error) {
		body := map[string]any{"model": model, "prompt": fmt.Sprintf("boat %d", i)}
		if callback != "" {
			body["callback_url"] = fmt.Sprintf(callback, i/250, i%250+1)
		}
		raw, err := json.Marshal(body)
		if err != nil {
			return "", err
		}
		var accepted struct{ ID string }
		err = b.do(http.MethodPost, "/v1/images/generations", raw, http.StatusAccepted, &accepted)
		return accepted.ID, err
	}
}

// poll reads a job.
func (b *jobBench) poll(id string, into any) error {
	return b.do(http.MethodGet, "/v1/images/jobs/"+id, nil, http.StatusOK, into)
}

func (b *jobBench) do(method, path string, body []byte, status int, into any) error {
	req, err := http.NewRequest(method, b.target.process.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+b.target.key)
	raw, err := send(b.client, req, status)
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// finish submits jobs with immediate results and waits until all have succeeded.
func (b *jobBench) finish() ([]string, error) {
	before, err := cpu(b.target.process.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	ids, err := b.drive("accepted while jobs finish", quickJobs, b.submit("quick", ""))
	if err != nil {
		return nil, err
	}
	left := slices.Clone(ids)
	for len(left) > 0 {
		if time.Since(began) > finishWithin {
			return nil, fmt.Errorf("%d of %d jobs have not finished", len(left), quickJobs)
		}
		var state struct{ Status string }
		if err := b.poll(left[len(left)-1], &state); err != nil {
			return nil, err
		}
		switch state.Status {
		case "succeeded":
			left = left[:len(left)-1]
		case "failed":
			return nil, errors.New("a job failed")
		default:
			<-time.After(5 * time.Millisecond)
		}
	}
	took := time.Since(began)
	after, err := cpu(b.target.process.cmd.Process.Pid)
	b.add("submitted, generated, stored and charged", quickJobs, took, after-before, "", "")
	return ids, err
}

// deliveries runs jobs with callbacks to many receivers, some of them dead, and prints the time
// until every live receiver has its event.
func (b *jobBench) deliveries() error {
	listener, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	release := make(chan struct{}) // ends the requests to dead receivers
	defer close(release)
	var mu sync.Mutex
	got := map[string]bool{}
	live := make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := strings.Cut(r.Host, ":")
		if isDead(host) {
			select {
			case <-release:
			case <-r.Context().Done():
			}
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if got[host] = true; len(got) == receivers-deadReceivers {
			close(live)
			got = map[string]bool{}
		}
	})}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return err
	}
	began := time.Now()
	if _, err := b.drive("accepted with a callback", receivers, b.submit("quick", "http://127.1.%d.%d:"+port+"/hook")); err != nil {
		return err
	}
	select {
	case <-live:
	case <-time.After(finishWithin):
		return errors.New("some live receivers got no event in time")
	}
	took := time.Since(began)
	b.out.add(b.engine, fmt.Sprintf("%d jobs to %d receivers, %d dead: until each live one has an event", receivers, receivers, deadReceivers),
		fmt.Sprintf("%.0f", float64(receivers-deadReceivers)/took.Seconds()), "", fmt.Sprintf("%.1f s in all", took.Seconds()), "")
	return nil
}

// isDead reports whether the receiver at a host never answers. Every tenth receiver is dead.
func isDead(host string) bool {
	var a, c int
	if _, err := fmt.Sscanf(host, "127.1.%d.%d", &a, &c); err != nil {
		return false
	}
	return (a*250+c-1)%(receivers/deadReceivers) == 0
}
