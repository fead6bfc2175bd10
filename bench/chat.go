package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// benchToken is the operator's token of the benchmark's gateways.
const benchToken = "bench-operator"

// target is a server to measure: the upstream itself, or a proxy or gateway in front of it.
type target struct {
	name    string
	process *process                // measured for CPU time; nil for the direct upstream
	address func(s scenario) string // of the case's endpoint
	key     string
	server  bool // whether the CPU time includes the processes of PostgreSQL
}

// round is one measurement of one target.
type round struct {
	load
	cpu  time.Duration // CPU time of the process and its database server per thousand requests
	peak float64       // resident memory so far, MiB
}

// benchChat prints requests per second and CPU time of the gateway on each database, next to the
// direct upstream and a plain reverse proxy.
func benchChat(o options) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	gateway, err := buildGateway(o)
	if err != nil {
		return err
	}
	upstream, err := startProcess(nil, self, "upstream")
	if err != nil {
		return err
	}
	defer func() { _ = upstream.stop() }()
	proxy, err := startProcess(nil, self, "proxy", upstream.url)
	if err != nil {
		return err
	}
	defer func() { _ = proxy.stop() }()
	c := chatBench{
		options:  o,
		gateway:  gateway,
		upstream: upstream.url,
		idle:     newTable("tollgate on", "start to ready ms", "idle resident MiB"),
		results:  map[string]map[string][]round{},
	}
	plain := []target{
		{name: "direct", address: func(s scenario) string { return upstream.url + "/" + s.name + s.form.path }},
		{name: reverseProxy, process: proxy, address: func(s scenario) string { return proxy.url + "/" + s.name + s.form.path }},
	}
	for n := range o.starts {
		if err := c.start(plain, n%2 == 1); err != nil {
			return err
		}
	}
	return c.report()
}

// chatBench collects the rounds of all starts.
type chatBench struct {
	options
	gateway  string // the program
	upstream string
	idle     *table
	targets  []string                      // names, in the order of the report
	results  map[string]map[string][]round // by case and target
}

// start starts each gateway on a fresh database and measures all cases on the gateways and the
// plain targets. If reverse is set, the gateways are measured in the opposite order. Two processes
// of the same build can differ by a few percent for their whole lives, so options.starts repeats
// the start.
func (c *chatBench) start(plain []target, reverse bool) error {
	var gateways []target
	settings := setup{catalog: benchCatalog(c.upstream, c.cases)}
	for _, engine := range c.engines() {
		t, stop, err := startGateway(c.options, c.gateway, engine, settings)
		if err != nil {
			return err
		}
		defer stop()
		c.idle.add(engine, millis(t.process.ready), fmt.Sprintf("%.0f", idleMemory(t.process)))
		gateways = append(gateways, t)
	}
	if c.against != "" {
		t, stop, err := startGateway(c.options, c.against, "SQLite", settings)
		if err != nil {
			return err
		}
		defer stop()
		t.name = otherBuild
		gateways = append(gateways, t)
	}
	c.targets = nil
	for _, t := range slices.Concat(plain, gateways) {
		c.targets = append(c.targets, t.name)
	}
	if reverse {
		slices.Reverse(gateways)
	}
	for _, name := range c.cases {
		if err := c.measure(name, plain, slices.Clone(gateways)); err != nil {
			return err
		}
	}
	return nil
}

// measure runs the rounds of one case. Gateways are measured after the plain targets, and each
// round reverses their order. So no gateway is always first, and none runs twice in a row: a
// second run in a row would be a few percent faster.
func (c *chatBench) measure(name string, plain, gateways []target) error {
	s, err := findScenario(name)
	if err != nil {
		return err
	}
	if c.results[name] == nil {
		c.results[name] = map[string][]round{}
	}
	for n := range c.rounds + 1 { // the first warms up
		slices.Reverse(gateways)
		for _, t := range slices.Concat(plain, gateways) {
			r, err := measureChat(s, t, c.span)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", name, t.name, err)
			}
			if r.requests == 0 {
				return fmt.Errorf("%s, %s: no request succeeded: %s\n%s", name, t.name, r.firstError, t.stopLog())
			}
			if n > 0 {
				c.results[name][t.name] = append(c.results[name][t.name], r)
			}
		}
	}
	return nil
}

// report prints the tables, writes the files that the flags name, and checks the limits.
func (c *chatBench) report() error {
	fmt.Printf("### Chat: %d starts, %d rounds of %s each, medians\n\n", c.starts, c.rounds, c.span)
	all := c.figures()
	printFigures(all)
	if c.against != "" {
		for _, name := range c.cases {
			fmt.Println(compareCPU(name, c.results[name]["tollgate, SQLite"], c.results[name][otherBuild]))
		}
	}
	for _, s := range scenarios {
		if slices.Contains(c.cases, s.name) {
			fmt.Printf("- %s: %s\n", s.name, s.note)
		}
	}
	fmt.Println()
	c.idle.print()
	var errs []error
	if c.json != "" {
		errs = append(errs, writeJSON(c.json, all))
	}
	if c.picture != "" {
		errs = append(errs, writePicture(c.picture, all))
	}
	return errors.Join(append(errs, checkLimits(c.limits, all))...)
}

// otherBuild is the target of -against.
const otherBuild = "the other build, SQLite"

// compareCPU returns a line with the CPU time per request of this build relative to the other
// build, round by round, because a slow phase of the machine slows both.
func compareCPU(name string, this, other []round) string {
	var ratios []float64
	for i := range this {
		ratios = append(ratios, float64(this[i].cpu)/float64(max(1, other[i].cpu)))
	}
	slices.Sort(ratios)
	quarter, half := len(ratios)/4, len(ratios)/2
	return fmt.Sprintf("- %s: CPU relative to the other build, round by round: median %.3f, middle half %.3f to %.3f",
		name, (ratios[half]+ratios[len(ratios)-1-half])/2, ratios[quarter], ratios[len(ratios)-1-quarter])
}

// stopLog stops the target's process and returns its log.
func (t target) stopLog() string {
	if t.process == nil {
		return ""
	}
	if err := t.process.stop(); err != nil {
		return err.Error()
	}
	return t.process.log.String()
}

// measureChat sends requests to one target for a span.
func measureChat(s scenario, t target, span time.Duration) (round, error) {
	before, err := t.cpu()
	if err != nil {
		return round{}, err
	}
	var r round
	if r.load, err = drive(s, t.address(s), t.key, span); err != nil {
		return round{}, err
	}
	if t.process == nil || r.requests == 0 {
		return r, nil
	}
	after, err := t.cpu()
	if err != nil {
		return round{}, err
	}
	r.cpu = (after - before) * 1000 / time.Duration(r.requests)
	r.peak, err = memory(t.process.cmd.Process.Pid, "VmHWM")
	return r, err
}

// cpu returns the CPU time of the target's process so far, with that of its database server.
func (t target) cpu() (time.Duration, error) {
	if t.process == nil {
		return 0, nil
	}
	d, err := cpu(t.process.cmd.Process.Pid)
	if err != nil || !t.server {
		return d, err
	}
	server, err := cpuOfProgram("postgres")
	return d + server, err
}

// idleMemory returns the resident memory of an idle process.
func idleMemory(p *process) float64 {
	<-time.After(2 * time.Second)
	mib, err := memory(p.cmd.Process.Pid, "VmRSS")
	if err != nil {
		return 0
	}
	return mib
}

// setup holds the start parameters of a gateway.
type setup struct {
	catalog string
	env     []string // additional environment variables
}

// startGateway starts the gateway on a fresh database with one account. The account's key has every
// limit set. The time to ready is from a second start, because the first start creates the tables.
func startGateway(o options, program, engine string, settings setup) (target, func(), error) {
	ctx, cancel := timeout()
	defer cancel()
	database, drop, err := freshDatabase(ctx, o, engine)
	if err != nil {
		return target{}, nil, err
	}
	catalog := filepath.Join(o.folder, "catalog.yaml")
	if err := os.WriteFile(catalog, []byte(settings.catalog), 0o644); err != nil {
		return target{}, nil, err
	}
	env := []string{
		"TOLLGATE_DATABASE=" + database, "TOLLGATE_CATALOG=" + catalog, "TOLLGATE_LISTEN=127.0.0.1:0",
		"TOLLGATE_MEDIA=file:" + filepath.Join(o.folder, "media"), "TOLLGATE_NO_DEMO=true",
		"TOLLGATE_MAX_CONNECTIONS=9800", "TOLLGATE_MAX_CONNECTIONS_PER_ADDRESS=9800",
		"TOLLGATE_ADMIN_TOKEN=" + benchToken, "BENCH_UPSTREAM_KEY=none",
	}
	env = append(env, settings.env...)
	first, err := startProcess(env, program, "serve")
	if err != nil {
		return target{}, nil, err
	}
	key, err := openAccount(first.url)
	if stopErr := first.stop(); err == nil {
		err = stopErr
	}
	if err != nil {
		return target{}, nil, err
	}
	second, err := startProcess(env, program, "serve")
	if err != nil {
		return target{}, nil, err
	}
	stop := func() {
		_ = second.stop()
		audit := exec.Command(program, "audit")
		audit.Env = append(os.Environ(), env...)
		if out, err := audit.CombinedOutput(); err != nil {
			fmt.Printf("**The books on %s do not agree** (%v):\n\n%s\n", engine, err, out)
		} else {
			var report struct {
				Checked struct {
					Receipts int `json:"receipts"`
				} `json:"checked"`
			}
			if err := json.Unmarshal(out, &report); err != nil {
				fmt.Println(err)
			}
			fmt.Printf("Books on %s after the run: they agree, %d receipts.\n", engine, report.Checked.Receipts)
		}
		if err := drop(); err != nil {
			fmt.Println(err)
		}
	}
	return target{
		name:    "tollgate, " + engine,
		process: second,
		server:  engine == "PostgreSQL",
		address: func(s scenario) string { return second.url + s.form.path },
		key:     key,
	}, stop, nil
}

// benchCatalog has a model and a line for each case to measure. Another build may not know the kinds of
// the other cases.
func benchCatalog(upstream string, cases []string) string {
	var models, lines strings.Builder
	for _, s := range scenarios {
		if !slices.Contains(cases, s.name) {
			continue
		}
		fmt.Fprintf(&models, "  - {id: %s, state: open, %s}\n", s.name, s.form.model)
		fmt.Fprintf(&lines, "  - {id: line-%s, %s, base_url: \"%s/%s%s\", api_key: \"${BENCH_UPSTREAM_KEY}\", models: {%[1]s: bench}}\n",
			s.name, s.form.line, upstream, s.name, s.form.linePath)
	}
	return "models:\n" + models.String() + "lines:\n" + lines.String()
}

// openAccount creates an account with money and returns its key.
func openAccount(url string) (string, error) {
	account, err := operate(url, "/accounts", `{"name":"bench"}`, "id")
	if err != nil {
		return "", err
	}
	if _, err := operate(url, "/accounts/"+account+"/credits", `{"usd":1000000}`, ""); err != nil {
		return "", err
	}
	return operate(url, "/accounts/"+account+"/keys",
		`{"name":"bench","rpm":1000000,"daily_budget_usd":500000,"total_limit_usd":900000,"allowed_ips":["127.0.0.0/8"]}`, "key")
}

// operate sends a POST request to the operator API and returns one member of the answer.
func operate(url, path, body, member string) (string, error) {
	ctx, cancel := timeout()
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/admin/v1"+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+benchToken)
	raw, err := send(http.DefaultClient, req, http.StatusOK)
	if err != nil {
		return "", err
	}
	var answer map[string]any
	err = json.Unmarshal(raw, &answer)
	value, _ := answer[member].(string)
	return value, err
}

// send sends a request and returns the body. It returns an error unless the status is want.
func send(client *http.Client, r *http.Request, want int) ([]byte, error) {
	answer, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != want {
		err = fmt.Errorf("%s %s: %s\n%.2000s", r.Method, r.URL.Path, answer.Status, body)
	}
	return body, err
}
