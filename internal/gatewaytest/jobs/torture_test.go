package jobs

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
)

// jobsSeed makes the random jobs and pauses repeatable.
const jobsSeed = 20261122

// TestKillUnderJobs kills nodes at random moments while several accounts run image and video jobs
// with callbacks. Every submission, repeated or not, creates one job. Every job ends once. A kill
// during a call to the provider causes at most one further call. The sums are exact, every result
// is complete, and no unused file remains.
func TestKillUnderJobs(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	kills := 3
	if os.Getenv("TOLLGATE_TORTURE") != "" {
		kills = 100
	}
	storetest.EachURL(t, func(t *testing.T, database string) { killUnderJobs(t, binary, database, kills) })
}

// outcome is the provider's behaviour for a job. The word in the job's prompt selects it.
type outcome struct {
	word      string
	behaviour fakestudio.Behaviour
	refused   bool
}

func outcomes(m fakestudio.Provider, kind string) []outcome {
	unsafe, _ := m.Unsafe(kind)
	longer := 3
	if m.Slow {
		longer = 0
	}
	return []outcome{
		{word: "good"}, {word: "plain"}, {word: "longer", behaviour: fakestudio.Behaviour{Polls: longer}},
		{word: "cut", behaviour: fakestudio.Behaviour{CutLinks: 1}},
		{word: "gone", behaviour: fakestudio.Behaviour{BadLinks: 1}},
		{word: "unsafe", behaviour: unsafe, refused: true},
	}
}

// clientJob is a job of a client.
type clientJob struct {
	tag      string
	by       *scene.Customer
	kind     string
	provider fakestudio.Provider
	outcome  outcome
	count    int64
	called   bool // the job has a callback
	id       string
	started  bool // a poll has returned the status processing
	studio   fakestudio.Fake
	request  []byte
}

// cost returns the cost of the job if it succeeds.
func (j *clientJob) cost() money.Amount {
	if j.kind == "video" {
		return scene.PriceClip
	}
	return money.Amount(j.count * scene.PricePicture)
}

// load submits jobs of several accounts.
type load struct {
	t        testing.TB
	receiver *receiver

	mu         sync.RWMutex
	nodes      []*scene.Node // a node may be dead for a short time
	clientJobs []*clientJob
	serial     int
	random     *rand.Rand
}

// node returns a random node.
func (l *load) node() *scene.Node {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.nodes[l.random.IntN(len(l.nodes))]
}

func killUnderJobs(t *testing.T, binary, database string, kills int) {
	const customers, callers = 3, 2
	p := scene.NewNode(t, binary, database, map[string]string{"private_networks": "127.0.0.0/8", "webhook_retries": "1s,1s,1s,1s,1s"})
	h := &load{t: t, receiver: newReceiver(t), nodes: []*scene.Node{p}, random: rand.New(rand.NewPCG(jobsSeed, 1))}
	studios := setLoadCatalog(t, p)
	if !strings.HasPrefix(database, "sqlite:") {
		h.nodes = append(h.nodes, p.Second())
	}
	var owners []*scene.Customer
	for range customers {
		owners = append(owners, p.Customer())
	}
	stop := make(chan struct{})
	var group sync.WaitGroup
	for _, owner := range owners {
		for range callers {
			group.Go(func() { h.call(owner, studios, stop) })
		}
	}
	for range kills {
		h.mu.Lock()
		moment, victim := time.Duration(300+h.random.IntN(900))*time.Millisecond, h.random.IntN(len(h.nodes))
		h.mu.Unlock()
		scene.Sleep(moment)
		node := h.nodes[victim]
		node.Kill()
		revived := *node
		revived.Restart()
		h.mu.Lock()
		h.nodes[victim] = &revived
		h.mu.Unlock()
	}
	// A busy machine may have had no time for jobs between the kills.
	scene.Eventually(t, "every customer has submitted jobs", func() bool {
		return !slices.ContainsFunc(owners, func(owner *scene.Customer) bool { return h.submissions(owner) < leastJobs })
	})
	close(stop)
	group.Wait()

	last := h.nodes[0]
	for _, owner := range owners {
		owner.Node = last
		h.checkAccount(owner)
	}
	last.Audit(t)
	h.checkFiles(scene.OpenDatabase(t, database), last)
	for _, node := range h.nodes {
		node.CheckStop(t)
	}
	scene.CheckBooks(t, binary, p.Settings)
}

// leastJobs is the number of a customer's jobs that checkAccount needs.
const leastJobs = 5

// submissions returns the number of a customer's submissions so far.
func (l *load) submissions(owner *scene.Customer) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, j := range l.clientJobs {
		if j.by.ID == owner.ID {
			n++
		}
	}
	return n
}

// setLoadCatalog sets a catalog with an image and a video model for each provider, on lines with
// max_concurrent. It returns the fake providers by model.
func setLoadCatalog(t *testing.T, p *scene.Node) map[string]fakestudio.Fake {
	studios := map[string]fakestudio.Fake{}
	var models, lines []map[string]any
	for _, m := range fakestudio.All() {
		for _, kind := range m.Kinds() {
			id, s := m.Name+"-"+kind, m.Open(t)
			s.Always(func(body []byte) fakestudio.Behaviour {
				for _, f := range outcomes(m, kind) {
					if bytes.Contains(body, []byte("outcome "+f.word)) {
						return f.behaviour
					}
				}
				return fakestudio.Behaviour{}
			})
			studios[id] = s
			models = append(models, modelAt(m, kind, id))
			lines = append(lines, m.JobLine(id, s, kind, map[string]any{"max_concurrent": 6}, id))
		}
	}
	p.SetCatalog(models, lines)
	return studios
}

// call submits jobs of a customer until stop is closed. It repeats each submission until it is
// accepted. At most maxOpen jobs run at a time.
func (l *load) call(owner *scene.Customer, studios map[string]fakestudio.Fake, stop <-chan struct{}) {
	const maxOpen = 8
	var open []*clientJob
	for {
		select {
		case <-stop:
			return
		case <-time.After(60 * time.Millisecond):
		}
		open = slices.DeleteFunc(open, l.ended)
		if len(open) >= maxOpen {
			continue
		}
		w := l.clientJob(owner, studios)
		open = append(open, w)
		for w.id == "" {
			caller := owner.On(l.node())
			r, err := caller.Try("POST", scene.PathOf(w.kind), w.request, "Idempotency-Key", w.tag)
			switch {
			case err != nil || r.Status == http.StatusServiceUnavailable:
				scene.Sleep(20 * time.Millisecond) // the node is dead or starting
			case r.Status == http.StatusAccepted:
				var j struct{ ID string }
				if err := json.Unmarshal(r.Raw, &j); err != nil {
					l.t.Errorf("%v in %s", err, r)
					return
				}
				w.id = j.ID
			default:
				l.t.Errorf("a submission was rejected: %s", r)
				return
			}
		}
	}
}

// ended polls a job and reports whether it has ended. It returns false if the node is dead. An
// accepted job must not be unknown, and a started job must not return to the queue.
func (l *load) ended(w *clientJob) bool {
	caller := w.by.On(l.node())
	r, err := caller.Try("GET", "/v1/"+w.kind+"s/jobs/"+w.id, nil)
	if err != nil || r.Status == http.StatusServiceUnavailable {
		return false
	}
	j := scene.ReadJob(l.t, r)
	if r.Status != http.StatusOK || w.started && j.Status == "queued" {
		l.t.Errorf("the poll of job %s (started before: %t) returned %s", w.id, w.started, r)
	}
	w.started = w.started || j.Status == "processing"
	return j.Final()
}

// clientJob returns a new random job.
func (l *load) clientJob(owner *scene.Customer, studios map[string]fakestudio.Fake) *clientJob {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.serial++
	all := fakestudio.All()
	w := &clientJob{tag: fmt.Sprintf("tag-%06d", l.serial), by: owner, kind: "image", provider: all[l.random.IntN(len(all))], count: 1,
		called: l.random.IntN(2) == 0}
	more := map[string]any{}
	switch {
	case l.random.IntN(2) == 0 && w.provider.Video != "":
		w.kind = "video"
	case !w.provider.Single && !w.provider.Lone:
		w.count = int64(1 + l.random.IntN(2))
		more["n"] = w.count
	}
	list := outcomes(w.provider, w.kind)
	w.outcome = list[l.random.IntN(len(list))]
	if w.called {
		more["callback_url"] = l.receiver.address(w.tag)
	}
	model := w.provider.Name + "-" + w.kind
	w.studio = studios[model]
	w.request = scene.JobRequest(model, w.tag+" outcome "+w.outcome.word+".", more)
	l.clientJobs = append(l.clientJobs, w)
	return w
}

// checkAccount waits for the end of each job of an account and checks it.
func (l *load) checkAccount(owner *scene.Customer) {
	t := l.t
	t.Helper()
	clientJobs := map[string]*clientJob{}
	for _, w := range l.clientJobs {
		if w.by == owner {
			if other := clientJobs[w.id]; other != nil {
				t.Errorf("%s and %s got the same job", w.tag, other.tag)
			}
			clientJobs[w.id] = w
		}
	}
	var jobs []scene.OperatorJob
	scene.Eventually(t, "every job has ended", func() bool {
		jobs = owner.JobsOf(t, owner.ID)
		for _, j := range jobs {
			if !j.Final() {
				return false
			}
		}
		return true
	})
	if len(jobs) != len(clientJobs) {
		t.Errorf("%d jobs for %d submissions", len(jobs), len(clientJobs))
	}
	charged := owner.Charges(t)
	var sum money.Amount
	counts := map[string]int{}
	for _, j := range jobs {
		w := clientJobs[j.ID]
		if w == nil {
			t.Errorf("job %s has no submission", j.ID)
			continue
		}
		l.checkJob(w, j, owner)
		if charged[j.ID] != j.Cost {
			t.Errorf("job %s was charged %s and cost %s", j.ID, charged[j.ID], j.Cost)
		}
		sum += j.Cost
		counts[j.Status]++
		delete(charged, j.ID)
	}
	if len(charged) != 0 {
		t.Errorf("charges without a job: %v", charged)
	}
	owner.CheckFunds(t, sum, 0)
	if counts["succeeded"] == 0 || len(jobs) < leastJobs {
		t.Errorf("the load did not reach the gateway: %v", counts)
	}
	t.Logf("%d jobs: %v", len(jobs), counts)
}

// checkJob checks the end of one job.
func (l *load) checkJob(w *clientJob, j scene.OperatorJob, owner *scene.Customer) {
	t := l.t
	lost := 0
	for _, a := range j.Attempts {
		if a.Lost {
			lost++
		}
	}
	submitted := 0
	for _, s := range w.studio.Submissions() {
		if bytes.Contains(s.Body, []byte(w.tag+" ")) {
			submitted++
		}
	}
	// A lost call may not have reached the provider.
	if submitted > len(j.Attempts) || submitted < len(j.Attempts)-lost || len(j.Attempts) > 2 || len(j.Attempts)-lost > 1 {
		t.Errorf("job %s: %d submissions; %s", j.ID, submitted, j)
	}
	polled := owner.Poll(t, w.kind, j.ID)
	switch {
	case j.Status == "succeeded" && !w.outcome.refused:
		if j.Cost != w.cost() || int64(len(polled.Data)) != w.count {
			t.Errorf("job %s cost %s, want %s: %s", j.ID, j.Cost, w.cost(), polled.Raw)
		}
		checkResult(t, owner, w.kind, polled.Model, polled)
	case j.Status == "failed" && j.Cost == 0 && (w.outcome.refused || lost == 2):
		// There is no third submission after two lost answers.
		if lost == 2 && polled.Error.Code != "upstream_error" {
			t.Errorf("job %s: %s", j.ID, polled.Raw)
		}
	default:
		t.Errorf("job %s with outcome %s: %s\n%s", j.ID, w.outcome.word, polled.Raw, j)
	}
	if w.called {
		scene.Eventually(t, "the callback of job "+j.ID, func() bool { return l.receiver.got(w.tag) > 0 })
		l.receiver.check(t, w.tag, polled.Raw)
	}
}

// checkFiles checks that the media folder has all results. Other files must be about to be deleted,
// or be unfinished because of a kill.
func (l *load) checkFiles(db *sql.DB, p *scene.Node) {
	t := l.t
	t.Helper()
	states := map[string]string{}
	rows, err := db.QueryContext(t.Context(), `SELECT name, state FROM media_file`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name, state string
		if err := rows.Scan(&name, &state); err != nil {
			t.Fatal(err)
		}
		states[name] = state
		if state != "public" && state != "gone" {
			t.Errorf("all jobs have ended, but a file is in the state %s", state)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	files := map[string]bool{}
	err = filepath.WalkDir(p.Media, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if filepath.Base(filepath.Dir(path)) == "unfinished" {
			return nil
		}
		files[d.Name()] = true
		if states[d.Name()] == "" {
			t.Errorf("file %s is unknown to the database", d.Name())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, state := range states {
		if state == "public" && !files[name] {
			t.Errorf("a public file is missing")
		}
	}
}
